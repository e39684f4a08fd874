// The integer convolution of 3x3 kernels with stride 1 by Winograd's F(4x4, 3x3) (winograd.h), exact: a third of the
// time of the plain product for eight times the bytes of weights. Used by conv2d's int8 form and conv2d_affine.
//
// Images become numbers of up to 16 bits by the transform's integer coefficients: differences of bytes and their zero
// point are in [-255, 255], and coefficients sum up to 10 along each axis: 25500. Weights are transformed with 24 times
// the coefficients of Lavin and Gray's G, but 12 times its last row, which have magnitudes of up to 12 along each axis:
// 144 * 227 = 32688, where weights and their zero points are not further apart (kMostWeight). Products and their sums
// are taken modulo 2^32, and so is the transform back, which counts the last row and column twice: it gives 576 times
// the convolution's sum s, modulo 2^32. 576 is 9 * 64, and 9 has an inverse: 64 s modulo 2^32 is s where |s| < 2^25.
// What the weights permit beyond that is found when they are packed: channels are then cut into parts whose sums stay
// below. So results are those of the plain sums, to the bit.
//
// Freestanding; scratch is that of the step.
#pragma once

#include <cstdint>
#include <span>

#include "ops/nn/conv2d/conv2d.h"
#include "ops/nn/gemm/gemm_i8.h"
#include "ops/op.h"

namespace bantam::ops::conv2d::winograd_i8 {

/// The largest magnitude of a weight, less its zero point, whose transform has 16 bits.
inline constexpr std::int32_t kMostWeight = 227;

/// Can the window be computed so, and can weights be packed? Of one group, x and w in 8 bits, both constant zero
/// points, those of w such that no number of weights exceeds kMostWeight.
bool fits(const OpCall& call, const Conv2dParams& window) noexcept;

Footprint footprint(const OpCall& call, const Conv2dParams& window, int threads);

std::int64_t packed_bytes(const TensorDesc& w) noexcept;

/// Weights w [OC,3,3,C] of these zero points, of an x whose bytes have the form `x`.
void pack(const TensorDesc& w, const std::int8_t* data, const ZeroPoints& zeros, gemm::ByteForm x,
          std::byte* destination);

/// Convolves operand 0 of `call` with the packed operand 1. y: the first result, whose sums have no zero points of
/// weights any more.
void run(const Invocation& call, const Conv2dParams& window, gemm::ByteForm x, const gemm::Int8Result& y);
void run(const Invocation& call, const Conv2dParams& window, gemm::ByteForm x,
         const gemm::AffineResult<std::uint8_t>& y);
void run(const Invocation& call, const Conv2dParams& window, gemm::ByteForm x,
         const gemm::AffineResult<std::int32_t>& y);
void run(const Invocation& call, const Conv2dParams& window, gemm::ByteForm x, const gemm::AffineResult<float>& y);

}  // namespace bantam::ops::conv2d::winograd_i8
