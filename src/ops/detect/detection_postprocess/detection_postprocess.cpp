#include "ops/detect/detection_postprocess/detection_postprocess.h"

#include <algorithm>
#include <cmath>

#include "ops/common/operands.h"
#include "ops/common/params.h"

namespace bantam::ops {
namespace {

using P = DetectionPostprocessParams;

constexpr ParamField kFields[] = {
    i32_field("results", offsetof(P, results)),
    i32_field("max_detections", offsetof(P, max_detections)),
    i32_field("classes", offsetof(P, classes)),
    i32_field("classes_per_detection", offsetof(P, classes_per_detection)),
    i32_field("detections_per_class", offsetof(P, detections_per_class)),
    bool_field("regular", offsetof(P, regular)),
    f32_field("score_threshold", offsetof(P, score_threshold)),
    f32_field("overlap_threshold", offsetof(P, overlap_threshold)),
    f32_field("scale_y", offsetof(P, scale_y)),
    f32_field("scale_x", offsetof(P, scale_x)),
    f32_field("scale_h", offsetof(P, scale_h)),
    f32_field("scale_w", offsetof(P, scale_w)),
};

constexpr P kDefaults{};

constexpr std::int32_t kMaxDetections = 1 << 20;

Status check_params(const P& p) {
  if (p.results < 0 || p.results > kMaxDetections)
    return failure(StatusCode::kInvalidModel, "detection_postprocess: results is out of range", p.results,
                   kMaxDetections);
  if (p.max_detections < 0 || p.max_detections > p.results)
    return failure(StatusCode::kInvalidModel, "detection_postprocess: max_detections is outside 0..results",
                   p.max_detections, p.results);
  for (const std::int32_t count : {p.classes, p.classes_per_detection, p.detections_per_class})
    if (count < 1)
      return failure(StatusCode::kInvalidModel, "detection_postprocess: a count is not positive", count, 1);
  if (!is_flag(p.regular))
    return failure(StatusCode::kInvalidModel, "detection_postprocess: regular is not 0 or 1", p.regular, 1);
  if (!(p.overlap_threshold > 0.0F && p.overlap_threshold <= 1.0F))
    return failure(StatusCode::kInvalidModel, "detection_postprocess: the overlap threshold is outside (0, 1]");
  return ok_status();
}

Status infer_detection(const void* params, std::span<const Tensor> inputs, std::span<TensorDesc> outputs) {
  const auto& p = *static_cast<const P*>(params);
  BANTAM_RETURN_IF_ERROR(check_params(p));
  for (int i = 0; i < 3; ++i) {
    BANTAM_RETURN_IF_ERROR(check_type(desc_of(inputs, i), ElementType::kF32, i));
    BANTAM_RETURN_IF_ERROR(check_rank(desc_of(inputs, i), i == 2 ? 2 : 3, i));
  }
  const TensorDesc& encodings = desc_of(inputs, 0);
  const TensorDesc& scores = desc_of(inputs, 1);
  const TensorDesc& anchors = desc_of(inputs, 2);
  if (encodings.dims[0] != 1 || encodings.dims[2] < 4)
    return failure(StatusCode::kInvalidModel, "detection_postprocess: encodings are not [1, boxes, 4 or more]",
                   encodings.dims[2], 4)
        .at(0);
  const std::int32_t boxes = encodings.dims[1];
  const std::int64_t background = std::int64_t{scores.dims[2]} - p.classes;
  if (scores.dims[0] != 1 || scores.dims[1] != boxes || background < 0 || background > 1)
    return failure(StatusCode::kInvalidModel, "detection_postprocess: scores are not [1, boxes, classes (+ 1)]",
                   scores.dims[2], p.classes)
        .at(1);
  if (anchors.dims[0] != boxes || anchors.dims[1] != 4)
    return failure(StatusCode::kInvalidModel, "detection_postprocess: anchors are not [boxes, 4]", anchors.dims[0],
                   boxes)
        .at(2);
  const std::int64_t box_dims[] = {1, p.results, 4};
  const std::int64_t one[] = {1};
  BANTAM_RETURN_IF_ERROR(make_desc(ElementType::kF32, box_dims, 3, &outputs[0]));
  BANTAM_RETURN_IF_ERROR(make_desc(ElementType::kF32, box_dims, 2, &outputs[1]));
  BANTAM_RETURN_IF_ERROR(make_desc(ElementType::kF32, box_dims, 2, &outputs[2]));
  return make_desc(ElementType::kF32, one, 1, &outputs[3]);
}

struct Box {
  float ymin;
  float xmin;
  float ymax;
  float xmax;
};

/// A kept box of some class.
struct Candidate {
  float score;
  std::int32_t box;
  std::int32_t label;
};

/// Equal scores stay in the order of their classes, then of boxes.
bool comes_first(const Candidate& a, const Candidate& b) {
  if (a.score != b.score) return a.score > b.score;
  return a.label != b.label ? a.label < b.label : a.box < b.box;
}

/// What a class keeps at most, and what all classes so far and the next one keep together.
std::int64_t largest_class(const P& p, std::int64_t boxes) {
  return std::min<std::int64_t>(boxes, p.regular != 0 ? p.detections_per_class : p.max_detections);
}

std::int64_t most_candidates(const P& p, std::int64_t boxes) {
  return std::int64_t{p.max_detections} + largest_class(p, boxes);
}

/// The parts of the scratch memory.
struct Work {
  Box* boxes;
  float* scores;         ///< of one class, or of the best class, by box
  std::int32_t* order;   ///< boxes above the threshold, best first
  std::int32_t* chosen;  ///< of those, what suppression leaves
  Candidate* candidates;
  std::uint8_t* active;  ///< by place in `order`
};

Footprint detection_footprint(const OpCall& call, int /*threads*/) {
  const auto& p = call.as<P>();
  const std::int64_t boxes = call.in(0).dims[1];
  Footprint footprint;
  footprint.scratch_bytes =
      boxes * static_cast<std::int64_t>(sizeof(Box) + sizeof(float) + 2 * sizeof(std::int32_t) + 1) +
      most_candidates(p, boxes) * static_cast<std::int64_t>(sizeof(Candidate));
  return footprint;
}

Work divide_scratch(const Invocation& call) {
  const std::int64_t boxes = call.in(0).dims[1];
  Work work{};
  work.boxes = reinterpret_cast<Box*>(call.scratch);
  work.scores = reinterpret_cast<float*>(work.boxes + boxes);
  work.order = reinterpret_cast<std::int32_t*>(work.scores + boxes);
  work.chosen = work.order + boxes;
  work.candidates = reinterpret_cast<Candidate*>(work.chosen + boxes);
  work.active = reinterpret_cast<std::uint8_t*>(work.candidates + most_candidates(call.as<P>(), boxes));
  return work;
}

float decode_centre(float encoding, float scale, float size, float centre) {
  return static_cast<float>(static_cast<double>(encoding) / static_cast<double>(scale) * static_cast<double>(size) +
                            static_cast<double>(centre));
}

float decode_half(float encoding, float scale, float size) {
  return static_cast<float>(0.5 * std::exp(static_cast<double>(encoding) / static_cast<double>(scale)) *
                            static_cast<double>(size));
}

void decode_boxes(const Invocation& call, Box* boxes) {
  const auto& p = call.as<P>();
  const std::int64_t stride = call.in(0).dims[2];
  for (std::int64_t i = 0; i < call.in(0).dims[1]; ++i) {
    const float* e = call.input<float>(0) + i * stride;
    const float* anchor = call.input<float>(2) + 4 * i;
    const float y = decode_centre(e[0], p.scale_y, anchor[2], anchor[0]);
    const float x = decode_centre(e[1], p.scale_x, anchor[3], anchor[1]);
    const float half_h = decode_half(e[2], p.scale_h, anchor[2]);
    const float half_w = decode_half(e[3], p.scale_w, anchor[3]);
    boxes[i] = {y - half_h, x - half_w, y + half_h, x + half_w};
  }
}

float overlap(const Box& a, const Box& b) {
  const float area_a = (a.ymax - a.ymin) * (a.xmax - a.xmin);
  const float area_b = (b.ymax - b.ymin) * (b.xmax - b.xmin);
  if (area_a <= 0 || area_b <= 0) return 0.0F;
  const float height = std::max(std::min(a.ymax, b.ymax) - std::max(a.ymin, b.ymin), 0.0F);
  const float width = std::max(std::min(a.xmax, b.xmax) - std::max(a.xmin, b.xmin), 0.0F);
  const float intersection = height * width;
  return intersection / (area_a + area_b - intersection);
}

/// The boxes that suppression leaves of one class, best first, into work.chosen; their number, at most `limit`.
std::int64_t suppress(const P& p, const Work& work, std::int64_t boxes, std::int64_t limit) {
  std::int64_t kept = 0;
  for (std::int64_t i = 0; i < boxes; ++i)
    if (work.scores[i] >= p.score_threshold) work.order[kept++] = static_cast<std::int32_t>(i);
  std::sort(work.order, work.order + kept, [&](std::int32_t a, std::int32_t b) {
    return work.scores[a] != work.scores[b] ? work.scores[a] > work.scores[b] : a < b;
  });
  std::fill_n(work.active, kept, std::uint8_t{1});
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < kept && count < limit; ++i) {
    if (work.active[i] == 0) continue;
    work.chosen[count++] = work.order[i];
    for (std::int64_t j = i + 1; j < kept; ++j)
      if (work.active[j] != 0 && overlap(work.boxes[work.order[i]], work.boxes[work.order[j]]) > p.overlap_threshold)
        work.active[j] = 0;
  }
  return count;
}

void put(const Invocation& call, std::int64_t place, const Box& box, std::int32_t label, float score) {
  if (place >= call.as<P>().results) return;
  float* y = call.output<float>(0) + 4 * place;
  y[0] = box.ymin;
  y[1] = box.xmin;
  y[2] = box.ymax;
  y[3] = box.xmax;
  call.output<float>(1)[place] = static_cast<float>(label);
  call.output<float>(2)[place] = score;
}

/// Scores of one box, without the background's.
const float* scores_of(const Invocation& call, std::int64_t box) {
  const std::int64_t columns = call.in(1).dims[2];
  return call.input<float>(1) + box * columns + (columns - call.as<P>().classes);
}

std::int64_t detect_by_class(const Invocation& call, const Work& work) {
  const auto& p = call.as<P>();
  const std::int64_t boxes = call.in(0).dims[1];
  std::int64_t count = 0;
  for (std::int32_t label = 0; label < p.classes; ++label) {
    for (std::int64_t i = 0; i < boxes; ++i) work.scores[i] = scores_of(call, i)[label];
    const std::int64_t found = suppress(p, work, boxes, largest_class(p, boxes));
    for (std::int64_t i = 0; i < found; ++i)
      work.candidates[count + i] = {work.scores[work.chosen[i]], work.chosen[i], label};
    std::sort(work.candidates, work.candidates + count + found, comes_first);
    count = std::min<std::int64_t>(count + found, p.max_detections);
  }
  for (std::int64_t i = 0; i < count; ++i)
    put(call, i, work.boxes[work.candidates[i].box], work.candidates[i].label, work.candidates[i].score);
  return count;
}

/// The class that follows `before` (-1: none) in the order of scores, of equal ones the first.
std::int32_t next_class(const float* scores, std::int32_t classes, std::int32_t before) {
  std::int32_t best = -1;
  for (std::int32_t c = 0; c < classes; ++c) {
    const bool behind = before < 0 || scores[c] < scores[before] || (scores[c] == scores[before] && c > before);
    if (behind && (best < 0 || scores[c] > scores[best])) best = c;
  }
  return best < 0 ? 0 : best;
}

std::int64_t detect_by_best_class(const Invocation& call, const Work& work) {
  const auto& p = call.as<P>();
  const std::int64_t boxes = call.in(0).dims[1];
  const std::int32_t per_box = std::min(p.classes_per_detection, p.classes);
  for (std::int64_t i = 0; i < boxes; ++i) {
    const float* scores = scores_of(call, i);
    work.scores[i] = scores[next_class(scores, p.classes, -1)];
  }
  const std::int64_t found = suppress(p, work, boxes, largest_class(p, boxes));
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < found; ++i) {
    const float* scores = scores_of(call, work.chosen[i]);
    std::int32_t label = -1;
    for (std::int32_t k = 0; k < per_box; ++k) {
      label = next_class(scores, p.classes, label);
      put(call, per_box * count + k, work.boxes[work.chosen[i]], label, scores[label]);
      ++count;
    }
  }
  return count;
}

Status run_detection(const Invocation& call) {
  for (int i = 0; i < 3; ++i) std::fill_n(call.output<float>(i), call.out(i).elements(), 0.0F);
  const Work work = divide_scratch(call);
  decode_boxes(call, work.boxes);
  const std::int64_t count = call.as<P>().regular != 0 ? detect_by_class(call, work) : detect_by_best_class(call, work);
  *call.output<float>(3) = static_cast<float>(count);
  return ok_status();
}

constexpr KernelVariant kVariants[] = {
    {.name = "f32__ref", .supports = all_dense, .footprint = detection_footprint, .run = run_detection},
};

}  // namespace

constexpr OpDef kDetectionPostprocess{
    .name = "detection_postprocess",
    .params_bytes = sizeof(P),
    .default_params = &kDefaults,
    .fields = kFields,
    .min_inputs = 3,
    .max_inputs = 3,
    .outputs = 4,
    .infer = infer_detection,
    .variants = kVariants,
};

}  // namespace bantam::ops
