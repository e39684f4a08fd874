// Depthwise convolutions in f32 of so few channels that vectors of one pixel would be mostly empty: vectors take the
// pixels and channels of a row as they come, and meet weights that are repeated as often. The rows that windows see are
// copied, with zeros where columns lie outside the image. Windows more than a column apart are picked from all windows.
// Every result is the chain of multiply-adds that the other ways give it. Included by depthwise_conv2d_f32_simd.cpp
// inside Highway's per-target compilation; buffers of 40 KiB lie on the stack.
#if defined(BANTAM_OPS_DEPTHWISE_FEW_CHANNELS_F32_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BANTAM_OPS_DEPTHWISE_FEW_CHANNELS_F32_SIMD_INL_H_
#undef BANTAM_OPS_DEPTHWISE_FEW_CHANNELS_F32_SIMD_INL_H_
#else
#define BANTAM_OPS_DEPTHWISE_FEW_CHANNELS_F32_SIMD_INL_H_
#endif

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "hwy/highway.h"
#include "ops/common/activate_rows.h"
#include "ops/common/clamped_store_simd-inl.h"
#include "ops/common/short_copy.h"
#include "ops/nn/conv2d/geometry.h"
#include "ops/nn/depthwise_conv2d/float_problem.h"
#include "ops/nn/gemm/unroll-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::depthwise::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

class FewChannels {
 public:
  /// Does it pay, and is there room? For images whose pixels follow each other. Where results are, and how many, does
  /// not matter: threads share them.
  static bool suits(const ConvGeometry& g) {
    // From four channels on vectors of one pixel share what they load; and two of three windows cost more than a picked
    // one saves.
    constexpr std::int64_t kMostChannels = 3;
    constexpr std::int32_t kMostStride = 2;
    return g.x.c <= kMostChannels && g.horizontal.stride <= kMostStride && g.x.w_stride == g.x.c &&
           (g.x.c == 1 || taps_of(g) * repeated(g.x.c) <= kMostWeights) && pixels_at_once(g) > 0;
  }

  explicit FewChannels(const FloatProblem& problem)
      : p_(problem), channels_(problem.g.x.c), store_(problem.activation) {
    if (p_.bias != nullptr) {
      repeat(p_.bias, start_);
    } else {
      std::fill_n(start_, repeated(channels_), 0.0F);
    }
    if (channels_ == 1) return;  // weights are taken where they lie
    const std::int64_t taps = taps_of(p_.g);
    for (std::int64_t tap = 0; tap < taps; ++tap) repeat(p_.w + tap * channels_, weights_ + tap * repeated(channels_));
  }

  /// Zeros outside the image mean nothing only to numbers.
  bool has_finite_weights() const {
    const std::int64_t count = taps_of(p_.g) * channels_;
    return std::all_of(p_.w, p_.w + count, [](float w) { return std::isfinite(w); });
  }

  /// Output row oy of item n.
  void convolve_row(std::int64_t n, std::int64_t oy) {
    const ConvGeometry& g = p_.g;
    float* y = p_.y + g.y.offset(n, oy, 0);
    const std::int64_t y0 = window_origin(g.vertical, oy);
    const TapRange rows = taps_inside(g.vertical, y0, 0, g.x.h);
    const std::int64_t at_once = pixels_at_once(g);
    for (std::int64_t ox = 0; ox < g.y.w; ox += at_once) {
      const std::int64_t count = std::min(at_once, g.y.w - ox);
      const std::int64_t windows = (count - 1) * g.horizontal.stride + 1;
      for (std::int32_t ky = rows.first; ky < rows.last; ++ky)
        copy_columns(p_.x + g.x.offset(n, y0 + ky * std::int64_t{g.vertical.dilation}, 0),
                     window_origin(g.horizontal, ox), windows + reach(g) - 1, image_ + (ky - rows.first) * pitch(g));
      convolve(rows, windows);
      pick(count, y + ox * g.y.w_stride);
    }
    if (!store_.complete()) activate_rows(p_.activation, y, g.y.w, g.y.w_stride, channels_);
  }

 private:
  using D = hn::CappedTag<float, 16>;
  using V = hn::Vec<D>;
  static constexpr std::int64_t kLanes = hn::MaxLanes(D());
  static constexpr std::int64_t kSlack = 9 * kLanes;  ///< numbers behind a row that may be read or written
  static constexpr std::int64_t kBytes = sizeof(float);
  static constexpr std::int64_t kRoom = 4096;  ///< numbers of the rows that windows see, and of all results of windows
  static constexpr std::int64_t kMostWeights = 2048;

  static std::int64_t taps_of(const ConvGeometry& g) { return std::int64_t{g.vertical.kernel} * g.horizontal.kernel; }
  /// Numbers of a pixel's channels, repeated so that a vector can begin at any of them.
  static constexpr std::int64_t repeated(std::int64_t channels) { return kLanes + channels; }
  /// Columns of a window.
  static std::int64_t reach(const ConvGeometry& g) {
    return (g.horizontal.kernel - std::int64_t{1}) * g.horizontal.dilation + 1;
  }
  /// From a row that is copied to the next. Vectors read beyond its columns.
  static std::int64_t pitch(const ConvGeometry& g) { return kRoom / g.vertical.kernel; }
  /// Results of a row for whose windows there is room; less than 1 if there is none.
  static std::int64_t pixels_at_once(const ConvGeometry& g) {
    const std::int64_t windows = (pitch(g) - kSlack) / g.x.c - reach(g) + 1;
    return windows < 1 ? 0 : (windows - 1) / g.horizontal.stride + 1;
  }

