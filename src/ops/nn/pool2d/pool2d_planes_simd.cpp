// pool2d of images of one channel in f32, i8 and u8: vectors run along rows. The taps of a row of windows are folded
// row by row into a line on the stack, which has what padding counts for at both ends, and then along the line.
#include <algorithm>
#include <type_traits>

#include "ops/common/parallel.h"
#include "ops/nn/pool2d/geometry.h"
#include "ops/nn/pool2d/kernels.h"

#ifndef BANTAM_POOL2D_LINES_
#define BANTAM_POOL2D_LINES_
namespace bantam::ops::pool {
namespace {

/// Columns of all lines that are kept at once.
constexpr std::int64_t kLineRoom = 2048;

}  // namespace
}  // namespace bantam::ops::pool
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/nn/pool2d/pool2d_planes_simd.cpp"
#include "hwy/foreach_target.h"
// Highway wants the headers below after foreach_target.h.
#include "hwy/highway.h"
#include "ops/common/activate_rows.h"
#include "ops/common/clamped_store_simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::pool::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using ops::HWY_NAMESPACE::ClampedStore;

/// Calls f(d, i) for elements [i, i + lanes) until `count` are covered, with as many lanes as they fill, or one; the
/// last may reach back over those before.
template <class D, typename F>
HWY_INLINE void cover(D d, std::int64_t count, F f) {
  constexpr auto kLanes = static_cast<std::int64_t>(hn::MaxLanes(D()));
  if (count >= kLanes) {
    for (std::int64_t i = 0; i < count; i += kLanes) f(d, std::min(i, count - kLanes));
  } else if constexpr (kLanes > 4) {
    cover(hn::Half<D>(), count, f);
  } else if constexpr (kLanes > 1) {
    cover(hn::CappedTag<hn::TFromD<D>, 1>(), count, f);
  }
}

/// The largest of taps; NaNs do not count.
template <typename T>
struct Maximum {
  using Column = T;
  static constexpr Column kStart = kPoolLowest<T>;

  template <class D>
  static HWY_INLINE hn::Vec<D> load(D d, const T* x) {
    return hn::LoadU(d, x);
  }
  template <class V>
  static HWY_INLINE V step(V sum, V x) {
    return hn::Max(x, sum);
  }
};

/// Sums of taps: of at most 2^15 integers of 8 bits.
template <typename T>
struct Total {
  using Column = std::conditional_t<std::is_same_v<T, float>, float, std::int32_t>;
  static constexpr Column kStart = 0;

  template <class D>
  static HWY_INLINE hn::Vec<D> load(D d, const T* x) {
    if constexpr (std::is_same_v<T, Column>) {
      return hn::LoadU(d, x);
    } else {
      return hn::PromoteTo(d, hn::LoadU(hn::Rebind<T, D>(), x));
    }
  }
  template <class V>
  static HWY_INLINE V step(V sum, V x) {
    return hn::Add(sum, x);
  }
};

/// Does LoadInterleaved2 take such vectors?
template <class D>
constexpr bool kHasPairs = hn::MaxLanes(D()) * sizeof(hn::TFromD<D>) >= 16;

/// Each `stride`-th element from `x` on; kStride: the stride where it is 1 or 2, or 0.
template <int kStride, class D, typename T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> load_apart(D d, const T* x, std::int64_t stride) {
  if constexpr (kStride == 1) {
    return hn::LoadU(d, x);
  } else if constexpr (kStride == 2 && kHasPairs<D>) {
    hn::Vec<D> even;
    hn::Vec<D> odd;
    hn::LoadInterleaved2(d, x, even, odd);
    return even;
  } else {
    constexpr auto kLanes = static_cast<std::int64_t>(hn::MaxLanes(D()));
    HWY_ALIGN T picked[kLanes];
    for (std::int64_t i = 0; i < kLanes; ++i) picked[i] = x[i * stride];
    return hn::Load(d, picked);
  }
}

