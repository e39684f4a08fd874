// Widening of the panels of narrow_panels.h, into memory and into the registers of a product of one row.
#include <algorithm>
#include <type_traits>

#include "ops/nn/gemm/narrow_panels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/nn/gemm/narrow_panels_simd.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "ops/common/activate_rows.h"
#include "ops/common/clamped_store_simd-inl.h"
#include "ops/common/parallel.h"
#include "ops/nn/gemm/unroll-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::gemm::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using ops::HWY_NAMESPACE::ClampedStore;
using ops::HWY_NAMESPACE::unroll;

/// Reads a panel of one type in vectors of D: `block_rows` rows share the scales that `begin_block` goes to.
template <ElementType kType>
class Panel {
 public:
  // Pairs of halves make vectors of at most half a panel. So are f16 widened: where vectors of 64 bytes are computed in
  // two halves, a row of them is multiplied in 1.3 times the time with whole ones, of 8 bits in less.
  using D = hn::CappedTag<float, kType == ElementType::kI8 ? kPanel : kPanel / 2>;
  using V = hn::Vec<D>;
  static constexpr D kD{};
  static constexpr int kLanes = static_cast<int>(hn::MaxLanes(D()));
  static constexpr int kVectors = static_cast<int>(kPanel) / kLanes;
  static constexpr int kHalf = kVectors / 2;  ///< of columns that are the first ones of pairs
  static constexpr std::int64_t kRowBytes = kPanel * element_bits(kType) / 8;

  explicit Panel(const std::byte* data = nullptr) : data_(data) {}

  static std::int64_t block_rows(std::int64_t k) { return kType == ElementType::kI4 ? kScaleBlock : k; }

  /// Goes to the block of rows that begins at row k.
  HWY_INLINE void begin_block(std::int64_t k) {
    const std::int64_t block = k / kScaleBlock;
    if constexpr (kType == ElementType::kI4) {
      scales_ = data_ + block * (kScaleBlock * kRowBytes + kPanel * 2);
      rows_ = scales_ + kPanel * 2 - k * kRowBytes;
    } else if constexpr (kType == ElementType::kI8) {
      scales_ = data_;
      rows_ = data_ + kPanel * sizeof(float);
    } else {
      rows_ = data_;
    }
  }

  /// The scales of vector v.
  HWY_INLINE V scales(int v) const {
    if constexpr (kType == ElementType::kI4) return half(scales_ + v * kLanes * 2);
    if constexpr (kType == ElementType::kI8) return hn::LoadU(kD, reinterpret_cast<const float*>(scales_) + v * kLanes);
    return hn::Zero(kD);
  }

  /// What is added to the products of numbers and these scales.
  static HWY_INLINE V offset(V scale) {
    return kType == ElementType::kI4 ? hn::Mul(scale, hn::Set(kD, -8.0F)) : hn::Zero(kD);
  }

  /// Vector v of row k, with its scales and their offset.
  HWY_INLINE V load(std::int64_t k, int v, V scale, V offset) const {
    const std::byte* row = rows_ + k * kRowBytes;
    if constexpr (kType == ElementType::kF16) {
      return half(row + v * kLanes * 2);
    } else if constexpr (kType == ElementType::kBF16) {
      const hn::RebindToUnsigned<D> bits;
      const auto pairs = hn::LoadU(bits, reinterpret_cast<const std::uint32_t*>(row) + v % kHalf * kLanes);
      return hn::BitCast(kD, v < kHalf ? hn::ShiftLeft<16>(pairs) : hn::And(pairs, hn::Set(bits, 0xFFFF0000)));
    } else if constexpr (kType == ElementType::kI8) {
      return hn::Mul(hn::ConvertTo(kD, integers(row, v)), scale);
    } else {
      // Exact, with or without multiply-adds: the scales have 11 bits.
      return hn::MulAdd(hn::ConvertTo(kD, integers(row, v)), scale, offset);
    }
  }

 private:
  using I = hn::RebindToSigned<D>;
  static_assert(kHalf > 0 || kType == ElementType::kI8);

  static HWY_INLINE V half(const std::byte* from) {
    const hn::Rebind<hwy::float16_t, D> narrow;
    return hn::PromoteTo(kD, hn::LoadU(narrow, reinterpret_cast<const hwy::float16_t*>(from)));
  }

  /// In 4 bits 8 too many.
  static HWY_INLINE hn::Vec<I> integers(const std::byte* row, int v) {
    const I d32;
    if constexpr (kType == ElementType::kI8) {
      const hn::Rebind<std::int8_t, D> narrow;
      return hn::PromoteTo(d32, hn::LoadU(narrow, reinterpret_cast<const std::int8_t*>(row) + v * kLanes));
    } else {
      const hn::Rebind<std::uint8_t, D> narrow;
      const auto pairs =
          hn::PromoteTo(d32, hn::LoadU(narrow, reinterpret_cast<const std::uint8_t*>(row) + v % kHalf * kLanes));
      return v < kHalf ? hn::And(pairs, hn::Set(d32, 15)) : hn::ShiftRight<4>(pairs);
    }
  }

