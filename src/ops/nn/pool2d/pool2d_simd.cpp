// pool2d in f32, i8 and u8: vectors run over channels; every window visits only its taps inside the image. Where that
// is less work, maxima or sums of columns are made first, in vectors of whatever pixels and channels come next, for a
// strip of a row that is kept on the stack. So are windows of few channels that are more than a column apart: all those
// between them are computed, too, and the ones that count are copied.
#include <algorithm>
#include <type_traits>

#include "ops/common/parallel.h"
#include "ops/common/short_copy.h"
#include "ops/nn/pool2d/geometry.h"
#include "ops/nn/pool2d/kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/nn/pool2d/pool2d_simd.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "ops/common/activate_rows.h"
#include "ops/common/clamped_store_simd-inl.h"
#include "ops/nn/gemm/unroll-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::pool::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using ops::HWY_NAMESPACE::ClampedStore;
using ops::HWY_NAMESPACE::unroll;

/// The taps of one window; strides in elements.
template <typename T>
struct Window {
  const T* x = nullptr;  ///< first tap, channel 0
  std::int64_t row_step = 0;
  std::int64_t tap_step = 0;
  std::int32_t rows = 0;
  std::int32_t taps = 0;
  std::int64_t count = 0;  ///< divisor of an average
};

template <typename T>
Window<T> window_of(const PoolGeometry& g, const T* image, const PoolTaps& rows, const PoolTaps& columns) {
  Window<T> window{.count = rows.counted * columns.counted};
  if (rows.inside.size() == 0 || columns.inside.size() == 0) return window;
  window.rows = rows.inside.size();
  window.taps = columns.inside.size();
  window.row_step = g.x.h_stride * g.vertical.dilation;
  window.tap_step = g.x.w_stride * g.horizontal.dilation;
  window.x = image + (rows.origin + static_cast<std::int64_t>(rows.inside.first) * g.vertical.dilation) * g.x.h_stride +
             (columns.origin + static_cast<std::int64_t>(columns.inside.first) * g.horizontal.dilation) * g.x.w_stride;
  return window;
}

/// Neighbouring vectors of channels that go through a window together.
constexpr int kVectorsAtOnce = 4;

/// Folds `step(sum, tap)` over the taps, for kVectors vectors of channels: load(x, v) reads the v-th from channel c on.
template <int kVectors, typename T, class V, typename Load, typename Step>
HWY_INLINE void fold(const Window<T>& window, std::int64_t c, V (&sums)[kVectors], Load load, Step step) {
  const auto tap = [&](const T* x) __attribute__((always_inline)) HWY_ATTR {
    unroll<kVectors>([&](auto v) HWY_ATTR { sums[v] = step(sums[v], load(x, v)); });
  };
  const T* row = window.x + c;
  const std::int64_t tap_step = window.tap_step;
  if (window.taps == 3) {
    for (std::int32_t ky = 0; ky < window.rows; ++ky, row += window.row_step)
      unroll<3>([&](auto kx) __attribute__((always_inline)) HWY_ATTR { tap(row + kx * tap_step); });
    return;
  }
  for (std::int32_t ky = 0; ky < window.rows; ++ky, row += window.row_step) {
    const T* x = row;
    for (std::int32_t kx = 0; kx < window.taps; ++kx, x += tap_step) tap(x);
  }
}

/// Maxima of vectors of channels. NaNs do not count.
template <int kVectors, typename T, class D>
HWY_INLINE void maximum(D d, const Window<T>& window, std::int64_t c, hn::Vec<D> (&sums)[kVectors]) {
  unroll<kVectors>([&](auto v) HWY_ATTR { sums[v] = hn::Set(d, kPoolLowest<T>); });
  fold(
      window, c, sums, [d](const T* x, int v) HWY_ATTR { return hn::LoadU(d, x + v * hn::MaxLanes(d)); },
      [](hn::Vec<D> sum, hn::Vec<D> x) HWY_ATTR { return hn::Max(x, sum); });
}

