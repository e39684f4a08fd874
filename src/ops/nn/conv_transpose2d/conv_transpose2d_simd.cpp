// Transposed convolution as matrix products. All outputs of a row that leave the same remainder modulo the stride see
// the same taps, at input positions that move along with them: they are the rows of one product, whose left operand
// lies in place in the padded image and whose right operand holds just those taps.
#include <algorithm>
#include <cstring>

#include "ops/common/operands.h"
#include "ops/common/parallel.h"
#include "ops/nn/conv_transpose2d/geometry.h"
#include "ops/nn/conv_transpose2d/kernels.h"
#include "ops/nn/gemm/gemm_f32.h"

namespace bantam::ops::conv_transpose2d {
namespace {

/// More phases than this are left to the reference: they would hold next to no tap each.
constexpr std::int64_t kMaxStride = 16;
/// Does one product of all taps, whose results are then added up, take less time than the products by phase? Those
/// leave most of a panel empty where there are few output channels, and are many where the stride is large; the sums
/// take their time where taps overlap. Times in ns, as measured on a Zen 4 with AVX-512; with AVX2 they are alike.
bool columns_pay(const Geometry& g) {
  if (g.groups != 1) return false;
  const auto number = [](std::int64_t n) { return static_cast<double>(n); };
  const std::int64_t taps = g.vertical.kernel * g.horizontal.kernel;
  const std::int64_t phases = g.vertical.stride * g.horizontal.stride;
  const double inputs = number(g.vertical.in * g.horizontal.in);
  const double outputs = number(g.vertical.out * g.horizontal.out);
  const double channels_in = number(g.channels_in);
  const double channels_out = number(g.channels_out);

  constexpr std::int64_t kHalf = gemm::kPanel / 2;  // of a panel is left out
  const double product = 0.0171 * channels_in * number(align_up(g.channels_out * taps, kHalf));
  const bool apart = g.horizontal.kernel <= g.horizontal.stride;
  const double sums = apart ? number(g.vertical.kernel) * (0.6 + 0.11 * number(g.horizontal.kernel) * channels_out)
                            : number(taps) * (0.6 + 0.135 * channels_out);
  const double columns = inputs * (product + sums) + outputs * 0.08 * channels_out;

  const double panels = g.channels_out <= kHalf ? 0.19 : 0.025 + 0.27 * number(gemm::panel_count(g.channels_out));
  const double row = phases == 1 ? 2.5 : 4.3;  // of a product, its share of the call
  return columns < outputs * (row + number(taps) / number(phases) * channels_in * panels);
}

/// Few output channels per group leave most of a panel empty: fine while it costs little memory.
constexpr std::int64_t kSmallPackedBytes = 65536;
constexpr std::int64_t kMaxPackedGrowth = 4;

/// One batch item with its border of zeros.
struct PaddedImage {
  Border vertical;
  Border horizontal;
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t channels = 0;

  explicit PaddedImage(const Geometry& g) noexcept
      : vertical(border_of(g.vertical)),
        horizontal(border_of(g.horizontal)),
        height(vertical.before + g.vertical.in + vertical.after),
        width(horizontal.before + g.horizontal.in + horizontal.after),
        channels(g.channels_in) {}

