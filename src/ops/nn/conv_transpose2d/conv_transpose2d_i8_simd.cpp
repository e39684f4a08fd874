// Transposed convolution of 8- and 16-bit integers as matrix products. The outputs that leave the same remainders
// modulo the strides are a convolution without strides of the image, with the taps that reach them in reverse: its
// windows are multiplied as conv2d's are (nn/conv2d/windows.h).
#include <algorithm>

#include "ops/common/operands.h"
#include "ops/common/parallel.h"
#include "ops/nn/conv2d/windows.h"
#include "ops/nn/conv_transpose2d/geometry.h"
#include "ops/nn/conv_transpose2d/kernels.h"

namespace bantam::ops::conv_transpose2d {
namespace {

using conv2d::Problem;

/// More phases than this would hold next to no tap each.
constexpr std::int64_t kMaxStride = 16;
/// Of the taps of one axis, so that windows begin at numbers of 32 bits, whatever the padding.
constexpr std::int64_t kMaxReach = 1 << 30;

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

  /// Does each window of one tap lie inside an image of so many elements?
  bool is_inside(std::int64_t extent) const noexcept {
    return window.kernel == 1 && window.pad_before <= 0 && count - window.pad_before <= extent;
  }
};

/// The outputs of one vertical and one horizontal phase.
struct OutputPhase {
  AxisPhase vertical;
  AxisPhase horizontal;
  Problem problem;
};

Problem problem_of(const OpCall& call, const Geometry& g, const AxisPhase& vertical, const AxisPhase& horizontal) {
  Problem p;
  ImageShape y(call.out());
  y.first = vertical.first * y.h_stride + horizontal.first * y.w_stride;
  y.h = static_cast<std::int32_t>(vertical.count);
  y.w = static_cast<std::int32_t>(horizontal.count);
  y.h_stride *= g.vertical.stride;
  y.w_stride *= g.horizontal.stride;
  p.g = {ImageShape(call.in(0)), y, vertical.window, horizontal.window, static_cast<std::int32_t>(g.groups)};
  p.group_inputs = g.group_in();
  p.group_outputs = g.group_out();
  p.k = vertical.taps.count * horizontal.taps.count * p.group_inputs;
  p.taps_touch = horizontal.window.dilation == 1 && p.g.x.w_stride == p.group_inputs;
  p.always_inside = vertical.is_inside(g.vertical.in) && horizontal.is_inside(g.horizontal.in);
  p.y_uniform = conv2d::uniform_pixels(y);
  const bool same_pixels = vertical.window.pad_before == 0 && horizontal.window.pad_before == 0 &&
                           vertical.count == g.vertical.in && horizontal.count == g.horizontal.in;
  p.one_run = p.always_inside && same_pixels && conv2d::uniform_pixels(p.g.x);
  return p;
}

std::int64_t packed_group_bytes(const Problem& p) { return gemm::packed_i8_bytes(p.k, p.group_outputs); }

Geometry geometry_of(const OpCall& call) {
  return conv_transpose2d::geometry_of(call.as<ConvTranspose2dParams>(), call.in(0), call.in(1), call.out());
}

/// Calls f(output phase, offset of its weights) for all, in the order of the packed weights; returns the bytes of them
/// all. Phases without outputs have weights too: those of a package serve images of several sizes.
template <typename F>
std::int64_t for_each_phase(const OpCall& call, F f) {
  const Geometry g = geometry_of(call);
  std::int64_t offset = 0;
  for (std::int64_t v = 0; v < g.vertical.stride; ++v)
    for (std::int64_t h = 0; h < g.horizontal.stride; ++h) {
      const AxisPhase vertical(g.vertical, v);
      const AxisPhase horizontal(g.horizontal, h);
      const OutputPhase phase{vertical, horizontal, problem_of(call, g, vertical, horizontal)};
      f(phase, offset);
      offset += packed_group_bytes(phase.problem) * g.groups;
    }
  return offset;
}

/// The outputs of a phase. X: int8 or int16; `Result` finishes products with `all`.
template <typename X, typename Result, typename Requantize>
void run_phase(const Invocation& call, const Problem& p, const std::int8_t* weights, const Requantize& all) {
  using Number = std::conditional_t<sizeof(X) == 1, std::uint8_t, X>;
  const gemm::ByteForm form =
      sizeof(X) == 1 ? gemm::byte_form(0, call.as<ConvTranspose2dParams>().input_zero_point) : gemm::ByteForm{};
  const std::int64_t pixels = static_cast<std::int64_t>(p.g.y.n) * p.g.y.h * p.g.y.w;
  parallel_slots(*call.threads, pixels, conv2d::product_grain(p),
                 [&](std::int64_t slot, std::int64_t begin, std::int64_t end) {
                   conv2d::for_each_block(
                       call, p, call.input<Number>(0), form, begin, end,
                       [&](std::int32_t group, const gemm::LeftSource& rows, const conv2d::Pixel& at) {
                         const std::int64_t first = group * p.group_outputs;
                         X* y = call.output<X>() + p.g.y.offset(at.n, at.y, at.x) + first;
                         gemm::multiply(rows, conv2d::workspace(call, slot),
                                        gemm::RightPanelsI8{weights + group * packed_group_bytes(p), p.group_outputs, 0,
                                                            gemm::panel_count(p.group_outputs)},
                                        Result{y, p.g.y.w_stride, all.from_channel(first)});
                       });
                 });
}

template <typename X, typename Result, typename Requantize>
void run_phases(const Invocation& call, const Requantize& all) {
  for_each_phase({call.params, call.inputs, call.outputs}, [&](const OutputPhase& phase, std::int64_t offset) {
    run_phase<X, Result>(call, phase.problem, call.input<std::int8_t>(1) + offset, all);
  });
}

}  // namespace

