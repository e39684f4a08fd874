// LSTM over a sequence with ONNX's equations and operand layout. D = 2 for bidirectional, else 1; H = hidden size.
// Operands: 0 x [T,B,I]; 1 w [D,4H,I]; 2 r [D,4H,H] (gate order input, output, forget, cell); 3 b [D,8H] (optional; wb
// then rb); 4 sequence_lengths i32 [B] (optional); 5 h0 [D,B,H] (optional, zero); 6 c0 [D,B,H] (optional); 7 peepholes
// [D,3H] (optional). Results: 0 y [T,D,B,H]; 1 y_h [D,B,H]; 2 y_c [D,B,H]. f32. Activations sigmoid, tanh, tanh.
// Steps at or beyond a sequence's length give zero in y; y_h and y_c are those of the last valid step.
// T = 0 is allowed: y_h, y_c are the initial states. y_h may overwrite h0 and y_c c0.
#pragma once

#include "ops/op.h"

namespace bantam::ops {

enum class RnnDirection : std::int32_t { kForward = 0, kReverse, kBidirectional, kCount };

struct LstmParams {
  RnnDirection direction = RnnDirection::kForward;
  float clip = 0.0F;              ///< 0: none; else gate inputs are clamped to [-clip, clip]
  std::int32_t input_forget = 0;  ///< couple input and forget gates
  float cell_clip = 0.0F;         ///< 0: none; else c is clamped to [-cell_clip, cell_clip] before it is used
};

extern const OpDef kLstm;  // "lstm". Accuracy: bound 3e-05

}  // namespace bantam::ops