  void repeat(const float* from, float* to) const {
    for (std::int64_t i = 0; i < repeated(channels_); ++i) to[i] = from[i % channels_];
  }

  /// Columns [first, first + count) of a row of the image.
  void copy_columns(const float* row, std::int64_t first, std::int64_t count, float* to) const {
    const std::int64_t inside = std::clamp<std::int64_t>(-first, 0, count);
    const std::int64_t inside_end = std::clamp<std::int64_t>(p_.g.x.w - first, inside, count);
    std::fill_n(to, inside * channels_, 0.0F);
    if (inside < inside_end)
      std::memcpy(to + inside * channels_, row + (first + inside) * channels_,
                  static_cast<std::size_t>((inside_end - inside) * channels_ * kBytes));
    std::fill(to + inside_end * channels_, to + count * channels_, 0.0F);
  }

  /// Every stride-th result, `count` of them.
  void pick(std::int64_t count, float* y) const {
    const ConvGeometry& g = p_.g;
    const std::int64_t bytes = channels_ * kBytes;
    const bool all = g.horizontal.stride == 1 && g.y.w_stride == channels_;
    copy_pieces(all ? 1 : count, all ? count * bytes : bytes, reinterpret_cast<const std::uint8_t*>(results_),
                g.horizontal.stride * bytes, reinterpret_cast<std::uint8_t*>(y), g.y.w_stride * kBytes);
  }

  /// What these rows of taps give to so many windows.
  void convolve(const TapRange& rows, std::int64_t windows) {
    switch (channels_) {
      case 1: return convolve_all<1, 8>(rows, windows);
      case 2: return convolve_all<2, 8>(rows, windows);
      default: return convolve_all<3, 3>(rows, windows);
    }
  }

  /// Vectors after which channels begin again.
  template <int kChannels>
  static constexpr int kPeriod = kChannels == 3 ? 3 : 1;
  static_assert(kLanes % 4 == 0);

  template <int kChannels, int kGroups>
  HWY_NOINLINE void convolve_all(const TapRange& rows, std::int64_t windows) {
    constexpr std::int64_t kStep = kPeriod<kChannels> * kLanes;
    std::int64_t i = 0;
    for (; i + (kGroups - 1) * kStep < windows * kChannels; i += kGroups * kStep)
      convolve_vectors<kChannels, kGroups>(rows, i);
    for (; i < windows * kChannels; i += kStep) convolve_vectors<kChannels, 1>(rows, i);
  }

  /// kGroups times as many vectors of numbers, from the i-th on, as channels begin again after: they share weights.
  template <int kChannels, int kGroups>
  HWY_INLINE void convolve_vectors(const TapRange& rows, std::int64_t i) {
    using ops::HWY_NAMESPACE::unroll;
    constexpr int kVectors = kPeriod<kChannels>;
    constexpr std::int64_t kWeightStep = kChannels == 1 ? 1 : repeated(kChannels);
    const D d;
    const ConvGeometry& g = p_.g;
    const std::int64_t tap_step = g.horizontal.dilation * std::int64_t{kChannels};
    const std::int64_t taps = g.horizontal.kernel;
    V sums[kGroups][kVectors];
    unroll<kVectors>([&](auto v) HWY_ATTR {
      const V start = hn::LoadU(d, start_ + v * kLanes % kChannels);
      unroll<kGroups>([&](auto k) HWY_ATTR { sums[k][v] = start; });
    });
    for (std::int64_t ky = rows.first; ky < rows.last; ++ky) {
      const float* x = image_ + (ky - rows.first) * pitch(g) + i;
      const float* w = (kChannels == 1 ? p_.w : weights_) + ky * taps * kWeightStep;
      for (std::int64_t kx = 0; kx < taps; ++kx, x += tap_step, w += kWeightStep)
        unroll<kVectors>([&](auto v) HWY_ATTR {
          const V weight = kChannels == 1 ? hn::Set(d, *w) : hn::LoadU(d, w + v * kLanes % kChannels);
          const V right = ops::HWY_NAMESPACE::in_register(weight);
          unroll<kGroups>([&](auto k) HWY_ATTR {
            sums[k][v] = hn::MulAdd(hn::LoadU(d, x + (k * kVectors + v) * kLanes), right, sums[k][v]);
          });
        });
    }
    unroll<kGroups>([&](auto k) HWY_ATTR {
      unroll<kVectors>([&](auto v) HWY_ATTR { store_(d, sums[k][v], results_ + i + (k * kVectors + v) * kLanes); });
    });
  }

  const FloatProblem& p_;
  std::int64_t channels_;
  ops::HWY_NAMESPACE::ClampedStore store_;
  float start_[2 * kLanes];
  HWY_ALIGN float weights_[kMostWeights];
  HWY_ALIGN float image_[kRoom];
  HWY_ALIGN float results_[kRoom];
};

}  // namespace bantam::ops::depthwise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
