// LSTM over a sequence with ONNX's equations and operand layout. D = 2 for bidirectional, else 1; H = hidden size.
// Operands: 0 x [T,B,I]; 1 w [D,4H,I]; 2 r [D,4H,H] (gate order input, output, forget, cell); 3 b [D,8H] (optional; wb
// then rb); 4 sequence_lengths i32 [B] (optional); 5 h0 [D,B,H] (optional, zero); 6 c0 [D,B,H] (optional); 7 peepholes
// [D,3H] (optional). Results: 0 y [T,D,B,H]; 1 y_h [D,B,H]; 2 y_c [D,B,H]. f32. Activations per direction: of the
// gates, of the cell's candidate, of the cell on its way out; sigmoid, tanh, tanh unless said otherwise. Steps at or
// beyond a sequence's length give zero in y; y_h and y_c are those of the last valid step. T = 0 is allowed: y_h, y_c
// are the initial states. y_h may overwrite h0 and y_c c0.
#pragma once

#include "ops/op.h"

namespace bantam::ops {

enum class RnnDirection : std::int32_t { kForward = 0, kReverse, kBidirectional, kCount };

/// The activations that the standard names for recurrent layers; alpha and beta are their parameters. Values are stored
/// in packages: append only.
enum class RnnFunction : std::int32_t {
  kSigmoid = 0,
  kTanh,
  kRelu,
  kLeakyRelu,
  kThresholdedRelu,
  kHardSigmoid,
  kElu,
  kSoftsign,
  kSoftplus,
  kAffine,      ///< alpha x + beta
  kScaledTanh,  ///< alpha tanh(beta x)
  kCount,
};

struct RnnActivation {
  RnnFunction function = RnnFunction::kSigmoid;
  float alpha = 0.0F;
  float beta = 0.0F;
};

/// The activations of a recurrent layer, `count` for each direction; those of the second direction are last.
template <int count>
struct RnnActivations {
  RnnFunction functions[2 * count] = {};
  float alpha[2 * count] = {};
  float beta[2 * count] = {};

  constexpr RnnActivation of(std::int64_t direction, int i) const noexcept {
    const auto k = static_cast<std::size_t>(direction * count + i);
    return {functions[k], alpha[k], beta[k]};
  }
};

struct LstmParams {
  RnnDirection direction = RnnDirection::kForward;
  float clip = 0.0F;              ///< 0: none; else gate inputs are clamped to [-clip, clip]
  std::int32_t input_forget = 0;  ///< couple input and forget gates
  float cell_clip = 0.0F;         ///< 0: none; else c is clamped to [-cell_clip, cell_clip] before it is used
  RnnActivations<3> activations{{RnnFunction::kSigmoid, RnnFunction::kTanh, RnnFunction::kTanh, RnnFunction::kSigmoid,
                                 RnnFunction::kTanh, RnnFunction::kTanh}};
};

extern const OpDef kLstm;  // "lstm". Accuracy: bound 3e-05

}  // namespace bantam::ops
