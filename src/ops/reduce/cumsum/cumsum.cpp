#include "ops/reduce/cumsum/cumsum.h"

#include <type_traits>

#include "ops/common/dispatch.h"
#include "ops/common/elementwise.h"
#include "ops/common/parallel.h"
#include "ops/common/params.h"
#include "ops/reduce/axis_loop.h"
#include "ops/reduce/cumsum/kernels.h"

namespace bantam::ops {
namespace {

constexpr ParamField kFields[] = {
    i32_field("axis", offsetof(CumsumParams, axis)),
    bool_field("exclusive", offsetof(CumsumParams, exclusive)),
    bool_field("reverse", offsetof(CumsumParams, reverse)),
};

constexpr CumsumParams kDefaults{};

Status infer_cumsum(const void* params, std::span<const Tensor> inputs, std::span<TensorDesc> outputs) {
  const auto& p = *static_cast<const CumsumParams*>(params);
  const TensorDesc& x = *inputs[0].desc;
  if (!is_one_of<float, double, std::int32_t, std::int64_t>(x.type))
    return failure(StatusCode::kUnsupported, "cumsum: operand is not f32, f64, i32 or i64",
                   static_cast<std::int64_t>(x.type), static_cast<std::int64_t>(ElementType::kF32))
        .at(0);
  if (!is_flag(p.exclusive) || !is_flag(p.reverse))
    return failure(StatusCode::kInvalidModel, "cumsum: a flag is not 0 or 1");
  if (normalize_axis(p.axis, x.rank) < 0)
    return failure(StatusCode::kInvalidModel, "cumsum: axis is outside the tensor", p.axis, x.rank - 1);
  outputs[0] = x;
  outputs[0].set_dense_strides();
  return ok_status();
}

template <typename T>
T add(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));  // wraps
  } else {
    return a + b;
  }
}

template <typename T>
void sum_lines(const Invocation& invocation) {
  const auto& p = invocation.as<CumsumParams>();
  const AxisLoop loop(invocation.in(0), p.axis);
  const auto* x = invocation.input<T>(0);
  auto* y = invocation.output<T>();
  parallel_ranges(*invocation.threads, loop.lines(), loop.grain(), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t line = begin; line < end; ++line) {
      T sum{0};
      for (std::int64_t i = 0; i < loop.length; ++i) {
        const std::int64_t at = loop.offset(line) + (p.reverse != 0 ? loop.length - 1 - i : i) * loop.inner;
        const T next = add(sum, x[at]);
        y[at] = p.exclusive != 0 ? sum : next;
        sum = next;
      }
    }
  });
}

Status run_ref(const Invocation& invocation) {
  dispatch_type<float, double, std::int32_t, std::int64_t>(
      invocation.in(0).type, [&](auto tag) { sum_lines<typename decltype(tag)::type>(invocation); });
  return ok_status();
}

bool supports_ref(const OpCall& call) { return call.in(0).is_dense() && call.out().is_dense(); }

constexpr KernelVariant kVariants[] = {
#if BANTAM_SIMD
    {.name = "any_columns__simd",
     .supports = cumsum::supports_columns,
     .footprint = overwrite_same_layout,
     .run = cumsum::run_columns},
#endif
    {.name = "any__ref", .supports = supports_ref, .footprint = overwrite_same_layout, .run = run_ref},
};

}  // namespace

constexpr OpDef kCumsum{
    .name = "cumsum",
    .params_bytes = sizeof(CumsumParams),
    .default_params = &kDefaults,
    .fields = kFields,
    .infer = infer_cumsum,
    .variants = kVariants,
};

}  // namespace bantam::ops
