#include "support/models.h"

#include <algorithm>
#include <ostream>

#include "base/testing/sanitizers.h"

namespace bantam::testing {
namespace {

constexpr double kDeepDetector = 1e-3;  // rounding adds up over 50 to 70 convolutions

TestModel bundled(const std::string& name) {
  return {name, "models/" + name + ".onnx", "models/reference/" + name + ".npz"};
}

TestModel shared(const std::string& file) {
  const std::string stem = std::filesystem::path(file).stem().string();
  return {stem, shared_folder() / file, shared_folder() / "reference" / (stem + ".npz")};
}

/// The three graphs of the bundled speech recogniser, for one whole chunk of a stream and four hypotheses.
std::vector<TestModel> recogniser_graphs() {
  const std::filesystem::path folder = "models/recogniser";
  const auto graph = [&](const std::string& name) {
    return TestModel{"recogniser-" + name, folder / (name + ".onnx"), folder / "reference" / (name + ".npz")};
  };
  TestModel encoder = graph("encoder");
  encoder.dims = {{"T", 67}, {"T_CACHE", 64}, {"T_ADD_T_CACHE", 80}};
  encoder.values = {{"required_cache_size", {64}}};
  TestModel ctc = graph("ctc");
  ctc.dims = {{"T", 16}};
  TestModel decoder = graph("decoder");
  decoder.dims = {{"NBEST", 4}, {"L", 12}, {"T", 32}};
  return {encoder, ctc, decoder};
}

}  // namespace

ModelSpec TestModel::spec() const {
  return {.name = name, .path = path, .dims = dims, .values = values, .states = states};
}

void PrintTo(const TestModel& model, std::ostream* out) { *out << model.name; }

std::filesystem::path shared_folder() { return "../shared/models"; }

std::vector<TestModel> sampled(const std::vector<TestModel>& models) {
  std::vector<TestModel> kept;
  for (std::size_t i = 0; i < models.size(); i += kSanitized ? 4 : 1) kept.push_back(models[i]);
  return kept;
}

bool have_shared_models() { return std::filesystem::is_directory(shared_folder()); }

std::vector<TestModel> bundled_models() {
  TestModel voice = bundled("voice-activity");
  voice.states = {{"state_in", "state_out"}};
  TestModel denoise = bundled("denoise");
  denoise.states = {{"history_in", "history_out"},
                    {"overlap_in", "overlap_out"},
                    {"hidden_in", "hidden_out"},
                    {"cell_in", "cell_out"}};
  TestModel sign = bundled("sign");
  sign.dims = {{"batch", 1}};
  std::vector<TestModel> models = {bundled("keyword"),
                                   voice,
                                   denoise,
                                   sign,
                                   bundled("digit-reader"),
                                   bundled("shape-detector"),
                                   bundled("scene-backbone"),
                                   bundled("scene-head")};
  std::ranges::copy(recogniser_graphs(), std::back_inserter(models));
  return models;
}

std::vector<TestModel> shared_models() {
  if (!have_shared_models()) return {};
  std::vector<TestModel> models;
  for (const char* file : {"kws-dscnn-int8.tflite",
                           "vww96-int8.tflite",
                           "resnet8-cifar10-int8.tflite",
                           "ad01-int8.tflite",
                           "person-detect-int8.tflite",
                           "micro-speech-int8.tflite",
                           "streaming-wakeword-int8.tflite",
                           "mww-okay-nabu-int8.tflite",
                           "mww-vad-int8.tflite",
                           "kws-dscnn-hybrid.tflite",
                           "vww96-float.tflite",
                           "keyword-svdf-int8.tflite",
                           "keyword-svdf-recal-int8.tflite",
                           "mnist-lstm-int8.tflite",
                           "mnist-lstm-float.tflite",
                           "dtln-1-int8.tflite",
                           "dtln-1-float.tflite",
                           "dtln-1-hybrid.tflite",
                           "dtln-aec-128-1.tflite",
                           "ad01-float.tflite",
                           "audio-preprocessor-int8.tflite",
                           "blazeface-short-range-fp16.tflite",
                           "lyra-soundstream-encoder.tflite",
                           "resnet8-cifar10-float.tflite",
                           "gtcrn-stream.onnx"})
    models.push_back(shared(file));
  models.push_back(shared("dtln-1.onnx"));
  models.back().states = {{"input_3", "tf_op_layer_stack_2"}};
  models.push_back(shared("dtln-2.onnx"));
  models.back().states = {{"input_5", "tf_op_layer_stack_5"}};
  for (const char* file : {"face-rfb-320.onnx", "yunet-n-320.onnx", "fastestdet.onnx"}) {
    models.push_back(shared(file));
    models.back().tolerance = kDeepDetector;
  }
  return models;
}

std::vector<TestModel> quick_models() {
  std::vector<TestModel> models = bundled_models();
  if (kSanitized) std::erase_if(models, [](const TestModel& m) { return m.name.starts_with("recogniser-"); });
  return models;
}

std::vector<TestModel> all_models() {
  std::vector<TestModel> models = bundled_models();
  std::ranges::copy(shared_models(), std::back_inserter(models));
  return models;
}

FleetSpec bundled_fleet() {
  FleetSpec fleet;
  for (const TestModel& model : quick_models()) fleet.models.push_back(model.spec());
  fleet.links = {{"denoise", "enhanced", "voice-activity", "frame"},
                 {"scene-backbone", "features", "scene-head", "features"}};
  return fleet;
}

std::string test_name(const ::testing::TestParamInfo<TestModel>& info) {
  std::string name = info.param.name;
  std::ranges::replace(name, '-', '_');
  return name;
}

}  // namespace bantam::testing
