// Max pooling with indices of f32 along one or two axes: vectors hold the maxima of neighbouring windows and their
// places in 32 bits. Lanes whose tap lies outside the image get NaN there, which never counts.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/nn/max_pool_indices/max_pool_indices_simd.cpp"
#include "hwy/foreach_target.h"
// Highway wants the headers below after foreach_target.h.
#include <algorithm>
#include <cstdint>
#include <limits>

#include "hwy/highway.h"
#include "ops/common/operands.h"
#include "ops/common/parallel.h"
#include "ops/common/rows_simd-inl.h"
#include "ops/nn/max_pool_indices/kernels.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::max_pool_indices::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using DI = hn::RebindToSigned<D>;
using Maxima = hn::Vec<D>;
using Places = hn::Vec<DI>;

constexpr auto kLanes = static_cast<std::int64_t>(hn::MaxLanes(D()));

/// The n <= kLanes elements from `column` on, `stride` apart, of a row that has `width`; NaN where it has none.
HWY_INLINE Maxima load_columns(const float* row, std::int64_t width, std::int64_t column, std::int32_t stride,
                               std::int64_t n) {
  const D d;
  const bool whole = n == kLanes && column >= 0 && column + stride * kLanes <= width;
  if (whole && stride == 1) return hn::LoadU(d, row + column);
  if (whole && stride == 2) return hn::ConcatEven(d, hn::LoadU(d, row + column + kLanes), hn::LoadU(d, row + column));
  HWY_ALIGN float lanes[kLanes];
  hn::Store(hn::NaN(d), d, lanes);
  for (std::int64_t i = 0; i < n; ++i, column += stride)
    if (column >= 0 && column < width) lanes[i] = row[column];
  return hn::Load(d, lanes);
}

/// Stores n <= kLanes places, which count from `base` on.
HWY_INLINE void store_places(Places places, std::int64_t base, std::int64_t n, std::int64_t* to) {
  const hn::RepartitionToWide<DI> wide;
  const hn::Half<DI> half;
  HWY_ALIGN std::int64_t lanes[kLanes];
  std::int64_t* const all = n == kLanes ? to : lanes;
  const auto put = [&](auto part, std::int64_t* at) HWY_ATTR {
    const auto place = hn::PromoteTo(wide, part);
    hn::StoreU(hn::IfThenElse(hn::Lt(place, hn::Zero(wide)), hn::Set(wide, -1), hn::Add(place, hn::Set(wide, base))),
               wide, at);
  };
  put(hn::LowerHalf(half, places), all);
  put(hn::UpperHalf(half, places), all + kLanes / 2);
  if (n < kLanes) std::copy_n(lanes, n, to);
}

/// The windows of a row of results in one channel.
class Row {
 public:
  Row(const Windows& w, std::int64_t oy, const float* channel)
      : w_(w),
        channel_(channel),
        origin_(window_origin(w.vertical, oy)),
        taps_(taps_inside(w.vertical, origin_, 0, w.height)) {}

  /// Of n <= kLanes of them from ox on. `base`: what the channel's first element counts.
  HWY_INLINE void search(std::int64_t ox, std::int64_t n, std::int64_t base, float* y, std::int64_t* indices) const {
    const D d;
    const DI di;
    const WindowAxis& across = w_.horizontal;
    const Places apart =
        hn::Mul(hn::Iota(di, 0), hn::Set(di, static_cast<std::int32_t>(across.stride * w_.column_step)));
    const std::int64_t origin = window_origin(across, ox);
    const TapRange taps = columns_of(origin, n);
    const std::int64_t first_x = origin + std::int64_t{taps.first} * across.dilation;
    Maxima best = hn::Set(d, -std::numeric_limits<float>::infinity());
    Places place = hn::Set(di, -1);
    for (std::int32_t ky = taps_.first; ky < taps_.last; ++ky) {
      const std::int64_t iy = origin_ + std::int64_t{ky} * w_.vertical.dilation;
      const float* const row = channel_ + iy * w_.width;
      std::int64_t ix = first_x;
      for (std::int32_t kx = taps.first; kx < taps.last; ++kx, ix += across.dilation) {
        const Maxima x = load_columns(row, w_.width, ix, across.stride, n);
        // Within the image an int32, and lanes outside it do not count.
        const auto here = static_cast<std::int32_t>(iy * w_.row_step + ix * w_.column_step);
        const auto first = hn::And(hn::RebindMask(d, hn::Lt(place, hn::Zero(di))), hn::Eq(x, x));
        const auto better = hn::Or(hn::Gt(x, best), first);
        best = hn::IfThenElse(better, x, best);
        place = hn::IfThenElse(hn::RebindMask(di, better), hn::Add(apart, hn::Set(di, here)), place);
      }
    }
    if (n == kLanes) {
      hn::StoreU(best, d, y);
    } else {
      ops::HWY_NAMESPACE::store_partial(best, d, y, static_cast<std::size_t>(n));
    }
    store_places(place, base, n, indices);
  }

