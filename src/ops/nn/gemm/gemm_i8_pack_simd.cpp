// pack_panels_i8 of gemm_i8.h on vectors: of matrices that are no constants, and so are packed in every run.
#include <algorithm>
#include <cstring>

#include "ops/nn/gemm/gemm_i8.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/nn/gemm/gemm_i8_pack_simd.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "ops/nn/gemm/sums_simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::gemm::HWY_NAMESPACE {
namespace {

constexpr hn::Full128<std::uint8_t> kD8{};
constexpr hn::Full128<std::uint32_t> kD32{};
using V8 = hn::Vec<hn::Full128<std::uint8_t>>;
using V32 = hn::Vec<hn::Full128<std::uint32_t>>;
static_assert(kPanel == 16);

/// A matrix of which 16 columns become a panel.
struct Columns {
  const std::uint8_t* data;
  std::int64_t k;
  std::int64_t stride;  ///< from one row to the next, or one column to the next
  std::uint8_t flip;
};

/// Sums of the columns of bytes, less their 128, which are below 2^16 for so many rows.
class ColumnSums {
 public:
  static constexpr std::int64_t kMostRows = 256;

  HWY_INLINE ColumnSums() : low_(hn::Zero(kD16)), high_(hn::Zero(kD16)) {}

  HWY_INLINE void add(V8 row) {
    const hn::Half<hn::Full128<std::uint8_t>> half;
    low_ = hn::Add(low_, hn::PromoteTo(kD16, hn::LowerHalf(half, row)));
    high_ = hn::Add(high_, hn::PromoteTo(kD16, hn::UpperHalf(half, row)));
  }
  HWY_INLINE void store(std::uint16_t* to) const {
    hn::StoreU(low_, kD16, to);
    hn::StoreU(high_, kD16, to + 8);
  }