  std::int64_t row() const noexcept { return width * channels; }
  std::int64_t floats() const noexcept { return height * row(); }
};

Geometry geometry_of(const OpCall& call) {
  return conv_transpose2d::geometry_of(call.as<ConvTranspose2dParams>(), call.in(0), call.in(1), call.out());
}

/// Calls f(group, vertical phase, horizontal phase, offset of its panels) in the order of the packed weights and
/// returns the floats of them all. `f` gets the phases' numbers with their taps.
template <typename F>
std::int64_t for_each_phase(const Geometry& g, F&& f) {
  std::int64_t offset = 0;
  for (std::int64_t group = 0; group < g.groups; ++group)
    for (std::int64_t v = 0; v < g.vertical.stride; ++v)
      for (std::int64_t h = 0; h < g.horizontal.stride; ++h) {
        const Phase vertical = phase_of(g.vertical, v);
        const Phase horizontal = phase_of(g.horizontal, h);
        f(group, v, vertical, h, horizontal, offset);
        offset += gemm::packed_floats(vertical.count * horizontal.count * g.group_in(), g.group_out());
      }
  return offset;
}

/// Writes one panel of one phase, tap by tap; `w` are the weights of its group's first output channel, `to` is the
/// phase's first panel.
void pack_panel(const Geometry& g, const Phase& vertical, const Phase& horizontal, const float* w, std::int64_t panel,
                float* to) {
  const std::int64_t tap_floats = g.group_in();
  const std::int64_t channel_floats = g.vertical.kernel * g.horizontal.kernel * tap_floats;
  const std::int64_t channel = panel * gemm::kPanel;
  to += panel * vertical.count * horizontal.count * tap_floats * gemm::kPanel;
  for (std::int64_t a = 0; a < vertical.count; ++a)
    for (std::int64_t b = 0; b < horizontal.count; ++b) {
      const std::int64_t kh = vertical.first + a * vertical.step;
      const std::int64_t kw = horizontal.first + b * horizontal.step;
      const float* tap = w + (kh * g.horizontal.kernel + kw) * tap_floats;
      gemm::pack_panels_simd(tap + channel * channel_floats, tap_floats, g.group_out() - channel, 1, channel_floats, 0,
                             1, to);
      to += tap_floats * gemm::kPanel;
    }
}

/// Floats [begin, end) of the padded image.
void pad_range(const Geometry& g, const PaddedImage& image, const float* x, std::int64_t begin, std::int64_t end,
               float* padded) {
  std::memset(padded + begin, 0, static_cast<std::size_t>(end - begin) * sizeof(float));
  const std::int64_t row = g.horizontal.in * g.channels_in;
  for (std::int64_t h = 0; h < g.vertical.in; ++h) {
    const std::int64_t at = (image.vertical.before + h) * image.row() + image.horizontal.before * image.channels;
    const std::int64_t first = std::max(at, begin);
    const std::int64_t last = std::min(at + row, end);
    if (first < last)
      std::memcpy(padded + first, x + h * row + first - at, static_cast<std::size_t>(last - first) * sizeof(float));
  }
}

void pad_image(const Invocation& call, const Geometry& g, const PaddedImage& image, const float* x) {
  constexpr std::int64_t kGrain = 16384;
  auto* padded = reinterpret_cast<float*>(call.scratch);
  parallel_ranges(*call.threads, image.floats(), kGrain,
                  [&](std::int64_t begin, std::int64_t end) { pad_range(g, image, x, begin, end, padded); });
}

/// Weights that stay in the second-level cache while they meet one row after the other.
constexpr std::int64_t kCacheFloats = 131072;

/// A part of the result: output rows [first_row, last_row), of each the outputs [first_output, last_output) of every
/// phase, and of each group the columns of panels [first, last).
struct Part {
  std::int64_t first_row;
  std::int64_t last_row;
  std::int64_t first_output;
  std::int64_t last_output;
  std::int64_t first;
  std::int64_t last;
};

/// The most outputs of a row that one phase has.
std::int64_t phase_outputs(const Axis& a) { return (a.out + a.stride - 1) / a.stride; }

/// Every group and horizontal phase of the rows, phase by phase: weights of a few panels, which stay in the
/// second-level cache meanwhile, meet all rows of their vertical phase.
void run_part(const Invocation& call, const Geometry& g, const PaddedImage& image, const Part& part, float* y) {
  constexpr std::int64_t kTilePanels = 4;
  const auto& p = call.as<ConvTranspose2dParams>();
  const auto* padded = reinterpret_cast<const float*>(call.scratch);
  const Axis& axis = g.horizontal;
  for_each_phase(g, [&](std::int64_t group, std::int64_t v, const Phase& vertical, std::int64_t h,
                        const Phase& horizontal, std::int64_t offset) {
    const std::int64_t ow = (h - axis.pad % axis.stride + axis.stride) % axis.stride;
    const std::int64_t outputs = std::min((axis.out - ow + axis.stride - 1) / axis.stride, part.last_output);
    if (ow >= axis.out || outputs <= part.first_output) return;
    const std::int64_t column_base =
        part.first_output + (ow + axis.pad) / axis.stride + image.horizontal.before - horizontal.back;
    const auto multiply_row = [&](std::int64_t oh, std::int64_t first, std::int64_t last) {
      const std::int64_t row_base = (oh + g.vertical.pad) / g.vertical.stride + image.vertical.before;
      const gemm::LeftRows left{.data = padded + (row_base - vertical.back) * image.row() +
                                        column_base * image.channels + group * g.group_in(),
                                .rows = outputs - part.first_output,
                                .row_stride = image.channels,
                                .outer = vertical.count,
                                .outer_stride = -vertical.back_step * image.row(),
                                .segments = horizontal.count,
                                .segment_stride = -horizontal.back_step * image.channels,
                                .length = g.group_in()};
      gemm::multiply(
          left, {.data = call.input<float>(1) + offset, .n = g.group_out(), .first = first, .last = last},
          {.data = y + (oh * axis.out + ow + part.first_output * axis.stride) * g.channels_out + group * g.group_out(),
           .row_stride = axis.stride * g.channels_out,
           .bias = call.has(2) ? call.input<float>(2) + group * g.group_out() : nullptr,
           .activation = p.activation});
    };
    const std::int64_t panel =
        std::max<std::int64_t>(vertical.count * horizontal.count * g.group_in(), 1) * gemm::kPanel;
    const std::int64_t at_once = std::max(kCacheFloats / panel / kTilePanels, std::int64_t{1}) * kTilePanels;
    const std::int64_t first_row =
        part.first_row +
        (v + g.vertical.stride - (part.first_row + g.vertical.pad) % g.vertical.stride) % g.vertical.stride;
    for (std::int64_t first = part.first; first < part.last; first += at_once)
      for (std::int64_t oh = first_row; oh < part.last_row; oh += g.vertical.stride)
        multiply_row(oh, first, std::min(first + at_once, part.last));
  });
}

/// How many of the equal parts of an item are worth a thread: work of about ten microseconds with plain instructions.
std::int64_t least_parts(const Geometry& g, std::int64_t parts) {
  constexpr double kWork = 100'000;
  const double item = static_cast<double>(g.vertical.in * g.horizontal.in) *
                      static_cast<double>(g.vertical.kernel * g.horizontal.kernel) *
                      static_cast<double>(g.channels_in * g.group_out());
  return static_cast<std::int64_t>(kWork * static_cast<double>(parts) / std::max(item, 1.0)) + 1;
}

/// One item of the batch, whose image is padded. Few weights stay in a cache from row to row, so that each row of the
/// result is written once; threads share rows then, else, or if there is only one, panels, or where there are few of
/// those the outputs of a row.
void run_item(const Invocation& call, const Geometry& g, const PaddedImage& image, float* y) {
  constexpr std::int64_t kPanels = 4;
  const std::int64_t panels = gemm::panel_count(g.group_out());
  const std::int64_t rows = g.vertical.out;
  const std::int64_t outputs = phase_outputs(g.horizontal);
  const std::int64_t panel_tasks = (panels - 1) / kPanels + 1;
  const std::int64_t output_tasks = (outputs - 1) / gemm::kMaxTileRows + 1;
  if (rows > 1 && call.in(1).elements() <= kCacheFloats * g.vertical.stride) {
    parallel_ranges(*call.threads, rows, least_parts(g, rows), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t oh = begin; oh < end; ++oh) run_part(call, g, image, {oh, oh + 1, 0, outputs, 0, panels}, y);
    });
  } else if (panel_tasks >= std::min<std::int64_t>(output_tasks, call.threads->count)) {
    parallel_ranges(*call.threads, panels, Grain(least_parts(g, panels), kPanels),
                    [&](std::int64_t first, std::int64_t last) {
                      run_part(call, g, image, {0, rows, 0, outputs, first, last}, y);
                    });
  } else {
    const std::int64_t least = std::max(least_parts(g, outputs), gemm::kMaxTileRows);
    parallel_ranges(*call.threads, outputs, least, [&](std::int64_t begin, std::int64_t end) {
      run_part(call, g, image, {0, rows, begin, end, 0, panels}, y);
    });
  }
}

}  // namespace

