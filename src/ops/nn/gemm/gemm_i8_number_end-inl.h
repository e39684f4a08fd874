// What becomes of the sums of a tile in gemm_i8.h that become f32 or i32: scaled and stored from registers. Included by
// gemm_i8_ends-inl.h inside Highway's per-target compilation.
#if defined(BANTAM_OPS_GEMM_I8_NUMBER_END_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BANTAM_OPS_GEMM_I8_NUMBER_END_INL_H_
#undef BANTAM_OPS_GEMM_I8_NUMBER_END_INL_H_
#else
#define BANTAM_OPS_GEMM_I8_NUMBER_END_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <new>
#include <type_traits>

#include "hwy/highway.h"
#include "ops/common/activate_rows.h"
#include "ops/common/affine_simd-inl.h"
#include "ops/nn/gemm/gemm_i8_finish-inl.h"
#include "ops/nn/gemm/gemm_i8_tiles-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::gemm::HWY_NAMESPACE {
namespace {

#if (HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3_DL) && HWY_ARCH_X86
/// Vectors of so many columns, of which the last may not be whole.
constexpr int vectors_of(std::int64_t columns) { return static_cast<int>((columns + kLanes - 1) / kLanes); }

/// Columns of vector v of so many.
constexpr std::int64_t lanes_of(std::int64_t columns, int v) {
  return std::clamp<std::int64_t>(columns - v * kLanes, 0, kLanes);
}

/// The zero points of a tile's columns, of which the products with the rows' sums are taken off in registers.
class ColumnZeros {
 public:
  HWY_INLINE ColumnZeros() = default;
  HWY_INLINE ColumnZeros(const ZeroPoints& zeros, std::int64_t first, std::int64_t columns)
      : any_(!zeros.are_zero(first, columns)), several_(zeros.several), first_(any_ ? zeros[first] : 0) {
    if (!any_ || !several_) return;
    for (int v = 0; v < kMostVectors; ++v)
      hn::Store(load_zero_points(kD32, zeros, first + v * kLanes, lanes_of(columns, v)), kD32, each_ + v * kLanes);
  }

  bool any() const { return any_; }

  /// Of the rows whose sums are `row_sums` from the row-th on, of which there are none where all zero points are 0.
  template <int kTileRows, int kTileVectors>
  HWY_INLINE void subtract(const std::int32_t* row_sums, std::int64_t row,
                           hn::Vec<D32> (&sum)[kTileRows][kTileVectors]) const {
    if (!any_) return;
    row_sums += row;
    several_ ? subtract_each(row_sums, sum) : subtract_first(row_sums, sum);
  }

 private:
  template <int kTileRows, int kTileVectors>
  HWY_INLINE void subtract_each(const std::int32_t* row_sums, hn::Vec<D32> (&sum)[kTileRows][kTileVectors]) const {
    unroll<kTileRows>([&](auto r) __attribute__((always_inline)) HWY_ATTR {
      const auto row_sum = hn::Set(kD32, row_sums[r]);
      unroll<kTileVectors>([&](auto v) __attribute__((always_inline)) HWY_ATTR {
        sum[r][v] = hn::Sub(sum[r][v], hn::Mul(hn::Load(kD32, each_ + v * kLanes), row_sum));
      });
    });
  }

  /// Of one zero point. Products wrap, as sums do.
  template <int kTileRows, int kTileVectors>
  HWY_INLINE void subtract_first(const std::int32_t* row_sums, hn::Vec<D32> (&sum)[kTileRows][kTileVectors]) const {
    const auto zero = static_cast<std::uint32_t>(first_);
    unroll<kTileRows>([&](auto r) __attribute__((always_inline)) HWY_ATTR {
      const auto product = hn::Set(kD32, static_cast<std::int32_t>(zero * static_cast<std::uint32_t>(row_sums[r])));
      unroll<kTileVectors>([&](auto v) __attribute__((always_inline))
                           HWY_ATTR { sum[r][v] = hn::Sub(sum[r][v], product); });
    });
  }

  bool any_ = false;
  bool several_ = false;
  std::int32_t first_ = 0;
  HWY_ALIGN std::int32_t each_[kMostColumns];  ///< with several_
};

/// finish_tile of i32 and f32 results.
template <typename Y>
class NumberEnd {
 public:
  NumberEnd(const AffineResult<Y>& y, std::int64_t first, std::int64_t columns)
      : y_(y), first_(first), columns_(columns) {}

  void operator()(Sums& sums, std::int64_t m, std::int64_t rows, const std::int32_t* row_sums) const {
    finish_tile(y_, sums, m, rows, first_, columns_, row_sums);
  }

  /// Vectors of columns of whole tiles, which are stored from registers.
  int vectors() const { return vectors_of(columns_); }

  /// Calls f of what stores them, from row m on, whose sums come first in `row_sums`.
  template <class F>
  HWY_INLINE void with_tiles(std::int64_t m, const std::int32_t* row_sums, F f) const {
    f(Tiles(y_, first_, columns_, m, row_sums));
  }

 private:
  class Tiles {
   public:
    HWY_INLINE Tiles(const AffineResult<Y>& y, std::int64_t first, std::int64_t columns, std::int64_t m,
                     const std::int32_t* row_sums)
        : zeros_(y.zero_points, first, columns),
          columns_(columns),
          row_stride_(y.row_stride),
          y_(y.data + m * y.row_stride + first),
          row_sums_(row_sums),
          activation_(y.scaler.activation) {
      for (int v = 0; v < vectors_of(columns); ++v)
        new (&scales_[v]) AffineVector<D32>(kD32, y.scaler, first + v * kLanes, lanes_of(columns, v));
    }

    template <int kTileRows, int kTileVectors>
    HWY_INLINE void operator()(hn::Vec<D32> (&sum)[kTileRows][kTileVectors], std::int64_t tile) const {
      Y* y = y_ + tile * kTileRows * row_stride_;
      zeros_.subtract(row_sums_, tile * kTileRows, sum);
      unroll<kTileVectors>([&](auto v) __attribute__((always_inline)) HWY_ATTR {
        const std::int64_t lanes = lanes_of(columns_, v);
        unroll<kTileRows>([&](auto r) __attribute__((always_inline))
                          HWY_ATTR { scales_[v].store(sum[r][v], lanes, y + r * row_stride_ + v * kLanes); });
      });
      if constexpr (std::is_same_v<Y, float>) activate_rows(activation_, y, kTileRows, row_stride_, columns_);
    }

   private:
    ColumnZeros zeros_;
    std::int64_t columns_;
    std::int64_t row_stride_;
    Y* y_;
    const std::int32_t* row_sums_;
    Activation activation_;
    union {
      AffineVector<D32> scales_[kMostVectors];  ///< of the vectors of columns that there are
    };
  };

  const AffineResult<Y>& y_;
  std::int64_t first_;
  std::int64_t columns_;
};

#if HWY_TARGET == HWY_AVX2
template <typename Y>
struct TileEndType<AffineResult<Y>> {
  using Type = NumberEnd<Y>;
};
#else
template <>
struct TileEndType<AffineResult<float>> {
  using Type = NumberEnd<float>;
};
#endif
#endif

}  // namespace
}  // namespace bantam::ops::gemm::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
