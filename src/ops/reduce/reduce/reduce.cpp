#include "ops/reduce/reduce/reduce.h"

#include "ops/common/dispatch.h"
#include "ops/common/params.h"
#include "ops/reduce/reduce/kernels.h"
#include "ops/reduce/reduce_loops.h"

namespace bantam::ops {
namespace {

constexpr ParamField kFields[] = {
    enum_field("function", offsetof(ReduceParams, function), kReduceFunctionNames),
    list_field("axes", offsetof(ReduceParams, axes)),
    bool_field("keep_dims", offsetof(ReduceParams, keep_dims)),
    bool_field("sequential", offsetof(ReduceParams, sequential)),
    bool_field("wide", offsetof(ReduceParams, wide)),
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
  if (!is_flag(p.sequential))
    return failure(StatusCode::kInvalidModel, "reduce: sequential is not 0 or 1", p.sequential, 1);
  if (!is_flag(p.wide)) return failure(StatusCode::kInvalidModel, "reduce: wide is not 0 or 1", p.wide, 1);
  if (p.wide != 0 &&
      (p.function != ReduceFunction::kSum || !is_one_of<std::int8_t, std::uint8_t, std::int16_t>(x.type)))
    return failure(StatusCode::kUnsupported, "reduce: only sums of i8, u8 and i16 can be wide",
                   static_cast<std::int64_t>(x.type), static_cast<std::int64_t>(ElementType::kI8))
        .at(0);
  return infer_reduction(p.axes, p.keep_dims, x, p.wide != 0 ? ElementType::kI32 : x.type, &outputs[0]);
}

std::int64_t work_reduce(const OpCall& call) { return call.in(0).elements(); }

constexpr KernelVariant kVariants[] = {
#if BANTAM_SIMD
    {.name = "f32__simd",
     .supports = supports_reduce_f32_simd,
     .footprint = reduce_footprint,
     .run = run_reduce_f32_simd,
     .accuracy = {Accuracy::Kind::kRelative, 1e-5F}},
    {.name = "f32_log_sum_exp__simd",
     .supports = supports_log_sum_exp,
     .run = run_log_sum_exp,
     .accuracy = {Accuracy::Kind::kRelative, 1e-5F}},
    {.name = "i8_wide__simd", .supports = supports_wide_sums, .run = run_wide_sums},
    {.name = "i8_extremes__simd", .supports = supports_extremes_of_bytes, .run = run_extremes_of_bytes},
#endif
    {.name = "any__ref", .run = run_reduce_ref},
};

}  // namespace

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
