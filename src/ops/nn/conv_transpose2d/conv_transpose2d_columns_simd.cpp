// Transposed convolution as one matrix product and a scatter: every input position times all weights gives what it adds
// to each tap of each output channel; those are then added where the taps meet the output. It suits what the products
// by phase do not: few output channels or a large stride, as in the inverse of a short-time Fourier transform.
#include <algorithm>
#include <iterator>

#include "ops/common/activate_rows.h"
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

/// Columns of the product: tap by tap, its output channels.
std::int64_t columns(const Geometry& g) { return g.channels_out * taps(g); }

/// Floats from one row of products to the next, which is stored in whole vectors.
std::int64_t product_row(const Geometry& g) { return align_up(columns(g), gemm::kPanel / 2); }

std::int64_t block_of(const Geometry& g) {
  const std::int64_t positions = g.vertical.in * g.horizontal.in;
  return std::clamp<std::int64_t>(kBlockFloats / product_row(g), 1, std::clamp<std::int64_t>(positions, 1, kMaxBlock));
}

/// The input positions [first, last) of those whose tap k meets an output.
struct Positions {
  std::int64_t first = 0;
  std::int64_t last = 0;
};

Positions meeting(const Axis& a, std::int64_t k, Positions all) {
  const std::int64_t start = a.dilation * k - a.pad;  // output of position 0
  const std::int64_t first = start >= 0 ? 0 : (-start + a.stride - 1) / a.stride;
  const std::int64_t last = start >= a.out ? 0 : (a.out - start + a.stride - 1) / a.stride;
  return {std::max(first, all.first), std::min(last, all.last)};
}

/// Adds runs of numbers, kNumbers unless 0, else n, to others; both lie at equal distances.
template <int kNumbers>
void add_runs(std::int64_t runs, std::int64_t n, const float* __restrict from, std::int64_t from_step,
              float* __restrict to, std::int64_t to_step) {
  const std::int64_t numbers = kNumbers != 0 ? kNumbers : n;
  for (std::int64_t r = 0; r < runs; ++r, from += from_step, to += to_step)
    for (std::int64_t i = 0; i < numbers; ++i) to[i] += from[i];
}

using AddRuns = decltype(&add_runs<0>);

/// Short runs of a length that the compiler knows are not loops.
AddRuns add_runs_of(std::int64_t n) {
  static constexpr AddRuns kShort[] = {add_runs<0>, add_runs<1>, add_runs<2>, add_runs<3>, add_runs<4>};
  return n < static_cast<std::int64_t>(std::size(kShort)) ? kShort[n] : kShort[0];
}

/// Adds the products of positions `all` of input row `ih` to the image `y`, tap by tap.
void scatter(const Geometry& g, std::int64_t ih, Positions all, const float* products, float* y) {
  const Axis& axis = g.horizontal;
  const AddRuns add = add_runs_of(g.channels_out);
  for (std::int64_t kh = 0; kh < g.vertical.kernel; ++kh) {
    const std::int64_t oh = g.vertical.stride * ih + g.vertical.dilation * kh - g.vertical.pad;
    if (oh < 0 || oh >= g.vertical.out) continue;
    for (std::int64_t kw = 0; kw < axis.kernel; ++kw) {
      const Positions met = meeting(axis, kw, all);
      const float* from =
          products + (met.first - all.first) * product_row(g) + (kh * axis.kernel + kw) * g.channels_out;
      const std::int64_t ow = axis.stride * met.first + axis.dilation * kw - axis.pad;
      add(met.last - met.first, g.channels_out, from, product_row(g), y + (oh * axis.out + ow) * g.channels_out,
          axis.stride * g.channels_out);
    }
  }
}

/// The products of `count` input positions from `first` on.
void scatter_block(const Geometry& g, std::int64_t first, std::int64_t count, const float* products, float* y) {
  const std::int64_t end = first + count;
  while (first < end) {
    const std::int64_t ih = first / g.horizontal.in;
    const std::int64_t row = ih * g.horizontal.in;
    const std::int64_t row_end = std::min(row + g.horizontal.in, end);
    scatter(g, ih, {first - row, row_end - row}, products, y);
    products += (row_end - first) * product_row(g);
    first = row_end;
  }
}