/// Rows of windows, a few at a time: a line is read long after it was written, since vectors that lie across two stores
/// wait until both have left the processor.
template <class Fold, typename T>
class LinePooler {
 public:
  LinePooler(const PoolGeometry& g, const Pool2dParams& p)
      : g_(g),
        p_(p),
        store_(p.activation),
        strip_(std::min<std::int64_t>((kLineRoom - window_columns(g.horizontal)) / g.horizontal.stride + 1, g.y.w)),
        pitch_((columns_of(strip_) + kLine) / kLine * kLine),
        lines_(strip_ < g.y.w ? 1 : std::clamp<std::int64_t>(kLineRoom / pitch_, 1, kMostLines)) {}

  /// Rows [begin, end) of all items'. All that it reads of some results is read before these are written.
  void rows(const T* x, T* y, std::int64_t begin, std::int64_t end) {
    std::int64_t n = begin / g_.y.h;
    std::int64_t oy = begin % g_.y.h;
    while (begin < end) {
      const std::int64_t lines = std::min(lines_, end - begin);
      for (std::int64_t i = 0; i < lines; ++i) {
        lines_at_[i] = line_at(x, y, n, oy);
        if (++oy == g_.y.h) oy = 0, ++n;
      }
      for (std::int64_t ox = 0; ox < g_.y.w; ox += strip_) {
        place_strip(ox, std::min(strip_, g_.y.w - ox));
        for (std::int64_t i = 0; i < lines; ++i) fold_rows(lines_at_[i], line_ + i * pitch_ + start_);
        with_stride([&](auto stride) HWY_ATTR {
          for (std::int64_t i = 0; i < lines; ++i) fold_line<stride>(lines_at_[i], line_ + i * pitch_ + start_);
        });
      }
      begin += lines;
    }
  }

 private:
  using Column = typename Fold::Column;
  using D = hn::CappedTag<Column, 64 / sizeof(Column)>;

  static constexpr bool is_average() { return std::is_same_v<Fold, Total<T>>; }

  static constexpr std::int64_t kLine = 64 / sizeof(Column);  ///< where columns of an image begin: a multiple of it
  static constexpr std::int64_t kMostLines = 8;

  /// A row of results, and the taps of its windows.
  struct Line {
    const T* from;  ///< column 0 of the first row of taps
    std::int64_t taps;
    T* to;
    std::int32_t counted;  ///< rows that count in an average, or 1
  };

  Line line_at(const T* x, T* y, std::int64_t n, std::int64_t oy) const {
    const PoolTaps rows = pool_taps(g_.vertical, oy, g_.x.h, p_.count_include_pad != 0);
    const std::int64_t taps = rows.inside.size();
    const std::int64_t first =
        taps > 0 ? rows.origin + std::int64_t{rows.inside.first} * g_.vertical.dilation : 0;  // inside the image
    return {x + n * g_.x.n_stride + first * g_.x.h_stride, taps, y + g_.y.offset(n, oy, 0),
            static_cast<std::int32_t>(std::max<std::int64_t>(rows.counted, 1))};
  }

  std::int64_t columns_of(std::int64_t results) const {
    return (results - 1) * g_.horizontal.stride + window_columns(g_.horizontal);
  }

  /// Where the columns are that results [ox, ox + count) see, of which a line holds those inside the image at a
  /// multiple of kLine; and how many of each count in an average.
  void place_strip(std::int64_t ox, std::int64_t count) {
    if (ox == first_ && count == count_) return;
    first_ = ox;
    count_ = count;
    const std::int64_t origin = window_origin(g_.horizontal, ox);
    left_ = std::clamp<std::int64_t>(origin, 0, g_.x.w);
    inside_ = std::clamp<std::int64_t>(origin + columns_of(count), left_, g_.x.w) - left_;
    before_ = std::clamp<std::int64_t>(left_ - origin, 0, columns_of(count));
    start_ = (kLine - before_ % kLine) % kLine;
    for (std::int64_t i = 0; is_average() && i < count; ++i) {
      const PoolTaps columns = pool_taps(g_.horizontal, ox + i, g_.x.w, p_.count_include_pad != 0);
      counts_[i] = static_cast<std::int32_t>(std::max<std::int64_t>(columns.counted, 1));  // none have a sum of 0
    }
  }

