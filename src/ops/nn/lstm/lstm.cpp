#include "ops/nn/lstm/lstm.h"

#include <cmath>

#include "ops/common/params.h"
#include "ops/nn/lstm/kernels.h"
#include "ops/stored_variant.h"

namespace bantam::ops {
namespace {

Status infer_lstm(const void* params, std::span<const Tensor> inputs, std::span<TensorDesc> outputs) {
  const auto& p = *static_cast<const LstmParams*>(params);
  if (!is_flag(p.input_forget))
    return failure(StatusCode::kInvalidModel, "input_forget is neither 0 nor 1", p.input_forget, 1);
  if (!(p.cell_clip >= 0) || !std::isfinite(p.cell_clip))
    return failure(StatusCode::kInvalidModel, "cell_clip is negative or not a number");
  BANTAM_RETURN_IF_ERROR(rnn::check_activations(p.activations));
  BANTAM_RETURN_IF_ERROR(
      rnn::infer({.gates = lstm::kGates, .direction = p.direction, .clip = p.clip}, inputs, outputs));
  outputs[2] = outputs[1];
  const TensorDesc& state = outputs[1];
  const std::int64_t state_dims[] = {state.dims[0], state.dims[1], state.dims[2]};
  const std::int64_t peephole_dims[] = {state.dims[0], 3 * static_cast<std::int64_t>(state.dims[2])};
  BANTAM_RETURN_IF_ERROR(rnn::check_optional(inputs, lstm::kInitialC, state_dims));
  return rnn::check_optional(inputs, lstm::kPeepholes, peephole_dims);
}

std::int64_t work(const OpCall& call) {
  const rnn::Extents e = rnn::extents_of(call.in(rnn::kX), call.in(rnn::kR));
  return e.steps * e.batch * (call.in(rnn::kW).elements() + call.in(rnn::kR).elements());
}

constexpr LstmParams kDefaults{};
constexpr ParamField kFields[] = {
    enum_field("direction", offsetof(LstmParams, direction), rnn::kDirectionNames),
    f32_field("clip", offsetof(LstmParams, clip)),
    bool_field("input_forget", offsetof(LstmParams, input_forget)),
    f32_field("cell_clip", offsetof(LstmParams, cell_clip)),
    rnn::activation_field<3>(offsetof(LstmParams, activations)),
    rnn::alpha_field<3>(offsetof(LstmParams, activations)),
    rnn::beta_field<3>(offsetof(LstmParams, activations)),
};
#if BANTAM_SIMD
/// Its bound: rounding of the products' sums, carried on through the steps.
constexpr StoringKernel kPacked = {.supports = lstm::supports_packed,
                                   .footprint = lstm::packed_footprint,
                                   .packed_bytes = lstm::packed_bytes,
                                   .pack = lstm::pack,
                                   .run = lstm::run_packed,
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
    {.name = "f32__ref", .supports = all_dense, .footprint = lstm::reference_footprint, .run = lstm::run_reference},
};

}  // namespace

constexpr OpDef kLstm{.name = "lstm",
                      .params_bytes = sizeof(LstmParams),
                      .default_params = &kDefaults,
                      .fields = kFields,
                      .min_inputs = 3,
                      .max_inputs = 8,
                      .outputs = 3,
                      .infer = infer_lstm,
                      .work = work,
                      .variants = kVariants};

}  // namespace bantam::ops
