// conv2d in f32 as an implicit matrix product: the rows are output pixels, the columns output channels, and k runs over
// taps and input channels. Pixels whose window lies inside the image are multiplied where they lie; the others, and
// those at row ends, are first gathered into a tile of a few rows with zeros for the padding. There is no im2col
// buffer.
#include <algorithm>

#include "ops/common/parallel.h"
#include "ops/nn/conv2d/kernels.h"
#include "ops/nn/conv2d/problem.h"
#include "ops/nn/gemm/gemm_f32.h"

namespace bantam::ops::conv2d {
namespace {

/// Rows of the tile that border pixels are gathered into: as many as the micro-kernel takes, fewer where they would
/// not stay in the first-level cache.
std::int64_t gathered_rows(std::int64_t k) {
  constexpr std::int64_t kTileFloats = 12288;
  return std::clamp<std::int64_t>(kTileFloats / k, 6, gemm::kMaxTileRows);
}

std::int64_t gathered_floats(const Problem& p) {
  return p.always_inside ? 0 : align_up(gathered_rows(p.k) * p.k, kAlignment / sizeof(float));
}

/// How many pixels from `at` on, in the same row, have their whole window inside the image.
std::int64_t pixels_inside(const Problem& p, const Pixel& at) {
  const ConvGeometry& g = p.g;
  if (p.always_inside) return g.y.w - at.x;
  const TapRange rows = taps_inside(g.vertical, window_origin(g.vertical, at.y), 0, g.x.h);
  const std::int64_t x0 = window_origin(g.horizontal, at.x);
  if (rows.size() != g.vertical.kernel || x0 < 0) return 0;
  const std::int64_t room = g.x.w - 1 - static_cast<std::int64_t>(g.horizontal.kernel - 1) * g.horizontal.dilation - x0;
  return room < 0 ? 0 : std::min<std::int64_t>(room / g.horizontal.stride + 1, g.y.w - at.x);
}

/// The windows of `count` pixels of one row from `at` on, where they lie.
gemm::LeftRows windows_in_place(const Problem& p, const float* x, const Pixel& at, std::int64_t count) {
  const ConvGeometry& g = p.g;
  const std::int64_t tap_step = g.x.w_stride * g.horizontal.dilation;
  gemm::LeftRows rows{
      .data = x + g.x.offset(at.n, window_origin(g.vertical, at.y), window_origin(g.horizontal, at.x)),
      .rows = count,
      .row_stride = g.x.w_stride * g.horizontal.stride,
      .outer = g.vertical.kernel,
      .outer_stride = g.x.h_stride * g.vertical.dilation,
      .segments = g.horizontal.kernel,
      .segment_stride = tap_step,
      .length = p.group_inputs,
  };
  if (p.taps_touch) {
    rows.length *= rows.segments;
    rows.segments = 1;
  }
  return rows;
}

void copy_floats(const float* from, std::int64_t n, float* to) { std::copy_n(from, n, to); }

/// Computes output pixels [begin, end) of one group; all operands start at the group's first channel.
void convolve_pixels(const Problem& p, const float* x, const gemm::RightPanels& weights, gemm::Result y,
                     std::int64_t begin, std::int64_t end, float* gathered) {
  const std::int64_t tile = std::min(gemm::tile_rows(), gathered_rows(p.k));
  float* const y_base = y.data;
  y.row_stride = p.g.y.w_stride;
  for (std::int64_t index = begin; index < end;) {
    const Pixel at = pixel_at(p.g.y, index);
    y.data = y_base + p.g.y.offset(at.n, at.y, at.x);
    std::int64_t count = std::min(pixels_inside(p, at), end - index);
    if (p.one_run) count = end - index;
    if (count >= tile || p.always_inside) {
      if (!p.always_inside) count -= count % tile;
      multiply(windows_in_place(p, x, at, count), weights, y);
    } else {
      count = std::min({tile, end - index, p.y_uniform ? tile : p.g.y.w - at.x});
      for (std::int64_t i = 0; i < count; ++i)
        gather_window(p, x, pixel_at(p.g.y, index + i), gathered + i * p.k, copy_floats);
      multiply({.data = gathered, .rows = count, .row_stride = p.k, .length = p.k}, weights, y);
    }
    index += count;
  }
}

}  // namespace

bool gemm_supports(const OpCall& call) {
  return linear_form(call.in(0), call.in(1)) == LinearForm::kFloat && call.inputs[1].data != nullptr &&
         call.in(1).elements() > 0 && call.out().elements() > 0;
}

Footprint gemm_footprint(const OpCall& call, int threads) {
  const Problem p = make_problem(call.as<Conv2dParams>(), call.in(0), call.in(1), call.out());
  return {.scratch_bytes = gathered_floats(p) * static_cast<std::int64_t>(sizeof(float)) * threads};
}

std::int64_t gemm_packed_bytes(const OpCall& call, int input) {
  if (input != 1) return 0;
  const TensorDesc& w = call.in(1);
  const std::int64_t k = static_cast<std::int64_t>(w.dims[1]) * w.dims[2] * w.dims[3];
  const std::int64_t groups = call.as<Conv2dParams>().groups;
  return groups * gemm::packed_floats(k, w.dims[0] / groups) * static_cast<std::int64_t>(sizeof(float));
}

/// Group after group, each as the panels of the matrix [taps and input channels, output channels].
void gemm_pack(const OpCall& call, int /*input*/, std::byte* destination) {
  const TensorDesc& w = call.in(1);
  const auto* data = static_cast<const float*>(call.inputs[1].data);
  auto* packed = reinterpret_cast<float*>(destination);
  const std::int64_t taps = static_cast<std::int64_t>(w.dims[1]) * w.dims[2];
  const std::int64_t k = taps * w.dims[3];
  const std::int64_t outputs = w.dims[0] / call.as<Conv2dParams>().groups;
  for (std::int64_t first = 0; first < w.dims[0]; first += outputs) {
    gemm::pack_panels(data + first * k, k, outputs, 1, k, 0, gemm::panel_count(outputs), packed);
    packed += gemm::packed_floats(k, outputs);
  }
}

Status run_gemm(const Invocation& call) {
  const auto& params = call.as<Conv2dParams>();
  const Problem p = make_problem(params, call.in(0), call.in(1), call.out());
  const auto* bias = optional_input<float>(call, 2);
  const std::int64_t pixels = static_cast<std::int64_t>(p.g.y.n) * p.g.y.h * p.g.y.w;
  const std::int64_t packed = gemm::packed_floats(p.k, p.group_outputs);
  const std::int64_t grain = gemm::kMaxTileRows * 4;
  parallel_slots(*call.threads, pixels, grain, [&](std::int64_t slot, std::int64_t begin, std::int64_t end) {
    float* gathered = reinterpret_cast<float*>(call.scratch) + slot * gathered_floats(p);
    for (std::int64_t group = 0; group < params.groups; ++group) {
      const std::int64_t first = group * p.group_outputs;
      const gemm::RightPanels weights{call.input<float>(1) + group * packed, p.group_outputs, 0,
                                      gemm::panel_count(p.group_outputs)};
      const gemm::Result y{call.output<float>() + first, 0, bias != nullptr ? bias + first : nullptr,
                           params.activation};
      convolve_pixels(p, call.input<float>(0) + group * p.group_inputs, weights, y, begin, end, gathered);
    }
  });
  return ok_status();
}

}  // namespace bantam::ops::conv2d