template <int kVectors, class D>
HWY_INLINE void total(D d, const Window<float>& window, std::int64_t c, hn::Vec<D> (&sums)[kVectors]) {
  unroll<kVectors>([&](auto v) HWY_ATTR { sums[v] = hn::Zero(d); });
  fold(
      window, c, sums, [d](const float* x, int v) HWY_ATTR { return hn::LoadU(d, x + v * hn::MaxLanes(d)); },
      [](hn::Vec<D> s, hn::Vec<D> x) HWY_ATTR { return hn::Add(s, x); });
}

/// No elements have an average of 0.
template <int kVectors, class D>
HWY_INLINE void average(D d, const Window<float>& window, std::int64_t c, hn::Vec<D> (&sums)[kVectors]) {
  total(d, window, c, sums);
  if (window.count <= 0) return;
  const auto count = hn::Set(d, static_cast<float>(window.count));
  unroll<kVectors>([&](auto v) HWY_ATTR { sums[v] = hn::Div(sums[v], count); });
}

/// Averages of 8-bit integers as int32, rounded half away from zero. At most 2^15 elements: dividend and divisor are
/// below 2^23, so a float quotient that is not an integer cannot round to one, and truncation is exact.
template <int kVectors, typename T, class DI>
HWY_INLINE void average(DI di, const Window<T>& window, std::int64_t c, hn::Vec<DI> (&sums)[kVectors]) {
  const hn::Rebind<T, DI> narrow;
  const hn::Rebind<float, DI> df;
  unroll<kVectors>([&](auto v) HWY_ATTR { sums[v] = hn::Zero(di); });
  if (window.count <= 0) return;
  fold(
      window, c, sums,
      [=](const T* x, int v) HWY_ATTR { return hn::PromoteTo(di, hn::LoadU(narrow, x + v * hn::MaxLanes(di))); },
      [](hn::Vec<DI> s, hn::Vec<DI> x) HWY_ATTR { return hn::Add(s, x); });
  const auto count = static_cast<std::int32_t>(window.count);
  const auto half = hn::Set(di, count / 2);
  unroll<kVectors>([&](auto v) HWY_ATTR {
    const auto away = hn::IfThenElse(hn::Gt(sums[v], hn::Zero(di)), hn::Add(sums[v], half), hn::Sub(sums[v], half));
    sums[v] = hn::ConvertTo(di, hn::Div(hn::ConvertTo(df, away), hn::Set(df, static_cast<float>(count))));
  });
}

/// Calls f(c, vectors), a constant, for channels in steps of several vectors of `lanes` <= channels, then of one; the
/// last step may overlap the one before.
template <typename F>
HWY_INLINE void for_channels(std::int64_t channels, std::int64_t lanes, F f) {
  std::int64_t next = 0;
  for (; next + kVectorsAtOnce * lanes <= channels; next += kVectorsAtOnce * lanes)
    f(next, std::integral_constant<int, kVectorsAtOnce>());
  for (; next < channels; next += lanes) f(std::min(next, channels - lanes), std::integral_constant<int, 1>());
}

/// Calls put(vector, c) with what a window gives for all channels; `pool(c, sums)` computes some vectors of them.
template <class D, typename Pool, typename Put>
HWY_INLINE void pool_channels(D d, std::int64_t channels, Pool pool, Put put) {
  const auto lanes = static_cast<std::int64_t>(hn::MaxLanes(d));
  for_channels(channels, lanes, [&](std::int64_t c, auto vectors) HWY_ATTR {
    hn::Vec<D> sums[vectors];
    pool(c, sums);
    unroll<vectors>([&](auto v) HWY_ATTR { put(sums[v], c + v * lanes); });
  });
}

