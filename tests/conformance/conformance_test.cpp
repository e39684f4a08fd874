// The tests of the ONNX standard (Debian package libonnx-testdata): every folder of every suite goes through compiler
// and runtime, with the default kernels and with the plain ones.
//
// A test that cannot pass stands in exceptions.inc with the reason; one that passes although it stands there is a
// failure, so that the list stays true. CONFORMANCE=word runs only the folders whose names contain the word, and says
// what each of them does.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/testing/sanitizers.h"
#include "support/conformance_case.h"

namespace bantam::testing {
namespace {

constexpr std::size_t kEvery = kSanitized ? 8 : 1;  // of the folders

struct Exception {
  std::string_view prefix;  ///< of the test's name; with a $ at its end the whole name
  std::string_view reason;
  bool expanded_too = true;  ///< also for the test's twin that spells the operator out by simpler ones
};
#include "conformance/exceptions.inc"

bool covers(const Exception& exception, std::string_view name) {
  if (exception.prefix.ends_with('$')) return name == exception.prefix.substr(0, exception.prefix.size() - 1);
  return name.starts_with(exception.prefix) && (exception.expanded_too || !name.ends_with("_expanded"));
}

struct Counts {
  int passed = 0;
  int partly_fixed = 0;  ///< of these, with some inputs constant
  int all_fixed = 0;     ///< of these, with all inputs constant
  int excepted = 0;
  int without_model = 0;

  int all() const { return passed + excepted; }
};

class Conformance : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::is_directory(kConformanceData))
      GTEST_SKIP() << kConformanceData << " is absent; install libonnx-testdata to run ONNX's own tests";
    if (const char* word = std::getenv("CONFORMANCE")) word_ = word;
  }

  void run_suite(const std::string& suite) {
    std::set<std::filesystem::path> folders;
    for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(kConformanceData) / suite))
      folders.insert(entry.path());
    Counts counts;
    std::size_t index = 0;
    for (const auto& folder : folders) {
      const std::string name = folder.filename();
      if (word_.empty() ? index++ % kEvery != 0 : name.find(word_) == std::string::npos) continue;
      if (std::filesystem::exists(folder / "model.onnx")) {
        run_folder(folder, name, counts);
      } else {
        ++counts.without_model;
      }
    }
    std::cout << suite << ": " << counts.passed << " of " << counts.all() << " pass (" << counts.partly_fixed
              << " with some inputs as constants, " << counts.all_fixed << " with all), " << counts.excepted
              << " are not supported";
    if (counts.without_model > 0) std::cout << "; " << counts.without_model << " folders name a model to download";
    std::cout << '\n';
    total_.passed += counts.passed;
    total_.excepted += counts.excepted;
  }

  /// Every row must be there for a test that fails.
  void expect_rows_in_use() const {
    for (std::size_t i = 0; i < std::size(kUnsupported); ++i)
      EXPECT_TRUE(used_[i]) << "no test that fails begins with " << kUnsupported[i].prefix
                            << "; take it from tests/conformance/exceptions.inc";
  }

  bool runs_everything() const { return word_.empty() && kEvery == 1; }

  Counts total_;

 private:
  void run_folder(const std::filesystem::path& folder, const std::string& name, Counts& counts) {
    const CaseOutcome outcome = run_conformance_case(folder);
    const auto exception = std::ranges::find_if(kUnsupported, [&](const Exception& e) { return covers(e, name); });
    const bool excepted = exception != std::end(kUnsupported);
    if (outcome.problem.empty()) {
      EXPECT_FALSE(excepted) << name << " passes; take it from tests/conformance/exceptions.inc";
      ++counts.passed;
      if (outcome.fixed > 0) ++(outcome.fixed == outcome.inputs ? counts.all_fixed : counts.partly_fixed);
    } else {
      EXPECT_TRUE(excepted) << name << ": " << outcome.problem;
      ++counts.excepted;
      if (excepted) used_[static_cast<std::size_t>(exception - std::begin(kUnsupported))] = true;
    }
    if (!word_.empty())
      std::cout << name << ": "
                << (outcome.problem.empty() ? "passes, " + std::to_string(outcome.fixed) + " inputs constant"
                                            : outcome.problem)
                << '\n';
  }

  std::string word_;
  std::vector<bool> used_ = std::vector<bool>(std::size(kUnsupported));
};

TEST_F(Conformance, EveryTestOfOnnxPassesOrStandsInTheListOfExceptions) {
  for (const char* suite : {"node", "simple", "pytorch-converted", "pytorch-operator", "real"}) run_suite(suite);
  std::cout << total_.passed << " of " << total_.all() << " tests of ONNX pass\n";
  if (runs_everything()) expect_rows_in_use();
}

TEST(ConformanceExceptions, AreSortedAndGiveReasons) {
  EXPECT_TRUE(std::ranges::is_sorted(kUnsupported, {}, &Exception::prefix));
  for (const Exception& exception : kUnsupported) EXPECT_FALSE(exception.reason.empty()) << exception.prefix;
}

}  // namespace
}  // namespace bantam::testing
