// Depthwise convolution of bytes by groups of neighbouring taps of a window's row: how images are gone through, along
// rows or columns, whatever computes a block of channels (tap_quads_simd-inl.h, tap_pairs_avx2-inl.h). Included by
// *_simd.cpp files inside Highway's per-target compilation.
//
// A Block<Finish> says how many taps a group has (kTaps) and how many channels it computes (kChannels), is made of a
// problem, a scaler and the first of its channels, and computes `count` neighbours by convolve(n, oy, ox, count).
#if defined(BANTAM_OPS_DEPTHWISE_TAPS_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BANTAM_OPS_DEPTHWISE_TAPS_SIMD_INL_H_
#undef BANTAM_OPS_DEPTHWISE_TAPS_SIMD_INL_H_
#else
#define BANTAM_OPS_DEPTHWISE_TAPS_SIMD_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "hwy/highway.h"
#include "ops/nn/conv2d/geometry.h"
#include "ops/nn/depthwise_conv2d/byte_images.h"
#include "ops/nn/depthwise_conv2d/phases.h"
#include "ops/nn/depthwise_conv2d/pixel_run.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::depthwise::HWY_NAMESPACE {

#if HWY_ARCH_X86 && (HWY_TARGET == HWY_AVX3_DL || HWY_TARGET == HWY_AVX2)

/// A convolution whose groups of taps lie along the image's rows, or, `turned`, one with rows and columns exchanged.
struct TapProblem {
  ByteImages images;
  std::int64_t w_row_step;  ///< from one row of a window's weights to the next, and from one tap to the next
  std::int64_t w_tap_step;

  static TapProblem of(const ByteImages& p) { return {p, p.g.horizontal.kernel * std::int64_t{p.g.x.c}, p.g.x.c}; }
  static TapProblem turned(const ByteImages& p, const ConvGeometry& turned_geometry) {
    const std::int64_t w_step = p.g.horizontal.kernel * std::int64_t{p.g.x.c};
    return {{turned_geometry, p.x, p.form, p.w, p.y, p.overlaps}, p.g.x.c, w_step};
  }
};

/// Do groups of so many taps along the columns of an image fill better?
inline bool turns_better(const ConvGeometry& g, std::int64_t taps) {
  const auto groups = [&](const WindowAxis& rows, const WindowAxis& along) {
    return rows.kernel * ((along.kernel + taps - 1) / taps);
  };
  return groups(g.horizontal, g.vertical) < groups(g.vertical, g.horizontal);
}

/// Output rows [begin, end), counted through all items: one block of channels after the other, or all blocks over
/// byte_run_pixels() at a time where results are written over what further blocks read. A single block has read all
/// that a strip needs before it writes the strip.
template <class Block, class Scaler>
HWY_NOINLINE void convolve_taps(const ByteImages& p, const Scaler& scaler, std::int64_t begin, std::int64_t end) {
  const ConvGeometry& g = p.g;
  const TapProblem problem = TapProblem::of(p);
  if (!p.overlaps || g.x.c <= Block::kChannels) {
    for (std::int64_t c = 0; c < g.x.c; c += Block::kChannels) {
      Block block(problem, scaler, c);
      for (std::int64_t row = begin; row < end; ++row) block.convolve(row / g.y.h, row % g.y.h, 0, g.y.w);
    }
    return;
  }
  const std::int64_t run = byte_run_pixels(g);
  for (std::int64_t row = begin; row < end; ++row)
    for (std::int64_t ox = 0; ox < g.y.w; ox += run)
      for (std::int64_t c = 0; c < g.x.c; c += Block::kChannels)
        Block(problem, scaler, c).convolve(row / g.y.h, row % g.y.h, ox, std::min(run, g.y.w - ox));
}

/// The same by groups of taps along columns; no result may lie over the image.
template <class Block, class Scaler>
HWY_NOINLINE void convolve_columns(const ByteImages& p, const Scaler& scaler, std::int64_t begin, std::int64_t end) {
  const std::int64_t height = p.g.y.h;
  const ConvGeometry g = turned(p.g);
  const TapProblem problem = TapProblem::turned(p, g);
  for (std::int64_t c = 0; c < g.x.c; c += Block::kChannels) {
    Block block(problem, scaler, c);
    for (std::int64_t row = begin, next; row < end; row = next) {
      next = std::min(end, (row / height + 1) * height);
      for (std::int64_t column = 0; column < g.y.h; ++column)
        block.convolve(row / height, column, row % height, next - row);
    }
  }
}

/// The same along rows or columns, whichever fills groups better; false where neither is possible.
template <class Block, class Scaler>
bool convolve_either_way(const ByteImages& p, const Scaler& scaler, std::int64_t begin, std::int64_t end) {
  const bool turned = turns_better(p.g, Block::kTaps);
  if (turned && p.overlaps) return false;
  (turned ? convolve_columns<Block, Scaler> : convolve_taps<Block, Scaler>)(p, scaler, begin, end);
  return true;
}
#endif

}  // namespace bantam::ops::depthwise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
