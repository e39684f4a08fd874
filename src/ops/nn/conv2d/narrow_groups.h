// Convolutions in f32 whose groups have few outputs each, and depthwise ones with several results per channel: vectors
// run over output channels, whichever group they belong to. Pixels are spread first, so that every lane finds the
// inputs of its own group: spread[pixel][input of the group][lane]. Each number that is spread is multiplied for all
// taps, so that a vector's multiply-adds outweigh its making. A matrix product per group would leave most of its lanes
// empty. Used by the kernels of conv2d and depthwise_conv2d; freestanding; spread pixels lie in the step's scratch.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/nn/conv2d/geometry.h"
#include "ops/op.h"

namespace bantam::ops::narrow_groups {

/// Output channels that are computed together.
inline constexpr std::int64_t kBlock = 8;

/// One convolution with `inputs` channels of the image and `outputs` of the result in each group.
struct Problem {
  ConvGeometry g;
  std::int64_t inputs = 1;
  std::int64_t outputs = 1;
};

/// Where the weights of an operator lie: the distances, in elements, from one output channel, tap (row after row) and
/// input of a group to the next.
struct WeightStrides {
  std::int64_t output = 0;
  std::int64_t tap = 0;
  std::int64_t input = 0;
};

Footprint footprint(const OpCall& call, const Problem& p, int threads);

/// Of weights as [blocks of channels, taps, inputs, kBlock], with zeros for channels beyond the last.
std::int64_t packed_bytes(const Problem& p);
void pack(const Problem& p, const WeightStrides& strides, const float* weights, float* packed);

/// The result of `call`, whose operands are the image, weights packed so, and the bias, which may be absent. Requires
/// elements in all of them, and the footprint's scratch. Results do not depend on the number of threads.
void run(const Invocation& call, const Problem& p, const Activation& activation);

}  // namespace bantam::ops::narrow_groups
