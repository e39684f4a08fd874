// Transposed convolution of integers as matrix products. The outputs that leave the same remainders modulo the strides
// are a convolution without strides of the image, with the taps that reach them in reverse: its windows are multiplied
// as conv2d's are (nn/conv2d/windows.h). Used by the integer kernels of conv_transpose2d and conv_transpose2d_affine;
// lives on the caller's stack while they run. Freestanding; images and weights are dense.
//
// Weights [OC,KH,KW,C/groups] are packed phase by phase: per vertical phase, horizontal phase and group the panels
// (nn/gemm/gemm_i8.h) of a matrix [vertical taps, horizontal taps, group's input channels] x output channels, the taps
// in reverse.
#pragma once

#include <algorithm>
#include <cstdint>

#include "ops/common/operands.h"
#include "ops/common/parallel.h"
#include "ops/nn/conv2d/windows.h"
#include "ops/nn/conv_transpose2d/geometry.h"

namespace bantam::ops::conv_transpose2d {

/// Is operand 1 constant, are all dense, and are there elements in all?
inline bool is_constant_product(const OpCall& call) {
  return call.inputs[1].data != nullptr && all_dense(call) && call.in(1).elements() != 0 && call.out().elements() != 0;
}

/// Can the products give every output? Requires elements in all operands.
inline bool phases_fit(const Geometry& g) noexcept {
  /// More phases than this would hold next to no tap each.
  constexpr std::int64_t kMaxStride = 16;
  /// Of the taps of one axis, so that windows begin at numbers of 32 bits, whatever the padding.
  constexpr std::int64_t kMaxReach = 1 << 30;
  const auto fits = [](const Axis& a) {
    if (a.stride > kMaxStride || (a.kernel - 1) * a.dilation > kMaxReach) return false;
    // An output that no tap reaches is left to the reference.
    for (std::int64_t phase = 0; phase < a.stride; ++phase)
      if (phase_of(a, phase).count == 0) return false;
    return true;
  };
  return fits(g.vertical) && fits(g.horizontal);
}

/// Outputs first, first + stride ... of one axis, which see the same taps.
struct AxisPhase {
  Phase taps;
  std::int64_t first = 0;
  std::int64_t count = 0;
  WindowAxis window;  ///< of a convolution that gives them, the last tap first

  AxisPhase(const Axis& a, std::int64_t phase) noexcept
      : taps(phase_of(a, phase)), first((phase + a.stride - a.pad % a.stride) % a.stride) {
    count = std::max<std::int64_t>(a.out - first + a.stride - 1, 0) / a.stride;
    const std::int64_t input = (first + a.pad) / a.stride - taps.back - (taps.count - 1) * taps.back_step;
    window = {.kernel = static_cast<std::int32_t>(taps.count),
              .dilation = static_cast<std::int32_t>(taps.back_step),
              .pad_before = static_cast<std::int32_t>(-input)};
  }

  /// The tap of the kernel that is tap `i` of the window.
  std::int64_t tap(std::int64_t i) const noexcept { return taps.first + (taps.count - 1 - i) * taps.step; }
};

/// A convolution without strides of the image of a transposed one, by the windows of both axes; y: its results.
inline conv2d::Problem convolution_of(const Geometry& g, const ImageShape& x, const ImageShape& y,
                                      const WindowAxis& vertical, const WindowAxis& horizontal) noexcept {
  // Does each window of one tap lie inside the image, and are they all of its pixels?
  const auto inside = [](const WindowAxis& window, std::int64_t count, std::int64_t extent) {
    return window.kernel == 1 && window.pad_before <= 0 && count - window.pad_before <= extent;
  };
  const auto same = [](const WindowAxis& window, std::int64_t count, std::int64_t extent) {
    return window.pad_before == 0 && count == extent;
  };
  conv2d::Problem p;
  p.g = {x, y, vertical, horizontal, static_cast<std::int32_t>(g.groups)};
  p.group_inputs = g.group_in();
  p.group_outputs = y.c / g.groups;
  p.row = horizontal.kernel * p.group_inputs;
  p.k = vertical.kernel * p.row;
  p.taps_touch = horizontal.dilation == 1 && x.w_stride == p.group_inputs;
  p.always_inside = inside(vertical, y.h, x.h) && inside(horizontal, y.w, x.w);
  p.y_uniform = conv2d::uniform_pixels(y);
  p.one_run = p.always_inside && same(vertical, y.h, x.h) && same(horizontal, y.w, x.w) && conv2d::uniform_pixels(x);
  return p;
}

/// The outputs of one vertical and one horizontal phase.
struct OutputPhase {
  AxisPhase vertical;
  AxisPhase horizontal;
  conv2d::Problem problem;
  std::int64_t packed = 0;  ///< bytes before its weights

