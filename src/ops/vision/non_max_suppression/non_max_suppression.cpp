#include "ops/vision/non_max_suppression/non_max_suppression.h"

#include <algorithm>

#include "ops/common/heap_sort.h"
#include "ops/common/operands.h"
#include "ops/common/params.h"

namespace bantam::ops {
namespace {

constexpr ParamField kFields[] = {
    bool_field("center_point_box", offsetof(NonMaxSuppressionParams, center_point_box)),
    i32_field("capacity", offsetof(NonMaxSuppressionParams, capacity)),
};

constexpr NonMaxSuppressionParams kDefaults{};

enum Operand : int { kBoxes, kScores, kMostPerClass, kIouThreshold, kScoreThreshold };

Status check_single(std::span<const Tensor> inputs, int i, ElementType type) {
  if (!is_given(inputs, i)) return ok_status();
  const TensorDesc& desc = desc_of(inputs, i);
  BANTAM_RETURN_IF_ERROR(check_type(desc, type, i));
  if (desc.elements() != 1)
    return failure(StatusCode::kInvalidModel, "non_max_suppression: operand has not one element", desc.elements(), 1)
        .at(i);
  return ok_status();
}

Status infer_non_max_suppression(const void* params, std::span<const Tensor> inputs, std::span<TensorDesc> outputs) {
  const auto& p = *static_cast<const NonMaxSuppressionParams*>(params);
  const TensorDesc& boxes = desc_of(inputs, kBoxes);
  const TensorDesc& scores = desc_of(inputs, kScores);
  for (const int i : {kBoxes, kScores}) {
    BANTAM_RETURN_IF_ERROR(check_type(desc_of(inputs, i), ElementType::kF32, i));
    BANTAM_RETURN_IF_ERROR(check_rank(desc_of(inputs, i), 3, i));
  }
  if (boxes.dims[2] != 4)
    return failure(StatusCode::kInvalidModel, "non_max_suppression: a box has not four numbers", boxes.dims[2], 4)
        .at(kBoxes);
  if (scores.dims[0] != boxes.dims[0] || scores.dims[2] != boxes.dims[1])
    return failure(StatusCode::kInvalidModel, "non_max_suppression: there is not one score per box", scores.dims[2],
                   boxes.dims[1])
        .at(kScores);
  BANTAM_RETURN_IF_ERROR(check_single(inputs, kMostPerClass, ElementType::kI64));
  BANTAM_RETURN_IF_ERROR(check_single(inputs, kIouThreshold, ElementType::kF32));
  BANTAM_RETURN_IF_ERROR(check_single(inputs, kScoreThreshold, ElementType::kF32));
  if (!is_flag(p.center_point_box))
    return failure(StatusCode::kInvalidModel, "non_max_suppression: center_point_box is not 0 or 1", p.center_point_box,
                   1);
  if (p.capacity < 0)
    return failure(StatusCode::kInvalidModel, "non_max_suppression: the capacity is negative", p.capacity, 0);
  const std::int64_t dims[] = {p.capacity, 3};
  BANTAM_RETURN_IF_ERROR(make_desc(ElementType::kI64, dims, 2, &outputs[0]));
  return make_desc(ElementType::kI64, nullptr, 0, &outputs[1]);
}

/// A box by its least and greatest coordinates.
struct Box {
  float low[2];
  float high[2];

  static Box read(const float* from, bool by_center) {
    Box box{};
    for (int i = 0; i < 2; ++i) {
      const float a = by_center ? from[i] - from[i + 2] / 2 : from[i];
      const float b = by_center ? from[i] + from[i + 2] / 2 : from[i + 2];
      // The size of a centred box is taken as it is, corners are put in order.
      box.low[i] = by_center ? a : std::min(a, b);
      box.high[i] = by_center ? b : std::max(a, b);
    }
    return box;
  }
  float area() const { return (high[0] - low[0]) * (high[1] - low[1]); }
};

bool overlap_too_much(const Box& a, const Box& b, float threshold) {
  float common[2];
  for (int i = 0; i < 2; ++i) {
    common[i] = std::min(a.high[i], b.high[i]) - std::max(a.low[i], b.low[i]);
    if (!(common[i] > 0)) return false;
  }
  const float intersection = common[0] * common[1];
  const float area_a = a.area();
  const float area_b = b.area();
  const float either = area_a + area_b - intersection;
  if (!(intersection > 0) || !(area_a > 0) || !(area_b > 0) || !(either > 0)) return false;
  return intersection / either > threshold;
}

/// Selects the boxes of all batches and classes, one after another.
class Selection {
 public:
  explicit Selection(const Invocation& invocation)
      : capacity_(invocation.as<NonMaxSuppressionParams>().capacity),
        by_center_(invocation.as<NonMaxSuppressionParams>().center_point_box != 0),
        boxes_(invocation.input<float>(kBoxes)),
        scores_(invocation.input<float>(kScores)),
        batches_(invocation.in(kBoxes).dims[0]),
        classes_(invocation.in(kScores).dims[1]),
        n_(invocation.in(kBoxes).dims[1]),
        most_(invocation.has(kMostPerClass) ? *invocation.input<std::int64_t>(kMostPerClass) : 0),
        iou_threshold_(invocation.has(kIouThreshold) ? *invocation.input<float>(kIouThreshold) : 0.0F),
        score_threshold_(invocation.has(kScoreThreshold) ? invocation.input<float>(kScoreThreshold) : nullptr),
        order_(reinterpret_cast<std::int32_t*>(invocation.scratch)),
        rows_(invocation.output<std::int64_t>(0)) {}

