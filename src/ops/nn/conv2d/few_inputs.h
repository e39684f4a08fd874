// Convolutions of few channels, as first layers are: a matrix product would gather short windows and load an input for
// every vector of outputs. Instead rows of the image are copied, channel by channel and with zeros around them, into a
// ring of the rows that a window sees. Vectors run over the outputs of some neighbouring results, and an input is
// loaded once for up to three taps of a kernel row, which belong to different results. The channels of the image may
// come first or last. Used by the kernels of conv2d and planar_conv2d; freestanding; the ring lies in the step's
// scratch.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/nn/conv2d/geometry.h"
#include "ops/op.h"

namespace bantam::ops::few_inputs {

/// One convolution of f32. Strides of g.x are those of pixels, whatever the order of axes.
struct Problem {
  ConvGeometry g;
  std::int64_t channel_stride = 1;  ///< elements from one channel of the image to the next; 1: they come last
};

/// Is this faster than a matrix product?
bool fits(const Problem& p) noexcept;

Footprint footprint(const OpCall& call, const Problem& p, int threads);

/// Of weights as [panels of kPanel outputs][kernel rows, inputs, kernel columns, kPanel], zeros beyond the last output.
std::int64_t packed_bytes(const Problem& p);
/// `weights`: [outputs, kernel rows, kernel columns, inputs].
void pack(const Problem& p, const float* weights, float* packed);

/// The result of `call`, whose operands are the image, weights packed so, and the bias, which may be absent. Requires
/// elements in all of them, and the footprint's scratch. Every result is one chain of multiply-adds over kernel rows,
/// inputs and kernel columns, in this order, whatever the number of threads.
void run(const Invocation& call, const Problem& p, const Activation& activation);

}  // namespace bantam::ops::few_inputs
