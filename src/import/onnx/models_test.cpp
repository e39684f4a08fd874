// Real models from ../shared/models, imported and run with reference kernels against the outputs of ONNX Runtime that
// lie beside them (MANIFEST.md there explains the keys). Skipped, saying so, where the folder is absent.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <map>
#include <set>

#include "graph/testing/interpret.h"
#include "import/import.h"
#include "io/array.h"
#include "io/npz.h"

namespace bantam::import {
namespace {

using graph::format_desc;
using graph::testing::HostTensor;
using Tensors = std::map<std::string, HostTensor>;

const std::filesystem::path kModels = "../shared/models";

HostTensor tensor_of(const io::Array& array) { return {array.desc, array.data}; }

std::vector<std::int64_t> shape_of(const HostTensor& tensor) {
  return {tensor.desc.dims, tensor.desc.dims + tensor.desc.rank};
}

std::vector<double> integers_of(const HostTensor& tensor) {
  const auto elements = tensor.as<std::int64_t>();
  return {elements.begin(), elements.end()};
}

struct Difference {
  double largest = 0.0;  ///< absolute difference over the largest magnitude of the expected tensor
  double mean = 0.0;     ///< of the same, over all elements
};

/// ONNX Runtime's sigmoid is accurate to about 1e-7 absolutely; tensors of nothing but tiny probabilities are held to
/// this magnitude.
constexpr double kSmallestMagnitude = 1e-2;

Difference compare(const HostTensor& expected, const HostTensor& found) {
  if (!same_shape_and_type(expected.desc, found.desc)) return {INFINITY, INFINITY};
  if (expected.desc.type != ElementType::kF32)
    return expected.bytes == found.bytes ? Difference{} : Difference{INFINITY, INFINITY};
  const auto a = expected.as<float>();
  const auto b = found.as<float>();
  double largest = 0.0;
  double sum = 0.0;
  double magnitude = kSmallestMagnitude;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) != std::isnan(b[i])) return {INFINITY, INFINITY};
    if (std::isnan(a[i])) continue;
    const double difference = a[i] == b[i] ? 0.0 : std::abs(static_cast<double>(a[i]) - b[i]);
    largest = std::max(largest, difference);
    sum += difference;
    magnitude = std::max(magnitude, std::abs(static_cast<double>(a[i])));
  }
  return {largest / magnitude, sum / std::max<double>(static_cast<double>(a.size()), 1.0) / magnitude};
}

double relative_error(const HostTensor& expected, const HostTensor& found) { return compare(expected, found).largest; }

std::string mangled(std::string name) {
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) == 0 && c != '_'; }, '_');
  return name;
}

struct Model {
  const char* name;
  double tolerance;  ///< relative to the largest magnitude, as MANIFEST.md suggests
  double mean_tolerance;
  std::vector<std::string> fixed;  ///< inputs whose value decides the graph
};

void PrintTo(const Model& model, std::ostream* out) { *out << model.name; }

class OnnxModel : public ::testing::TestWithParam<Model> {};

/// The cases of a reference file, by the part of the key after the last dot.
std::map<std::string, std::pair<Tensors, Tensors>> read_cases(const std::string& path) {
  std::map<std::string, std::pair<Tensors, Tensors>> cases;
  auto arrays = io::read_npz(path);
  EXPECT_TRUE(arrays) << arrays.error().message;
  if (!arrays) return cases;
  for (const auto& [key, array] : *arrays) {
    const auto dot = key.rfind('.');
    auto& tensors = key.starts_with("in.") ? cases[key.substr(dot + 1)].first : cases[key.substr(dot + 1)].second;
    const auto first = key.find('.') + 1;
    tensors.emplace(key.substr(first, dot - first), tensor_of(array));
  }
  return cases;
}

