#include "ops/reduce/arg_reduce/arg_reduce.h"

#include "ops/common/dispatch.h"
#include "ops/common/parallel.h"
#include "ops/common/params.h"
#include "ops/reduce/arg_reduce/kernels.h"
#include "ops/reduce/axis_loop.h"

namespace bantam::ops {
namespace {

constexpr ParamField kFields[] = {
    bool_field("minimum", offsetof(ArgReduceParams, minimum)),
    i32_field("axis", offsetof(ArgReduceParams, axis)),
    bool_field("keep_dims", offsetof(ArgReduceParams, keep_dims)),
    bool_field("select_last", offsetof(ArgReduceParams, select_last)),
    type_field("to", offsetof(ArgReduceParams, to)),
};

constexpr ArgReduceParams kDefaults{};

Status infer_arg_reduce(const void* params, std::span<const Tensor> inputs, std::span<TensorDesc> outputs) {
  const auto& p = *static_cast<const ArgReduceParams*>(params);
  const TensorDesc& x = *inputs[0].desc;
  if (!is_one_of<float, std::int8_t, std::uint8_t, std::int32_t, std::int64_t>(x.type))
    return failure(StatusCode::kUnsupported, "arg_reduce: operand is not f32, i8, u8, i32 or i64",
                   static_cast<std::int64_t>(x.type), static_cast<std::int64_t>(ElementType::kF32))
        .at(0);
  if (!is_one_of<std::int32_t, std::int64_t>(p.to))
    return failure(StatusCode::kUnsupported, "arg_reduce: the result is not i32 or i64", p.to.value,
                   static_cast<std::int64_t>(ElementType::kI64));
  if (!is_flag(p.minimum) || !is_flag(p.keep_dims) || !is_flag(p.select_last))
    return failure(StatusCode::kInvalidModel, "arg_reduce: a flag is not 0 or 1");
  const int axis = normalize_axis(p.axis, x.rank);
  if (axis < 0) return failure(StatusCode::kInvalidModel, "arg_reduce: axis is outside the tensor", p.axis, x.rank - 1);
  if (x.dims[axis] == 0 && x.elements() == 0) {
    // Without elements along the axis there is no index, unless there is nothing to index either.
    if (elements_between(x, 0, axis) * elements_between(x, axis + 1, x.rank) != 0)
      return failure(StatusCode::kInvalidModel, "arg_reduce: the axis has no elements", 0, 1).at(0);
  }
  outputs[0] = reduced_desc(x, 1U << axis, p.keep_dims != 0, p.to);
  return ok_status();
}

/// Whether `candidate` replaces `best`. NaN counts as beyond every number, the first one wins.
template <typename T>
bool replaces(T candidate, T best, bool minimum, bool select_last) {
  if (best != best) return false;
  if (candidate != candidate) return true;
  if (candidate == best) return select_last;
  return minimum ? candidate < best : candidate > best;
}

template <typename T, typename Index>
void arg_reduce(const Invocation& invocation) {
  const auto& p = invocation.as<ArgReduceParams>();
  const AxisLoop loop(invocation.in(0), p.axis);
  const auto* x = invocation.input<T>(0);
  auto* y = invocation.output<Index>();
  parallel_ranges(*invocation.threads, loop.lines(), loop.grain(), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t line = begin; line < end; ++line) {
      const T* from = x + loop.offset(line);
      std::int64_t best = 0;
      for (std::int64_t i = 1; i < loop.length; ++i)
        if (replaces(from[i * loop.inner], from[best * loop.inner], p.minimum != 0, p.select_last != 0)) best = i;
      y[line] = static_cast<Index>(best);
    }
  });
}

Status run_ref(const Invocation& invocation) {
  dispatch_type<float, std::int8_t, std::uint8_t, std::int32_t, std::int64_t>(invocation.in(0).type, [&](auto tag) {
    dispatch_type<std::int32_t, std::int64_t>(invocation.out().type, [&](auto index) {
      arg_reduce<typename decltype(tag)::type, typename decltype(index)::type>(invocation);
    });
  });
  return ok_status();
}

bool supports_ref(const OpCall& call) { return call.in(0).is_dense() && call.out().is_dense(); }

constexpr KernelVariant kVariants[] = {
#if BANTAM_SIMD
    {.name = "first__simd", .supports = supports_arg_reduce_simd, .run = run_arg_reduce_simd},
#endif
    {.name = "any__ref", .supports = supports_ref, .run = run_ref},
};

}  // namespace

constexpr OpDef kArgReduce{
    .name = "arg_reduce",
    .params_bytes = sizeof(ArgReduceParams),
    .default_params = &kDefaults,
    .fields = kFields,
    .infer = infer_arg_reduce,
    .variants = kVariants,
};

}  // namespace bantam::ops
