// Convolutions with several groups of few to some outputs each, and depthwise ones with several results per channel.
// Blocks of kBlock output channels are computed together, whatever the instruction set: whole groups, as many as have
// room, or a part of one. Vectors run over a block's lanes. The inputs of a block's groups are copied row by row into a
// ring, with padding around them, where all lanes of one group take them by a broadcast; those of several groups are
// permuted in a register where a vector has kBlock lanes, or by instruction sets of shorter vectors put into the ring
// as ring[pixel][unit of the group][lane]. A unit is what a lane multiplies at once: one input in f32, of 8-bit images
// four bytes, or a pair of 16-bit numbers where the processor does not multiply bytes. A matrix product per group would
// gather windows for products of few columns. Used by the kernels of conv2d, conv2d_affine and depthwise_conv2d;
// freestanding; the ring lies in the step's scratch.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/nn/conv2d/geometry.h"
#include "ops/nn/gemm/gemm_i8.h"
#include "ops/op.h"

namespace bantam::ops::narrow_groups {

/// Output channels that are computed together.
inline constexpr std::int64_t kBlock = 16;

/// Inputs of a unit of 8-bit images.
inline constexpr std::int64_t kQuad = 4;

/// Of a unit, whatever its numbers.
inline constexpr std::int64_t kUnitBytes = 4;

/// One convolution with `inputs` channels of the image and `outputs` of the result in each group.
struct Problem {
  ConvGeometry g;
  std::int64_t inputs = 1;
  std::int64_t outputs = 1;
  std::int64_t unit = 1;  ///< inputs of a unit: 1 in f32, kQuad of 8-bit images

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

/// Is this faster than a matrix product per group? One of many outputs fills vectors too, but has to gather windows,
/// which is little work for sequences. Those of single taps lie where they are; products of some inputs are faster
/// there than to copy them.
constexpr bool fits(const Problem& p) noexcept {
  constexpr std::int64_t kFew = kBlock / 2;
  const bool is_float = p.unit == 1;
  const bool is_sequence = p.g.y.h == 1 && p.g.vertical.kernel == 1;
  const bool one_tap = p.g.vertical.kernel == 1 && p.g.horizontal.kernel == 1;
  if (one_tap && p.inputs >= (is_float ? 8 : 16)) return false;
  const std::int64_t most = !is_float ? 4 * kBlock : is_sequence ? kBlock : 2 * kBlock - 1;
  return p.g.groups > 1 && (p.outputs <= kFew || (p.outputs <= most && p.g.horizontal.kernel > 2));
}

Footprint footprint(const OpCall& call, const Problem& p, int threads);

/// Of weights as [blocks of channels][taps, units, kBlock, inputs of a unit], with zeros in lanes and inputs that there
/// are not; behind a block's int8 weights lie their sums as int32 [kernel rows, kBlock], which take off the zero point.
std::int64_t packed_bytes(const Problem& p);
/// Of f32 weights whose inputs follow one another over all taps; on all threads.
void pack(const Problem& p, const WeightStrides& strides, const float* weights, const Threads& threads, float* packed);
/// Of int8 weights with the bits of `flip` inverted.
void pack(const Problem& p, const WeightStrides& strides, const std::int8_t* weights, std::uint8_t flip,
          std::int8_t* packed);

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
