// Depthwise transposed convolution: neighbouring channels in the lanes of vectors. Every output gathers the taps that
// reach it, which are the same, at inputs that move along, for all outputs of a row that leave the same remainder
// modulo the stride. So where channels are few, vectors run over such outputs, whose inputs lie side by side.
#include <algorithm>

#include "ops/common/activate_rows.h"
#include "ops/common/operands.h"
#include "ops/common/parallel.h"
#include "ops/nn/conv_transpose2d/geometry.h"
#include "ops/nn/conv_transpose2d/kernels.h"

#ifndef BANTAM_CONV_TRANSPOSE2D_WINDOW_
#define BANTAM_CONV_TRANSPOSE2D_WINDOW_
namespace bantam::ops::conv_transpose2d {
namespace {

/// The taps of one axis that reach an output: the first, and the input that it meets.
struct Reach {
  std::int64_t tap = 0;
  std::int64_t input = 0;
  std::int64_t count = 0;
};

/// Of output stride * q + phase - pad, with the taps of the phase.
Reach reach_of(const Axis& a, const Phase& phase, std::int64_t q) {
  const std::int64_t last = q - phase.back;  // the input that meets the first tap
  const std::int64_t beyond = last - (a.in - 1);
  const std::int64_t skipped = beyond > 0 ? (beyond + phase.back_step - 1) / phase.back_step : 0;
  const bool all = last >= (phase.count - 1) * phase.back_step;
  const std::int64_t end = all ? phase.count : last < 0 ? 0 : last / phase.back_step + 1;
  return {phase.first + skipped * phase.step, last - skipped * phase.back_step,
          std::max<std::int64_t>(end - skipped, 0)};
}

/// The inputs and weights that one output sums up, as runs of channels. Rows of taps, and taps of a row, are so far
/// apart.
struct Window {
  const float* x;
  const float* w;
  std::int64_t rows, x_row, w_row;
  std::int64_t columns, x_column, w_column;
};

/// So few channels that some vectors hold those of several outputs. Their weights are packed several times side by
/// side: a vector finds its own wherever among the channels it begins.
constexpr std::int64_t kFewChannels = 8;
constexpr std::int64_t kMostLanes = 16;

/// Weights of a tap as they are packed.
std::int64_t tap_weights(std::int64_t channels) {
  return channels <= kFewChannels ? channels + kMostLanes - 1 : channels;
}

/// Outputs of a row that leave the same remainder, `first` the column of the first of them and q its input; those of
/// [begin, end) have all their taps inside the image.
struct PhaseRow {
  Phase phase;
  std::int64_t first;
  std::int64_t q;
  std::int64_t count;
  std::int64_t begin;
  std::int64_t end;
};

PhaseRow phase_row(const Axis& axis, std::int64_t first) {
  const Phase phase = phase_of(axis, (first + axis.pad) % axis.stride);
  const std::int64_t q = (first + axis.pad) / axis.stride;
  const std::int64_t count = (axis.out - first + axis.stride - 1) / axis.stride;
  const std::int64_t reach = std::max<std::int64_t>(phase.count - 1, 0) * phase.back_step;
  const std::int64_t begin = std::clamp<std::int64_t>(phase.back + reach - q, 0, count);
  return {phase, first, q, count, begin, std::clamp<std::int64_t>(axis.in + phase.back - q, begin, count)};
}

}  // namespace
}  // namespace bantam::ops::conv_transpose2d
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/nn/conv_transpose2d/conv_transpose2d_depthwise_simd.cpp"
#include "hwy/foreach_target.h"
// Highway wants the headers below after foreach_target.h.
#include "hwy/highway.h"
#include "ops/common/rows_simd-inl.h"
#include "ops/nn/gemm/unroll-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::conv_transpose2d::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using ops::HWY_NAMESPACE::load_partial;
using ops::HWY_NAMESPACE::store_partial;
using ops::HWY_NAMESPACE::unroll;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

/// The sums of kVectors vectors of channels from `c` on; `load` and `store` move one.
template <int kVectors, class Load, class Store>
HWY_INLINE void sum_channels(const Window& window, const float* bias, float* y, std::int64_t c, Load load,
                             Store store) {
  const D d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  V sums[kVectors];
  unroll<kVectors>([&](auto v) HWY_ATTR { sums[v] = bias != nullptr ? load(bias + c + v * lanes) : hn::Zero(d); });
  for (std::int64_t a = 0; a < window.rows; ++a) {
    const float* x = window.x + a * window.x_row + c;
    const float* w = window.w + a * window.w_row + c;
    for (std::int64_t b = 0; b < window.columns; ++b, x += window.x_column, w += window.w_column)
      unroll<kVectors>([&](auto v)
                           HWY_ATTR { sums[v] = hn::MulAdd(load(x + v * lanes), load(w + v * lanes), sums[v]); });
  }
  unroll<kVectors>([&](auto v) HWY_ATTR { store(sums[v], y + c + v * lanes); });
}

