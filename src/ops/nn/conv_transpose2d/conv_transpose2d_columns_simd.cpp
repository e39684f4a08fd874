// Transposed convolution as one matrix product and a scatter: every input position times all weights gives what it adds
// to each tap of each output channel; those are then added where the taps meet the output. It suits what the products
// by phase do not: few output channels or a large stride, as in the inverse of a short-time Fourier transform.
#include <algorithm>

#include "ops/common/operands.h"
#include "ops/common/parallel.h"
#include "ops/nn/conv_transpose2d/geometry.h"
#include "ops/nn/conv_transpose2d/kernels.h"
#include "ops/nn/gemm/gemm_f32.h"

namespace bantam::ops::conv_transpose2d {
namespace {

/// Input positions are multiplied in blocks, so that a large image needs no more scratch than a small one.
constexpr std::int64_t kMaxBlock = 64;
constexpr std::int64_t kBlockFloats = 65536;
constexpr std::int64_t kSmallPackedBytes = 65536;

Geometry geometry_of(const OpCall& call) {
  return conv_transpose2d::geometry_of(call.as<ConvTranspose2dParams>(), call.in(0), call.in(1), call.out());
}

std::int64_t taps(const Geometry& g) { return g.vertical.kernel * g.horizontal.kernel; }

/// Columns of the product: output channel by output channel, its taps.
std::int64_t columns(const Geometry& g) { return g.channels_out * taps(g); }

std::int64_t block_of(const Geometry& g) {
  const std::int64_t positions = g.vertical.in * g.horizontal.in;
  return std::clamp<std::int64_t>(kBlockFloats / columns(g), 1, std::clamp<std::int64_t>(positions, 1, kMaxBlock));
}

/// The taps [first, last) of input position i that meet an output.
struct TapRange {
  std::int64_t first = 0;
  std::int64_t last = 0;
};

TapRange taps_inside(const Axis& a, std::int64_t i) {
  const std::int64_t start = a.stride * i - a.pad;  // output of tap 0
  const std::int64_t first = start >= 0 ? 0 : (-start + a.dilation - 1) / a.dilation;
  const std::int64_t last = start >= a.out ? 0 : (a.out - start + a.dilation - 1) / a.dilation;
  return {first, std::min(last, a.kernel)};
}

/// Adds the products of input position (ih, iw) to the image `y`.
void scatter(const Geometry& g, std::int64_t ih, std::int64_t iw, const float* products, float* y) {
  const TapRange vertical = taps_inside(g.vertical, ih);
  const TapRange horizontal = taps_inside(g.horizontal, iw);
  const std::int64_t step = g.horizontal.dilation * g.channels_out;
  for (std::int64_t kh = vertical.first; kh < vertical.last; ++kh) {
    const std::int64_t oh = g.vertical.stride * ih + g.vertical.dilation * kh - g.vertical.pad;
    const std::int64_t ow = g.horizontal.stride * iw + g.horizontal.dilation * horizontal.first - g.horizontal.pad;
    for (std::int64_t c = 0; c < g.channels_out; ++c) {
      const float* from = products + c * taps(g) + kh * g.horizontal.kernel;
      std::int64_t to = (oh * g.horizontal.out + ow) * g.channels_out + c;
      for (std::int64_t kw = horizontal.first; kw < horizontal.last; ++kw, to += step) y[to] += from[kw];
    }
  }
}

void fill_bias(const Geometry& g, const float* bias, float* y) {
  const std::int64_t positions = g.vertical.out * g.horizontal.out;
  for (std::int64_t i = 0; i < positions; ++i, y += g.channels_out)
    for (std::int64_t c = 0; c < g.channels_out; ++c) y[c] = bias != nullptr ? bias[c] : 0.0F;
}

}  // namespace

bool columns_supports(const OpCall& call) {
  if (linear_form(call.in(0), call.in(1)) != LinearForm::kFloat || !all_dense(call) || call.inputs[1].data == nullptr ||
      call.out().elements() == 0)
    return false;
  const Geometry g = geometry_of(call);
  if (g.groups != 1 || g.group_in() < 1) return false;
  const std::int64_t packed = columns_packed_bytes(call, 1);
  return packed <= kSmallPackedBytes || packed <= 2 * call.in(1).bytes();
}

Footprint columns_footprint(const OpCall& call, int /*threads*/) {
  const Geometry g = geometry_of(call);
  Footprint footprint;
  footprint.scratch_bytes = block_of(g) * columns(g) * 4;
  return footprint;
}

std::int64_t columns_packed_bytes(const OpCall& call, int input) {
  if (input != 1) return 0;
  const Geometry g = geometry_of(call);
  return gemm::packed_floats(g.channels_in, columns(g)) * 4;
}

void columns_pack(const OpCall& call, int /*input*/, std::byte* destination) {
  const Geometry g = geometry_of(call);
  gemm::pack_panels(static_cast<const float*>(call.inputs[1].data), g.channels_in, columns(g), 1, g.channels_in, 0,
                    gemm::panel_count(columns(g)), reinterpret_cast<float*>(destination));
}

Status run_columns(const Invocation& call) {
  const auto& p = call.as<ConvTranspose2dParams>();
  const Geometry g = conv_transpose2d::geometry_of(p, call.in(0), call.in(1), call.out());
  const std::int64_t positions = g.vertical.in * g.horizontal.in;
  const std::int64_t image = g.vertical.out * g.horizontal.out * g.channels_out;
  const std::int64_t block = block_of(g);
  auto* products = reinterpret_cast<float*>(call.scratch);
  for (std::int64_t n = 0; n < g.batch; ++n) {
    const float* x = call.input<float>(0) + n * positions * g.channels_in;
    float* y = call.output<float>() + n * image;
    fill_bias(g, call.has(2) ? call.input<float>(2) : nullptr, y);
    for (std::int64_t first = 0; first < positions; first += block) {
      const gemm::LeftRows left{.data = x + first * g.channels_in,
                                .rows = std::min(block, positions - first),
                                .row_stride = g.channels_in,
                                .length = g.channels_in};
      parallel_ranges(*call.threads, gemm::panel_count(columns(g)), 1, [&](std::int64_t begin, std::int64_t end) {
        gemm::multiply(left, {.data = call.input<float>(1), .n = columns(g), .first = begin, .last = end},
                       {.data = products, .row_stride = columns(g)});
      });
      for (std::int64_t i = 0; i < left.rows; ++i)
        scatter(g, (first + i) / g.horizontal.in, (first + i) % g.horizontal.in, products + i * columns(g), y);
    }
    for (std::int64_t i = 0; i < image; ++i) y[i] = apply_activation(y[i], p.activation);
  }
  return ok_status();
}

}  // namespace bantam::ops::conv_transpose2d
