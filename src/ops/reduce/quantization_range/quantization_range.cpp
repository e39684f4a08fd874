#include "ops/reduce/quantization_range/quantization_range.h"

#include "base/shape.h"
#include "ops/common/strides.h"
#include "ops/reduce/quantization_range/kernels.h"

namespace bantam::ops {
namespace {

Status infer_quantization_range(const void* /*params*/, std::span<const Tensor> inputs, std::span<TensorDesc> outputs) {
  const TensorDesc& x = *inputs[0].desc;
  if (x.type != ElementType::kF32)
    return failure(StatusCode::kUnsupported, "quantization_range: operand is not f32",
                   static_cast<std::int64_t>(x.type), static_cast<std::int64_t>(ElementType::kF32))
        .at(0);
  BANTAM_RETURN_IF_ERROR(make_desc(ElementType::kF32, nullptr, 0, &outputs[0]));
  return make_desc(ElementType::kU8, nullptr, 0, &outputs[1]);
}

Status run_ref(const Invocation& invocation) {
  const auto* x = invocation.input<float>(0);
  NumberRange range;
  for_each_element(make_rows<1>(invocation.in(0), {&invocation.in(0)}),
                   [&](const auto& offsets) { range.add(x[offsets[0]]); });
  store_quantization(range, invocation);
  return ok_status();
}

constexpr KernelVariant kVariants[] = {
#if BANTAM_SIMD
    {.name = "f32__simd",
     .supports = supports_quantization_range_simd,
     .footprint = footprint_quantization_range_simd,
     .run = run_quantization_range_simd},
#endif
    {.name = "f32__ref", .run = run_ref},
};

}  // namespace

constexpr OpDef kQuantizationRange{
    .name = "quantization_range",
    .outputs = 2,
    .infer = infer_quantization_range,
    .variants = kVariants,
};

}  // namespace bantam::ops