template <int kLanes>
HWY_INLINE void pool_window(const Pool2dParams& p, const Window<float>& window, float* y, std::int64_t channels) {
  const hn::CappedTag<float, kLanes> d;
  const ClampedStore store(p.activation);
  const auto put = [&](auto v, std::int64_t c) HWY_ATTR { store(d, v, y + c); };
  if (p.kind == PoolKind::kMax) {
    pool_channels(
        d, channels, [&](std::int64_t c, auto& sums) HWY_ATTR { maximum(d, window, c, sums); }, put);
  } else {
    pool_channels(
        d, channels, [&](std::int64_t c, auto& sums) HWY_ATTR { average(d, window, c, sums); }, put);
  }
}

template <int kLanes, typename T>
HWY_INLINE void pool_window(const Pool2dParams& p, const Window<T>& window, T* y, std::int64_t channels) {
  if (p.kind == PoolKind::kMax) {
    const hn::CappedTag<T, kLanes> d;
    const auto low = hn::Set(d, static_cast<T>(p.minimum));
    const auto high = hn::Set(d, static_cast<T>(p.maximum));
    pool_channels(
        d, channels, [&](std::int64_t c, auto& sums) HWY_ATTR { maximum(d, window, c, sums); },
        [&](auto v, std::int64_t c) HWY_ATTR { hn::StoreU(hn::Min(hn::Max(v, low), high), d, y + c); });
  } else {
    const hn::CappedTag<std::int32_t, kLanes> d;
    const hn::Rebind<T, decltype(d)> narrow;
    const auto low = hn::Set(d, p.minimum);
    const auto high = hn::Set(d, p.maximum);
    pool_channels(
        d, channels, [&](std::int64_t c, auto& sums) HWY_ATTR { average(d, window, c, sums); },
        [&](auto v, std::int64_t c)
            HWY_ATTR { hn::StoreU(hn::DemoteTo(narrow, hn::Min(hn::Max(v, low), high)), narrow, y + c); });
  }
}

/// Output columns [first, last) whose windows lie between the image's sides.
struct InsideRange {
  std::int64_t first = 0;
  std::int64_t last = 0;
};

InsideRange columns_inside(const PoolGeometry& g) {
  const WindowAxis& axis = g.horizontal;
  const std::int64_t stride = axis.stride;
  const std::int64_t room = static_cast<std::int64_t>(g.x.w) + axis.pad_before -
                            static_cast<std::int64_t>(axis.kernel - 1) * axis.dilation - 1;
  const std::int64_t first = std::clamp<std::int64_t>((axis.pad_before + stride - 1) / stride, 0, g.y.w);
  return {first, room < 0 ? first : std::clamp<std::int64_t>(room / stride + 1, first, g.y.w)};
}

/// Calls f(lanes), a constant, with the most lanes of T that vectors have and that so many channels fill.
template <typename T, typename F>
HWY_INLINE void with_lanes(std::int64_t channels, F f) {
  constexpr int kFull = static_cast<int>(hn::MaxLanes(hn::CappedTag<T, 64>()));
  if (channels >= kFull) return f(std::integral_constant<int, kFull>());
  if (channels >= 16) return f(std::integral_constant<int, std::min(kFull, 16)>());
  if (channels >= 8) return f(std::integral_constant<int, std::min(kFull, 8)>());
  if (channels >= 4) return f(std::integral_constant<int, std::min(kFull, 4)>());
  f(std::integral_constant<int, 1>());
}

/// One row of windows: the image, the rows of taps and the output columns that see all columns of taps.
template <typename T>
struct WindowRow {
  const T* image = nullptr;
  T* to = nullptr;  ///< column 0
  PoolTaps rows;
  InsideRange inside;
};

template <typename T>
Window<T> window_at(const PoolGeometry& g, const Pool2dParams& p, const WindowRow<T>& row, std::int64_t ox) {
  return window_of(g, row.image, row.rows, pool_taps(g.horizontal, ox, g.x.w, p.count_include_pad != 0));
}

