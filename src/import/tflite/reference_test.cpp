// Real models against their reference outputs, where the shared folder with both exists beside the repository.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <regex>
#include <set>

#include "graph/testing/interpret.h"
#include "import/import.h"
#include "io/npz.h"

namespace bantam::import {
namespace {

const std::filesystem::path kReferenceModels = "../shared/models";

struct ReferenceModel {
  const char* name;
  double tolerance;               ///< relative to the largest magnitude of an output; 0: every bit
  double constant_tolerance = 0;  ///< of the case "const", where it is larger
};

void PrintTo(const ReferenceModel& model, std::ostream* out) { *out << model.name; }

class TfliteReference : public ::testing::TestWithParam<ReferenceModel> {};

/// How reference files spell tensor names.
std::string key_name(const std::string& name) { return std::regex_replace(name, std::regex("[^A-Za-z0-9_]"), "_"); }

Result<Source> open_file(const std::filesystem::path& path) {
  auto file = io::MappedFile::open(path.string());
  if (!file) return fail(std::move(file.error()));
  auto owner = std::make_shared<io::MappedFile>(std::move(*file));
  Source source;
  source.name = path.filename().string();
  source.bytes = owner->bytes();
  source.owner = std::move(owner);
  return source;
}

/// Cases in the order they must run: "speech-s2" after "speech-s1", "-s10" after "-s9".
struct Case {
  std::string sequence;
  int step = -1;  ///< -1: on its own

  double tolerance(const ReferenceModel& model) const {
    return sequence == "const" ? std::max(model.tolerance, model.constant_tolerance) : model.tolerance;
  }
  std::string name() const { return step < 0 ? sequence : sequence + "-s" + std::to_string(step); }
  auto operator<=>(const Case&) const = default;
};

std::set<Case> cases_of(const io::NpzReader& reference) {
  const std::regex key(R"((?:in|out)\.[A-Za-z0-9_]+\.(.+?)(?:-s(\d+))?)");
  std::set<Case> cases;
  for (const std::string& name : reference.names()) {
    std::smatch match;
    if (std::regex_match(name, match, key)) cases.insert({match[1], match[2].matched ? std::stoi(match[2]) : -1});
  }
  return cases;
}

void expect_close(const io::Array& expected, const std::vector<std::byte>& found, double tolerance) {
  ASSERT_EQ(expected.data.size(), found.size());
  if (tolerance == 0 || expected.desc.type != ElementType::kF32) {
    EXPECT_EQ(expected.data, found);
    return;
  }
  const auto wanted = io::elements_of<float>(expected);
  double largest = 0;
  double worst = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    float value = 0;
    std::memcpy(&value, found.data() + i * sizeof value, sizeof value);
    largest = std::max(largest, std::abs(static_cast<double>(wanted[i])));
    const double error = std::abs(static_cast<double>(value) - static_cast<double>(wanted[i]));
    worst = std::isnan(error) ? INFINITY : std::max(worst, error);
  }
  EXPECT_LE(worst, tolerance * largest);
}

TEST_P(TfliteReference, EveryCaseAndSequenceAgrees) {
  const auto path = kReferenceModels / (std::string(GetParam().name) + ".tflite");
  const auto npz = kReferenceModels / "reference" / (std::string(GetParam().name) + ".npz");
  if (!std::filesystem::exists(path) || !std::filesystem::exists(npz)) GTEST_SKIP() << "no shared models here";
  auto source = open_file(path);
  ASSERT_TRUE(source) << source.error().message;
  auto graph = import_tflite(*source, {});
  ASSERT_TRUE(graph) << graph.error().message;
  auto reference = io::NpzReader::open(npz.string());
  ASSERT_TRUE(reference) << reference.error().message;

  graph::testing::Interpreter runner(*graph);
  const auto cases = cases_of(*reference);
  ASSERT_FALSE(cases.empty());
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name());
    if (c.step <= 0) runner.reset();
    std::map<std::string, graph::testing::HostTensor> inputs;
    for (const graph::Port& port : graph->inputs) {
      auto array = reference->read("in." + key_name(port.name) + "." + c.name());
      ASSERT_TRUE(array) << array.error().message;
      inputs[port.name] = {array->desc, std::move(array->data)};
    }
    auto outputs = runner.run(inputs);
    ASSERT_TRUE(outputs) << outputs.error().message;
    for (const graph::Port& port : graph->outputs) {
      SCOPED_TRACE(port.name);
      auto expected = reference->read("out." + key_name(port.name) + "." + c.name());
      ASSERT_TRUE(expected) << expected.error().message;
      expect_close(*expected, (*outputs)[port.name].bytes, c.tolerance(GetParam()));
    }
  }
}

constexpr double kFloat = 1e-4;
constexpr double kLongChain = 1e-3;
/// Normalising a constant frame divides the rounding error of its mean (some 1e-6, by the order of the sum) by the root
/// of epsilon 1e-7.
constexpr double kCancellation = 3e-2;
constexpr double kHybrid = 1e-2;  ///< a rounding step of an input quantised at run time may flip

INSTANTIATE_TEST_SUITE_P(
    SharedModels, TfliteReference,
    ::testing::Values(ReferenceModel{"kws-dscnn-int8", 0}, ReferenceModel{"vww96-int8", 0},
                      ReferenceModel{"resnet8-cifar10-int8", 0}, ReferenceModel{"ad01-int8", 0},
                      ReferenceModel{"person-detect-int8", 0}, ReferenceModel{"micro-speech-int8", 0},
                      ReferenceModel{"streaming-wakeword-int8", 0}, ReferenceModel{"keyword-svdf-int8", 0},
                      ReferenceModel{"keyword-svdf-recal-int8", 0}, ReferenceModel{"mnist-lstm-int8", 0},
                      ReferenceModel{"dtln-1-int8", 0}, ReferenceModel{"mnist-lstm-float", kFloat},
                      ReferenceModel{"mww-okay-nabu-int8", 0}, ReferenceModel{"mww-vad-int8", 0},
                      ReferenceModel{"audio-preprocessor-int8", 0}, ReferenceModel{"kws-dscnn-hybrid", kHybrid},
                      ReferenceModel{"vww96-float", kFloat}, ReferenceModel{"ad01-float", kFloat},
                      ReferenceModel{"resnet8-cifar10-float", kFloat}, ReferenceModel{"dtln-1-float", kFloat},
                      ReferenceModel{"dtln-1-hybrid", kHybrid}, ReferenceModel{"dtln-aec-128-1", kFloat, kCancellation},
                      ReferenceModel{"blazeface-short-range-fp16", kFloat},
                      ReferenceModel{"lyra-soundstream-encoder", kLongChain}),
    [](const auto& parameter) {
      std::string name = parameter.param.name;
      std::replace(name.begin(), name.end(), '-', '_');
      return name;
    });

}  // namespace
}  // namespace bantam::import
