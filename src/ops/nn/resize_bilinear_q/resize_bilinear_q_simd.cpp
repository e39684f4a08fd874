// Bilinear resampling with neighbouring channels in the lanes of vectors, which walk along a row of the result: what
// two columns of the operand hold between its rows is computed once for all results that lie between these columns.
#include <algorithm>

#include "ops/common/parallel.h"
#include "ops/nn/resize_bilinear_q/kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/nn/resize_bilinear_q/resize_bilinear_q_simd.cpp"
#include "hwy/foreach_target.h"
// Highway wants the headers below after foreach_target.h.
#include "hwy/highway.h"
#include "ops/common/requantize_simd-inl.h"
#include "ops/nn/gemm/unroll-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::resize_bilinear_q::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using ops::HWY_NAMESPACE::cover;
using ops::HWY_NAMESPACE::demote_to_bytes;
using ops::HWY_NAMESPACE::unroll;

struct Neighbours {
  std::int64_t lower;
  std::int64_t upper;
  std::int32_t upper_weight;  ///< of kOne, less than it
};

/// An axis of the operand under the coordinates of the result.
class Axis {
 public:
  HWY_INLINE Axis(std::int64_t size, std::int64_t scale, bool half_pixel)
      : last_(size - 1), scale_(scale), half_pixel_(half_pixel) {}

  /// The upper neighbour depends on the lower one only: whether it counts is said by its weight. Coordinates before the
  /// first pixel are its own, as in the mean of a pixel and itself that the definition takes there.
  HWY_INLINE Neighbours neighbours(std::int64_t i) const {
    const std::int64_t at = std::max<std::int64_t>(position(i, scale_, half_pixel_), 0);
    const std::int64_t lower = at >> kFractionBits;
    return {lower, std::min(lower + 1, last_), static_cast<std::int32_t>(at & (kOne - 1))};
  }

 private:
  std::int64_t last_;
  std::int64_t scale_;
  bool half_pixel_;
};

/// The row of the operand's image that lies at a row of the result, between two of the image's own.
struct RowBetween {
  const std::int8_t* lower;
  const std::int8_t* upper;
  std::int32_t upper_weight;

  /// A vector of it in 1/kOne, 18 bits.
  template <class D>
  HWY_INLINE hn::Vec<D> load(D d, std::int64_t at) const {
    const hn::Rebind<std::int8_t, D> bytes;
    const auto from = hn::PromoteTo(d, hn::LoadU(bytes, lower + at));
    const auto difference = hn::Sub(hn::PromoteTo(d, hn::LoadU(bytes, upper + at)), from);
    return hn::Add(hn::ShiftLeft<kFractionBits>(from), hn::Mul(difference, hn::Set(d, upper_weight)));
  }
};

/// sum / kOne^2, halves rounded away from zero: down, if just less than a half is added to what is negative.
template <class D>
HWY_INLINE hn::Vec<D> rounded(D d, hn::Vec<D> sum) {
  const auto half = hn::Set(d, static_cast<std::int32_t>(kOne * kOne / 2));
  return hn::ShiftRight<2 * kFractionBits>(hn::Add(hn::Add(sum, hn::ShiftRight<31>(sum)), half));
}

/// Vectors of channels of a row of the result. Theirs begin at `first` + v * Lanes(d), but at the last that has a whole
/// vector behind it at most; channels of two vectors are computed twice.
template <int kVectors, class D>
HWY_INLINE void resize_vectors(D d, const RowBetween& row, const Axis& axis, std::int64_t width, std::int64_t channels,
                               std::int64_t first, std::int8_t* y) {
  using V = hn::Vec<D>;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t channel[kVectors];
  unroll<kVectors>([&](auto v) HWY_ATTR { channel[v] = std::min(first + v * lanes, channels - lanes); });
  V start[kVectors];  // at the lower neighbour, in 1/kOne^2
  V slope[kVectors];
  std::int64_t lower = -1;
  for (std::int64_t i = 0; i < width; ++i, y += channels) {
    const Neighbours at = axis.neighbours(i);
    if (at.lower != lower) {
      lower = at.lower;
      unroll<kVectors>([&](auto v) HWY_ATTR {
        const V from = row.load(d, at.lower * channels + channel[v]);
        start[v] = hn::ShiftLeft<kFractionBits>(from);
        slope[v] = hn::Sub(row.load(d, at.upper * channels + channel[v]), from);
      });
    }
    const V weight = hn::Set(d, at.upper_weight);
    unroll<kVectors>([&](auto v) HWY_ATTR {
      const V sum = hn::Add(start[v], hn::Mul(slope[v], weight));
      hn::StoreU(demote_to_bytes(d, rounded(d, sum)), hn::Rebind<std::int8_t, D>(), y + channel[v]);
    });
  }
}

/// A row of the result, in vectors of kLanes or, where these are more than the channels, fewer.
template <std::size_t kLanes>
void resize_row(const RowBetween& row, const Axis& axis, std::int64_t width, std::int64_t channels, std::int8_t* y) {
  const hn::CappedTag<std::int32_t, kLanes> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  if constexpr (kLanes > 1)
    if (channels < lanes) return resize_row<kLanes / 2>(row, axis, width, channels, y);
  constexpr int kMostVectors = 4;
  cover<kMostVectors>((channels + lanes - 1) / lanes, [&](auto vectors, std::int64_t first) HWY_ATTR {
    resize_vectors<vectors>(d, row, axis, width, channels, first * lanes, y);
  });
}

/// Rows [begin, end) of all images of the result.
void resize_rows(const Invocation& call, std::int64_t begin, std::int64_t end) {
  const auto& p = call.as<ResizeBilinearQParams>();
  const TensorDesc& x = call.in(0);
  const Axis rows(x.dims[1], p.scale_h, p.half_pixel != 0);
  const Axis columns(x.dims[2], p.scale_w, p.half_pixel != 0);
  const std::int64_t channels = x.dims[3];
  for (std::int64_t i = begin; i < end; ++i) {
    const std::int8_t* image = call.input<std::int8_t>(0) + i / p.height * x.strides[0];
    const Neighbours at = rows.neighbours(i % p.height);
    const RowBetween row{image + at.lower * x.strides[1], image + at.upper * x.strides[1], at.upper_weight};
    resize_row<hn::MaxLanes(hn::ScalableTag<std::int32_t>())>(row, columns, p.width, channels,
                                                              call.output<std::int8_t>() + i * p.width * channels);
  }
}

}  // namespace
}  // namespace bantam::ops::resize_bilinear_q::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bantam::ops::resize_bilinear_q {

HWY_EXPORT(resize_rows);

Status run_channels(const Invocation& call) {
  const TensorDesc& y = call.out();
  if (y.elements() == 0) return ok_status();
  const std::int64_t grain = 1 + 8192 / (y.dims[2] * y.dims[3]);  // a thread is worth as many results
  parallel_ranges(*call.threads, y.dims[0] * y.dims[1], grain, [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(resize_rows)(call, begin, end);
  });
  return ok_status();
}

}  // namespace bantam::ops::resize_bilinear_q
#endif
