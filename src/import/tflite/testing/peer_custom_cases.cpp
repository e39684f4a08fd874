// Custom operators: audio front end, detection, streaming buffers.
#include <flatbuffers/flexbuffers.h>

#include "import/tflite/testing/peer_case_builder.h"

namespace bantam::import::tflite::testing {
namespace {

using Shape = std::vector<std::int32_t>;
using Options = std::vector<std::pair<const char*, std::int64_t>>;

std::vector<std::uint8_t> options_of(const Options& options,
                                     const std::vector<std::pair<const char*, float>>& floats = {},
                                     const std::vector<std::pair<const char*, bool>>& flags = {}) {
  flexbuffers::Builder fbb;
  fbb.Map([&] {
    for (const auto& [name, value] : options) fbb.Int(name, value);
    for (const auto& [name, value] : floats) fbb.Float(name, value);
    for (const auto& [name, value] : flags) fbb.Bool(name, value);
  });
  fbb.Finish();
  return fbb.GetBuffer();
}

struct Port {
  TensorType type;
  Shape shape;
  std::optional<Range> range = std::nullopt;
};

PeerCase custom_case(const std::string& name, const std::string& code, const std::vector<Port>& inputs,
                     const std::vector<Port>& outputs, const std::vector<std::uint8_t>& options, int steps = 1) {
  CaseBuilder c(name, steps);
  std::vector<std::int32_t> in;
  std::vector<std::int32_t> out;
  for (const Port& port : inputs) in.push_back(c.input({.type = port.type, .shape = port.shape}, port.range));
  for (const Port& port : outputs) out.push_back(c.output({.type = port.type, .shape = port.shape}));
  c.custom(code, in, out, options);
  return c.finish();
}

void add_transforms(std::vector<PeerCase>& cases) {
  const std::pair<TensorType, const char*> kTypes[] = {{INT16, "i16"}, {INT32, "i32"}, {FLOAT32, "f32"}};
  for (const auto& [type, name] : kTypes) {
    for (const std::int32_t n : {16, 60, 512}) {
      const auto options = options_of({{"T", static_cast<std::int64_t>(type)}, {"fft_length", n}});
      const std::string suffix = std::string(name) + "_" + std::to_string(n);
      const auto range = type == INT32 ? std::optional(Range{-1e9, 1e9}) : std::nullopt;
      cases.push_back(custom_case("SignalRfft_" + suffix, "SignalRfft", {{type, {2, n - 4}, range}},
                                  {{type, {2, n + 2}}}, options));
      cases.push_back(
          custom_case("SignalIrfft_" + suffix, "SignalIrfft", {{type, {2, n + 2}, range}}, {{type, {2, n}}}, options));
    }
  }
}

void add_levels(std::vector<PeerCase>& cases) {
  const Range kLevels{0, 100000};
  cases.push_back(custom_case("SignalWindow", "SignalWindow", {{INT16, {3, 30}}, {INT16, {30}}}, {{INT16, {3, 30}}},
                              options_of({{"shift", 12}})));
  cases.push_back(custom_case("SignalFftAutoScale", "SignalFftAutoScale", {{INT16, {50}, Range{-300, 300}}},
                              {{INT16, {50}}, {INT32, {}}}, {}, 3));
  cases.push_back(custom_case("SignalEnergy", "SignalEnergy", {{INT16, {40}}}, {{UINT32, {20}}},
                              options_of({{"start_index", 0}, {"end_index", 20}})));
  cases.push_back(custom_case("SignalFilterBankSquareRoot", "SignalFilterBankSquareRoot",
                              {{UINT64, {40}, Range{0, 1e15}}, {INT32, {}, Range{0, 9}}}, {{UINT32, {40}}}, {}, 3));
  cases.push_back(custom_case("SignalFilterBankLog", "SignalFilterBankLog", {{UINT32, {40}, kLevels}}, {{INT16, {40}}},
                              options_of({{"input_correction_bits", 3}, {"output_scale", 1600}}), 2));
  CaseBuilder bank("SignalFilterBank");
  const int energies = bank.input({.type = UINT32, .shape = {20}});
  const int falling = bank.weights({.type = INT16, .shape = {12}});
  const int rising = bank.weights({.type = INT16, .shape = {12}});
  const int bins = bank.weights({.type = INT16, .shape = {5}}, Range{0, 17});
  const int weights = bank.weights({.type = INT16, .shape = {5}}, Range{0, 9});
  const int widths = bank.weights({.type = INT16, .shape = {5}}, Range{0, 3});
  bank.custom("SignalFilterBank", {energies, falling, rising, bins, weights, widths},
              {bank.output({.type = UINT64, .shape = {4}})}, options_of({{"num_channels", 4}}));
  cases.push_back(bank.finish());
  for (const bool clamping : {false, true})
    cases.push_back(custom_case(std::string("SignalFilterBankSpectralSubtraction") + (clamping ? "_clamping" : ""),
                                "SignalFilterBankSpectralSubtraction", {{UINT32, {8}, kLevels}},
                                {{UINT32, {8}}, {UINT32, {8}}},
                                options_of({{"smoothing", 655},
                                            {"one_minus_smoothing", 15729},
                                            {"alternate_smoothing", 983},
                                            {"alternate_one_minus_smoothing", 15401},
                                            {"min_signal_remaining", 819},
                                            {"num_channels", 8},
                                            {"smoothing_bits", 10},
                                            {"spectral_subtraction_bits", 14}},
                                           {}, {{"clamping", clamping}}),
                                6));
}

void add_streams(std::vector<PeerCase>& cases) {
  cases.push_back(custom_case("SignalDelay_short", "SignalDelay", {{INT16, {2, 5}}}, {{INT16, {2, 5}}},
                              options_of({{"delay_length", 3}}), 4));
  cases.push_back(custom_case("SignalDelay_long", "SignalDelay", {{INT16, {5}}}, {{INT16, {5}}},
                              options_of({{"delay_length", 12}}), 6));
  // Prefilled, so that every frame is valid: others are left as they were by the original.
  cases.push_back(custom_case("SignalFramer", "SignalFramer", {{INT16, {2, 6}}}, {{INT16, {2, 2, 5}}, {BOOL, {}}},
                              options_of({{"frame_size", 5}, {"frame_step", 3}}, {}, {{"prefill", true}}), 4));
  cases.push_back(custom_case(
      "SignalStacker", "SignalStacker", {{INT16, {3}}}, {{INT16, {6}}, {BOOL, {}}},
      options_of({{"num_channels", 3}, {"stacker_left_context", 1}, {"stacker_right_context", 0}, {"stacker_step", 1}}),
      5));
  cases.push_back(custom_case("SignalOverlapAdd_i16", "SignalOverlapAdd", {{INT16, {2, 2, 7}}}, {{INT16, {2, 6}}},
                              options_of({{"T", static_cast<std::int64_t>(INT16)}, {"frame_step", 3}}), 4));
  cases.push_back(custom_case("SignalOverlapAdd_f32", "SignalOverlapAdd", {{FLOAT32, {1, 7}}}, {{FLOAT32, {3}}},
                              options_of({{"T", static_cast<std::int64_t>(FLOAT32)}, {"frame_step", 3}}), 4));
  CaseBuilder buffer("CIRCULAR_BUFFER", 6);
  const int x = buffer.input({.type = INT8, .shape = {1, 1, 2, 3}});
  const int y =
      buffer.output({.type = INT8, .shape = {1, 4, 2, 3}, .scale = {0.1F}, .zero_point = {-9}, .is_variable = true});
  buffer.custom("CIRCULAR_BUFFER", {x}, {y}, options_of({{"cycles_max", 1}}));
  cases.push_back(buffer.finish());
}

void add_detection(std::vector<PeerCase>& cases) {
  struct Form {
    const char* name;
    bool regular;
    std::int32_t classes_per_detection;
    std::int32_t background;
  };
  constexpr Form kForms[] = {{"fast", false, 1, 1}, {"regular", true, 1, 1}, {"regular_plain", true, 1, 0}};
  constexpr std::int32_t kBoxes = 60;
  constexpr std::int32_t kClasses = 3;
  constexpr std::int32_t kDetections = 12;
  for (const Form& form : kForms) {
    CaseBuilder c(std::string("TFLite_Detection_PostProcess_") + form.name);
    const int boxes = c.input({.shape = {1, kBoxes, 4}}, Range{-1, 1});
    const int scores = c.input({.shape = {1, kBoxes, kClasses + form.background}}, Range{0, 1});
    const int anchors = c.weights({.shape = {kBoxes, 4}}, Range{0.2, 0.8});
    const std::int32_t places = kDetections * form.classes_per_detection;
    const int y0 = c.output({.shape = {1, places, 4}});
    const int y1 = c.output({.shape = {1, places}});
    const int y2 = c.output({.shape = {1, places}});
    const int y3 = c.output({.shape = {1}});
    c.custom("TFLite_Detection_PostProcess", {boxes, scores, anchors}, {y0, y1, y2, y3},
             options_of({{"max_detections", kDetections},
                         {"max_classes_per_detection", form.classes_per_detection},
                         {"detections_per_class", 5},
                         {"num_classes", kClasses}},
                        {{"nms_score_threshold", 0.3F},
                         {"nms_iou_threshold", 0.5F},
                         {"y_scale", 10.0F},
                         {"x_scale", 10.0F},
                         {"h_scale", 5.0F},
                         {"w_scale", 5.0F}},
                        {{"use_regular_nms", form.regular}}));
    cases.push_back(c.finish());
  }
}

}  // namespace

void add_custom_cases(std::vector<PeerCase>& cases) {
  add_transforms(cases);
  add_levels(cases);
  add_streams(cases);
  add_detection(cases);
}

}  // namespace bantam::import::tflite::testing
