// Joins overlapping frames into a stream: every frame is added to what overlaps of those before it, the first `step`
// samples of the sum are done. Operands: 0 frames i16 or f32 [..., hops, frame]; 1 the sum so far, same type, [rows,
// frame]. Results: 0 samples [..., hops * step]; 1 the sum afterwards. 1 <= step <= frame. i16 sums saturate.
// Exact, as TFLite Micro's SignalOverlapAdd. Operands are dense.
#pragma once

#include "ops/op.h"

namespace bantam::ops {

struct OverlapAddParams {
  std::int32_t step = 1;
};

extern const OpDef kOverlapAdd;  // "overlap_add". Accuracy: consistent

}  // namespace bantam::ops