  /// Folds the taps in each column of the strip.
  HWY_INLINE void fold_rows(const Line& line, Column* columns) const {
    const std::int64_t inside = line.taps > 0 ? inside_ : 0;
    const std::int64_t step = g_.x.h_stride * g_.vertical.dilation;
    std::fill_n(columns, before_, Fold::kStart);
    cover(
        D(), inside, [&](auto d, std::int64_t i) __attribute__((always_inline)) HWY_ATTR {
          const T* from = line.from + left_ + i;
          auto sum = hn::Set(d, Fold::kStart);
          for (std::int64_t tap = 0; tap < line.taps; ++tap, from += step) sum = Fold::step(sum, Fold::load(d, from));
          hn::StoreU(sum, d, columns + before_ + i);
        });
    std::fill(columns + before_ + inside, columns + columns_of(count_), Fold::kStart);
  }

  template <typename F>
  void with_stride(F f) {
    switch (g_.horizontal.stride) {
      case 1: return f(std::integral_constant<int, 1>());
      case 2: return f(std::integral_constant<int, 2>());
      default: return f(std::integral_constant<int, 0>());
    }
  }

  template <int kStride>
  HWY_INLINE void fold_line(const Line& line, const Column* columns) const {
    T* const to = line.to + first_;
    cover(
        D(), count_, [&](auto d, std::int64_t i) __attribute__((always_inline)) HWY_ATTR {
          const auto sum = window<kStride>(d, columns + i * g_.horizontal.stride);
          if constexpr (is_average()) {
            const hn::Rebind<std::int32_t, decltype(d)> di;
            finish(d, average(d, sum, hn::Mul(hn::LoadU(di, counts_ + i), hn::Set(di, line.counted))), to + i);
          } else {
            finish(d, sum, to + i);
          }
        });
  }

  /// The folds of the windows that begin at x and every stride-th element behind.
  template <int kStride, class DC>
  HWY_INLINE hn::Vec<DC> window(DC d, const Column* x) const {
    const std::int64_t stride = g_.horizontal.stride;
    const std::int64_t dilation = g_.horizontal.dilation;
    std::int64_t left = g_.horizontal.kernel;
    auto sum = hn::Set(d, Fold::kStart);
    if constexpr (kStride == 2 && kHasPairs<DC>) {
      // Neighbours come together.
      for (; dilation == 1 && left > 1; left -= 2, x += 2) {
        hn::Vec<DC> even;
        hn::Vec<DC> odd;
        hn::LoadInterleaved2(d, x, even, odd);
        sum = Fold::step(Fold::step(sum, even), odd);
      }
    }
    for (; left > 0; --left, x += dilation) sum = Fold::step(sum, load_apart<kStride>(d, x, stride));
    return sum;
  }

  /// Rounded half away from zero. Dividend and divisor are below 2^23, so a float quotient that is not an integer
  /// cannot round to one, and truncation is exact.
  template <class DC, class VI>
  static HWY_INLINE hn::Vec<DC> average(DC d, hn::Vec<DC> sum, VI count) {
    const hn::Rebind<float, DC> df;
    if constexpr (std::is_same_v<Column, float>) {
      return hn::Div(sum, hn::ConvertTo(df, count));
    } else {
      const auto half = hn::ShiftRight<1>(count);
      const auto away = hn::IfThenElse(hn::Gt(sum, hn::Zero(d)), hn::Add(sum, half), hn::Sub(sum, half));
      return hn::ConvertTo(d, hn::Div(hn::ConvertTo(df, away), hn::ConvertTo(df, count)));
    }
  }

  template <class DC>
  HWY_INLINE void finish(DC d, hn::Vec<DC> v, T* to) const {
    if constexpr (std::is_same_v<T, float>) {
      store_(d, v, to);
    } else {
      const auto limited =
          hn::Min(hn::Max(v, hn::Set(d, static_cast<Column>(p_.minimum))), hn::Set(d, static_cast<Column>(p_.maximum)));
      if constexpr (std::is_same_v<T, Column>) {
        hn::StoreU(limited, d, to);
      } else {
        const hn::Rebind<T, DC> narrow;
        hn::StoreU(hn::DemoteTo(narrow, limited), narrow, to);
      }
    }
  }

