#include "ops/reduce/topk/topk.h"

#include <algorithm>

#include "ops/common/dispatch.h"
#include "ops/common/parallel.h"
#include "ops/common/params.h"
#include "ops/reduce/axis_loop.h"
#include "ops/reduce/topk/kernels.h"

namespace bantam::ops {
namespace {

constexpr ParamField kFields[] = {
    i32_field("axis", offsetof(TopkParams, axis)),
    i32_field("k", offsetof(TopkParams, k)),
    bool_field("largest", offsetof(TopkParams, largest)),
    type_field("to", offsetof(TopkParams, to)),
};

constexpr TopkParams kDefaults{};

Status infer_topk(const void* params, std::span<const Tensor> inputs, std::span<TensorDesc> outputs) {
  const auto& p = *static_cast<const TopkParams*>(params);
  const TensorDesc& x = *inputs[0].desc;
  if (!is_one_of<float, double, std::int32_t, std::int64_t, std::int8_t, std::uint8_t>(x.type))
    return failure(StatusCode::kUnsupported, "topk: operand is not f32, f64, i8, u8, i32 or i64",
                   static_cast<std::int64_t>(x.type), static_cast<std::int64_t>(ElementType::kF32))
        .at(0);
  if (!is_one_of<std::int32_t, std::int64_t>(p.to))
    return failure(StatusCode::kUnsupported, "topk: the indices are not i32 or i64", p.to.value,
                   static_cast<std::int64_t>(ElementType::kI64));
  if (!is_flag(p.largest)) return failure(StatusCode::kInvalidModel, "topk: largest is not 0 or 1", p.largest, 1);
  const int axis = normalize_axis(p.axis, x.rank);
  if (axis < 0) return failure(StatusCode::kInvalidModel, "topk: axis is outside the tensor", p.axis, x.rank - 1);
  if (p.k < 0 || p.k > x.dims[axis])
    return failure(StatusCode::kInvalidModel, "topk: k is larger than the axis, or negative", p.k, x.dims[axis]);
  outputs[0] = x;
  outputs[0].dims[axis] = p.k;
  outputs[0].set_dense_strides();
  outputs[1] = outputs[0];
  outputs[1].type = p.to;
  return ok_status();
}

/// Whether (a, ia) comes before (b, ib) in the result: a strict order, NaN before every number.
template <typename T>
bool precedes(T a, std::int64_t ia, T b, std::int64_t ib, bool largest) {
  const bool a_nan = a != a;
  const bool b_nan = b != b;
  if (a_nan || b_nan) return a_nan && b_nan ? ia < ib : a_nan;
  if (a != b) return largest ? a > b : a < b;
  return ia < ib;
}

/// The k first elements of one line, found with a heap of indices that lies in the result itself: its root is the
/// element that the next better one replaces. Time n log k, no scratch.
template <typename T, typename Index>
void select_line(const AxisLoop& loop, std::int64_t line, std::int32_t k, bool largest, const T* x, T* values,
                 Index* indices) {
  const std::int64_t first = line / loop.inner * loop.inner * k + line % loop.inner;
  const T* from = x + loop.offset(line);
  const auto slot = [&](std::int64_t i) -> Index& { return indices[first + i * loop.inner]; };
  const auto before = [&](Index a, Index b) {
    return precedes(from[a * loop.inner], a, from[b * loop.inner], b, largest);
  };
  // Restores the heap order (a parent comes after its children) below slot i of the first n.
  const auto sift_down = [&](std::int64_t i, std::int64_t n) {
    for (std::int64_t child = 2 * i + 1; child < n; child = 2 * i + 1) {
      if (child + 1 < n && before(slot(child), slot(child + 1))) ++child;
      if (!before(slot(i), slot(child))) return;
      std::swap(slot(i), slot(child));
      i = child;
    }
  };
  for (std::int64_t i = 0; i < k; ++i) slot(i) = static_cast<Index>(i);
  for (std::int64_t i = k / 2 - 1; i >= 0; --i) sift_down(i, k);
  for (std::int64_t i = k; i < loop.length; ++i) {
    if (!before(static_cast<Index>(i), slot(0))) continue;
    slot(0) = static_cast<Index>(i);
    sift_down(0, k);
  }
  for (std::int64_t n = k - 1; n > 0; --n) {
    std::swap(slot(0), slot(n));
    sift_down(0, n);
  }
  for (std::int64_t i = 0; i < k; ++i) values[first + i * loop.inner] = from[slot(i) * loop.inner];
}

template <typename T, typename Index>
void topk(const Invocation& invocation) {
  const auto& p = invocation.as<TopkParams>();
  if (p.k == 0) return;
  const AxisLoop loop(invocation.in(0), p.axis);
  parallel_ranges(*invocation.threads, loop.lines(), loop.grain(), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t line = begin; line < end; ++line)
      select_line(loop, line, p.k, p.largest != 0, invocation.input<T>(0), invocation.output<T>(0),
                  invocation.output<Index>(1));
  });
}

Status run_ref(const Invocation& invocation) {
  dispatch_type<float, double, std::int32_t, std::int64_t, std::int8_t, std::uint8_t>(
      invocation.in(0).type, [&](auto tag) {
        dispatch_type<std::int32_t, std::int64_t>(invocation.out(1).type, [&](auto index) {
          topk<typename decltype(tag)::type, typename decltype(index)::type>(invocation);
        });
      });
  return ok_status();
}

bool supports_ref(const OpCall& call) {
  return call.in(0).is_dense() && call.out(0).is_dense() && call.out(1).is_dense();
}

constexpr KernelVariant kVariants[] = {
#if BANTAM_SIMD
    {.name = "f32__simd",
     .supports = supports_topk_f32_simd,
     .footprint = topk_f32_footprint,
     .run = run_topk_f32_simd},
#endif
    {.name = "any__ref", .supports = supports_ref, .run = run_ref},
};

}  // namespace

constexpr OpDef kTopk{
    .name = "topk",
    .params_bytes = sizeof(TopkParams),
    .default_params = &kDefaults,
    .fields = kFields,
    .outputs = 2,
    .infer = infer_topk,
    .variants = kVariants,
};

}  // namespace bantam::ops