/// Output columns [first, last) of a row, in vectors of kLanes <= channels.
template <int kLanes, typename T>
void pool_columns(const PoolGeometry& g, const Pool2dParams& p, const WindowRow<T>& row, std::int64_t first,
                  std::int64_t last) {
  const std::int64_t step = g.horizontal.stride * g.x.w_stride;
  T* to = row.to + first * g.y.w_stride;
  Window<T> window;
  for (std::int64_t ox = first; ox < last; ++ox, to += g.y.w_stride) {
    if (ox > std::max(row.inside.first, first) && ox < row.inside.last) {
      window.x += step;
    } else {
      window = window_at(g, p, row, ox);
    }
    pool_window<kLanes>(p, window, to, g.y.c);
  }
}

/// Do windows move by one dense column?
bool slides(const PoolGeometry& g) {
  return g.horizontal.stride == 1 && g.x.w_stride == g.y.c && g.y.w_stride == g.y.c;
}

/// The columns of a row. Where windows slide, those that see all columns of taps are one window over the channels of
/// all of them.
template <typename T>
void pool_along(const PoolGeometry& g, const Pool2dParams& p, const WindowRow<T>& row) {
  const auto pool = [&](std::int64_t first, std::int64_t last) HWY_ATTR {
    with_lanes<T>(g.y.c, [&](auto lanes) HWY_ATTR { pool_columns<lanes>(g, p, row, first, last); });
  };
  const auto [first, last] = row.inside;
  if (!slides(g) || last - first < 2) return pool(0, g.y.w);
  pool(0, first);
  Window<T> window = window_at(g, p, row, first);
  T* to = row.to + first * g.y.c;
  // No step overlaps the one before, since the result may lie where its operand was.
  for (std::int64_t left = (last - first) * g.y.c; left > 0;)
    with_lanes<T>(left, [&](auto lanes) HWY_ATTR {
      const std::int64_t channels = left / lanes * lanes;
      pool_window<lanes>(p, window, to, channels);
      window.x += channels;
      to += channels;
      left -= channels;
    });
  pool(last, g.y.w);
}

/// Elements of folded columns at once.
template <typename T>
constexpr std::int64_t kColumnRoom = 16384 / sizeof(T);

/// Windows whose columns fit; those of one must.
template <typename T>
std::int64_t columns_strip(const PoolGeometry& g) {
  return (kColumnRoom<T> / g.y.c - window_columns(g.horizontal)) / g.horizontal.stride + 1;
}

/// Can columns be folded before windows are? Sums of bytes need more room than bytes.
template <typename T>
bool folds_columns(const PoolGeometry& g, const Pool2dParams& p, const PoolTaps& rows) {
  constexpr bool kHasSums = std::is_same_v<T, float>;
  if (p.kind != PoolKind::kMax && !kHasSums) return false;
  return rows.inside.size() >= 2 && g.x.w_stride == g.y.c && window_columns(g.horizontal) <= kColumnRoom<T> / g.y.c;
}

/// What a result costs, in vectors that are loaded.
struct RowCosts {
  double direct = 0;         ///< all taps of its window
  double columns_first = 0;  ///< the folded columns that it adds, and those of its window
  bool picks = false;        ///< the latter for windows of all columns, of which some are picked
};

template <typename T>
RowCosts row_costs(const PoolGeometry& g, const PoolTaps& rows) {
  const std::int64_t channels = g.y.c;
  const auto taps = static_cast<double>(g.horizontal.kernel);
  const std::int64_t count = rows.inside.size();
  double whole = 0;  // vectors of a pixel, of which the next may take the rest
  double apart = 0;
  with_lanes<T>(channels, [&](auto lanes) {
    whole = static_cast<double>(channels) / hn::MaxLanes(hn::CappedTag<T, 64>());
    apart = static_cast<double>((channels + lanes - 1) / lanes);
  });
  const double pixel = slides(g) ? whole : apart;
  const std::int64_t strip = std::min<std::int64_t>(columns_strip<T>(g), g.y.w);
  const std::int64_t columns = (strip - 1) * g.horizontal.stride + window_columns(g.horizontal);
  const double folded = static_cast<double>((count + 1) * columns) / static_cast<double>(strip) * whole;
  constexpr double kCopy = 2;
  const double picked = taps * g.horizontal.stride * whole + kCopy;
  const bool picks = g.horizontal.stride > 1 && picked < taps * pixel;
  return {static_cast<double>(count) * taps * pixel, folded + (picks ? picked : taps * pixel), picks};
}