void sum_window(const Window& window, std::int64_t channels, const float* bias, float* y) {
  const D d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto load = [=](const float* from) HWY_ATTR { return hn::LoadU(d, from); };
  const auto store = [=](V sum, float* to) HWY_ATTR { hn::StoreU(sum, d, to); };
  constexpr int kVectors = 4;
  std::int64_t c = 0;
  for (; c + kVectors * lanes <= channels; c += kVectors * lanes)
    sum_channels<kVectors>(window, bias, y, c, load, store);
  for (; c + lanes <= channels; c += lanes) sum_channels<1>(window, bias, y, c, load, store);
  if (c == channels) return;
  const auto rest = static_cast<std::size_t>(channels - c);
  sum_channels<1>(
      window, bias, y, c, [=](const float* from) HWY_ATTR { return load_partial(d, from, rest); },
      [=](V sum, float* to) HWY_ATTR { store_partial(sum, d, to, rest); });
}

/// The sums of kVectors vectors of numbers of neighbouring outputs from the n-th on, of few channels; window.x is at
/// the first. `bias` as weights are packed.
template <int kVectors>
HWY_INLINE void sum_numbers(const Window& window, std::int64_t channels, const float* bias, std::int64_t n, float* y) {
  const D d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t places[kVectors];  // of each vector's first number among the channels
  V sums[kVectors];
  unroll<kVectors>([&](auto v) HWY_ATTR {
    places[v] = (n + v * lanes) % channels;
    sums[v] = hn::LoadU(d, bias + places[v]);
  });
  for (std::int64_t a = 0; a < window.rows; ++a) {
    const float* x = window.x + a * window.x_row + n;
    const float* w = window.w + a * window.w_row;
    for (std::int64_t b = 0; b < window.columns; ++b, x += window.x_column, w += window.w_column)
      unroll<kVectors>([&](auto v) HWY_ATTR {
        sums[v] = hn::MulAdd(hn::LoadU(d, x + v * lanes), hn::LoadU(d, w + places[v]), sums[v]);
      });
  }
  unroll<kVectors>([&](auto v) HWY_ATTR { hn::StoreU(sums[v], d, y + n + v * lanes); });
}

/// One output row: of which image, and what reaches it.
struct Row {
  const Geometry& g;
  const float* x;
  const float* w;
  const float* bias;
  float* y;
  Phase phase;  ///< vertical
  Reach reach;

  /// What output `j` of a phase's sums up.
  HWY_INLINE Window window(const PhaseRow& columns, std::int64_t j) const {
    const Axis& axis = g.horizontal;
    const std::int64_t channels = g.channels_out;
    const std::int64_t tap = tap_weights(channels);
    const Reach inside = reach_of(axis, columns.phase, columns.q + j);
    return {.x = x + (reach.input * axis.in + inside.input) * channels,
            .w = w + (reach.tap * axis.kernel + inside.tap) * tap,
            .rows = inside.count > 0 ? reach.count : 0,
            .x_row = -phase.back_step * axis.in * channels,
            .w_row = phase.step * axis.kernel * tap,
            .columns = inside.count,
            .x_column = -columns.phase.back_step * channels,
            .w_column = columns.phase.step * tap};
  }

  /// Outputs [begin, end) of a phase, each by itself.
  void sum_each(const PhaseRow& columns, std::int64_t begin, std::int64_t end) const {
    for (std::int64_t j = begin; j < end; ++j)
      sum_window(window(columns, j), g.channels_out, bias,
                 y + (columns.first + j * g.horizontal.stride) * g.channels_out);
  }

  /// The same of outputs whose taps lie inside, few channels, which fill a vector together. `biases` as weights are
  /// packed.
  void sum_together(const PhaseRow& columns, std::int64_t begin, std::int64_t end, const float* biases) const {
    const D d;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    constexpr int kVectors = 4;
    constexpr std::int64_t kOutputs = 64;
    const std::int64_t channels = g.channels_out;
    const std::int64_t least = (lanes + channels - 1) / channels;
    HWY_ALIGN float sums[kOutputs * kFewChannels];
    for (std::int64_t j = begin; j < end; j += kOutputs) {
      const std::int64_t from = std::max(std::min(j, end - least), begin);
      const std::int64_t outputs = std::min(end - from, kOutputs);
      const std::int64_t numbers = outputs * channels;
      const Window first = window(columns, from);
      std::int64_t n = 0;
      for (; n + kVectors * lanes <= numbers; n += kVectors * lanes)
        sum_numbers<kVectors>(first, channels, biases, n, sums);
      for (; n < numbers; n += lanes) sum_numbers<1>(first, channels, biases, std::min(n, numbers - lanes), sums);
      spread(sums, outputs, channels, y + (columns.first + from * g.horizontal.stride) * channels);
    }
  }