  OutputPhase(const Geometry& g, const OpCall& call, std::int64_t v, std::int64_t h) noexcept
      : vertical(g.vertical, v), horizontal(g.horizontal, h) {
    ImageShape y(call.out());
    y.first = vertical.first * y.h_stride + horizontal.first * y.w_stride;
    y.h = static_cast<std::int32_t>(vertical.count);
    y.w = static_cast<std::int32_t>(horizontal.count);
    y.h_stride *= g.vertical.stride;
    y.w_stride *= g.horizontal.stride;
    problem = convolution_of(g, ImageShape(call.in(0)), y, vertical.window, horizontal.window);
  }
};

/// Calls f(phase) for all, in the order of the packed weights; returns the bytes of them all. Phases without outputs
/// have weights too: those of a package serve images of several sizes.
template <typename F>
std::int64_t for_each_phase(const OpCall& call, const Geometry& g, F f) {
  std::int64_t packed = 0;
  for (std::int64_t v = 0; v < g.vertical.stride; ++v)
    for (std::int64_t h = 0; h < g.horizontal.stride; ++h) {
      OutputPhase phase(g, call, v, h);
      phase.packed = packed;
      f(phase);
      packed += conv2d::packed_window_bytes(phase.problem) * g.groups;
    }
  return packed;
}

inline std::int64_t phases_packed_bytes(const OpCall& call, const Geometry& g) {
  return for_each_phase(call, g, [](const OutputPhase&) {});
}

inline Footprint phases_footprint(const OpCall& call, const Geometry& g, int threads) {
  gemm::ProductScratch most;
  for_each_phase(call, g, [&](const OutputPhase& phase) {
    const gemm::ProductScratch scratch = conv2d::product_scratch(phase.problem);
    most = {std::max(most.least, scratch.least), std::max(most.useful, scratch.useful)};
  });
  return {.scratch_bytes = most.least * threads, .useful_scratch_bytes = most.useful * threads};
}

/// Packs operand 1 with the bits of `flip` inverted.
inline void pack_phases(const OpCall& call, const Geometry& g, std::uint8_t flip, std::byte* destination) {
  const TensorDesc& w = call.in(1);
  const auto* data = static_cast<const std::uint8_t*>(call.inputs[1].data);
  auto* packed = reinterpret_cast<std::int8_t*>(destination);
  for_each_phase(call, g, [&](const OutputPhase& phase) {
    const conv2d::Problem& p = phase.problem;
    for (std::int64_t group = 0; group < g.groups; ++group)
      gemm::pack_panels_of(
          p.k, p.group_outputs,
          [&](std::int64_t k, std::int64_t n) {
            const std::int64_t window_tap = k / p.group_inputs;
            const std::int64_t kh = phase.vertical.tap(window_tap / p.g.horizontal.kernel);
            const std::int64_t kw = phase.horizontal.tap(window_tap % p.g.horizontal.kernel);
            const std::int64_t channel = group * p.group_outputs + n;
            const std::int64_t i = ((channel * w.dims[1] + kh) * w.dims[2] + kw) * p.group_inputs + k % p.group_inputs;
            return static_cast<std::int8_t>(data[i] ^ flip);
          },
          packed + phase.packed + group * conv2d::packed_window_bytes(p));
  });
}

/// Where the results of one product belong.
struct PhaseResult {
  std::int64_t first = 0;       ///< element of y
  std::int64_t row_stride = 0;  ///< elements from one row's results to the next's
  std::int64_t channel = 0;     ///< of the first column
};

/// Calls multiply(rows, workspace, panels, PhaseResult) for products that make up y, from several threads. x: operand
/// 0, bytes of this form or numbers of 16 bits; operand 1 is packed. `in_lines`: may products take lines?
template <typename Number, typename Multiply>
void run_phases(const Invocation& call, const Geometry& g, const Number* x, gemm::ByteForm form, bool in_lines,
                Multiply multiply) {
  for_each_phase({call.params, call.inputs, call.outputs}, g, [&](const OutputPhase& phase) {
    const conv2d::Problem& p = phase.problem;
    const std::int8_t* weights = call.input<std::int8_t>(1) + phase.packed;
    const std::int64_t pixels = static_cast<std::int64_t>(p.g.y.n) * p.g.y.h * p.g.y.w;
    parallel_slots(*call.threads, pixels, conv2d::product_grain(p),
                   [&](std::int64_t slot, std::int64_t begin, std::int64_t end) {
                     conv2d::for_each_block(
                         call, p, x, form, weights, conv2d::workspace(call, slot), in_lines, begin, end,
                         [&](std::int32_t group, const gemm::LeftSource& rows, const gemm::RightPanelsI8& panels,
                             const conv2d::Pixel& at) {
                           const std::int64_t channel = group * p.group_outputs;
                           multiply(rows, conv2d::workspace(call, slot), panels,
                                    PhaseResult{p.g.y.offset(at.n, at.y, at.x) + channel, p.g.y.w_stride, channel});
                         });
                   });
  });
}

}  // namespace bantam::ops::conv_transpose2d