/// to[i]: the maximum or the sum of x[i] of `rows` rows, for `count` neighbours.
template <typename T>
void fold_columns(PoolKind kind, const T* x, std::int64_t row_step, std::int32_t rows, std::int64_t count, T* to) {
  Window<T> window{.x = x, .row_step = row_step, .rows = rows, .taps = 1};
  for (std::int64_t left = count; left > 0;)
    with_lanes<T>(left, [&](auto lanes) HWY_ATTR {
      const hn::CappedTag<T, lanes> d;
      const std::int64_t some = left / lanes * lanes;
      const auto fold_one = [&](std::int64_t c, auto& sums) HWY_ATTR {
        if constexpr (std::is_same_v<T, float>)
          if (kind == PoolKind::kAverage) return total(d, window, c, sums);
        maximum(d, window, c, sums);
      };
      pool_channels(d, some, fold_one, [&](auto v, std::int64_t c) HWY_ATTR { hn::StoreU(v, d, to + c); });
      window.x += some;
      to += some;
      left -= some;
    });
}

/// All windows of a row, of which every stride-th counts.
template <typename T>
void pool_and_pick(PoolGeometry g, const Pool2dParams& p, const WindowRow<T>& row) {
  HWY_ALIGN T results[kColumnRoom<T>];
  const std::int64_t count = g.y.w;
  const std::int64_t stride = g.horizontal.stride;
  const std::int64_t to_step = g.y.w_stride * static_cast<std::int64_t>(sizeof(T));
  const std::int64_t bytes = g.y.c * static_cast<std::int64_t>(sizeof(T));
  g.horizontal.stride = 1;
  g.y.w = static_cast<std::int32_t>((count - 1) * stride + 1);
  g.y.w_stride = g.y.c;
  pool_along(g, p, WindowRow<T>{row.image, results, row.rows, columns_inside(g)});
  copy_pieces(count, bytes, reinterpret_cast<const std::uint8_t*>(results), stride * bytes,
              reinterpret_cast<std::uint8_t*>(row.to), to_step);
}

/// The windows of a row of folded columns, strip by strip.
template <typename T>
void pool_columns_first(const PoolGeometry& g, const Pool2dParams& p, const WindowRow<T>& row, bool picks) {
  HWY_ALIGN T columns[kColumnRoom<T>];
  const WindowAxis& axis = g.horizontal;
  const std::int64_t reach = window_columns(axis);
  const std::int64_t strip = columns_strip<T>(g);
  const std::int64_t row_step = g.x.h_stride * g.vertical.dilation;
  const T* x = row.image + (row.rows.origin + std::int64_t{row.rows.inside.first} * g.vertical.dilation) * g.x.h_stride;
  for (std::int64_t ox = 0; ox < g.y.w; ox += strip) {
    const std::int64_t count = std::min(strip, g.y.w - ox);
    const std::int64_t left = std::clamp<std::int64_t>(window_origin(axis, ox), 0, g.x.w);
    const std::int64_t right = std::clamp<std::int64_t>(window_origin(axis, ox + count - 1) + reach, left, g.x.w);
    fold_columns(p.kind, x + left * g.x.w_stride, row_step, row.rows.inside.size(), (right - left) * g.y.c, columns);
    PoolGeometry part = g;
    part.x.w = static_cast<std::int32_t>(right - left);
    part.y.w = static_cast<std::int32_t>(count);
    part.horizontal.pad_before = static_cast<std::int32_t>(left - window_origin(axis, ox));
    const PoolTaps one_row{.origin = 0, .inside = {0, 1}, .counted = row.rows.counted};
    const WindowRow<T> folded{columns, row.to + ox * g.y.w_stride, one_row, columns_inside(part)};
    picks ? pool_and_pick(part, p, folded) : pool_along(part, p, folded);
  }
}

