// Operand 0 repeated `repeats[i]` >= 0 times along axis i. Any type.
#pragma once

#include "ops/op.h"

namespace bantam::ops {

struct TileParams {
  IntList repeats{};
};

extern const OpDef kTile;  // "tile". Accuracy: exact

}  // namespace bantam::ops
