#include "ops/reduce/reduce/reduce.h"

#include "ops/common/dispatch.h"
#include "ops/common/params.h"
#include "ops/reduce/axis_loop.h"
#include "ops/reduce/reduce/kernels.h"

namespace bantam::ops {
namespace {

constexpr ParamField kFields[] = {
    enum_field("function", offsetof(ReduceParams, function), kReduceFunctionNames),
    list_field("axes", offsetof(ReduceParams, axes)),
    bool_field("keep_dims", offsetof(ReduceParams, keep_dims)),
    bool_field("sequential", offsetof(ReduceParams, sequential)),
};

constexpr ReduceParams kDefaults{};

bool is_defined(ReduceFunction function, ElementType type) {
  switch (function) {
    case ReduceFunction::kAny:
    case ReduceFunction::kAll: return type == ElementType::kBool;
    case ReduceFunction::kL2:
    case ReduceFunction::kLogSum:
    case ReduceFunction::kLogSumExp: return is_one_of<float, double>(type);
    default:
      return is_one_of<float, double, std::int8_t, std::uint8_t, std::int16_t, std::uint16_t, std::int32_t,
                       std::uint32_t, std::int64_t, std::uint64_t>(type);
  }
}

Status check_axes(const IntList& axes, int rank) {
  if (axes.size < 0 || axes.size > kMaxRank)
    return failure(StatusCode::kInvalidModel, "reduce: wrong number of axes", axes.size, rank);
  for (int i = 0; i < axes.size; ++i) {
    const std::int32_t lowest = i > 0 ? axes[i - 1] + 1 : 0;
    if (axes[i] < lowest)
      return failure(StatusCode::kInvalidModel, "reduce: axes are negative or not ascending", axes[i], lowest);
    if (axes[i] >= rank)
      return failure(StatusCode::kInvalidModel, "reduce: axis is outside the tensor", axes[i], rank - 1);
  }
  return ok_status();
}

unsigned axis_mask(const IntList& axes) {
  unsigned mask = 0;
  for (int i = 0; i < axes.size; ++i) mask |= 1U << axes[i];
  return mask;
}

Status infer_reduce(const void* params, std::span<const Tensor> inputs, std::span<TensorDesc> outputs) {
  const auto& p = *static_cast<const ReduceParams*>(params);
  const TensorDesc& x = *inputs[0].desc;
  if (!is_enumerator(p.function))
    return failure(StatusCode::kInvalidModel, "reduce: unknown function", static_cast<std::int64_t>(p.function),
                   static_cast<std::int64_t>(ReduceFunction::kCount) - 1);
  if (!is_defined(p.function, x.type))
    return failure(StatusCode::kUnsupported, "reduce: the function is not defined for the element type",
                   static_cast<std::int64_t>(x.type), static_cast<std::int64_t>(ElementType::kF32))
        .at(0);
  if (!is_flag(p.keep_dims))
    return failure(StatusCode::kInvalidModel, "reduce: keep_dims is not 0 or 1", p.keep_dims, 1);
  if (!is_flag(p.sequential))
    return failure(StatusCode::kInvalidModel, "reduce: sequential is not 0 or 1", p.sequential, 1);
  BANTAM_RETURN_IF_ERROR(check_axes(p.axes, x.rank));
  outputs[0] = reduced_desc(x, axis_mask(p.axes), p.keep_dims != 0, x.type);
  // A dimension of 0 among the reduced ones no longer bounds the others together.
  return check_shape(outputs[0]);
}

std::int64_t work_reduce(const OpCall& call) { return call.in(0).elements(); }

constexpr KernelVariant kVariants[] = {
#if BANTAM_SIMD
    {.name = "f32__simd",
     .supports = supports_reduce_f32_simd,
     .run = run_reduce_f32_simd,
     .accuracy = {Accuracy::Kind::kRelative, 1e-5F}},
#endif
    {.name = "any__ref", .run = run_reduce_ref},
};

/// The dimensions of x for which (mask has the bit) == reduced, with x's strides.
TensorDesc part_of(const TensorDesc& x, unsigned mask, bool reduced) {
  TensorDesc part;
  part.type = x.type;
  for (int i = 0; i < x.rank; ++i) {
    if (((mask >> i & 1U) != 0) != reduced) continue;
    part.dims[part.rank] = x.dims[i];
    part.strides[part.rank++] = x.strides[i];
  }
  return part;
}

}  // namespace

ReduceLoops make_reduce_loops(const ReduceParams& params, const TensorDesc& x, const TensorDesc& y) noexcept {
  const unsigned mask = axis_mask(params.axes);
  const TensorDesc kept_x = part_of(x, mask, false);
  const TensorDesc reduced_x = part_of(x, mask, true);
  // The result's own dimensions are the kept ones, among ones when they are all kept.
  const TensorDesc kept_y = params.keep_dims != 0 ? part_of(y, mask, false) : y;
  return {make_rows<2>(kept_x, {&kept_y, &kept_x}), make_rows<1>(reduced_x, {&reduced_x})};
}

std::int64_t reduce_grain(const ReduceLoops& loops) noexcept {
  return 1 + 16384 / (loops.reduced.elements > 0 ? loops.reduced.elements : 1);
}

constexpr OpDef kReduce{
    .name = "reduce",
    .params_bytes = sizeof(ReduceParams),
    .default_params = &kDefaults,
    .fields = kFields,
    .infer = infer_reduce,
    .work = work_reduce,
    .variants = kVariants,
};

}  // namespace bantam::ops
