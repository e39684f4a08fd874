// docs/operators.md says what the tables say.
//
//   documentation_test --update     writes it anew
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <sstream>
#include <string>
#include <string_view>

#include "documentation/operator_tables.h"
#include "io/file.h"
#include "support/conformance_case.h"

namespace bantam::testing {
namespace {

constexpr const char* kDocument = "docs/operators.md";

bool have_test_data() { return std::filesystem::is_directory(kConformanceData); }

/// The first line in which they differ.
std::string first_difference(const std::string& written, const std::string& now) {
  std::istringstream a(written);
  std::istringstream b(now);
  std::string old_line;
  std::string new_line;
  while (true) {
    const bool more_old = static_cast<bool>(std::getline(a, old_line));
    const bool more_new = static_cast<bool>(std::getline(b, new_line));
    if (!more_old && !more_new) return "nothing";
    if (more_old != more_new || old_line != new_line)
      return "written: " + (more_old ? old_line : "the end") + "\nnow:     " + (more_new ? new_line : "the end");
  }
}

TEST(OperatorsDocument, SaysWhatTheTablesSay) {
  if (!have_test_data()) GTEST_SKIP() << kConformanceData << " is absent; install libonnx-testdata";
  const auto written = io::read_file(kDocument);
  ASSERT_TRUE(written) << written.error().message;
  const std::string text(reinterpret_cast<const char*>(written->data()), written->size());
  const std::string now = operators_document();
  EXPECT_TRUE(text == now) << kDocument << " is stale: run documentation_test --update in the repository's root.\n"
                           << first_difference(text, now);
}

TEST(OperatorHeaders, StateTheAccuracyThatTheirKernelsHave) {
  const auto stated = stated_accuracies();
  for (const ops::OpDef* op : ops::all_ops()) {
    const auto found = stated.find(std::string(op->name));
    if (found == stated.end()) {
      ADD_FAILURE() << "the header of " << op->name << " lacks: extern const OpDef ...;  // \"" << op->name
                    << "\". Accuracy: exact | consistent | bound 1e-05";
      continue;
    }
    // That kernels are as accurate as they say, exact ones to the bit, EveryOperator of ops_test checks.
    if (const float bound = accuracy_bound(*op); bound > 0.0F) {
      EXPECT_EQ(found->second, fmt::format("bound {:.0e}", bound)) << op->name;
    } else {
      EXPECT_TRUE(found->second == "exact" || found->second == "consistent") << op->name << ": " << found->second;
    }
  }
}

int update() {
  if (!have_test_data()) {
    std::cerr << kConformanceData << " is absent; install libonnx-testdata\n";
    return 1;
  }
  const auto done = io::write_file(kDocument, std::string_view(operators_document()));
  if (!done) std::cerr << done.error().message << '\n';
  return done ? 0 : 1;
}

}  // namespace

int run(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  return argc == 2 && std::string_view(argv[1]) == "--update" ? update() : RUN_ALL_TESTS();
}

}  // namespace bantam::testing

int main(int argc, char** argv) { return bantam::testing::run(argc, argv); }