bool integer_supports(const OpCall& call) {
  const LinearForm form = linear_form(call.in(0), call.in(1));
  if ((form != LinearForm::kInt8 && form != LinearForm::kInt16) || call.inputs[1].data == nullptr || !all_dense(call) ||
      call.in(1).elements() == 0 || call.out().elements() == 0)
    return false;
  const Geometry g = geometry_of(call);
  const auto fits = [](const Axis& a) {
    if (a.stride > kMaxStride || (a.kernel - 1) * a.dilation > kMaxReach) return false;
    // An output that no tap reaches is left to the reference.
    for (std::int64_t phase = 0; phase < a.stride; ++phase)
      if (phase_of(a, phase).count == 0) return false;
    return true;
  };
  return fits(g.vertical) && fits(g.horizontal);
}

Footprint integer_footprint(const OpCall& call, int threads) {
  conv2d::ProductScratch most;
  for_each_phase(call, [&](const OutputPhase& phase, std::int64_t) {
    const conv2d::ProductScratch scratch = conv2d::product_scratch(phase.problem);
    most = {std::max(most.least, scratch.least), std::max(most.useful, scratch.useful)};
  });
  return {.scratch_bytes = most.least * threads, .useful_scratch_bytes = most.useful * threads};
}

std::int64_t integer_packed_bytes(const OpCall& call, int input) {
  return input == 1 ? for_each_phase(call, [](auto&&...) {}) : 0;
}

void integer_pack(const OpCall& call, int /*input*/, std::byte* destination) {
  const TensorDesc& w = call.in(1);
  const auto* data = static_cast<const std::int8_t*>(call.inputs[1].data);
  auto* packed = reinterpret_cast<std::int8_t*>(destination);
  for_each_phase(call, [&](const OutputPhase& phase, std::int64_t offset) {
    const Problem& p = phase.problem;
    for (std::int64_t group = 0; group < p.g.groups; ++group)
      gemm::pack_panels_of(
          p.k, p.group_outputs,
          [&](std::int64_t k, std::int64_t n) {
            const std::int64_t window_tap = k / p.group_inputs;
            const std::int64_t kh = phase.vertical.tap(window_tap / p.g.horizontal.kernel);
            const std::int64_t kw = phase.horizontal.tap(window_tap % p.g.horizontal.kernel);
            const std::int64_t channel = group * p.group_outputs + n;
            return data[((channel * w.dims[1] + kh) * w.dims[2] + kw) * p.group_inputs + k % p.group_inputs];
          },
          packed + offset + group * packed_group_bytes(p));
  });
}

Status run_integer(const Invocation& call) {
  const Int8Range range = int8_range(call.as<ConvTranspose2dParams>());
  if (linear_form(call.in(0), call.in(1)) == LinearForm::kInt8) {
    run_phases<std::int8_t, gemm::Int8Result>(call, make_requantizer(call, range));
  } else {
    run_phases<std::int16_t, gemm::Int16Result>(call, make_requantizer16(call, range));
  }
  return ok_status();
}

}  // namespace bantam::ops::conv_transpose2d