  const PoolGeometry& g_;
  const Pool2dParams& p_;
  const ClampedStore store_;
  const std::int64_t strip_;  ///< results of which a line holds the windows
  const std::int64_t pitch_;  ///< from one line to the next
  const std::int64_t lines_;  ///< at a time: rows in parts come one by one, so that memory is read in order
  std::int64_t first_ = -1;   ///< of the strip, and how many, and their columns: see place_strip
  std::int64_t count_ = 0;
  std::int64_t left_ = 0;
  std::int64_t inside_ = 0;
  std::int64_t before_ = 0;
  std::int64_t start_ = 0;
  Line lines_at_[kMostLines];
  HWY_ALIGN Column line_[kLineRoom + 2 * kLine];
  HWY_ALIGN std::int32_t counts_[kLineRoom];
};

template <class Fold, typename T>
void pool_lines(const PoolGeometry& g, const Pool2dParams& p, const T* x, T* y, std::int64_t begin, std::int64_t end) {
  LinePooler<Fold, T>(g, p).rows(x, y, begin, end);
  if constexpr (std::is_same_v<T, float>)
    if (!ClampedStore(p.activation).complete())
      for (std::int64_t row = begin; row < end; ++row)
        activate_rows(p.activation, y + g.y.offset(row / g.y.h, row % g.y.h, 0), 1, g.y.w, g.y.w);
}

template <typename T>
void pool_rows(const PoolGeometry& g, const Pool2dParams& p, const void* x, void* y, std::int64_t begin,
               std::int64_t end) {
  const auto pool = p.kind == PoolKind::kMax ? pool_lines<Maximum<T>, T> : pool_lines<Total<T>, T>;
  pool(g, p, static_cast<const T*>(x), static_cast<T*>(y), begin, end);
}

void pool_rows_f32(const PoolGeometry& g, const Pool2dParams& p, const void* x, void* y, std::int64_t begin,
                   std::int64_t end) {
  pool_rows<float>(g, p, x, y, begin, end);
}
void pool_rows_i8(const PoolGeometry& g, const Pool2dParams& p, const void* x, void* y, std::int64_t begin,
                  std::int64_t end) {
  pool_rows<std::int8_t>(g, p, x, y, begin, end);
}
void pool_rows_u8(const PoolGeometry& g, const Pool2dParams& p, const void* x, void* y, std::int64_t begin,
                  std::int64_t end) {
  pool_rows<std::uint8_t>(g, p, x, y, begin, end);
}

}  // namespace
}  // namespace bantam::ops::pool::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bantam::ops::pool {

HWY_EXPORT(pool_rows_f32);
HWY_EXPORT(pool_rows_i8);
HWY_EXPORT(pool_rows_u8);

bool planes_supports(const OpCall& call) {
  const PoolGeometry g = pool_geometry(call.as<Pool2dParams>(), call.in(0), call.out());
  return channels_supports(call) && g.x.c == 1 && g.x.w_stride == 1 && g.y.w_stride == 1 &&
         window_columns(g.horizontal) <= kLineRoom / 2;
}

Status run_planes(const Invocation& call) {
  const auto& p = call.as<Pool2dParams>();
  const PoolGeometry g = pool_geometry(p, call.in(0), call.out());
  const ElementType type = call.in(0).type;
  const auto pool_rows = type == ElementType::kF32  ? HWY_DYNAMIC_DISPATCH(pool_rows_f32)
                         : type == ElementType::kI8 ? HWY_DYNAMIC_DISPATCH(pool_rows_i8)
                                                    : HWY_DYNAMIC_DISPATCH(pool_rows_u8);
  const std::int64_t row_work = static_cast<std::int64_t>(g.y.w) * p.kernel_h * p.kernel_w;
  const std::int64_t grain = std::max<std::int64_t>(200'000 / row_work, 1);
  parallel_ranges(*call.threads, static_cast<std::int64_t>(g.y.n) * g.y.h, grain,
                  [&](std::int64_t begin, std::int64_t end) {
                    pool_rows(g, p, call.input<void>(0), call.output<void>(), begin, end);
                  });
  return ok_status();
}

}  // namespace bantam::ops::pool
#endif
