// Convolutions whose groups have few outputs each, and depthwise ones with several results per channel: vectors run
// over output channels, whichever group they belong to. Pixels are spread first, so that every lane finds the inputs of
// its own group: spread[pixel][unit of the group][lane]. A unit is what a lane multiplies at once: one input in f32, a
// pair of inputs in 16 bits each of 8-bit images, whose sums are exact. Each unit that is spread is multiplied for all
// taps, so that a vector's multiply-adds outweigh its making. A matrix product per group would leave most of its lanes
// empty. Used by the kernels of conv2d, conv2d_affine and depthwise_conv2d; freestanding; spread pixels lie in the
// step's scratch.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/nn/conv2d/geometry.h"
#include "ops/nn/gemm/gemm_i8.h"
#include "ops/op.h"

namespace bantam::ops::narrow_groups {

/// Output channels that are computed together.
inline constexpr std::int64_t kBlock = 8;

/// Of a unit, whatever its numbers.
inline constexpr std::int64_t kUnitBytes = 4;

/// One convolution with `inputs` channels of the image and `outputs` of the result in each group.
struct Problem {
  ConvGeometry g;
  std::int64_t inputs = 1;
  std::int64_t outputs = 1;
  std::int64_t unit = 1;  ///< inputs of a unit: 1 in f32, 2 of 8-bit images

  /// Of a group; the last one may have inputs that are no inputs, with weights of zero.
  std::int64_t units() const noexcept { return (inputs + unit - 1) / unit; }
};

/// Where the weights of an operator lie: the distances, in elements, from one output channel, tap (row after row) and
/// input of a group to the next.
struct WeightStrides {
  std::int64_t output = 0;
  std::int64_t tap = 0;
  std::int64_t input = 0;
};

/// Are 8-bit images faster so than as a matrix product per group? With several taps, groups of up to three whole blocks
/// are too.
constexpr bool fits_bytes(const Problem& p) noexcept {
  const bool several_taps = p.g.vertical.kernel > 1 || p.g.horizontal.kernel > 1;
  const bool whole_blocks = p.outputs % kBlock == 0 && p.outputs <= 3 * kBlock;
  return p.g.groups > 1 && (p.outputs <= kBlock || (several_taps && whole_blocks));
}

Footprint footprint(const OpCall& call, const Problem& p, int threads);

/// Of weights as [blocks of channels, taps, units, kBlock, inputs of a unit], with zeros for channels beyond the last.
std::int64_t packed_bytes(const Problem& p);
void pack(const Problem& p, const WeightStrides& strides, const float* weights, float* packed);
/// Of int8 weights with the bits of `flip` inverted.
void pack(const Problem& p, const WeightStrides& strides, const std::int8_t* weights, std::uint8_t flip,
          std::int16_t* packed);

/// The result of `call`, whose operands are the image, weights packed so, and the bias, which may be absent. Requires
/// elements in all of them, and the footprint's scratch. Results do not depend on the number of threads.
void run(const Invocation& call, const Problem& p, const Activation& activation);

/// The same of an 8-bit image, whose bytes have the form `x`. y: the first result, whose sums have no zero points of
/// weights.
void run(const Invocation& call, const Problem& p, gemm::ByteForm x, const gemm::Int8Result& y);
void run(const Invocation& call, const Problem& p, gemm::ByteForm x, const gemm::AffineResult<std::uint8_t>& y);
void run(const Invocation& call, const Problem& p, gemm::ByteForm x, const gemm::AffineResult<std::int32_t>& y);
void run(const Invocation& call, const Problem& p, gemm::ByteForm x, const gemm::AffineResult<float>& y);

}  // namespace bantam::ops::narrow_groups
