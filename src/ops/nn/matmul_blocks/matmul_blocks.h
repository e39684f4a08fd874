// Product of real rows and weights of 4 or 8 bits that are quantised in blocks, as com.microsoft's MatMulNBits and
// blocked DequantizeLinear define them. The weights stay as small as the model stores them.
//
// Operands: 0 a f32 [..., M, K]; 1 weights u8 [N, B, block_size * bits / 8], where B = ceil(K / block_size) and block b
// of column n holds the unsigned numbers q of k = b * block_size on, the first of a byte in its low half; 2 scales f32
// or f16 [N, B]; 3 zero points u8 or f32 [N, B], absent: 2^(bits - 1) for all; 4 bias f32 [N] (optional).
// Result: y f32 [..., M, N] = SUM over k of a[k] * ((q[k] - zero_point[b]) * scale[b]) + bias. Numbers of the last
// block beyond K are not used. Accepts strided rows of a and y. K = 0 gives the bias.
#pragma once

#include "ops/op.h"

namespace bantam::ops {

struct MatmulBlocksParams {
  std::int32_t bits = 4;         ///< 4 or 8
  std::int32_t block_size = 32;  ///< a multiple of 2
};

extern const OpDef kMatmulBlocks;  // "matmul_blocks". Accuracy: bound 1e-05

}  // namespace bantam::ops
