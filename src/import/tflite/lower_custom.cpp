// Custom operators that are no signal processing: the boxes of single-shot detectors, buffers of streaming models.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/shape.h"
#include "import/tflite/operators.h"
#include "ops/data/expand/expand.h"
#include "ops/detect/detection_postprocess/detection_postprocess.h"

namespace bantam::import::tflite {
namespace {

using enum ElementType;

float float_option(Lowering& op, const CustomOptions& options, std::string_view name) {
  const auto value = options.number(name);
  if (!value) op.invalid(fmt::format("option {} is no number", name), "one");
  return static_cast<float>(value.value_or(0));
}

std::int32_t count_option(Lowering& op, const CustomOptions& options, std::string_view name, std::int32_t absent) {
  return options.has(name) ? op.integer_option(options, name, 1) : absent;
}

void lower_detection_postprocess(Lowering& op) {
  const CustomOptions options =
      op.custom_options({"max_detections", "max_classes_per_detection", "detections_per_class", "use_regular_nms",
                         "nms_score_threshold", "nms_iou_threshold", "num_classes", "y_scale", "x_scale", "h_scale",
                         "w_scale", "_output_quantized", "_support_output_type_float_in_quantized_op"});
  constexpr std::int32_t kDefaultPerClass = 100;
  ops::DetectionPostprocessParams params;
  params.max_detections = op.integer_option(options, "max_detections", 0, 1 << 20);
  params.classes = op.integer_option(options, "num_classes", 1);
  params.classes_per_detection = op.integer_option(options, "max_classes_per_detection", 1);
  params.detections_per_class = count_option(op, options, "detections_per_class", kDefaultPerClass);
  params.regular = op.flag_option(options, "use_regular_nms") ? 1 : 0;
  params.score_threshold = float_option(op, options, "nms_score_threshold");
  params.overlap_threshold = float_option(op, options, "nms_iou_threshold");
  params.scale_y = float_option(op, options, "y_scale");
  params.scale_x = float_option(op, options, "x_scale");
  params.scale_h = float_option(op, options, "h_scale");
  params.scale_w = float_option(op, options, "w_scale");
  if (op.results() != 4) return op.invalid(fmt::format("{} results", op.results()), "4");
  // Files may leave the number of places open; then it is what the detections can fill.
  const Dims declared = integers(op.out_tensor(1).shape());
  const std::int64_t filled = std::int64_t{params.max_detections} *
                              (params.regular != 0 ? 1 : std::min(params.classes_per_detection, params.classes));
  const std::int64_t places = declared.size() == 2 && declared[1] > 0 ? declared[1] : filled;
  if (places < params.max_detections || places > kMaxElements)
    return op.invalid(fmt::format("{} places for {} detections", places, params.max_detections), "enough");
  params.results = static_cast<std::int32_t>(places);
  const auto results = op.emit_all(ops::kDetectionPostprocess, params, {op.in(0), op.in(1), op.in(2)});
  for (int i = 0; i < 4; ++i) op.result(i, results[static_cast<std::size_t>(i)]);
}

/// How often the original lets the rest of the model run when the file does not say: once per invoke for the buffers of
/// these sizes, else every second time.
bool runs_every_time(std::int64_t slots) {
  constexpr std::array<std::int64_t, 3> kEveryTime = {5, 13, 25};
  return std::find(kEveryTime.begin(), kEveryTime.end(), slots) != kEveryTime.end();
}

/// The last slots of a stream, the operand's newest.
void lower_circular_buffer(Lowering& op) {
  const CustomOptions options = op.custom_options({"cycles_max"});
  const std::int32_t cycles = options.has("cycles_max") ? op.integer_option(options, "cycles_max", -1) : 0;
  if (!op.require_rank(0, 4, 4) || !op.require_type(0, {kI8})) return;
  const Dims newest = op.dims(op.in(0));
  Dims kept = integers(op.out_tensor().shape());
  if (kept.size() != 4 || newest[1] != 1 || kept[0] != newest[0] || kept[1] < 1 || kept[2] != newest[2] ||
      kept[3] != newest[3])
    return op.invalid("a result that is not the operand with more slots", "one slot in, several out");
  if (kept[0] != 1) return op.unsupported(fmt::format("a batch of {}", kept[0]), "1");
  if (cycles > 1 || (cycles <= 0 && !runs_every_time(kept[1])))
    return op.unsupported("a buffer that ends most invokes early", "cycles_max 1");
  if (kept[1] == 1) return op.result(0, op.in(0));
  const std::int64_t slots = kept[1];
  kept[1] = slots - 1;
  // An int8 buffer begins as the number zero, where it has a scale.
  ValueId initial = kNoValue;
  if (port_quantization(op.out_tensor()) && op.out_tensor().is_variable()) {
    const ValueId zero = op.scalar(kI8, op.out_affine().zero_point);
    initial = op.emit(ops::kExpand, ops::ExpandParams{int_list(kept)}, {zero});
  }
  const ValueId buffer = op.concat({op.read_state("buffer", kI8, kept, initial), op.in(0)}, 1);
  op.result(0, buffer);
  op.write_state("buffer", op.slice_axis(buffer, 1, 1, slots - 1));
}

constexpr CustomOperatorRow kCustomOperators[] = {
    {"CIRCULAR_BUFFER", {schema::BuiltinOperator::CUSTOM, 1, 1, 1, lower_circular_buffer}},
    {"TFLite_Detection_PostProcess", {schema::BuiltinOperator::CUSTOM, 3, 3, 4, lower_detection_postprocess}},
};

}  // namespace

std::span<const CustomOperatorRow> custom_operators() noexcept { return kCustomOperators; }

}  // namespace bantam::import::tflite