bool gemm_supports(const OpCall& call) {
  const auto& p = call.as<ConvTranspose2dParams>();
  if (linear_form(call.in(0), call.in(1)) != LinearForm::kFloat || !all_dense(call) || call.out().elements() == 0)
    return false;
  const Geometry g = geometry_of(call);
  if (columns_pay(g) && columns_supports(call)) return false;
  if (p.stride_h > kMaxStride || p.stride_w > kMaxStride || g.group_in() < 1) return false;
  // A huge dilation would make the border dwarf the image.
  const PaddedImage image(g);
  if (image.height > 4 * (g.vertical.in + 16) || image.width > 4 * (g.horizontal.in + 16)) return false;
  const std::int64_t packed = gemm_packed_bytes(call);
  return packed <= kSmallPackedBytes || packed <= kMaxPackedGrowth * call.in(1).bytes();
}

Footprint gemm_footprint(const OpCall& call, int /*threads*/) {
  Footprint footprint;
  footprint.scratch_bytes = PaddedImage(geometry_of(call)).floats() * 4;
  return footprint;
}

std::int64_t gemm_packed_bytes(const OpCall& call) {
  return for_each_phase(geometry_of(call), [](auto&&...) {}) * 4;
}

void gemm_pack(const OpCall& call, const Threads& threads, std::byte* destination) {
  const Geometry g = geometry_of(call);
  const auto* w = static_cast<const float*>(call.inputs[1].data);
  auto* packed = reinterpret_cast<float*>(destination);
  const std::int64_t channel_floats = g.vertical.kernel * g.horizontal.kernel * g.group_in();
  const std::int64_t panels = gemm::panel_count(g.group_out());
  parallel_ranges(threads, panels, gemm::packing_grain(g.groups * channel_floats),
                  [&](std::int64_t begin, std::int64_t end) {
                    for_each_phase(g, [&](std::int64_t group, std::int64_t, const Phase& vertical, std::int64_t,
                                          const Phase& horizontal, std::int64_t offset) {
                      const float* weights = w + group * g.group_out() * channel_floats;
                      for (std::int64_t panel = begin; panel < end; ++panel)
                        pack_panel(g, vertical, horizontal, weights, panel, packed + offset);
                    });
                  });
}

Status run_gemm(const Invocation& call) {
  const Geometry g =
      conv_transpose2d::geometry_of(call.as<ConvTranspose2dParams>(), call.in(0), call.in(1), call.out());
  const PaddedImage image(g);
  const std::int64_t row = g.horizontal.out * g.channels_out;
  for (std::int64_t n = 0; n < g.batch; ++n) {
    pad_image(call, g, image, call.input<float>(0) + n * g.vertical.in * g.horizontal.in * g.channels_in);
    run_item(call, g, image, call.output<float>() + n * g.vertical.out * row);
  }
  return ok_status();
}

}  // namespace bantam::ops::conv_transpose2d
