// What the recurrent layers have in common: extents, validation, and the walk over time steps, directions and batch
// items. What their kernels on packed weights have besides: parts.h, units.h. Freestanding; called by lstm/, gru/ and
// simple_rnn/ only.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <iterator>

#include "ops/common/operands.h"
#include "ops/common/params.h"
#include "ops/elementwise/unary/function.h"
#include "ops/nn/lstm/lstm.h"

namespace bantam::ops::rnn {

struct Extents {
  std::int64_t steps = 0;       ///< T
  std::int64_t batch = 0;       ///< B
  std::int64_t input = 0;       ///< I
  std::int64_t hidden = 0;      ///< H
  std::int64_t directions = 1;  ///< D

  std::int64_t state() const noexcept { return batch * hidden; }  ///< elements of one direction's state
};

/// What the validation needs to know of an operator.
struct Rules {
  int gates = 4;
  RnnDirection direction = RnnDirection::kForward;
  float clip = 0.0F;
};

inline constexpr std::string_view kDirectionNames[] = {"forward", "reverse", "bidirectional"};

inline constexpr std::string_view kFunctionNames[] = {"sigmoid",          "tanh",         "relu",       "leaky_relu",
                                                      "thresholded_relu", "hard_sigmoid", "elu",        "softsign",
                                                      "softplus",         "affine",       "scaled_tanh"};
static_assert(std::size(kFunctionNames) == static_cast<std::size_t>(RnnFunction::kCount));

/// The function of one argument that it is; kIdentity for the two that are none.
constexpr UnaryFunction unary_of(RnnFunction function) noexcept {
  switch (function) {
    case RnnFunction::kSigmoid: return UnaryFunction::kSigmoid;
    case RnnFunction::kTanh: return UnaryFunction::kTanh;
    case RnnFunction::kRelu: return UnaryFunction::kRelu;
    case RnnFunction::kLeakyRelu: return UnaryFunction::kLeakyRelu;
    case RnnFunction::kThresholdedRelu: return UnaryFunction::kThresholdedRelu;
    case RnnFunction::kHardSigmoid: return UnaryFunction::kHardSigmoid;
    case RnnFunction::kElu: return UnaryFunction::kElu;
    case RnnFunction::kSoftsign: return UnaryFunction::kSoftsign;
    case RnnFunction::kSoftplus: return UnaryFunction::kSoftplus;
    case RnnFunction::kAffine:
    case RnnFunction::kScaledTanh:
    case RnnFunction::kCount: break;
  }
  return UnaryFunction::kIdentity;
}

/// As kernels with vector forms fuse it; requires that unary_of is fusible.
constexpr Activation fused(const RnnActivation& activation) noexcept {
  return {unary_of(activation.function), activation.alpha, activation.beta};
}

inline float apply(float x, const RnnActivation& activation) noexcept {
  if (activation.function == RnnFunction::kAffine) return activation.alpha * x + activation.beta;
  if (activation.function == RnnFunction::kScaledTanh) return activation.alpha * std::tanh(activation.beta * x);
  return apply_activation(x, fused(activation));
}

/// Field rows of a member RnnActivations<count> at `offset` of the parameters.
template <int count>
constexpr ParamField activation_field(std::size_t offset) {
  ParamField field = enum_field("activations", offset + offsetof(RnnActivations<count>, functions), kFunctionNames);
  field.count = 2 * count;
  return field;
}
template <int count>
constexpr ParamField alpha_field(std::size_t offset) {
  return f32_field("alpha", offset + offsetof(RnnActivations<count>, alpha), 2 * count);
}
template <int count>
constexpr ParamField beta_field(std::size_t offset) {
  return f32_field("beta", offset + offsetof(RnnActivations<count>, beta), 2 * count);
}

template <int count>
Status check_activations(const RnnActivations<count>& activations) noexcept {
  for (const RnnFunction function : activations.functions)
    if (!is_enumerator(function))
      return failure(StatusCode::kInvalidModel, "unknown activation", static_cast<std::int64_t>(function),
                     static_cast<std::int64_t>(RnnFunction::kCount) - 1);
  return ok_status();
}

/// True when all of them have vector forms (activation_simd-inl.h).
template <int count>
bool are_fusible(const RnnActivations<count>& activations) noexcept {
  for (const RnnFunction function : activations.functions)
    if (!is_fusible(unary_of(function))) return false;
  return true;
}

/// Operand positions, the same for all operators.
enum Operand : int { kX = 0, kW, kR, kB, kLengths, kInitialH };

/// Validates parameters and operands 0..5 and fills the descs of results y and y_h.
Status infer(const Rules& rules, std::span<const Tensor> inputs, std::span<TensorDesc> outputs);

/// Validates an optional f32 operand of the given dimensions.
Status check_optional(std::span<const Tensor> inputs, int operand, std::span<const std::int64_t> dims);

Extents extents_of(const TensorDesc& x, const TensorDesc& r) noexcept;

/// True when the operands that kernels pack are constants: w, r and, where it is given, b.
inline bool has_constant_weights(const OpCall& call) noexcept {
  const auto data = [&](int i) { return call.inputs[static_cast<std::size_t>(i)].data; };
  return data(kW) != nullptr && data(kR) != nullptr && (!call.has(kB) || data(kB) != nullptr);
}

/// One direction of operand b as it is packed (units.h): `input` is what the inputs' share of `gates` * H columns
/// starts from, the bias of both shares where these are added up, `state` the state's bias. Null without b.
struct Biases {
  const float* input = nullptr;
  const float* state = nullptr;
};

inline Biases biases_of(const Invocation& call, const Extents& e, std::int64_t gates, std::int64_t d) noexcept {
  if (!call.has(kB)) return {};
  const float* input = call.input<float>(kB) + d * 2 * gates * e.hidden;
  return {input, input + gates * e.hidden};
}

/// True when that direction goes from the last step to the first.
constexpr bool is_backward(RnnDirection direction, std::int64_t d) noexcept {
  return direction == RnnDirection::kReverse || d == 1;
}

/// Checks the sequence lengths, which are data.
Status check_lengths(const Invocation& call, const Extents& e) noexcept;

/// Starts the state of direction d in result `output` from optional operand `input`, which it may overwrite.
inline void start_state(const Invocation& call, const Extents& e, std::int64_t d, int input, int output) noexcept {
  float* state = call.output<float>(output) + d * e.state();
  const auto bytes = static_cast<std::size_t>(e.state()) * sizeof(float);
  if (bytes == 0) return;
  if (!call.has(input)) {
    std::memset(state, 0, bytes);
  } else if (const float* initial = call.input<float>(input) + d * e.state(); initial != state) {
    std::memcpy(state, initial, bytes);
  }
}

/// The time step of iteration k.
constexpr std::int64_t step_at(const Extents& e, bool backward, std::int64_t k) noexcept {
  return backward ? e.steps - 1 - k : k;
}

/// Items [first, last) of the batch in one direction.
struct Part {
  std::int64_t direction = 0;
  std::int64_t first = 0;
  std::int64_t last = 0;

