#include "ops/elementwise/multiply_add/multiply_add.h"

#include "base/shape.h"
#include "ops/built.h"
#include "ops/common/elementwise.h"
#include "ops/common/parallel.h"
#include "ops/common/params.h"
#include "ops/common/strides.h"
#include "ops/elementwise/multiply_add/kernels.h"

namespace bantam::ops {
namespace {

constexpr ParamField kFields[] = {
    enum_field("activation", offsetof(MultiplyAddParams, activation.function), kUnaryFunctionNames),
    f32_field("activation_a", offsetof(MultiplyAddParams, activation.a)),
    f32_field("activation_b", offsetof(MultiplyAddParams, activation.b)),
};

constexpr MultiplyAddParams kDefaults{};

Status infer_multiply_add(const void* params, std::span<const Tensor> inputs, std::span<TensorDesc> outputs) {
  for (std::int16_t i = 0; i < 3; ++i) {
    const ElementType type = inputs[static_cast<std::size_t>(i)].desc->type;
    if (type != ElementType::kF32)
      return failure(StatusCode::kUnsupported, "multiply_add: an operand is not f32", static_cast<std::int64_t>(type),
                     static_cast<std::int64_t>(ElementType::kF32))
          .at(i);
  }
  BANTAM_RETURN_IF_ERROR(check_activation(static_cast<const MultiplyAddParams*>(params)->activation));
  TensorDesc product;
  if (!broadcast(*inputs[0].desc, *inputs[1].desc, ElementType::kF32, &product) ||
      !broadcast(product, *inputs[2].desc, ElementType::kF32, &outputs[0]))
    return failure(StatusCode::kInvalidModel, "multiply_add: the operands' shapes do not broadcast together");
  return ok_status();
}

Status run_ref(const Invocation& invocation) {
  const auto rows =
      make_rows<4>(invocation.out(), {&invocation.out(), &invocation.in(0), &invocation.in(1), &invocation.in(2)});
  const Activation& activation = invocation.as<MultiplyAddParams>().activation;
  auto* y = invocation.output<float>();
  const auto* x = invocation.input<float>(0);
  const auto* a = invocation.input<float>(1);
  const auto* b = invocation.input<float>(2);
  parallel_ranges(*invocation.threads, rows.elements, kElementwiseGrain, [&](std::int64_t begin, std::int64_t end) {
    for_each_segment(rows, begin, end, [&](const auto& offsets, std::int64_t n) {
      for (std::int64_t i = 0; i < n; ++i) {
        const float product = x[offsets[1] + i * rows.row_strides[1]] * a[offsets[2] + i * rows.row_strides[2]];
        y[offsets[0] + i * rows.row_strides[0]] =
            apply_activation(product + b[offsets[3] + i * rows.row_strides[3]], activation);
      }
    });
  });
  return ok_status();
}

constexpr KernelVariant kVariants[] = {
#if BANTAM_SIMD
    {.name = "f32__simd",
     .supports = supports_multiply_add_simd,
     .footprint = overwrite_same_layout,
     .run = run_multiply_add_simd,
     .accuracy = {Accuracy::Kind::kRelative, 1e-6F}},
#endif
    {.name = "f32__ref", .footprint = overwrite_same_layout, .run = run_ref},
};

constexpr auto kBuilt = built_variants("multiply_add", kVariants);

}  // namespace

constexpr OpDef kMultiplyAdd{
    .name = "multiply_add",
    .params_bytes = sizeof(MultiplyAddParams),
    .default_params = &kDefaults,
    .fields = kFields,
    .min_inputs = 3,
    .max_inputs = 3,
    .infer = infer_multiply_add,
    .variants = kBuilt,
};

}  // namespace bantam::ops
