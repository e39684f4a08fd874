// Adds `before` and `after` elements along every axis (negative values crop). Operand 0: any type; operand 1: the
// constant value (optional scalar of the same type, default zero). Reflect and edge need a non-empty axis.
// Where nothing is cropped the operand may lie in its place within the result; then only what surrounds it is written.
#pragma once

#include "ops/op.h"

namespace bantam::ops {

enum class PadMode : std::int32_t { kConstant = 0, kReflect, kEdge, kWrap, kSymmetric, kCount };

struct PadParams {
  PadMode mode = PadMode::kConstant;
  IntList before{};  ///< every axis listed
  IntList after{};
};

extern const OpDef kPad;  // "pad". Accuracy: exact

}  // namespace bantam::ops