void fill_bias(const Geometry& g, const float* bias, float* y) {
  const std::int64_t count = g.vertical.out * g.horizontal.out * g.channels_out;
  if (bias == nullptr || g.channels_out == 1) {
    std::fill_n(y, count, bias != nullptr ? bias[0] : 0.0F);
  } else {
    for (std::int64_t i = 0; i < count; i += g.channels_out)
      for (std::int64_t c = 0; c < g.channels_out; ++c) y[i + c] = bias[c];
  }
}

/// Writes a panel of w [output channels, taps, input channels].
void pack_panel(const Geometry& g, const float* w, std::int64_t panel, float* to) {
  for (std::int64_t i = 0; i < gemm::kPanel; ++i) {
    const std::int64_t column = panel * gemm::kPanel + i;
    const std::int64_t row = column % g.channels_out * taps(g) + column / g.channels_out;
    const float* from = column < columns(g) ? w + row * g.channels_in : nullptr;
    for (std::int64_t k = 0; k < g.channels_in; ++k) to[k * gemm::kPanel + i] = from != nullptr ? from[k] : 0.0F;
  }
}

}  // namespace

bool columns_supports(const OpCall& call) {
  if (linear_form(call.in(0), call.in(1)) != LinearForm::kFloat || !all_dense(call) || call.out().elements() == 0)
    return false;
  const Geometry g = geometry_of(call);
  if (g.groups != 1 || g.group_in() < 1) return false;
  const std::int64_t packed = columns_packed_bytes(call);
  return packed <= kSmallPackedBytes || packed <= 2 * call.in(1).bytes();
}

Footprint columns_footprint(const OpCall& call, int /*threads*/) {
  const Geometry g = geometry_of(call);
  Footprint footprint;
  footprint.scratch_bytes = block_of(g) * product_row(g) * 4;
  return footprint;
}

std::int64_t columns_packed_bytes(const OpCall& call) {
  const Geometry g = geometry_of(call);
  return gemm::packed_floats(g.channels_in, columns(g)) * 4;
}

void columns_pack(const OpCall& call, const Threads& threads, std::byte* destination) {
  const Geometry g = geometry_of(call);
  const auto* w = static_cast<const float*>(call.inputs[1].data);
  auto* packed = reinterpret_cast<float*>(destination);
  parallel_ranges(threads, gemm::panel_count(columns(g)), gemm::packing_grain(g.channels_in),
                  [&](std::int64_t begin, std::int64_t end) {
                    for (std::int64_t panel = begin; panel < end; ++panel)
                      pack_panel(g, w, panel, packed + panel * g.channels_in * gemm::kPanel);
                  });
}

namespace {

/// All products of a block of input positions. Threads share the panels of weights, or the positions where there are
/// too few panels.
void multiply_block(const Threads& threads, const gemm::LeftRows& left, const float* weights, std::int64_t n,
                    const gemm::Result& products) {
  const std::int64_t panels = gemm::panel_count(n);
  if (panels >= threads.count) {
    parallel_ranges(threads, panels, 1, [&](std::int64_t begin, std::int64_t end) {
      gemm::multiply(left, {.data = weights, .n = n, .first = begin, .last = end}, products);
    });
    return;
  }
  constexpr std::int64_t kWork = 100'000;
  const std::int64_t row_work = std::max<std::int64_t>(left.length * n, 1);
  parallel_ranges(threads, left.rows, Grain(kWork / row_work + 1, gemm::kMaxTileRows),
                  [&](std::int64_t begin, std::int64_t end) {
                    gemm::LeftRows part = left;
                    part.data += begin * left.row_stride;
                    part.rows = end - begin;
                    gemm::Result result = products;
                    result.data += begin * products.row_stride;
                    gemm::multiply(part, {.data = weights, .n = n, .first = 0, .last = panels}, result);
                  });
}

}  // namespace

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
      multiply_block(*call.threads, left, call.input<float>(1), product_row(g),
                     {.data = products, .row_stride = product_row(g)});
      scatter_block(g, first, left.rows, products, y);
    }
    activate_rows(p.activation, y, 1, image, image);
  }
  return ok_status();
}

}  // namespace bantam::ops::conv_transpose2d