 private:
  static constexpr hn::Full128<std::uint16_t> kD16{};
  hn::Vec<hn::Full128<std::uint16_t>> low_;
  hn::Vec<hn::Full128<std::uint16_t>> high_;
};

/// Four rows of 16 columns as 16 quads.
HWY_INLINE void store_quads(V8 a, V8 b, V8 c, V8 d, std::int8_t* packed) {
  const hn::Full128<std::uint16_t> d16;
  auto* to = reinterpret_cast<std::uint16_t*>(packed);
  const auto low_ab = hn::BitCast(d16, hn::InterleaveLower(kD8, a, b));
  const auto low_cd = hn::BitCast(d16, hn::InterleaveLower(kD8, c, d));
  const auto high_ab = hn::BitCast(d16, hn::InterleaveUpper(kD8, a, b));
  const auto high_cd = hn::BitCast(d16, hn::InterleaveUpper(kD8, c, d));
  hn::StoreU(hn::InterleaveLower(d16, low_ab, low_cd), d16, to);
  hn::StoreU(hn::InterleaveUpper(d16, low_ab, low_cd), d16, to + 8);
  hn::StoreU(hn::InterleaveLower(d16, high_ab, high_cd), d16, to + 16);
  hn::StoreU(hn::InterleaveUpper(d16, high_ab, high_cd), d16, to + 24);
}

/// Columns that lie side by side. The bytes' sums: each is 128 more than the signed number, which sums take off.
void pack_rows(const Columns& b, std::int8_t* packed, std::uint32_t* sums) {
  const auto flips = hn::Set(kD8, b.flip);
  const auto middles = hn::Set(kD8, 128);
  for (std::int64_t start = 0; start < b.k; start += ColumnSums::kMostRows) {
    const std::int64_t end = std::min(start + ColumnSums::kMostRows, b.k);
    ColumnSums part;
    const auto load = [&](std::int64_t row) HWY_ATTR {
      if (row >= end) return hn::Zero(kD8);
      const auto bytes = hn::Xor(hn::LoadU(kD8, b.data + row * b.stride), flips);
      part.add(hn::Xor(bytes, middles));
      return bytes;
    };
    for (std::int64_t row = start; row < end; row += 4, packed += 4 * kPanel) {
      const auto first = load(row);
      const auto second = load(row + 1);
      const auto third = load(row + 2);
      store_quads(first, second, third, load(row + 3), packed);
    }
    std::uint16_t of_part[kPanel];
    part.store(of_part);
    for (std::int64_t i = 0; i < kPanel; ++i) sums[i] += of_part[i] - static_cast<std::uint32_t>(end - start) * 128;
  }
}

/// Four quads of each of four columns, to four columns of four panels' rows.
HWY_INLINE void store_columns(V32 a, V32 b, V32 c, V32 d, std::int8_t* packed) {
  const hn::Full128<std::uint64_t> d64;
  const auto low_ab = hn::BitCast(d64, hn::InterleaveLower(kD32, a, b));
  const auto low_cd = hn::BitCast(d64, hn::InterleaveLower(kD32, c, d));
  const auto high_ab = hn::BitCast(d64, hn::InterleaveUpper(kD32, a, b));
  const auto high_cd = hn::BitCast(d64, hn::InterleaveUpper(kD32, c, d));
  const auto store = [&](hn::Vec<hn::Full128<std::uint64_t>> quads, int row) HWY_ATTR {
    hn::StoreU(hn::BitCast(kD8, quads), kD8, reinterpret_cast<std::uint8_t*>(packed + row * 4 * kPanel));
  };
  store(hn::InterleaveLower(d64, low_ab, low_cd), 0);
  store(hn::InterleaveUpper(d64, low_ab, low_cd), 1);
  store(hn::InterleaveLower(d64, high_ab, high_cd), 2);
  store(hn::InterleaveUpper(d64, high_ab, high_cd), 3);
}

/// Columns of which each lies in one piece.
void pack_columns(const Columns& b, std::int8_t* packed, std::uint32_t* sums) {
  const auto flips = hn::BitCast(kD32, hn::Set(kD8, b.flip));
  std::int64_t row = 0;
  for (; row + 16 <= b.k; row += 16) {
    const auto load = [&](std::int64_t column) HWY_ATTR {
      return hn::Xor(hn::BitCast(kD32, hn::LoadU(kD8, b.data + column * b.stride + row)), flips);
    };
    for (std::int64_t i = 0; i < kPanel; i += 4)
      store_columns(load(i), load(i + 1), load(i + 2), load(i + 3), packed + row * kPanel + 4 * i);
  }
  for (; row < b.k; row += 4) {
    for (std::int64_t i = 0; i < kPanel; ++i) {
      std::int8_t* quad = packed + row * kPanel + 4 * i;
      for (std::int64_t j = 0; j < 4; ++j)
        quad[j] = row + j < b.k ? static_cast<std::int8_t>(b.data[i * b.stride + row + j] ^ b.flip) : std::int8_t{0};
    }
  }
  for (std::int64_t i = 0; i < kPanel; ++i) sums[i] = row_sum_i8(b.data + i * b.stride, b.k, b.flip);
}

void pack_panels_target(const std::int8_t* b, std::int64_t k, std::int64_t n, std::int64_t k_stride,
                        std::int64_t n_stride, std::uint8_t flip, std::int8_t* packed) {
  const bool in_rows = n_stride == 1;
  if (!in_rows && k_stride != 1) return pack_panels_i8(b, k, n, k_stride, n_stride, flip, packed);
  std::int64_t first = 0;
  for (; first + kPanel <= n; first += kPanel, packed += panel_bytes(k)) {
    std::uint32_t sums[kPanel] = {};
    const Columns columns{reinterpret_cast<const std::uint8_t*>(b + first * n_stride), k, in_rows ? k_stride : n_stride,
                          flip};
    (in_rows ? pack_rows : pack_columns)(columns, packed, sums);
    std::memcpy(packed + quad_count(k) * 4 * kPanel, sums, sizeof sums);
  }
  if (first < n) pack_panels_i8(b + first * n_stride, k, n - first, k_stride, n_stride, flip, packed);
}

}  // namespace
}  // namespace bantam::ops::gemm::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bantam::ops::gemm {

HWY_EXPORT(pack_panels_target);

void pack_panels_i8_simd(const std::int8_t* b, std::int64_t k, std::int64_t n, std::int64_t k_stride,
                         std::int64_t n_stride, std::uint8_t flip, std::int8_t* packed) {
  HWY_DYNAMIC_DISPATCH(pack_panels_target)(b, k, n, k_stride, n_stride, flip, packed);
}

}  // namespace bantam::ops::gemm
#endif
