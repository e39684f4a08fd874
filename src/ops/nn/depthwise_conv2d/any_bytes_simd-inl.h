// Depthwise convolution of bytes by whichever way suits the windows and the number of channels: in flat rows
// (flat_bytes_simd-inl.h), on Arm only where the processor has dot products, by quads of neighbouring taps
// (tap_quads_simd-inl.h) or, with AVX2, by pairs of rows (pairs_avx2-inl.h). Included by *_simd.cpp files inside
// Highway's per-target compilation.
#if defined(BANTAM_OPS_DEPTHWISE_ANY_BYTES_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BANTAM_OPS_DEPTHWISE_ANY_BYTES_SIMD_INL_H_
#undef BANTAM_OPS_DEPTHWISE_ANY_BYTES_SIMD_INL_H_
#else
#define BANTAM_OPS_DEPTHWISE_ANY_BYTES_SIMD_INL_H_
#endif

#include <cstdint>

#include "hwy/highway.h"
#include "ops/common/byte_products.h"
#include "ops/nn/depthwise_conv2d/byte_images.h"
#include "ops/nn/depthwise_conv2d/flat_bytes_simd-inl.h"
#include "ops/nn/depthwise_conv2d/pairs_avx2-inl.h"
#include "ops/nn/depthwise_conv2d/phases.h"
#include "ops/nn/depthwise_conv2d/tap_pairs_avx2-inl.h"
#include "ops/nn/depthwise_conv2d/tap_quads_simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::depthwise::HWY_NAMESPACE {

#if HWY_ARCH_ARM_A64 || (HWY_ARCH_X86 && (HWY_TARGET == HWY_AVX3_DL || HWY_TARGET == HWY_AVX2))

/// The last stages of one arithmetic: in flat rows, and of blocks of channels.
template <class FlatStage, class BlockStage>
struct Stages {
  using Tile = FlatStage;
  using Block = BlockStage;
};

#if HWY_ARCH_ARM_A64
/// There are no blocks of channels.
struct NoBlock {};
using PlainStages = Stages<PlainTile, NoBlock>;
template <class Steps>
using ShortStepsStages = Stages<ShortStepsTile<Steps>, NoBlock>;
using ActivatedStages = Stages<ActivatedTile, NoBlock>;
using RequantizeStages = Stages<RequantizeTile, NoBlock>;

template <class Of, class Scaler>
bool convolve_in_blocks(const ByteImages& /*p*/, const Scaler& /*scaler*/, std::int64_t /*begin*/,
                        std::int64_t /*end*/) {
  return false;
}
#elif HWY_TARGET == HWY_AVX3_DL
using PlainStages = Stages<PlainTile, AffineBlock>;
template <class Steps>
using ShortStepsStages = Stages<ShortStepsTile<Steps>, ShortStepsBlock<Steps> >;
using ActivatedStages = Stages<ActivatedTile, ActivatedBlock>;
using RequantizeStages = Stages<RequantizeTile, RequantizeBlock>;

/// By quads of taps, where windows have one row or are large.
template <class Of, class Scaler>
bool convolve_in_blocks(const ByteImages& p, const Scaler& scaler, std::int64_t begin, std::int64_t end) {
  return tap_quads_fit(p.g) && convolve_either_way<TapBlock<typename Of::Block> >(p, scaler, begin, end);
}
#else
using PlainStages = Stages<PlainTile, AffinePairs>;
template <class Steps>
using ShortStepsStages = Stages<ShortStepsTile<Steps>, AffinePairs>;
using ActivatedStages = Stages<ActivatedTile, AffinePairs>;
using RequantizeStages = Stages<RequantizeTile, RequantizePairs>;

/// Are lanes of channels filled but for a tenth, or, of strided windows, a fifth? Else flat rows are faster; they take
/// up to 1.4 times as long as pairs of full lanes.
inline bool fills_lanes(const ConvGeometry& g) {
  const std::int64_t lanes = align_up(g.x.c, kLaneChannels);
  return g.vertical.stride == 1 ? lanes * 9 <= g.x.c * std::int64_t{10} : lanes * 4 <= g.x.c * std::int64_t{5};
}

/// Are pairs of taps faster than pairs of rows, of which those of windows of one row are half empty unless two output
/// rows share them? Of results over the operand several blocks would take turns within a row.
inline bool suits_tap_pairs(const ByteImages& p) {
  constexpr std::int64_t kFewestChannels = 24;
  constexpr std::int32_t kLongWindow = 9;
  const ConvGeometry& g = p.g;
  const auto suits = [&](const WindowAxis& across, std::int32_t lines, const WindowAxis& along) {
    return across.kernel == 1 && (lines == 1 || along.kernel >= kLongWindow);
  };
  return g.x.c >= kFewestChannels && (!p.overlaps || g.x.c <= kBlockChannels) &&
         (suits(g.vertical, g.y.h, g.horizontal) || suits(g.horizontal, g.y.w, g.vertical));
}

/// Do the phases of a dilated convolution suit pairs of rows?
inline bool suits_phases(const ByteImages& p) {
  if (p.overlaps || !has_phases(p.g)) return false;
  const ConvGeometry part = first_phase(p.g);
  return pairs_fit({part, p.x, p.form, p.w, p.y, false}) && fills_lanes(part);
}

/// By pairs of taps or of rows.
template <class Of, class Scaler>
bool convolve_in_blocks(const ByteImages& p, const Scaler& scaler, std::int64_t begin, std::int64_t end) {
  using Finish = typename Of::Block;
  using Taps = TapPairBlock<Finish>;
  const ConvGeometry& g = p.g;
  if (suits_tap_pairs(p) && convolve_either_way<Taps>(p, scaler, begin, end)) return true;
  if (suits_phases(p)) {
    for_each_phase(g, begin, end, [&](const ConvGeometry& part, std::int64_t first, std::int64_t last) {
      convolve_pairs<Finish>({part, p.x, p.form, p.w, p.y, false}, scaler, first, last);
    });
    return true;
  }
  const bool flat = flat_fits(p, flat_plan(g));
  if (pairs_fit(p) && (fills_lanes(g) || !flat)) {
    convolve_pairs<Finish>(p, scaler, begin, end);
    return true;
  }
  return !flat && g.x.c >= kLaneChannels && convolve_either_way<Taps>(p, scaler, begin, end);
}
#endif

/// On Arm: are there dot products, windows that do not leave three quarters of each group empty, and results enough
/// that it pays to prepare for them?
inline bool dot_products_pay(const ConvGeometry& g, std::int64_t rows) {
  constexpr std::int64_t kLeastPixels = 6;
  return byte_products() != ByteProducts::kNone && g.vertical.kernel > 1 && rows * g.y.w >= kLeastPixels;
}

/// Output rows [begin, end), counted through all items; false if the windows suit no way.
template <class Of, class Scaler>
bool convolve_any_bytes(const ByteImages& p, const Scaler& scaler, std::int64_t begin, std::int64_t end) {
  if (HWY_ARCH_ARM_A64 && !dot_products_pay(p.g, end - begin)) return false;
  if (convolve_in_blocks<Of>(p, scaler, begin, end)) return true;
  const FlatPlan plan = flat_plan(p.g);
  if (!flat_fits(p, plan)) return false;
  convolve_flat<typename Of::Tile>(p, plan, scaler, begin, end);
  return true;
}
#endif

}  // namespace bantam::ops::depthwise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
