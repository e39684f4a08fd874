#include "ops/nn/gru/gru.h"

#include "ops/common/params.h"
#include "ops/nn/gru/kernels.h"

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
/// The packed kernel with weights stored as a type.
template <ElementType kType>
constexpr KernelVariant packed_variant(std::string_view name) {
  return {.name = name,
          .supports = gru::supports_packed,
          .footprint = gru::packed_footprint,
          .packed_bytes = [](const OpCall& call, int input) { return gru::packed_bytes(call, input, kType); },
          .pack = [](const OpCall& call, int input, std::byte* to) { gru::pack(call, input, kType, to); },
          .run = [](const Invocation& call) { return gru::run_packed(call, kType); },
          // Rounding of the products' sums, carried on through the steps.
          .accuracy = {Accuracy::Kind::kRelative, 3e-5F}};
}
#endif

constexpr KernelVariant kVariants[] = {
#if BANTAM_SIMD
    packed_variant<ElementType::kF32>("f32_packed__simd"),
    packed_variant<ElementType::kF16>("f32_packed_f16__simd"),
    packed_variant<ElementType::kBF16>("f32_packed_bf16__simd"),
    packed_variant<ElementType::kI8>("f32_packed_i8__simd"),
    packed_variant<ElementType::kI4>("f32_packed_i4__simd"),
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
