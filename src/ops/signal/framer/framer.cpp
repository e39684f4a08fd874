#include "ops/signal/framer/framer.h"

#include "ops/common/operands.h"
#include "ops/common/params.h"

namespace bantam::ops {
namespace {

constexpr ParamField kFields[] = {
    i32_field("push", offsetof(FramerParams, push)),
    i32_field("frame", offsetof(FramerParams, frame)),
    i32_field("discard", offsetof(FramerParams, discard)),
    i32_field("repeats", offsetof(FramerParams, repeats)),
};

constexpr FramerParams kDefaults{};

Status check_params(const FramerParams& p) {
  if (p.push < 1) return failure(StatusCode::kInvalidModel, "framer: push is not positive", p.push, 1);
  if (p.frame < 1) return failure(StatusCode::kInvalidModel, "framer: frame is not positive", p.frame, 1);
  if (p.discard < 1 || p.discard > p.frame)
    return failure(StatusCode::kInvalidModel, "framer: discard is outside 1..frame", p.discard, p.frame);
  if (p.repeats < 0) return failure(StatusCode::kInvalidModel, "framer: repeats is negative", p.repeats, 0);
  return ok_status();
}

Status infer_framer(const void* params, std::span<const Tensor> inputs, std::span<TensorDesc> outputs) {
  const auto& p = *static_cast<const FramerParams*>(params);
  const TensorDesc& x = desc_of(inputs, 0);
  const TensorDesc& queues = desc_of(inputs, 1);
  BANTAM_RETURN_IF_ERROR(check_params(p));
  BANTAM_RETURN_IF_ERROR(check_type(x, ElementType::kI16, 0));
  BANTAM_RETURN_IF_ERROR(check_type(queues, ElementType::kI16, 1));
  BANTAM_RETURN_IF_ERROR(check_type(desc_of(inputs, 2), ElementType::kI32, 2));
  BANTAM_RETURN_IF_ERROR(check_rank(queues, 2, 1));
  if (x.rank < 1 || x.rank >= kMaxRank)
    return failure(StatusCode::kInvalidModel, "framer: operand has a wrong rank", x.rank, kMaxRank - 1).at(0);
  if (x.last(0) % p.push != 0)
    return failure(StatusCode::kInvalidModel, "framer: the samples are not a multiple of push", x.last(0), p.push)
        .at(0);
  const std::int64_t rows = elements_between(x, 0, x.rank - 1);
  if (queues.dims[0] != rows)
    return failure(StatusCode::kInvalidModel, "framer: another number of queues", queues.dims[0], rows).at(1);
  if (queues.dims[1] != framer_capacity(p))
    return failure(StatusCode::kInvalidModel, "framer: queues of another capacity", queues.dims[1], framer_capacity(p))
        .at(1);
  if (desc_of(inputs, 2).elements() != 1)
    return failure(StatusCode::kInvalidModel, "framer: the fill is not one element", desc_of(inputs, 2).elements(), 1)
        .at(2);
  std::int64_t dims[kMaxRank] = {};
  for (int i = 0; i < x.rank - 1; ++i) dims[i] = x.dims[i];
  dims[x.rank - 1] = x.last(0) / p.push;
  dims[x.rank] = p.frame;
  BANTAM_RETURN_IF_ERROR(make_desc(ElementType::kI16, dims, x.rank + 1, &outputs[0]));
  BANTAM_RETURN_IF_ERROR(make_desc(ElementType::kBool, nullptr, 0, &outputs[1]));
  outputs[2] = queues;
  outputs[2].set_dense_strides();
  outputs[3] = desc_of(inputs, 2);
  outputs[3].set_dense_strides();
  return ok_status();
}

Footprint framer_footprint(const OpCall&, int /*threads*/) {
  Footprint footprint;
  footprint.overwrites[2] = 1U << 1;
  footprint.overwrites[3] = 1U << 2;
  return footprint;
}

struct Samples {
  const std::int16_t* x;
  std::int64_t hops;
};

/// One row's hops through its queue; returns the fill afterwards, and clears *valid when a frame was missing.
std::int64_t frame_row(const FramerParams& p, Samples samples, std::int64_t fill, std::int16_t* queue,
                       std::int16_t* frames, bool* valid) {
  for (std::int64_t hop = 0; hop < samples.hops; ++hop) {
    const std::int16_t* x = samples.x + hop * p.push;
    for (std::int32_t copies = fill < 0 ? 1 + p.repeats : 1; copies > 0; --copies) {
      fill = std::max<std::int64_t>(fill, 0);
      std::copy_n(x, p.push, queue + fill);
      fill += p.push;
    }
    std::int16_t* frame = frames + hop * p.frame;
    if (fill < p.frame) {
      std::fill_n(frame, p.frame, std::int16_t{0});
      *valid = false;
      continue;
    }
    std::copy_n(queue, p.frame, frame);
    std::copy(queue + p.discard, queue + fill, queue);
    fill -= p.discard;
  }
  return fill;
}

/// Room for one more push is what must be left: later ones of this invoke follow at most a frame's departure.
Status check_fill(const FramerParams& p, std::int64_t fill, std::int64_t hops) {
  const std::int64_t capacity = framer_capacity(p);
  if (fill < -1 || fill > capacity)
    return failure(StatusCode::kOutOfRange, "framer: the queues' fill is out of range", fill, capacity).at(2);
  for (std::int64_t hop = 0; hop < hops; ++hop) {
    fill = fill < 0 ? (std::int64_t{p.repeats} + 1) * p.push : fill + p.push;
    if (fill > capacity) return failure(StatusCode::kOutOfRange, "framer: a queue overflows", fill, capacity).at(1);
    if (fill >= p.frame) fill -= p.discard;
  }
  return ok_status();
}

Status run_framer(const Invocation& call) {
  const auto& p = call.as<FramerParams>();
  const std::int64_t rows = call.in(1).dims[0];
  const std::int64_t capacity = call.in(1).dims[1];
  const std::int64_t hops = call.in(0).last(0) / p.push;
  const std::int64_t fill = *call.input<std::int32_t>(2);
  BANTAM_RETURN_IF_ERROR(check_fill(p, fill, hops));
  auto* queues = call.output<std::int16_t>(2);
  if (queues != call.input<std::int16_t>(1)) std::copy_n(call.input<std::int16_t>(1), rows * capacity, queues);
  bool valid = true;
  std::int64_t left = fill;
  for (std::int64_t row = 0; row < rows; ++row)
    left = frame_row(p, {call.input<std::int16_t>(0) + row * hops * p.push, hops}, fill, queues + row * capacity,
                     call.output<std::int16_t>(0) + row * hops * p.frame, &valid);
  *call.output<std::uint8_t>(1) = valid ? 1 : 0;
  *call.output<std::int32_t>(3) = static_cast<std::int32_t>(left);
  return ok_status();
}

constexpr KernelVariant kVariants[] = {
    {.name = "i16__ref", .supports = all_dense, .footprint = framer_footprint, .run = run_framer},
};

}  // namespace

constexpr OpDef kFramer{
    .name = "framer",
    .params_bytes = sizeof(FramerParams),
    .default_params = &kDefaults,
    .fields = kFields,
    .min_inputs = 3,
    .max_inputs = 3,
    .outputs = 4,
    .infer = infer_framer,
    .variants = kVariants,
};

}  // namespace bantam::ops
