// GRU over a sequence with ONNX's equations and operand layout. Operands: 0 x [T,B,I]; 1 w [D,3H,I]; 2 r [D,3H,H] (gate
// order update, reset, hidden); 3 b [D,6H] (optional); 4 sequence_lengths i32 [B] (optional); 5 h0 [D,B,H] (optional).
// Results: 0 y [T,D,B,H]; 1 y_h [D,B,H]. f32. Activations per direction: of the gates, of the candidate; sigmoid and
// tanh unless said otherwise. y_h may overwrite h0.
#pragma once

#include "ops/nn/lstm/lstm.h"

namespace bantam::ops {

struct GruParams {
  RnnDirection direction = RnnDirection::kForward;
  float clip = 0.0F;
  std::int32_t linear_before_reset = 0;
  RnnActivations<2> activations{{RnnFunction::kSigmoid, RnnFunction::kTanh, RnnFunction::kSigmoid, RnnFunction::kTanh}};
};

extern const OpDef kGru;  // "gru". Accuracy: bound 3e-05

}  // namespace bantam::ops