  /// Returns how many were selected, at most one more than there is room for.
  std::int64_t run() {
    for (std::int64_t b = 0; b < batches_ && most_ > 0; ++b)
      for (std::int64_t c = 0; c < classes_ && count_ <= capacity_; ++c) select(b, c);
    std::fill(rows_ + std::min(count_, capacity_) * 3, rows_ + capacity_ * 3, 0);
    return count_;
  }

 private:
  void select(std::int64_t batch, std::int64_t c) {
    const float* scores = scores_ + (batch * classes_ + c) * n_;
    const float* boxes = boxes_ + batch * n_ * 4;
    std::int64_t candidates = 0;
    for (std::int32_t i = 0; i < n_; ++i)
      if (score_threshold_ == nullptr || scores[i] > *score_threshold_) order_[candidates++] = i;
    heap_sort(order_, candidates, [&](std::int32_t a, std::int32_t b) {
      const bool a_nan = scores[a] != scores[a];
      const bool b_nan = scores[b] != scores[b];
      if (a_nan || b_nan) return a_nan && b_nan ? a < b : b_nan;
      return scores[a] != scores[b] ? scores[a] > scores[b] : a < b;
    });
    // Those that are kept move to the front of the order.
    std::int64_t kept = 0;
    for (std::int64_t k = 0; k < candidates && kept < most_; ++k) {
      const std::int32_t i = order_[k];
      const Box box = Box::read(boxes + std::int64_t{i} * 4, by_center_);
      const bool free = std::none_of(order_, order_ + kept, [&](std::int32_t other) {
        return overlap_too_much(box, Box::read(boxes + std::int64_t{other} * 4, by_center_), iou_threshold_);
      });
      if (!free) continue;
      order_[kept++] = i;
      if (count_ < capacity_) {
        std::int64_t* row = rows_ + count_ * 3;
        row[0] = batch;
        row[1] = c;
        row[2] = i;
      }
      if (++count_ > capacity_) return;
    }
  }

  std::int64_t capacity_;
  bool by_center_;
  const float* boxes_;
  const float* scores_;
  std::int64_t batches_;
  std::int64_t classes_;
  std::int64_t n_;
  std::int64_t most_;
  float iou_threshold_;
  const float* score_threshold_;  ///< null: none
  std::int32_t* order_;
  std::int64_t* rows_;
  std::int64_t count_ = 0;
};

Status run_ref(const Invocation& invocation) {
  const std::int64_t count = Selection(invocation).run();
  *invocation.output<std::int64_t>(1) = count;
  const std::int64_t capacity = invocation.as<NonMaxSuppressionParams>().capacity;
  if (count > capacity)
    return failure(StatusCode::kOutOfRange, "more boxes are left than there is room for", count, capacity);
  return ok_status();
}

bool supports_ref(const OpCall& call) {
  return call.in(kBoxes).is_dense() && call.in(kScores).is_dense() && call.out(0).is_dense();
}

Footprint footprint_ref(const OpCall& call, int) {
  return {.scratch_bytes = call.in(kBoxes).dims[1] * static_cast<std::int64_t>(sizeof(std::int32_t))};
}

constexpr KernelVariant kVariants[] = {
    {.name = "f32__ref", .supports = supports_ref, .footprint = footprint_ref, .run = run_ref},
};

}  // namespace

constexpr OpDef kNonMaxSuppression{
    .name = "non_max_suppression",
    .params_bytes = sizeof(NonMaxSuppressionParams),
    .default_params = &kDefaults,
    .fields = kFields,
    .min_inputs = 2,
    .max_inputs = 5,
    .outputs = 2,
    .infer = infer_non_max_suppression,
    .variants = kVariants,
};

}  // namespace bantam::ops
