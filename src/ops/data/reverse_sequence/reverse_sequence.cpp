#include "ops/data/reverse_sequence/reverse_sequence.h"

#include <cstring>

#include "ops/common/operands.h"
#include "ops/common/params.h"

namespace bantam::ops {
namespace {

Status infer_reverse_sequence(const void* params, std::span<const Tensor> inputs, std::span<TensorDesc> outputs) {
  const auto& p = *static_cast<const ReverseSequenceParams*>(params);
  const TensorDesc& x = desc_of(inputs, 0);
  const TensorDesc& lengths = desc_of(inputs, 1);
  BANTAM_RETURN_IF_ERROR(check_whole_bytes(x, 0));
  BANTAM_RETURN_IF_ERROR(check_axis(p.batch_axis, x.rank));
  BANTAM_RETURN_IF_ERROR(check_axis(p.time_axis, x.rank));
  if (p.batch_axis == p.time_axis)
    return failure(StatusCode::kInvalidModel, "batch and time are the same axis", p.batch_axis, p.time_axis);
  BANTAM_RETURN_IF_ERROR(check_index_type(lengths, 1));
  BANTAM_RETURN_IF_ERROR(check_rank(lengths, 1, 1));
  if (lengths.dims[0] != x.dims[p.batch_axis])
    return failure(StatusCode::kInvalidModel, "there is not one length per sequence", lengths.dims[0],
                   x.dims[p.batch_axis])
        .at(1);
  outputs[0] = x;
  outputs[0].set_dense_strides();
  return ok_status();
}

Status run_reverse_sequence(const Invocation& call) {
  const auto& p = call.as<ReverseSequenceParams>();
  const TensorDesc& x = call.in(0);
  const std::int64_t steps = x.dims[p.time_axis];
  for (std::int64_t b = 0; b < x.dims[p.batch_axis]; ++b) {
    const std::int64_t length = index_at(call.inputs[1], b);
    if (length < 0 || length > steps)
      return failure(StatusCode::kOutOfRange, "length of a sequence is outside its axis", length, steps).at(1);
  }
  // Everything behind the later one of the two axes moves as one run.
  const int last = p.batch_axis > p.time_axis ? p.batch_axis : p.time_axis;
  const std::int64_t run = elements_between(x, last + 1, x.rank);
  const auto bytes = static_cast<std::size_t>(run * element_size(x.type));
  const std::int64_t runs = elements_between(x, 0, last + 1);
  if (run == 0) return ok_status();
  const std::int64_t time_stride = x.strides[p.time_axis] / run;
  const std::int64_t batch_stride = x.strides[p.batch_axis] / run;
  const auto* from = call.input<std::byte>(0);
  auto* to = call.output<std::byte>();
  for (std::int64_t i = 0; i < runs; ++i, to += bytes) {
    const std::int64_t t = i / time_stride % steps;
    const std::int64_t b = i / batch_stride % x.dims[p.batch_axis];
    const std::int64_t length = index_at(call.inputs[1], b);
    const std::int64_t source = t < length ? i + (length - 1 - 2 * t) * time_stride : i;
    std::memcpy(to, from + static_cast<std::size_t>(source) * bytes, bytes);
  }
  return ok_status();
}

constexpr ReverseSequenceParams kDefaults{};
constexpr ParamField kFields[] = {
    i32_field("batch_axis", offsetof(ReverseSequenceParams, batch_axis)),
    i32_field("time_axis", offsetof(ReverseSequenceParams, time_axis)),
};
constexpr KernelVariant kVariants[] = {{.name = "any__ref", .supports = all_dense, .run = run_reverse_sequence}};

}  // namespace

constexpr OpDef kReverseSequence{.name = "reverse_sequence",
                                 .params_bytes = sizeof(ReverseSequenceParams),
                                 .default_params = &kDefaults,
                                 .fields = kFields,
                                 .min_inputs = 2,
                                 .max_inputs = 2,
                                 .infer = infer_reverse_sequence,
                                 .variants = kVariants};

}  // namespace bantam::ops