/// Output row oy of item n.
template <typename T>
void pool_row(const PoolGeometry& g, const Pool2dParams& p, const T* x, T* y, std::int64_t n, std::int64_t oy) {
  constexpr double kGain = sizeof(T) == 1 ? 0.8 : 0.6;
  const PoolTaps rows = pool_taps(g.vertical, oy, g.x.h, p.count_include_pad != 0);
  const WindowRow<T> row{x + n * g.x.n_stride, y + g.y.offset(n, oy, 0), rows,
                         rows.inside.size() > 0 ? columns_inside(g) : InsideRange{}};
  if (folds_columns<T>(g, p, rows)) {
    const RowCosts costs = row_costs<T>(g, rows);
    if (costs.columns_first < kGain * costs.direct) return pool_columns_first(g, p, row, costs.picks);
  }
  pool_along(g, p, row);
}

void pool_row_f32(const PoolGeometry& g, const Pool2dParams& p, const void* x, void* y, std::int64_t n,
                  std::int64_t oy) {
  auto* out = static_cast<float*>(y);
  pool_row(g, p, static_cast<const float*>(x), out, n, oy);
  if (!ClampedStore(p.activation).complete())
    activate_rows(p.activation, out + g.y.offset(n, oy, 0), g.y.w, g.y.w_stride, g.y.c);
}

void pool_row_i8(const PoolGeometry& g, const Pool2dParams& p, const void* x, void* y, std::int64_t n,
                 std::int64_t oy) {
  pool_row(g, p, static_cast<const std::int8_t*>(x), static_cast<std::int8_t*>(y), n, oy);
}

void pool_row_u8(const PoolGeometry& g, const Pool2dParams& p, const void* x, void* y, std::int64_t n,
                 std::int64_t oy) {
  pool_row(g, p, static_cast<const std::uint8_t*>(x), static_cast<std::uint8_t*>(y), n, oy);
}

}  // namespace
}  // namespace bantam::ops::pool::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bantam::ops::pool {

HWY_EXPORT(pool_row_f32);
HWY_EXPORT(pool_row_i8);
HWY_EXPORT(pool_row_u8);

bool channels_supports(const OpCall& call) {
  const auto& p = call.as<Pool2dParams>();
  // See `average` for integers.
  return call.in(0).type != ElementType::kI16 && call.out().elements() > 0 &&
         static_cast<std::int64_t>(p.kernel_h) * p.kernel_w <= 32768;
}

Status run_channels(const Invocation& call) {
  const auto& p = call.as<Pool2dParams>();
  const PoolGeometry g = pool_geometry(p, call.in(0), call.out());
  const ElementType type = call.in(0).type;
  const auto pool_row = type == ElementType::kF32  ? HWY_DYNAMIC_DISPATCH(pool_row_f32)
                        : type == ElementType::kI8 ? HWY_DYNAMIC_DISPATCH(pool_row_i8)
                                                   : HWY_DYNAMIC_DISPATCH(pool_row_u8);
  const std::int64_t row_work = static_cast<std::int64_t>(g.y.w) * g.y.c * p.kernel_h * p.kernel_w;
  const std::int64_t grain = std::max<std::int64_t>(50'000 / row_work, 1);
  parallel_ranges(*call.threads, static_cast<std::int64_t>(g.y.n) * g.y.h, grain,
                  [&](std::int64_t begin, std::int64_t end) {
                    for (std::int64_t row = begin; row < end; ++row)
                      pool_row(g, p, call.input<void>(0), call.output<void>(), row / g.y.h, row % g.y.h);
                  });
  return ok_status();
}

}  // namespace bantam::ops::pool
#endif