TEST_P(OnnxModel, AgreesWithReference) {
  const auto path = kModels / fmt::format("{}.onnx", GetParam().name);
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is absent";
  auto source = open_source(path);
  ASSERT_TRUE(source) << source.error().message;
  auto declared = declare_model(*source);
  ASSERT_TRUE(declared) << declared.error().message;
  std::map<std::string, graph::Graph> graphs;  // by shapes and fixed values
  Difference worst;
  for (const auto& [name, tensors] : read_cases(kModels / "reference" / fmt::format("{}.npz", GetParam().name))) {
    Options options;
    Tensors inputs;
    std::string signature;
    for (const DeclaredPort& port : declared->inputs) {
      const auto found = tensors.first.find(mangled(port.name));
      ASSERT_NE(found, tensors.first.end()) << name << " has no input " << port.name;
      inputs[port.name] = found->second;
      options.shapes[port.name] = shape_of(found->second);
      signature += format_desc(found->second.desc);
      const auto& fixed = GetParam().fixed;
      if (std::find(fixed.begin(), fixed.end(), port.name) == fixed.end()) continue;
      options.values[port.name] = integers_of(found->second);
      signature += fmt::format("={}", fmt::join(options.values[port.name], ","));
    }
    if (!graphs.contains(signature)) {
      auto graph = import_model(*source, options);
      ASSERT_TRUE(graph) << name << ": " << graph.error().message;
      auto verified = graph::verify(*graph);
      ASSERT_TRUE(verified) << name << ": " << verified.error().message;
      graphs.emplace(signature, std::move(*graph));
    }
    auto results = graph::testing::interpret(graphs.at(signature), inputs);
    ASSERT_TRUE(results) << name << ": " << results.error().message;
    for (const auto& [port, tensor] : *results) {
      const auto expected = tensors.second.find(mangled(port));
      ASSERT_NE(expected, tensors.second.end()) << port;
      const Difference difference = compare(expected->second, tensor);
      worst = {std::max(worst.largest, difference.largest), std::max(worst.mean, difference.mean)};
      EXPECT_LE(difference.largest, GetParam().tolerance) << "case " << name << " output " << port;
      EXPECT_LE(difference.mean, GetParam().mean_tolerance) << "case " << name << " output " << port;
    }
  }
  std::cout << fmt::format("{}: relative error at most {:.3g}, mean at most {:.3g}\n", GetParam().name, worst.largest,
                           worst.mean);
}

INSTANTIATE_TEST_SUITE_P(Shared, OnnxModel,
                         ::testing::Values(Model{"basic-pitch", 5e-3, 1e-4, {}}, Model{"dnsmos-p808", 1e-4, 1e-4, {}},
                                           Model{"dtln-1", 1e-4, 1e-5, {}}, Model{"dtln-2", 1e-4, 1e-5, {}},
                                           Model{"face-rfb-320", 1e-4, 1e-5, {}}, Model{"fastestdet", 1e-4, 1e-5, {}},
                                           Model{"gtcrn-stream", 1e-4, 1e-5, {}},
                                           Model{"qtdnn-tiny-qlinear", 1e-6, 1e-6, {}},
                                           Model{"silero-vad", 1e-4, 1e-5, {"sr"}},
                                           Model{"silero-vad-op18-ifless", 1e-4, 1e-5, {"sr"}},
                                           Model{"yunet-n-320", 1e-4, 1e-5, {}},
                                           // Sums in another order flip activations that lie near a rounding boundary
                                           // by one step of 8 bits in each of 50 layers; the results differ by a step
                                           // or two (1/255 of the range), as MANIFEST.md expects.
                                           Model{"yunet-n-320-qdq-int8", 0.2, 1e-2, {}}),
                         [](const auto& instance) { return mangled(instance.param.name); });

TEST(OnnxStates, CarryOverAsTheRecordedSequenceDid) {
  const auto path = kModels / "dtln-1.onnx";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is absent";
  auto source = open_source(path);
  ASSERT_TRUE(source) << source.error().message;
  Options options;
  options.states = {{"input_3", "tf_op_layer_stack_2"}};
  auto graph = import_model(*source, options);
  ASSERT_TRUE(graph) << graph.error().message;
  EXPECT_EQ(graph->inputs.size(), 1U);
  EXPECT_EQ(graph->outputs.size(), 1U);
  ASSERT_EQ(graph->states.size(), 1U);
  const auto cases = read_cases(kModels / "reference/dtln-1.npz");
  graph::testing::Interpreter interpreter(*graph);
  for (int step = 0; step < 8; ++step) {
    const auto& [in, out] = cases.at(fmt::format("speech-s{}", step));
    auto results = interpreter.run({{"input_2", in.at("input_2")}});
    ASSERT_TRUE(results) << results.error().message;
    EXPECT_LE(relative_error(out.at("activation_2"), results->at("activation_2")), 1e-4) << "step " << step;
  }
}

