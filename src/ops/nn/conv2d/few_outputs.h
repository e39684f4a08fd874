// Convolutions of one group with few outputs, as of filters of sound and of heads that give depths, masks or scores: a
// matrix product would leave most of a panel's columns empty. Each sum is a dot product instead, vectors run over the
// channels of the image and the taps of a row that touch, and several pixels share the weights that were loaded.
// Weights stay as the operator has them, [OC,KH,KW,C]. Used by the kernels of conv2d and conv2d_affine; freestanding;
// without scratch.
#pragma once

#include <cstdint>

#include "ops/nn/conv2d/problem.h"
#include "ops/nn/gemm/gemm_i8.h"
#include "ops/op.h"

namespace bantam::ops::conv2d::few_outputs {

inline constexpr std::int64_t kMostOutputs = 8;

/// Outputs whose sums are computed together.
inline constexpr std::int64_t kTogether = 4;

/// Numbers of a vector.
inline constexpr std::int64_t kVector = 16;

constexpr bool has_few_outputs(const Problem& p) noexcept {
  return p.g.groups == 1 && p.group_outputs <= kMostOutputs && p.group_inputs > 0;
}

/// Numbers that touch in the image and in the weights: a row of a window, or the channels of one tap.
constexpr std::int64_t run_length(const Problem& p) noexcept {
  return p.taps_touch ? p.g.horizontal.kernel * p.group_inputs : p.group_inputs;
}

/// Of bytes: runs fill a vector.
constexpr bool fits_bytes(const Problem& p) noexcept { return has_few_outputs(p) && run_length(p) >= kVector; }

/// Of floats: runs of taps that touch fill a vector, and take less time than a matrix product, which multiplies half a
/// vector of columns twice as fast. Measured with AVX-512 at 16 to 256 channels of one tap; with AVX2 and SSE4.2 the
/// product takes longer. Outputs beyond kTogether begin sums anew. Processors that multiply halves as fast as whole
/// vectors lose more by a wrong product than others gain by the right one: seven outputs and more count 8.5, not 10.
constexpr bool fits_floats(const Problem& p) noexcept {
  if (!has_few_outputs(p)) return false;
  struct Cost {
    double pixel, vector;
  };
  constexpr Cost kCosts[kMostOutputs] = {{5, 3.4}, {8, 3.7}, {20, 4.8}, {15, 4.8},
                                         {25, 8},  {25, 8},  {30, 8.5}, {30, 8.5}};
  constexpr Cost kProduct{6, 11.2};
  const std::int64_t run = run_length(p);
  const std::int64_t vectors = p.k / run * ((run + kVector - 1) / kVector);
  const Cost& cost = kCosts[p.group_outputs - 1];
  const double product = kProduct.pixel + kProduct.vector * static_cast<double>(p.k) / kVector;
  return run >= kVector && cost.pixel + cost.vector * static_cast<double>(vectors) < product;
}

/// The result of `call`, whose operands are the image, dense weights, and the bias, which may be absent. Requires
/// elements in all of them. Results do not depend on the number of threads.
void run(const Invocation& call, const Problem& p, const Activation& activation);

/// The same of 8-bit operands: bytes of the image have the form `x`, and weights have no zero point once the bits of
/// `flip` are inverted. y: the first result.
void run(const Invocation& call, const Problem& p, gemm::ByteForm x, std::uint8_t flip, const gemm::Int8Result& y);
void run(const Invocation& call, const Problem& p, gemm::ByteForm x, std::uint8_t flip,
         const gemm::AffineResult<std::uint8_t>& y);
void run(const Invocation& call, const Problem& p, gemm::ByteForm x, std::uint8_t flip,
         const gemm::AffineResult<std::int32_t>& y);
void run(const Invocation& call, const Problem& p, gemm::ByteForm x, std::uint8_t flip,
         const gemm::AffineResult<float>& y);

}  // namespace bantam::ops::conv2d::few_outputs
