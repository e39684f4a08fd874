// What becomes of the sums of a tile in gemm_i8.h that lie in memory: they are scaled and stored. Included by
// gemm_i8_ends-inl.h inside Highway's per-target compilation.
#if defined(BANTAM_OPS_GEMM_I8_FINISH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BANTAM_OPS_GEMM_I8_FINISH_INL_H_
#undef BANTAM_OPS_GEMM_I8_FINISH_INL_H_
#else
#define BANTAM_OPS_GEMM_I8_FINISH_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "hwy/highway.h"
#include "ops/common/activate_rows.h"
#include "ops/common/affine_simd-inl.h"
#include "ops/common/requantize_simd-inl.h"
#include "ops/nn/gemm/gemm_i8_tiles-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::gemm::HWY_NAMESPACE {
namespace {

using ops::HWY_NAMESPACE::AffineVector;
using ops::HWY_NAMESPACE::demote_to_bytes;
using ops::HWY_NAMESPACE::load_channels;
using ops::HWY_NAMESPACE::load_zero_points;
using ops::HWY_NAMESPACE::RequantizeVector;
using ops::HWY_NAMESPACE::store_lanes;
using ops::HWY_NAMESPACE::with_zero_point;

/// The sums of one tile that are of more products than int32 holds.
struct WideSums {
  std::int64_t at[kRows * kMostColumns];
};

template <typename Result>
bool subtracts_row_sums(const Result& /*y*/) {
  return false;
}
template <typename Y>
bool subtracts_row_sums(const AffineResult<Y>& y) {
  return !y.zero_points.are_zero();
}

/// Stores scale(sums) of `rows` rows and `lanes` columns from column c of a tile on as bytes, with the bits of `flip`
/// inverted; rows of sums are kStride apart. Arguments are values: nobody else's, so that storing bytes does not change
/// them.
template <std::int64_t kStride, typename Scale>
HWY_INLINE void store_bytes(const Scale scale, const std::int32_t* sums, std::int64_t rows, std::int64_t lanes,
                            std::uint8_t flip, std::uint8_t* to, std::int64_t row_stride) {
  const hn::Rebind<std::uint8_t, D32> d8;
  const auto flips = hn::Set(d8, flip);
  const auto bytes = [&](std::int64_t r) HWY_ATTR {
    return hn::Xor(hn::BitCast(d8, demote_to_bytes(kD32, scale(hn::LoadU(kD32, sums + r * kStride)))), flips);
  };
  if (lanes >= kLanes) {
    for (std::int64_t r = 0; r < rows; ++r) hn::StoreU(bytes(r), d8, to + r * row_stride);
  } else {
    for (std::int64_t r = 0; r < rows; ++r) store_lanes(d8, bytes(r), lanes, to + r * row_stride);
  }
}

/// Scales the sums of `rows` rows and columns [first, first + columns), and stores them at row m on. `row_sums`: of the
/// left matrix, from row m on; not used by most.
void finish_tile(const Int8Result& y, const Sums& sums, std::int64_t m, std::int64_t rows, std::int64_t first,
                 std::int64_t columns, const std::int32_t* /*row_sums*/) {
  for (std::int64_t c = 0; c < columns; c += kLanes) {
    const std::int64_t lanes = std::min<std::int64_t>(kLanes, columns - c);
    store_bytes<kMostColumns>(RequantizeVector<D32>(kD32, y.requantize, first + c, lanes), sums.at + c, rows, lanes, 0,
                              reinterpret_cast<std::uint8_t*>(y.data + m * y.row_stride + first + c), y.row_stride);
  }
}

void finish_tile(const Int16Result& y, const WideSums& sums, std::int64_t m, std::int64_t rows, std::int64_t first,
                 std::int64_t columns, const std::int32_t* /*row_sums*/) {
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < columns; ++c)
      y.data[(m + r) * y.row_stride + first + c] =
          y.requantize(static_cast<std::uint64_t>(sums.at[r * kMostColumns + c]), static_cast<std::int32_t>(first + c));
}

void finish_tile(const HybridResult& y, const Sums& sums, std::int64_t m, std::int64_t rows, std::int64_t first,
                 std::int64_t columns, const std::int32_t* /*row_sums*/) {
  const hn::Rebind<float, D32> df;
  for (std::int64_t c = 0; c < columns; c += kLanes) {
    const std::int64_t lanes = std::min<std::int64_t>(kLanes, columns - c);
    const auto scale =
        y.scaler.per_channel ? load_channels(df, y.scaler.scale + first + c, lanes) : hn::Set(df, y.scaler.scale[0]);
    const auto bias = y.scaler.bias != nullptr ? load_channels(df, y.scaler.bias + first + c, lanes) : hn::Zero(df);
    for (std::int64_t r = 0; r < rows; ++r) {
      const auto sum = hn::ConvertTo(df, hn::LoadU(kD32, sums.at + r * kMostColumns + c));
      const auto product = hn::Mul(hn::Mul(sum, hn::Set(df, y.row_scales[m + r])), scale);
      store_lanes(df, hn::Add(product, bias), lanes, y.data + (m + r) * y.row_stride + first + c);
    }
  }
  activate_rows(y.activation, y.data + m * y.row_stride + first, rows, y.row_stride, columns);
}

