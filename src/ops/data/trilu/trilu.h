// The upper or lower triangle of the innermost two dimensions, zero elsewhere. Any type. Keeps element (i, j) when
// j - i >= diagonal (upper) or j - i <= diagonal (lower).
#pragma once

#include "ops/op.h"

namespace bantam::ops {

struct TriluParams {
  std::int32_t upper = 1;
  std::int32_t diagonal = 0;
};

extern const OpDef kTrilu;  // "trilu". Accuracy: exact

}  // namespace bantam::ops