  const std::byte* data_;
  const std::byte* scales_ = nullptr;
  const std::byte* rows_ = nullptr;  ///< where row 0 would be if all blocks were as the present one
};

/// Calls f with the type as a constant.
template <typename F>
HWY_INLINE void with_type(ElementType type, F f) {
  switch (type) {
    case ElementType::kI8: return f(std::integral_constant<ElementType, ElementType::kI8>());
    case ElementType::kI4: return f(std::integral_constant<ElementType, ElementType::kI4>());
    case ElementType::kBF16: return f(std::integral_constant<ElementType, ElementType::kBF16>());
    default: return f(std::integral_constant<ElementType, ElementType::kF16>());
  }
}

template <ElementType kType>
void widen_rows(const NarrowPanels& b, std::int64_t p, std::int64_t first_k, std::int64_t count, float* wide) {
  using P = Panel<kType>;
  P panel(b.data + p * narrow_panel_bytes(kType, b.k));
  const std::int64_t block = P::block_rows(b.k);
  const std::int64_t last = first_k + count;
  for (std::int64_t k = first_k; k < last;) {
    const std::int64_t begin = k / block * block;
    const std::int64_t end = std::min(begin + block, last);
    panel.begin_block(begin);
    typename P::V scales[P::kVectors];
    typename P::V offsets[P::kVectors];
    unroll<P::kVectors>([&](auto v) HWY_ATTR {
      scales[v] = panel.scales(v);
      offsets[v] = P::offset(scales[v]);
    });
    for (; k < end; ++k, wide += kPanel)
      unroll<P::kVectors>(
          [&](auto v) HWY_ATTR { hn::StoreU(panel.load(k, v, scales[v], offsets[v]), P::kD, wide + v * P::kLanes); });
  }
}

void widen_target(const NarrowPanels& b, std::int64_t first, std::int64_t last, std::int64_t first_k,
                  std::int64_t count, float* wide) {
  with_type(b.type, [&](auto type) HWY_ATTR {
    for (std::int64_t p = first; p < last; ++p)
      widen_rows<decltype(type)::value>(b, p, first_k, count, wide + (p - first) * count * kPanel);
  });
}

/// One row times up to kPanels panels from `first` on. Where fewer are left the last one stands for those beyond it.
template <ElementType kType, int kPanels>
HWY_NOINLINE void multiply_panels(const float* a, const NarrowPanels& b, std::int64_t first, std::int64_t last,
                                  const float* start, float* sums) {
  using P = Panel<kType>;
  using V = typename P::V;
  constexpr int kAll = kPanels * P::kVectors;
  const std::int64_t stride = narrow_panel_bytes(kType, b.k);
  V sum[kAll];
  unroll<kAll>([&](auto v) HWY_ATTR { sum[v] = hn::LoadU(P::kD, start + v * P::kLanes); });
  const auto panel_at = [&](int p)
                            HWY_ATTR { return P(b.data + std::min<std::int64_t>(first + p, last - 1) * stride); };
  const std::int64_t block = P::block_rows(b.k);
  for (std::int64_t begin = 0; begin < b.k; begin += block) {
    const std::int64_t end = std::min(begin + block, b.k);
    P panels[kPanels];
    V scales[kAll];
    V offsets[kAll];
    unroll<kPanels>([&](auto p) HWY_ATTR {
      panels[p] = panel_at(p);
      panels[p].begin_block(begin);
      unroll<P::kVectors>([&](auto v) HWY_ATTR {
        scales[p * P::kVectors + v] = panels[p].scales(v);
        offsets[p * P::kVectors + v] = P::offset(scales[p * P::kVectors + v]);
      });
    });
    for (std::int64_t k = begin; k < end; ++k) {
      const V x = hn::Set(P::kD, a[k]);
      unroll<kAll>([&](auto v) HWY_ATTR {
        const V w = panels[v / P::kVectors].load(k, v % P::kVectors, scales[v], offsets[v]);
        sum[v] = hn::MulAdd(x, w, sum[v]);
      });
    }
  }
  unroll<kAll>([&](auto v) HWY_ATTR { hn::StoreU(sum[v], P::kD, sums + v * P::kLanes); });
}

/// Enough independent sums for one row: eight vectors, or sixteen of those numbers that take least time and registers.
template <ElementType kType>
constexpr int kPanelsAtOnce = [] {
  constexpr bool kIsShort = kType == ElementType::kF16 || kType == ElementType::kBF16;
  constexpr int kSums = HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86 && kIsShort ? 16 : 8;
  return std::max(kSums / Panel<kType>::kVectors, 1);
}();
constexpr std::int64_t kMostPanels = 8;