/// Takes the products of the columns' zero points and the rows' sums off.
template <typename Y>
void subtract_row_sums(const AffineResult<Y>& y, std::int64_t rows, std::int64_t first, std::int64_t columns,
                       const std::int32_t* row_sums, Sums& sums) {
  for (std::int64_t c = 0; c < columns; c += kLanes) {
    const std::int64_t lanes = std::min<std::int64_t>(kLanes, columns - c);
    const auto zeros = load_zero_points(kD32, y.zero_points, first + c, lanes);
    for (std::int64_t r = 0; r < rows; ++r) {
      std::int32_t* at = sums.at + r * kMostColumns + c;
      hn::StoreU(hn::Sub(hn::LoadU(kD32, at), hn::Mul(zeros, hn::Set(kD32, row_sums[r]))), kD32, at);
    }
  }
}

/// Results of an activation, as bytes.
void finish_activated(const AffineResult<std::uint8_t>& y, Sums& sums, std::int64_t m, std::int64_t rows,
                      std::int64_t first, std::int64_t columns) {
  for (std::int64_t c = 0; c < kMostColumns; c += kLanes) {
    const std::int64_t lanes = std::clamp<std::int64_t>(columns - c, 0, kLanes);
    const AffineVector<D32> scale(kD32, y.scaler, first + c, lanes);
    for (std::int64_t r = 0; r < rows; ++r) {
      std::int32_t* at = sums.at + r * kMostColumns + c;
      hn::StoreU(lanes > 0 ? hn::BitCast(kD32, scale.argument(hn::LoadU(kD32, at))) : hn::Zero(kD32), kD32, at);
    }
  }
  round_activated(y.scaler, sums.at, rows * kMostColumns);
  for (std::int64_t c = 0; c < columns; c += kLanes) {
    const std::int64_t lanes = std::min<std::int64_t>(kLanes, columns - c);
    const auto number = [&](hn::Vec<D32> steps) HWY_ATTR { return with_zero_point(kD32, y.scaler, steps); };
    store_bytes<kMostColumns>(number, sums.at + c, rows, lanes, y.scaler.flip, y.data + m * y.row_stride + first + c,
                              y.row_stride);
  }
}

template <typename Y>
void finish_tile(const AffineResult<Y>& y, Sums& sums, std::int64_t m, std::int64_t rows, std::int64_t first,
                 std::int64_t columns, const std::int32_t* row_sums) {
  if (!y.zero_points.are_zero(first, columns)) subtract_row_sums(y, rows, first, columns, row_sums, sums);
  if constexpr (std::is_same_v<Y, std::uint8_t>) {
    if (y.scaler.has_activation()) return finish_activated(y, sums, m, rows, first, columns);
  }
  for (std::int64_t c = 0; c < columns; c += kLanes) {
    const std::int64_t lanes = std::min<std::int64_t>(kLanes, columns - c);
    const AffineVector<D32> scale(kD32, y.scaler, first + c, lanes);
    Y* to = y.data + m * y.row_stride + first + c;
    if constexpr (std::is_same_v<Y, std::uint8_t>) {
      store_bytes<kMostColumns>(scale, sums.at + c, rows, lanes, y.scaler.flip, to, y.row_stride);
    } else {
      for (std::int64_t r = 0; r < rows; ++r)
        scale.store(hn::LoadU(kD32, sums.at + r * kMostColumns + c), lanes, to + r * y.row_stride);
    }
  }
  if constexpr (std::is_same_v<Y, float>)
    activate_rows(y.scaler.activation, y.data + m * y.row_stride + first, rows, y.row_stride, columns);
}

/// finish_tile for columns [first, first + columns).
template <typename Result>
class TileEnd {
 public:
  TileEnd(const Result& y, std::int64_t first, std::int64_t columns) : y_(y), first_(first), columns_(columns) {}

  template <typename TileSums>
  HWY_INLINE void operator()(TileSums& sums, std::int64_t m, std::int64_t rows, const std::int32_t* row_sums) const {
    finish_tile(y_, sums, m, rows, first_, columns_, row_sums);
  }

 private:
  const Result& y_;
  std::int64_t first_;
  std::int64_t columns_;
};

/// What finishes tiles of a kind of result: TileEnd, or what is faster for it on the target.
template <typename Result>
struct TileEndType {
  using Type = TileEnd<Result>;
};

}  // namespace
}  // namespace bantam::ops::gemm::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
