#include "ops/nn/svdf/svdf.h"

#include <algorithm>

#include "ops/common/dispatch.h"
#include "ops/common/operands.h"
#include "ops/common/params.h"
#include "ops/nn/svdf/kernels.h"

namespace bantam::ops {
namespace {

using namespace svdf;  // NOLINT: the names of the operands

Status check_shape(const TensorDesc& desc, std::initializer_list<std::int64_t> dims, int operand) {
  BANTAM_RETURN_IF_ERROR(check_rank(desc, static_cast<int>(dims.size()), operand));
  int axis = 0;
  for (const std::int64_t dim : dims) {
    if (desc.dims[axis] != dim)
      return failure(StatusCode::kInvalidModel, "operand has the wrong shape", desc.dims[axis], dim).at(operand);
    ++axis;
  }
  return ok_status();
}

Status check_integer_form(const SvdfParams& p, ElementType type) {
  if (p.multiplier < 0) return failure(StatusCode::kInvalidModel, "the multiplier is negative", p.multiplier, 0);
  if (p.shift < -31 || p.shift > 30) return failure(StatusCode::kInvalidModel, "the shift is out of range", p.shift, 0);
  const std::int32_t reach = type == ElementType::kI8 ? 128 : 32768;
  if (p.state_zero_point < -reach || p.state_zero_point >= reach)
    return failure(StatusCode::kInvalidModel, "the state's zero point is outside its type", p.state_zero_point, reach);
  if (p.output_zero_point < -128 || p.output_zero_point > 127)
    return failure(StatusCode::kInvalidModel, "the output zero point is not an int8", p.output_zero_point, 0);
  return ok_status();
}

Status infer_svdf(const void* params, std::span<const Tensor> inputs, std::span<TensorDesc> outputs) {
  const auto& p = *static_cast<const SvdfParams*>(params);
  const TensorDesc& features = desc_of(inputs, kFeatures);
  const TensorDesc& weights = desc_of(inputs, kWeights);
  if (!is_one_of<float, std::int8_t, std::int16_t>(features.type))
    return failure(StatusCode::kUnsupported, "features must be f32, i8 or i16",
                   static_cast<std::int64_t>(features.type), static_cast<std::int64_t>(ElementType::kF32))
        .at(kFeatures);
  BANTAM_RETURN_IF_ERROR(check_rank(features, 2, kFeatures));
  BANTAM_RETURN_IF_ERROR(check_rank(weights, 2, kWeights));
  const std::int64_t filters = features.dims[1];
  const std::int64_t memory = weights.dims[1];
  if (memory < 1) return failure(StatusCode::kInvalidModel, "the memory holds nothing", memory, 1).at(kWeights);
  BANTAM_RETURN_IF_ERROR(check_shape(weights, {filters, memory}, kWeights));
  BANTAM_RETURN_IF_ERROR(check_shape(desc_of(inputs, kState), {features.dims[0], filters * memory}, kState));
  BANTAM_RETURN_IF_ERROR(check_type(desc_of(inputs, kState), features.type, kState));
  BANTAM_RETURN_IF_ERROR(check_type(weights, features.type, kWeights));
  if (p.rank < 1 || filters % p.rank != 0)
    return failure(StatusCode::kInvalidModel, "filters are not a multiple of the rank", filters, p.rank);
  const bool is_float = features.type == ElementType::kF32;
  if (is_given(inputs, kBias)) {
    BANTAM_RETURN_IF_ERROR(check_type(desc_of(inputs, kBias), is_float ? ElementType::kF32 : ElementType::kI32, kBias));
    BANTAM_RETURN_IF_ERROR(check_shape(desc_of(inputs, kBias), {filters / p.rank}, kBias));
  }
  BANTAM_RETURN_IF_ERROR(is_float ? check_activation(p.activation) : check_integer_form(p, features.type));
  const std::int64_t y_dims[] = {features.dims[0], filters / p.rank};
  BANTAM_RETURN_IF_ERROR(make_desc(is_float ? ElementType::kF32 : ElementType::kI8, y_dims, 2, &outputs[0]));
  outputs[1] = desc_of(inputs, kState);
  outputs[1].set_dense_strides();
  return ok_status();
}

std::int64_t work(const OpCall& call) { return call.in(kState).elements(); }

Footprint svdf_footprint(const OpCall& /*call*/, int /*threads*/) {
  Footprint footprint;
  footprint.overwrites[1] = std::uint64_t{1} << kState;
  return footprint;
}

/// y = finish(sum, unit) where `sum`, which begins as `zero`, is extended by add(sum, w, stored) over a unit's
/// memories.
template <typename T, typename Y, typename Sum, typename Add, typename Finish>
void sum_units(const Invocation& call, Sum zero, Add add, Finish finish) {
  const std::int64_t per_unit = std::int64_t{call.as<SvdfParams>().rank} * call.in(kWeights).dims[1];
  const T* stored = call.output<T>(1);
  Y* y = call.output<Y>();
  for (std::int32_t b = 0; b < call.out().dims[0]; ++b) {
    const T* w = call.input<T>(kWeights);
    for (std::int32_t unit = 0; unit < call.out().dims[1]; ++unit, w += per_unit, stored += per_unit) {
      Sum sum = zero;
      for (std::int64_t i = 0; i < per_unit; ++i) sum = add(sum, w[i], stored[i]);
      *y++ = finish(sum, unit);
    }
  }
}

void run_float(const Invocation& call) {
  const Activation& activation = call.as<SvdfParams>().activation;
  const auto* bias = call.has(kBias) ? call.input<float>(kBias) : nullptr;
  push_features<float>(call, [](float feature) { return feature; });
  sum_units<float, float>(
      call, 0.0F, [](float sum, float w, float x) { return sum + w * x; },
      [&](float sum, std::int32_t unit) {
        return apply_activation(bias != nullptr ? bias[unit] + sum : sum, activation);
      });
}

template <typename T>
void run_integer(const Invocation& call) {
  const auto& p = call.as<SvdfParams>();
  const auto* bias = call.has(kBias) ? call.input<std::int32_t>(kBias) : nullptr;
  push_features<T>(call, [&](T feature) { return static_cast<T>(feature + p.state_zero_point); });
  sum_units<T, std::int8_t>(
      call, std::uint32_t{0},
      [zero_point = p.state_zero_point](std::uint32_t sum, T w, T x) {
        return sum + static_cast<std::uint32_t>(std::int32_t{w}) * static_cast<std::uint32_t>(x - zero_point);
      },
      [&](std::uint32_t sum, std::int32_t unit) {
        return finish_unit(p, sum, bias != nullptr ? bias + unit : nullptr);
      });
}

Status run_svdf(const Invocation& call) {
  switch (call.in(kFeatures).type) {
    case ElementType::kI8: run_integer<std::int8_t>(call); break;
    case ElementType::kI16: run_integer<std::int16_t>(call); break;
    default: run_float(call); break;
  }
  return ok_status();
}

constexpr SvdfParams kDefaults{};
constexpr ParamField kFields[] = {
    i32_field("rank", offsetof(SvdfParams, rank)),
    enum_field("activation", offsetof(SvdfParams, activation.function), kUnaryFunctionNames),
    f32_field("activation_a", offsetof(SvdfParams, activation.a)),
    f32_field("activation_b", offsetof(SvdfParams, activation.b)),
    i32_field("state_zero_point", offsetof(SvdfParams, state_zero_point)),
    i32_field("output_zero_point", offsetof(SvdfParams, output_zero_point)),
    i32_field("multiplier", offsetof(SvdfParams, multiplier)),
    i32_field("shift", offsetof(SvdfParams, shift)),
};
constexpr KernelVariant kVariants[] = {
#if BANTAM_SIMD
    {.name = "integer__simd", .supports = supports_integers, .footprint = svdf_footprint, .run = run_integers},
    {.name = "f32__simd",
     .supports = supports_floats,
     .footprint = svdf_footprint,
     .run = run_floats,
     .accuracy = {Accuracy::Kind::kRelative, 1e-5F}},
#endif
    {.name = "any__ref", .supports = all_dense, .footprint = svdf_footprint, .run = run_svdf},
};

}  // namespace

constexpr OpDef kSvdf{.name = "svdf",
                      .params_bytes = sizeof(SvdfParams),
                      .default_params = &kDefaults,
                      .fields = kFields,
                      .min_inputs = 3,
                      .max_inputs = 4,
                      .outputs = 2,
                      .infer = infer_svdf,
                      .work = work,
                      .variants = kVariants};

}  // namespace bantam::ops
