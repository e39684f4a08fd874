// Where bilinear points of images of two axes lie, a vector of points at a time: the formulas of sampling.cpp, to the
// bit. Included by *_simd.cpp files inside Highway's per-target compilation.
#if defined(BANTAM_OPS_GRID_SAMPLE_BILINEAR_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BANTAM_OPS_GRID_SAMPLE_BILINEAR_SIMD_INL_H_
#undef BANTAM_OPS_GRID_SAMPLE_BILINEAR_SIMD_INL_H_
#else
#define BANTAM_OPS_GRID_SAMPLE_BILINEAR_SIMD_INL_H_
#endif

#include <cstdint>
#include <limits>

#include "hwy/highway.h"
#include "ops/nn/grid_sample/grid_sample.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::grid_sample::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// Is a point made of four elements, found by small integers, without reflection?
inline bool suits_bilinear(const GridSampleParams& p, const TensorDesc& x) {
  return p.mode == GridSampleMode::kLinear && p.padding != GridSamplePadding::kReflection && x.rank == 4 &&
         x.elements() <= std::numeric_limits<std::int32_t>::max();
}

/// The two elements of one axis that a vector of coordinates needs.
class BilinearAxis {
 public:
  using D = hn::ScalableTag<float>;
  using DI = hn::RebindToSigned<D>;
  using V = hn::Vec<D>;
  using VI = hn::Vec<DI>;

  /// `stride`: numbers from one element to the next.
  HWY_INLINE BilinearAxis(const GridSampleParams& p, std::int32_t size, std::int64_t stride, V coordinate) {
    const D d;
    const DI di;
    const bool border = p.padding == GridSamplePadding::kBorder;
    V at = denormalised(p.align_corners != 0, static_cast<float>(size), coordinate);
    if (border) at = inside(p.align_corners != 0, static_cast<float>(size), at);
    at = bounded(static_cast<float>(size), at);
    const V floor = hn::Floor(at);
    const V rest = hn::Sub(at, floor);
    weight_[0] = hn::Sub(hn::Set(d, 1.0F), rest);
    weight_[1] = rest;
    const VI index = hn::ConvertTo(di, hn::Min(floor, hn::Set(d, 2147483000.0F)));
    for (int tap = 0; tap < 2; ++tap) {
      const VI i = hn::Add(index, hn::Set(di, tap));
      const VI nearest = hn::Min(hn::Max(i, hn::Zero(di)), hn::Set(di, size - 1));
      offset_[tap] = hn::Mul(nearest, hn::Set(di, static_cast<std::int32_t>(stride)));
      counts_[tap] = border ? hn::Set(di, -1) : hn::VecFromMask(di, hn::Eq(i, nearest));
    }
  }

  V weight(int tap) const { return weight_[tap]; }
  VI offset(int tap) const { return offset_[tap]; }  ///< of the nearest element inside, from the first
  VI counts(int tap) const { return counts_[tap]; }  ///< all bits of lanes whose element is inside, or counts anyway

 private:
  static HWY_INLINE V denormalised(bool align_corners, float size, V coordinate) {
    const D d;
    const V from_end = hn::Add(coordinate, hn::Set(d, 1.0F));
    const V half = hn::Set(d, 0.5F);
    if (align_corners) return hn::Mul(hn::Mul(from_end, half), hn::Set(d, size - 1.0F));
    return hn::Mul(hn::Sub(hn::Mul(from_end, hn::Set(d, size)), hn::Set(d, 1.0F)), half);
  }

  /// Clamped to the elements, if beyond the edges; not a number stays what it is.
  static HWY_INLINE V inside(bool align_corners, float size, V at) {
    const D d;
    const V low = hn::Set(d, align_corners ? 0.0F : -0.5F);
    const V high = hn::Set(d, align_corners ? size - 1.0F : size - 0.5F);
    const V last = hn::Set(d, size - 1.0F);
    const V below_last = hn::IfThenElse(hn::Lt(last, at), last, at);
    const V clamped = hn::IfThenElse(hn::Lt(at, hn::Zero(d)), hn::Zero(d), below_last);
    return hn::IfThenElse(hn::And(hn::Ge(at, low), hn::Le(at, high)), at, clamped);
  }

  /// bounded_coordinate.
  static HWY_INLINE V bounded(float size, V at) {
    const D d;
    const V least = hn::Set(d, -4.0F);
    return hn::IfThenElse(hn::Ge(at, least), hn::Min(at, hn::Set(d, size + 4.0F)), least);
  }

  V weight_[2];
  VI offset_[2];
  VI counts_[2];
};

}  // namespace bantam::ops::grid_sample::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
