// Cuts a stream of 16-bit samples into overlapping frames. Each row keeps a queue; every `push` samples of the operand
// are appended, and when the queue then holds `frame` samples, these are a frame and the oldest `discard` leave.
// Operands: 0 samples i16 [..., hops * push]; 1 queues i16 [rows, capacity]; 2 how many samples each queue holds, one
// i32, -1 before the first sample ever. Results: 0 frames i16 [..., hops, frame], zeros where a queue was too short; 1
// valid bool scalar: every frame was there; 2, 3: the queues and their fill afterwards. The very first `push` samples
// of a queue at -1 are entered 1 + `repeats` times. capacity is what the parameters need, framer_capacity. Exact, as
// TFLite Micro's SignalFramer and SignalStacker. Operands are dense.
#pragma once

#include <algorithm>

#include "ops/op.h"

namespace bantam::ops {

struct FramerParams {
  std::int32_t push = 1;     ///< > 0
  std::int32_t frame = 1;    ///< > 0
  std::int32_t discard = 1;  ///< 1..frame
  std::int32_t repeats = 0;  ///< >= 0; (1 + repeats) * push <= capacity
};

/// Samples a queue must hold: a frame less one, and then a push.
constexpr std::int64_t framer_capacity(const FramerParams& p) noexcept {
  return std::max(std::int64_t{p.frame} - 1 + p.push, (std::int64_t{p.repeats} + 1) * p.push);
}

extern const OpDef kFramer;  // "framer". Accuracy: exact

}  // namespace bantam::ops
