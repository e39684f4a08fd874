// The plain recurrent layer with ONNX's equations and operand layout: h' = f(x w^T + h r^T + wb + rb). Operands: 0 x
// [T,B,I]; 1 w [D,H,I]; 2 r [D,H,H]; 3 b [D,2H] (wb, then rb; optional); 4 sequence_lengths i32 [B] (optional); 5 h0
// [D,B,H] (optional, zero). Results: 0 y [T,D,B,H]; 1 y_h [D,B,H]. f32. One activation per direction, tanh unless said
// otherwise. Steps at or beyond a sequence's length give zero in y. y_h may overwrite h0.
#pragma once

#include "ops/nn/lstm/lstm.h"

namespace bantam::ops {

struct SimpleRnnParams {
  RnnDirection direction = RnnDirection::kForward;
  float clip = 0.0F;  ///< 0: none; else the activation's argument is clamped to [-clip, clip]
  RnnActivations<1> activations{{RnnFunction::kTanh, RnnFunction::kTanh}};
};

extern const OpDef kSimpleRnn;  // "simple_rnn". Accuracy: bound 3e-05

}  // namespace bantam::ops
