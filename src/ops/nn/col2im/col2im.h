// Adds up overlapping blocks of an image. Operand 0: x f32 or f64 [N, C*B, L]: column l holds the elements of block l,
// B of them for each channel; B is the product of `block` and L the number of block positions in `image`, both in
// row-major order. Result: y [N, C, image...], the sum of all blocks that cover an element; what falls on the padding
// is dropped. 1 to 6 axes, one list entry each. Sums run over the block's elements, then over positions. Source: ONNX
// Col2Im. Dense operands.
#pragma once

#include "ops/op.h"

namespace bantam::ops {

struct Col2ImParams {
  IntList image{};
  IntList block{};
  IntList strides{};
  IntList dilations{};
  IntList before{};
  IntList after{};
};

extern const OpDef kCol2im;  // "col2im". Accuracy: consistent

}  // namespace bantam::ops