  std::int64_t items() const noexcept { return last - first; }
};

/// True when step t lies beyond the sequence of item b of the batch: y is zero there and the state rests. Going
/// backward, an item thus begins at its own last step.
inline bool is_beyond(const Invocation& call, std::int64_t b, std::int64_t t) noexcept {
  return call.has(kLengths) && t >= call.input<std::int32_t>(kLengths)[b];
}

/// Calls step(t, b) for all steps of direction d within the sequence of item b; it updates the state y_h, which is then
/// copied to y.
template <typename Step>
void walk(const Invocation& call, const Extents& e, std::int64_t d, bool backward, Step&& step) {
  const auto row = static_cast<std::size_t>(e.hidden) * sizeof(float);
  if (row == 0) return;
  for (std::int64_t k = 0; k < e.steps; ++k) {
    const std::int64_t t = step_at(e, backward, k);
    for (std::int64_t b = 0; b < e.batch; ++b) {
      float* y = call.output<float>(0) + ((t * e.directions + d) * e.batch + b) * e.hidden;
      if (is_beyond(call, b, t)) {
        std::memset(y, 0, row);
      } else {
        step(t, b);
        std::memcpy(y, call.output<float>(1) + d * e.state() + b * e.hidden, row);
      }
    }
  }
}

/// min(max(x, -clip), clip); clip 0 means none.
constexpr float clipped(float x, float clip) noexcept {
  if (clip == 0.0F) return x;
  return x < -clip ? -clip : x > clip ? clip : x;
}

}  // namespace bantam::ops::rnn