 private:
  /// Puts the results of neighbouring outputs of a phase where they belong.
  void spread(const float* sums, std::int64_t outputs, std::int64_t channels, float* to) const {
    const std::int64_t step = g.horizontal.stride * channels;
    if (channels == 1) {
      for (std::int64_t i = 0; i < outputs; ++i) to[i * step] = sums[i];
      return;
    }
    for (std::int64_t i = 0; i < outputs; ++i, to += step, sums += channels)
      for (std::int64_t c = 0; c < channels; ++c) to[c] = sums[c];
  }
};

/// Output row `oh` of an image.
void sum_row(const Geometry& g, std::int64_t oh, const float* x, const float* w, const float* bias, float* y) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(D()));
  const Axis& axis = g.horizontal;
  const std::int64_t channels = g.channels_out;
  const std::int64_t at = oh + g.vertical.pad;
  const Phase phase = phase_of(g.vertical, at % g.vertical.stride);
  const Row row{g, x, w, bias, y, phase, reach_of(g.vertical, phase, at / g.vertical.stride)};
  const bool few = channels <= kFewChannels && channels < lanes;
  float biases[kFewChannels + kMostLanes] = {};
  if (few && bias != nullptr)
    for (std::int64_t i = 0; i < tap_weights(channels); ++i) biases[i] = bias[i % channels];
  for (std::int64_t first = 0; first < std::min(axis.stride, axis.out); ++first) {
    PhaseRow columns = phase_row(axis, first);
    if (!few || (columns.end - columns.begin) * channels < lanes) columns.end = columns.begin;
    row.sum_each(columns, 0, columns.begin);
    row.sum_together(columns, columns.begin, columns.end, biases);
    row.sum_each(columns, columns.end, columns.count);
  }
}

}  // namespace
}  // namespace bantam::ops::conv_transpose2d::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bantam::ops::conv_transpose2d {

HWY_EXPORT(sum_row);

bool depthwise_supports(const OpCall& call) {
  const TensorDesc& w = call.in(1);
  return linear_form(call.in(0), w) == LinearForm::kFloat && all_dense(call) && call.out().elements() > 0 &&
         w.dims[3] == 1 && w.dims[0] == call.as<ConvTranspose2dParams>().groups;
}

std::int64_t depthwise_packed_bytes(const OpCall& call) {
  const TensorDesc& w = call.in(1);
  return w.dims[1] * w.dims[2] * tap_weights(w.dims[0]) * static_cast<std::int64_t>(sizeof(float));
}

void depthwise_pack(const OpCall& call, const Threads& /*threads*/, std::byte* destination) {
  const TensorDesc& w = call.in(1);
  const std::int64_t taps = static_cast<std::int64_t>(w.dims[1]) * w.dims[2];
  const auto* from = static_cast<const float*>(call.inputs[1].data);
  auto* to = reinterpret_cast<float*>(destination);
  for (std::int64_t tap = 0; tap < taps; ++tap)
    for (std::int64_t i = 0; i < tap_weights(w.dims[0]); ++i) *to++ = from[i % w.dims[0] * taps + tap];
}

Status run_depthwise(const Invocation& call) {
  const auto& p = call.as<ConvTranspose2dParams>();
  const Geometry g = geometry_of(p, call.in(0), call.in(1), call.out());
  const std::int64_t image = g.vertical.in * g.horizontal.in * g.channels_in;
  const std::int64_t row = g.horizontal.out * g.channels_out;
  const float* bias = call.has(2) ? call.input<float>(2) : nullptr;
  const std::int64_t grain = std::max<std::int64_t>(8192 / row, 1);
  parallel_ranges(*call.threads, g.batch * g.vertical.out, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      float* y = call.output<float>() + i * row;
      HWY_DYNAMIC_DISPATCH(sum_row)
      (g, i % g.vertical.out, call.input<float>(0) + i / g.vertical.out * image, call.input<float>(1), bias, y);
      activate_rows(p.activation, y, 1, row, row);
    }
  });
  return ok_status();
}

}  // namespace bantam::ops::conv_transpose2d
#endif
