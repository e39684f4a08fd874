// Replays the inputs on which a fuzz target once failed: regressions/<target>/*. A target that fails again ends the
// process, after the name of the input was printed; sanitizer builds see more.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "io/file.h"
#include "targets.h"

namespace bantam::fuzz {
namespace {

std::vector<std::filesystem::path> reproducers(const Target& target) {
  std::vector<std::filesystem::path> paths;
  std::error_code missing;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(BANTAM_FUZZ_REGRESSIONS) / target.name, missing))
    paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  return paths;
}

class FuzzRegression : public ::testing::TestWithParam<Target> {};

TEST_P(FuzzRegression, IsAnsweredAsPromised) {
  for (const std::filesystem::path& path : reproducers(GetParam())) {
    const auto bytes = io::read_file(path.string());
    ASSERT_TRUE(bytes) << bytes.error().message;
    std::cout << path.filename().string() << std::endl;
    GetParam().run(*bytes);
  }
}

TEST_P(FuzzRegression, EmptyInputIsAnswered) { GetParam().run({}); }

INSTANTIATE_TEST_SUITE_P(Targets, FuzzRegression, ::testing::ValuesIn(kTargets),
                         [](const auto& target) { return std::string(target.param.name); });

TEST(FuzzRegression, EveryFolderBelongsToATarget) {
  for (const auto& entry : std::filesystem::directory_iterator(BANTAM_FUZZ_REGRESSIONS)) {
    const std::string name = entry.path().filename().string();
    EXPECT_TRUE(std::any_of(std::begin(kTargets), std::end(kTargets), [&](const Target& t) { return t.name == name; }))
        << name;
  }
}

}  // namespace
}  // namespace bantam::fuzz
