#include "ops/elementwise/select/select.h"

#include "base/shape.h"
#include "ops/common/dispatch.h"
#include "ops/common/elementwise.h"
#include "ops/common/parallel.h"
#include "ops/common/strides.h"
#include "ops/elementwise/select/kernels.h"

namespace bantam::ops {
namespace {

Status infer_select(const void*, std::span<const Tensor> inputs, std::span<TensorDesc> outputs) {
  const TensorDesc& condition = *inputs[0].desc;
  const TensorDesc& a = *inputs[1].desc;
  const TensorDesc& b = *inputs[2].desc;
  if (condition.type != ElementType::kBool)
    return failure(StatusCode::kInvalidModel, "select: the condition is not bool",
                   static_cast<std::int64_t>(condition.type), static_cast<std::int64_t>(ElementType::kBool))
        .at(0);
  if (a.type != b.type)
    return failure(StatusCode::kInvalidModel, "select: the operands' element types differ",
                   static_cast<std::int64_t>(b.type), static_cast<std::int64_t>(a.type))
        .at(2);
  if (element_size(a.type) == 0)
    return failure(StatusCode::kUnsupported, "select: elements of less than a byte", element_bits(a.type), 8).at(1);
  TensorDesc both;
  if (!broadcast(a, b, a.type, &both) || !broadcast(condition, both, a.type, &outputs[0]))
    return failure(StatusCode::kInvalidModel, "select: the operands' shapes do not broadcast together");
  return ok_status();
}

template <typename T>
void run_typed(const Invocation& invocation) {
  const auto rows =
      make_rows<4>(invocation.out(), {&invocation.out(), &invocation.in(0), &invocation.in(1), &invocation.in(2)});
  auto* y = invocation.output<T>();
  const auto* condition = invocation.input<std::uint8_t>(0);
  const auto* a = invocation.input<T>(1);
  const auto* b = invocation.input<T>(2);
  parallel_ranges(*invocation.threads, rows.elements, kElementwiseGrain, [&](std::int64_t begin, std::int64_t end) {
    for_each_segment(rows, begin, end, [&](const auto& offsets, std::int64_t n) {
      for (std::int64_t i = 0; i < n; ++i) {
        // Both are loaded, so that the choice needs no branch.
        const T if_true = a[offsets[2] + i * rows.row_strides[2]];
        const T if_false = b[offsets[3] + i * rows.row_strides[3]];
        y[offsets[0] + i * rows.row_strides[0]] =
            condition[offsets[1] + i * rows.row_strides[1]] != 0 ? if_true : if_false;
      }
    });
  });
}

Status run_ref(const Invocation& invocation) {
  dispatch_size(element_size(invocation.out().type),
                [&](auto tag) { run_typed<typename decltype(tag)::type>(invocation); });
  return ok_status();
}

constexpr KernelVariant kVariants[] = {
#if BANTAM_SIMD
    {.name = "any__simd", .supports = supports_select_simd, .footprint = overwrite_same_layout, .run = run_select_simd},
#endif
    {.name = "any__ref", .footprint = overwrite_same_layout, .run = run_ref},
};

}  // namespace

constexpr OpDef kSelect{
    .name = "select",
    .min_inputs = 3,
    .max_inputs = 3,
    .infer = infer_select,
    .variants = kVariants,
};

}  // namespace bantam::ops
