// The models that the system tests run: the bundled ones, and published ones in ../shared/models where that folder is.
//
// Tests iterate these lists, so that a row more is a model more in every test. Paths are relative to the repository's
// root, which is the tests' working directory. Values; no shared state.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <iosfwd>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "bantam/compiler.h"

namespace bantam::testing {

struct TestModel {
  std::string name;
  std::filesystem::path path;
  std::filesystem::path reference;
  /// Largest error of float outputs relative to the output's largest magnitude; integer outputs are compared exactly.
  double tolerance = 1e-4;
  std::map<std::string, std::int64_t> dims{};
  std::vector<std::pair<std::string, std::string>> states{};
  /// Inputs that are constants of a compilation, as they set shapes inside the graph.
  std::map<std::string, std::vector<double>> values{};

  /// As a user runs it: dimensions set, outputs carried over to the next invoke.
  ModelSpec spec() const;
  /// As the reference files record it: states are inputs and outputs, shapes come from the file.
  ModelSpec reference_spec() const { return {.name = name, .path = path}; }
};

void PrintTo(const TestModel& model, std::ostream* out);  // NOLINT: GoogleTest's name

/// Those of models/, which are always there.
std::vector<TestModel> bundled_models();

/// Those of ../shared/models; empty when the folder is absent.
std::vector<TestModel> shared_models();

/// The bundled ones; in a sanitized build without the recogniser's, which take seconds each to plan there.
std::vector<TestModel> quick_models();

/// Every fourth of them in a sanitized build, where a test of many steps takes many times as long; else all.
std::vector<TestModel> sampled(const std::vector<TestModel>& models);

/// Both.
std::vector<TestModel> all_models();

bool have_shared_models();

/// What to say when it is false.
inline constexpr const char* kNoSharedModels =
    "../shared/models is absent: the published models are not tested here, only the bundled ones";

std::filesystem::path shared_folder();

/// The quick models with their links denoise -> voice-activity and scene-backbone -> scene-head.
FleetSpec bundled_fleet();

/// For INSTANTIATE_TEST_SUITE_P: the model's name with what GoogleTest does not allow replaced.
std::string test_name(const ::testing::TestParamInfo<TestModel>& info);

}  // namespace bantam::testing