 private:
  /// The taps that lie in the image for the last of n windows or for the first, whose tap 0 lies at `origin`: others do
  /// for none.
  HWY_INLINE TapRange columns_of(std::int64_t origin, std::int64_t n) const {
    const WindowAxis& across = w_.horizontal;
    const std::int64_t last = origin + (n - 1) * across.stride;
    if (origin >= 0 && last + std::int64_t{across.kernel - 1} * across.dilation < w_.width) return {0, across.kernel};
    return {taps_inside(across, last, 0, w_.width).first, taps_inside(across, origin, 0, w_.width).last};
  }

  const Windows& w_;
  const float* channel_;
  std::int64_t origin_;
  TapRange taps_;
};

/// Rows [begin, end) of results, counted through all channels.
void search_rows(const Windows& w, const float* x, std::int64_t begin, std::int64_t end, float* y,
                 std::int64_t* indices) {
  // Windows further apart than the image is wide have no taps in it together.
  const std::int64_t together = std::min(kLanes, w.width / w.horizontal.stride + 1);
  for (std::int64_t i = begin; i < end; ++i) {
    const std::int64_t base = i / w.rows * w.height * w.width;
    const Row row(w, i % w.rows, x + base);
    for (std::int64_t ox = 0; ox < w.columns; ox += together) {
      const std::int64_t at = i * w.columns + ox;
      row.search(ox, std::min(together, w.columns - ox), base, y + at, indices + at);
    }
  }
}

}  // namespace
}  // namespace bantam::ops::max_pool_indices::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bantam::ops::max_pool_indices {

HWY_EXPORT(search_rows);

namespace {

Windows windows_of(const Invocation& call) {
  const auto& p = call.as<MaxPoolIndicesParams>();
  const TensorDesc& x = call.in(0);
  const TensorDesc& y = call.out();
  const int last = x.rank - 1;
  Windows w;
  w.horizontal = window_axis(p, last - 2);
  w.width = x.dims[last];
  w.columns = y.dims[last];
  if (x.rank == 4) {
    w.vertical = window_axis(p, 0);
    w.height = x.dims[2];
    w.rows = y.dims[2];
  }
  (p.column_major != 0 ? w.column_step : w.row_step) = p.column_major != 0 ? w.height : w.width;
  return w;
}

}  // namespace

bool supports_simd(const OpCall& call) {
  const TensorDesc& x = call.in(0);
  return x.type == ElementType::kF32 && x.rank <= 4 && all_dense(call) &&
         elements_between(x, 2, x.rank) <= std::numeric_limits<std::int32_t>::max();
}

Status run_simd(const Invocation& call) {
  const Windows w = windows_of(call);
  const auto search = HWY_DYNAMIC_DISPATCH(search_rows);
  constexpr std::int64_t kGrain = 4096;  // elements of the result: some microseconds
  const std::int64_t rows = call.out().elements() / std::max<std::int64_t>(w.columns, 1);
  parallel_ranges(*call.threads, rows, kGrain / std::max<std::int64_t>(w.columns, 1) + 1,
                  [&](std::int64_t begin, std::int64_t end) {
                    search(w, call.input<float>(0), begin, end, call.output<float>(0), call.output<std::int64_t>(1));
                  });
  return ok_status();
}

}  // namespace bantam::ops::max_pool_indices
#endif
