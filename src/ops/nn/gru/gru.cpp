#include "ops/nn/gru/gru.h"

#include "ops/common/params.h"
#include "ops/nn/gru/kernels.h"
#include "ops/stored_variant.h"

namespace bantam::ops {
namespace {

Status infer_gru(const void* params, std::span<const Tensor> inputs, std::span<TensorDesc> outputs) {
  const auto& p = *static_cast<const GruParams*>(params);
  if (!is_flag(p.linear_before_reset))
    return failure(StatusCode::kInvalidModel, "linear_before_reset is neither 0 nor 1", p.linear_before_reset, 1);
  BANTAM_RETURN_IF_ERROR(rnn::check_activations(p.activations));
  return rnn::infer({.gates = gru::kGates, .direction = p.direction, .clip = p.clip}, inputs, outputs);
}

std::int64_t work(const OpCall& call) {
  const rnn::Extents e = rnn::extents_of(call.in(rnn::kX), call.in(rnn::kR));
  return e.steps * e.batch * (call.in(rnn::kW).elements() + call.in(rnn::kR).elements());
}

constexpr GruParams kDefaults{};
constexpr ParamField kFields[] = {
    enum_field("direction", offsetof(GruParams, direction), rnn::kDirectionNames),
    f32_field("clip", offsetof(GruParams, clip)),
    bool_field("linear_before_reset", offsetof(GruParams, linear_before_reset)),
    rnn::activation_field<2>(offsetof(GruParams, activations)),
    rnn::alpha_field<2>(offsetof(GruParams, activations)),
    rnn::beta_field<2>(offsetof(GruParams, activations)),
};
#if BANTAM_SIMD
/// Its bound: rounding of the products' sums, carried on through the steps.
constexpr StoringKernel kPacked = {.supports = gru::supports_packed,
                                   .footprint = gru::packed_footprint,
                                   .packed_bytes = gru::packed_bytes,
                                   .pack = gru::pack,
                                   .run = gru::run_packed,
                                   .accuracy = {Accuracy::Kind::kRelative, 3e-5F}};
#endif

constexpr KernelVariant kVariants[] = {
#if BANTAM_SIMD
    stored_variant<kPacked, ElementType::kF32>("f32_packed__simd"),
    stored_variant<kPacked, ElementType::kF16>("f32_packed_f16__simd"),
    stored_variant<kPacked, ElementType::kBF16>("f32_packed_bf16__simd"),
    stored_variant<kPacked, ElementType::kI8>("f32_packed_i8__simd"),
    stored_variant<kPacked, ElementType::kI4>("f32_packed_i4__simd"),
#endif
    {.name = "f32__ref", .supports = all_dense, .footprint = gru::reference_footprint, .run = gru::run_reference},
};

}  // namespace

constexpr OpDef kGru{.name = "gru",
                     .params_bytes = sizeof(GruParams),
                     .default_params = &kDefaults,
                     .fields = kFields,
                     .min_inputs = 3,
                     .max_inputs = 6,
                     .outputs = 2,
                     .infer = infer_gru,
                     .work = work,
                     .variants = kVariants};

}  // namespace bantam::ops