void multiply_row_target(const float* a, const NarrowPanels& b, std::int64_t first, std::int64_t last,
                         const Result& y) {
  const ClampedStore store(y.activation);
  with_type(b.type, [&](auto type) HWY_ATTR {
    constexpr ElementType kType = decltype(type)::value;
    constexpr int kPanels = kPanelsAtOnce<kType>;
    static_assert(kPanels <= kMostPanels);
    using P = Panel<kType>;
    const std::int64_t tiles = (last - first + kPanels - 1) / kPanels;
    for (std::int64_t i = 0; i < tiles; ++i) {
      const std::int64_t p = first + (b.backward ? tiles - 1 - i : i) * kPanels;
      HWY_ALIGN float sums[kMostPanels * kPanel] = {};
      const std::int64_t column = p * kPanel;
      const std::int64_t columns = std::min(std::min(p + kPanels, last) * kPanel, b.n) - column;
      if (y.bias != nullptr) std::copy_n(y.bias + column, columns, sums);
      multiply_panels<kType, kPanels>(a, b, p, last, sums, sums);
      if (store.clamps())
        for (int v = 0; v < kPanels * P::kVectors; ++v)
          hn::StoreU(store.limited(P::kD, hn::LoadU(P::kD, sums + v * P::kLanes)), P::kD, sums + v * P::kLanes);
      std::copy_n(sums, columns, y.data + column);
    }
  });
  const std::int64_t columns = std::min(last * kPanel, b.n) - first * kPanel;
  if (!store.complete()) activate_rows(y.activation, y.data + first * kPanel, 1, 0, columns);
}

}  // namespace
}  // namespace bantam::ops::gemm::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bantam::ops::gemm {

HWY_EXPORT(widen_target);
HWY_EXPORT(multiply_row_target);

namespace {

/// Panels [first, last), of f32.
RightPanels wide_panels(const NarrowPanels& b, std::int64_t first, std::int64_t last) {
  return {
      .data = reinterpret_cast<const float*>(b.data), .n = b.n, .first = first, .last = last, .backward = b.backward};
}

/// Calls f(first, last) for ranges of panels that meet so many rows; each is work of about ten microseconds, so that
/// small products do not wake other threads.
template <typename F>
void share_panels(const Threads& threads, std::int64_t rows, const NarrowPanels& b, PanelRange panels, F f) {
  const std::int64_t work = std::max<std::int64_t>(kPanel * b.k * rows, 1);
  parallel_ranges(threads, panels.last - panels.first, std::max<std::int64_t>(100'000 / work, 4),
                  [&](std::int64_t first, std::int64_t last) { f(panels.first + first, panels.first + last); });
}

/// The columns of panels [first, last) of multiply_rows.
void multiply_part(const float* a, std::int64_t rows, const NarrowPanels& b, std::int64_t first, std::int64_t last,
                   const Result& y) {
  if (b.type == ElementType::kF32)
    return multiply({.data = a, .rows = rows, .row_stride = b.k, .length = b.k}, wide_panels(b, first, last), y);
  if (rows == 1 || b.k == 0) {
    for (std::int64_t m = 0; m < rows; ++m) {
      Result row = y;
      row.data += m * y.row_stride;
      multiply_row(a + m * b.k, b, first, last, row);
    }
    return;
  }
  constexpr std::int64_t kFloats = 64 * kPanel;
  HWY_ALIGN float wide[kFloats];
  for_each_widened(b, first, last, {wide, kFloats, b.k},
                   [&](const RightPanels& right, std::int64_t column, std::int64_t first_k, std::int64_t count) {
                     multiply({.data = a + first_k, .rows = rows, .row_stride = b.k, .length = count}, right,
                              part_of(y, column, first_k, first_k + count == b.k));
                   });
}

}  // namespace

void widen(const NarrowPanels& panels, std::int64_t first, std::int64_t last, std::int64_t first_k, std::int64_t count,
           float* wide) {
  HWY_DYNAMIC_DISPATCH(widen_target)(panels, first, last, first_k, count, wide);
}

void multiply_row(const float* a, const NarrowPanels& b, std::int64_t first, std::int64_t last, const Result& y) {
  HWY_DYNAMIC_DISPATCH(multiply_row_target)(a, b, first, last, y);
}

void multiply_rows(const Threads& threads, const float* a, std::int64_t rows, const NarrowPanels& b, PanelRange panels,
                   const float* bias, float* y) {
  share_panels(threads, rows, b, panels, [&](std::int64_t first, std::int64_t last) {
    multiply_part(a, rows, b, first, last, {.data = y, .row_stride = b.n, .bias = bias});
  });
}

void add_rows(const Threads& threads, const float* a, std::int64_t rows, const NarrowPanels& b, PanelRange panels,
              float* y, std::int64_t stride) {
  share_panels(threads, rows, b, panels, [&](std::int64_t first, std::int64_t last) {
    if (rows > 1 && b.type == ElementType::kF32)
      return multiply({.data = a, .rows = rows, .row_stride = b.k, .length = b.k}, wide_panels(b, first, last),
                      {.data = y, .row_stride = stride, .resumes = true});
    for (std::int64_t m = 0; m < rows; ++m)
      multiply_part(a + m * b.k, 1, b, first, last, {.data = y + m * stride, .bias = y + m * stride});
  });
}

}  // namespace bantam::ops::gemm
#endif
