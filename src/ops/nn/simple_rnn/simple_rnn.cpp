#include "ops/nn/simple_rnn/simple_rnn.h"

#include "ops/nn/simple_rnn/kernels.h"

namespace bantam::ops {
namespace {

Status infer_simple_rnn(const void* params, std::span<const Tensor> inputs, std::span<TensorDesc> outputs) {
  const auto& p = *static_cast<const SimpleRnnParams*>(params);
  BANTAM_RETURN_IF_ERROR(rnn::check_activations(p.activations));
  return rnn::infer({.gates = simple_rnn::kGates, .direction = p.direction, .clip = p.clip}, inputs, outputs);
}

std::int64_t work(const OpCall& call) {
  const rnn::Extents e = rnn::extents_of(call.in(rnn::kX), call.in(rnn::kR));
  return e.steps * e.batch * (call.in(rnn::kW).elements() + call.in(rnn::kR).elements());
}

constexpr SimpleRnnParams kDefaults{};
constexpr ParamField kFields[] = {
    enum_field("direction", offsetof(SimpleRnnParams, direction), rnn::kDirectionNames),
    f32_field("clip", offsetof(SimpleRnnParams, clip)),
    rnn::activation_field<1>(offsetof(SimpleRnnParams, activations)),
    rnn::alpha_field<1>(offsetof(SimpleRnnParams, activations)),
    rnn::beta_field<1>(offsetof(SimpleRnnParams, activations)),
};
constexpr KernelVariant kVariants[] = {
#if BANTAM_SIMD
    {.name = "f32_packed__simd",
     .supports = simple_rnn::supports_packed,
     .footprint = simple_rnn::packed_footprint,
     .packed_bytes = simple_rnn::packed_bytes,
     .pack = simple_rnn::pack,
     .run = simple_rnn::run_packed,
     // Rounding of the products' sums, carried on through the steps.
     .accuracy = {Accuracy::Kind::kRelative, 3e-5F}},
#endif
    {.name = "f32__ref",
     .supports = all_dense,
     .footprint = simple_rnn::reference_footprint,
     .run = simple_rnn::run_reference},
};

}  // namespace

constexpr OpDef kSimpleRnn{.name = "simple_rnn",
                           .params_bytes = sizeof(SimpleRnnParams),
                           .default_params = &kDefaults,
                           .fields = kFields,
                           .min_inputs = 3,
                           .max_inputs = 6,
                           .outputs = 2,
                           .infer = infer_simple_rnn,
                           .work = work,
                           .variants = kVariants};

}  // namespace bantam::ops