/// The graphs of a streaming recogniser (WeNet's export), one chunk after another.
class WenetTiny : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto path = kModels / "wenet-tiny/reference.npz";
    if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is absent";
    auto arrays = io::read_npz(path);
    ASSERT_TRUE(arrays) << arrays.error().message;
    for (const auto& [key, array] : *arrays) reference_.emplace(key, tensor_of(array));
  }

  static Result<graph::Graph> import_file(const std::string& name, const Options& options) {
    auto source = open_source(kModels / "wenet-tiny" / name);
    if (!source) return fail(std::move(source.error()));
    return import_model(*source, options);
  }

  Tensors reference_;
};

TEST_F(WenetTiny, EncoderAndCtcFollowTheRecordedChunks) {
  Options options;
  options.dims = {{"T", 67}, {"T_CACHE", 64}, {"T_ADD_T_CACHE", 80}};
  options.values = {{"required_cache_size", {64}}};
  options.states = {{"att_cache", "r_att_cache"}, {"cnn_cache", "r_cnn_cache"}};
  auto encoder = import_file("encoder.onnx", options);
  ASSERT_TRUE(encoder) << encoder.error().message;
  auto ctc = import_file(
      "ctc.onnx", {.dims = {{"T", 16}}, .shapes = {}, .values = {}, .counts = {}, .states = {}, .iterations = {}});
  ASSERT_TRUE(ctc) << ctc.error().message;
  graph::testing::Interpreter interpreter(*encoder);
  for (int chunk = 0; reference_.contains(fmt::format("chunk{}_output", chunk)); ++chunk) {
    const auto of = [&](const char* name) { return reference_.at(fmt::format("chunk{}_{}", chunk, name)); };
    if (of("chunk").desc.dims[1] != 67) break;  // the last chunk is shorter: another graph
    auto results = interpreter.run({{"chunk", of("chunk")}, {"offset", of("offset")}, {"att_mask", of("att_mask")}});
    ASSERT_TRUE(results) << results.error().message;
    EXPECT_LE(relative_error(of("output"), results->at("output")), 1e-4) << "chunk " << chunk;
    auto probabilities = graph::testing::interpret(*ctc, {{"hidden", results->at("output")}});
    ASSERT_TRUE(probabilities) << probabilities.error().message;
    EXPECT_LE(relative_error(of("probs"), probabilities->at("probs")), 1e-4) << "chunk " << chunk;
  }
}

TEST_F(WenetTiny, DecoderScoresTheRecordedHypotheses) {
  const HostTensor& hyps = reference_.at("decoder_hyps");
  const HostTensor& lengths = reference_.at("decoder_hyps_lens");
  const HostTensor& encoder_out = reference_.at("encoder_out");
  const auto all = lengths.as<std::int64_t>();
  Options options;
  options.dims = {{"NBEST", hyps.desc.dims[0]}, {"L", hyps.desc.dims[1]}, {"T", encoder_out.desc.dims[1]}};
  // The longest hypothesis decides the size of a Range; the lengths themselves stay an input.
  options.counts = {{"hyps_lens", std::to_string(*std::max_element(all.begin(), all.end()))}};
  auto decoder = import_file("decoder.onnx", options);
  ASSERT_TRUE(decoder) << decoder.error().message;
  auto results =
      graph::testing::interpret(*decoder, {{"hyps", hyps}, {"hyps_lens", lengths}, {"encoder_out", encoder_out}});
  ASSERT_TRUE(results) << results.error().message;
  EXPECT_LE(relative_error(reference_.at("decoder_score"), results->at("score")), 1e-4);
  EXPECT_LE(relative_error(reference_.at("decoder_r_score"), results->at("r_score")), 1e-4);
}

TEST_F(WenetTiny, NonStreamingEncoderTakesTheWholeUtterance) {
  const HostTensor& features = reference_.at("feats");
  Options options;
  options.shapes = {{"chunk", {1, features.desc.dims[0], features.desc.dims[1]}}, {"att_cache", {4, 4, 0, 40}}};
  auto encoder = import_file("nonstreaming/encoder.onnx", options);
  ASSERT_TRUE(encoder) << encoder.error().message;
  Tensors inputs;
  for (const graph::Port& port : encoder->inputs) {
    HostTensor zero{encoder->value(port.value).desc, {}};
    zero.bytes.resize(static_cast<std::size_t>(zero.desc.bytes()));
    inputs[port.name] = zero;
  }
  inputs["chunk"].bytes = features.bytes;
  auto results = graph::testing::interpret(*encoder, inputs);
  ASSERT_TRUE(results) << results.error().message;
  EXPECT_LE(relative_error(reference_.at("ns_encoder_out"), results->at("output")), 1e-4);
}

}  // namespace
}  // namespace bantam::import
