// What becomes of the sums of a tile in gemm_i8.h: how each target scales and stores those of most results. Included by
// gemm_i8_simd.cpp inside Highway's per-target compilation.
#if defined(BANTAM_OPS_GEMM_I8_ENDS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BANTAM_OPS_GEMM_I8_ENDS_INL_H_
#undef BANTAM_OPS_GEMM_I8_ENDS_INL_H_
#else
#define BANTAM_OPS_GEMM_I8_ENDS_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <new>
#include <type_traits>

#include "hwy/highway.h"
#include "ops/common/activate_rows.h"
#include "ops/common/activation_steps_simd-inl.h"
#include "ops/common/affine_simd-inl.h"
#include "ops/common/byte_rows_avx2-inl.h"
#include "ops/common/byte_rows_avx512-inl.h"
#include "ops/common/requantize_simd-inl.h"
#include "ops/common/short_copy.h"
#include "ops/nn/gemm/gemm_i8_finish-inl.h"
#include "ops/nn/gemm/gemm_i8_number_end-inl.h"
#include "ops/nn/gemm/gemm_i8_tiles-inl.h"
#include "ops/nn/gemm/store_neon-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::gemm::HWY_NAMESPACE {
namespace {

using ops::HWY_NAMESPACE::has_short_steps;
using ops::HWY_NAMESPACE::with_short_steps;

#if HWY_TARGET == HWY_AVX2 && HWY_ARCH_X86
/// finish_tile of bytes, several rows at a time, by what is made once for many rows.
/// Scale: the last stage of a vector of channels, made of a Scaler.
template <typename Result, class Scale>
class PanelEnd {
 public:
  template <class Scaler>
  HWY_INLINE PanelEnd(const Result& y, const Scaler& scaler, std::uint8_t flip, const ColumnZeros& zeros,
                      std::int64_t first, std::int64_t columns)
      : plain_(y, first, columns),
        columns_(columns),
        zeros_(zeros),
        activated_(activated_scaler(scaler)),
        y_(reinterpret_cast<std::uint8_t*>(y.data) + first),
        row_stride_(y.row_stride),
        low_(kD32, scaler, first, std::min<std::int64_t>(columns, kLanes)),
        high_(kD32, scaler, first + kLanes, std::max<std::int64_t>(columns - kLanes, 0)),
        bytes_(scaler.zero_point, scaler.minimum, scaler.maximum, flip) {}

  HWY_INLINE void operator()(Sums& sums, std::int64_t m, std::int64_t rows, const std::int32_t* row_sums) const {
    if (columns_ < kColumns || zeros_.any() || activated_ != nullptr) return plain_(sums, m, rows, row_sums);
    const std::int32_t* from = sums.at;
    std::uint8_t* y = y_ + m * row_stride_;
    for (; rows >= 2; rows -= 2, from += 2 * kPanel, y += 2 * row_stride_)
      store_rows(load_row(from), load_row(from + kPanel), y, y + row_stride_);
    if (rows > 0) store_rows(load_row(from), load_row(from), y, y);
  }

  /// Vectors of columns of whole tiles, which are stored from registers.
  int vectors() const { return vectors_of(columns_); }

  /// What the sums of such tiles begin with, one number per column: `start` and the bias.
  HWY_INLINE void add_bias(const std::int32_t* start, std::int32_t* to) const {
    low_.add_bias(hn::Load(kD32, start), to);
    high_.add_bias(hn::Load(kD32, start + kLanes), to + kLanes);
  }

  /// Calls f of what stores them, from row m on, whose sums come first in `row_sums`.
  template <class F>
  HWY_INLINE void with_tiles(std::int64_t m, const std::int32_t* row_sums, F f) const {
    if (!is_usual()) return f(Tiles(*this, Scaled(), m, row_sums));
    if (activated_ == nullptr) return f(Tiles(*this, Rounded(), m, row_sums));
    if constexpr (kActivates) {
      const auto store_short = [&](const auto& steps) HWY_ATTR { f(Tiles(*this, Activated(steps), m, row_sums)); };
      if (!with_short_steps(*activated_, store_short)) f(Tiles(*this, Scaled(), m, row_sums));
    }
  }

 private:
  static constexpr bool kActivates = std::is_same_v<Scale, AffineVector<D32>>;

  /// Makes numbers of sums, which only lack what bytes_ does.
  struct Scaled {
    template <int kTileRows, int kTileVectors>
    HWY_INLINE void operator()(const PanelEnd& end, hn::Vec<D32> (&sum)[kTileRows][kTileVectors]) const {
      if constexpr (kActivates) {
        if (end.activated_ != nullptr) return end.activate(sum);
      }
      end.template round_as<false>(sum);
    }
  };

  /// The same without an activation, if all scales are usual.
  struct Rounded {
    template <int kTileRows, int kTileVectors>
    HWY_INLINE void operator()(const PanelEnd& end, hn::Vec<D32> (&sum)[kTileRows][kTileVectors]) const {
      end.template round_as<true>(sum);
    }
  };

  /// The same with an activation, if all scales are usual; Steps: of with_short_steps.
  template <class Steps>
  struct Activated {
    const Steps& steps;

    HWY_INLINE explicit Activated(const Steps& from) : steps(from) {}
    template <int kTileRows, int kTileVectors>
    HWY_INLINE void operator()(const PanelEnd& end, hn::Vec<D32> (&sum)[kTileRows][kTileVectors]) const {
      unroll<kTileRows>([&](auto r) __attribute__((always_inline)) HWY_ATTR {
        unroll<kTileVectors>([&](auto v) __attribute__((always_inline)) HWY_ATTR {
          sum[r][v] = (v == 0 ? end.low_ : end.high_).template activated<true>(steps, sum[r][v]);
        });
      });
    }
  };

  template <class Number>
  class Tiles {
   public:
    Tiles(const PanelEnd& end, const Number& make, std::int64_t m, const std::int32_t* row_sums)
        : end_(end), make_(make), y_(end.y_ + m * end.row_stride_), row_sums_(row_sums) {}

    template <int kTileRows, int kTileVectors>
    HWY_INLINE void operator()(hn::Vec<D32> (&sum)[kTileRows][kTileVectors], std::int64_t tile) const {
      const std::int64_t stride = end_.row_stride_;
      std::uint8_t* y = y_ + tile * kTileRows * stride;
      end_.zeros_.subtract(row_sums_, tile * kTileRows, sum);
      make_(end_, sum);
      constexpr std::int64_t kWhole = kTileVectors * kLanes;
      std::uint8_t whole[kTileRows * kWhole];
      const bool fits = end_.columns_ == kWhole;
      std::uint8_t* to = fits ? y : whole;
      const std::int64_t step = fits ? stride : kWhole;
      end_.bytes_.is_plain() ? store<true>(sum, to, step) : store<false>(sum, to, step);
      if (fits) return;
      for (int r = 0; r < kTileRows; ++r) copy_short(whole + r * kWhole, end_.columns_, y + r * stride);
    }

   private:
    /// All columns of the vectors.
    template <bool kPlain, int kTileRows, int kTileVectors>
    HWY_INLINE void store(const hn::Vec<D32> (&sum)[kTileRows][kTileVectors], std::uint8_t* y,
                          std::int64_t stride) const {
      // A copy, which nobody else has: bytes that are stored might change the member.
      const ByteRows bytes = end_.bytes_;
      if constexpr (kTileVectors == kVectors) {
        static_assert(kTileRows % 2 == 0);
        unroll<kTileRows / 2>([&](auto i) __attribute__((always_inline)) HWY_ATTR {
          constexpr int r = 2 * i;
          bytes.template store<kPlain>(sum[r][0], sum[r][1], sum[r + 1][0], sum[r + 1][1], y + r * stride,
                                       y + (r + 1) * stride);
        });
      } else {
        unroll<(kTileRows + 3) / 4>([&](auto i) __attribute__((always_inline)) HWY_ATTR {
          constexpr int r = std::min(4 * i, kTileRows - 4);
          bytes.template store_halves<kPlain>(sum[r][0], sum[r + 1][0], sum[r + 2][0], sum[r + 3][0], y + r * stride,
                                              stride);
        });
      }
    }

    const PanelEnd& end_;
    const Number& make_;
    std::uint8_t* y_;
    const std::int32_t* row_sums_;
  };

  struct Row {
    hn::Vec<D32> low;
    hn::Vec<D32> high;
  };

  using ByteRows = ops::HWY_NAMESPACE::ByteRows;

  HWY_INLINE Row load_row(const std::int32_t* from) const {
    const auto row = [&](auto usual) HWY_ATTR {
      return Row{low_.template rounded<usual>(hn::Load(kD32, from)),
                 high_.template rounded<usual>(hn::Load(kD32, from + kLanes))};
    };
    return is_usual() ? row(std::true_type()) : row(std::false_type());
  }

  bool is_usual() const { return low_.is_usual() && high_.is_usual(); }

  template <bool kUsual, int kTileRows, int kTileVectors>
  HWY_INLINE void round_as(hn::Vec<D32> (&sum)[kTileRows][kTileVectors]) const {
    unroll<kTileRows>([&](auto r) HWY_ATTR {
      unroll<kTileVectors>(
          [&](auto v) HWY_ATTR { sum[r][v] = (v == 0 ? low_ : high_).template rounded_total<kUsual>(sum[r][v]); });
    });
  }
  template <int kTileRows, int kTileVectors>
  HWY_NOINLINE void activate(hn::Vec<D32> (&sum)[kTileRows][kTileVectors]) const {
    HWY_ALIGN std::int32_t numbers[kTileRows * kTileVectors * kLanes];
    unroll<kTileRows>([&](auto r) HWY_ATTR {
      unroll<kTileVectors>([&](auto v) HWY_ATTR {
        const auto argument = (v == 0 ? low_ : high_).argument(sum[r][v]);
        hn::Store(hn::BitCast(kD32, argument), kD32, numbers + (r * kTileVectors + v) * kLanes);
      });
    });
    round_activated(*activated_, numbers, kTileRows * kTileVectors * kLanes);
    unroll<kTileRows>([&](auto r) HWY_ATTR {
      unroll<kTileVectors>([&](auto v)
                               HWY_ATTR { sum[r][v] = hn::Load(kD32, numbers + (r * kTileVectors + v) * kLanes); });
    });
  }

  HWY_INLINE void store_rows(Row a, Row b, std::uint8_t* to_a, std::uint8_t* to_b) const {
    bytes_.store(a.low, a.high, b.low, b.high, to_a, to_b);
  }

  TileEnd<Result> plain_;
  std::int64_t columns_;
  ColumnZeros zeros_;
  const AffineScaler* activated_;  ///< not null: results have an activation
  std::uint8_t* y_;
  std::int64_t row_stride_;
  Scale low_;
  Scale high_;
  ops::HWY_NAMESPACE::ByteRows bytes_;
};

class Int8End : public PanelEnd<Int8Result, RequantizeVector<D32>> {
 public:
  HWY_INLINE Int8End(const Int8Result& y, std::int64_t first, std::int64_t columns)
      : PanelEnd(y, y.requantize, 0, {}, first, columns) {}
};

class AffineEnd : public PanelEnd<AffineResult<std::uint8_t>, AffineVector<D32>> {
 public:
  HWY_INLINE AffineEnd(const AffineResult<std::uint8_t>& y, std::int64_t first, std::int64_t columns)
      : PanelEnd(y, y.scaler, y.scaler.flip, ColumnZeros(y.zero_points, first, columns), first, columns) {}
};

#elif HWY_TARGET == HWY_AVX3_DL && HWY_ARCH_X86
/// finish_tile of bytes, several rows at a time, by what is made once for many rows.
/// Scale: the last stage of a vector of channels, made of a Scaler.
template <class Scale>
class PanelEnd {
 public:
  template <class Scaler>
  HWY_INLINE PanelEnd(const Scaler& scaler, std::uint8_t flip, const ZeroPoints& zeros, void* y,
                      std::int64_t row_stride, std::int64_t first, std::int64_t columns)
      : bias_(scaler.bias != nullptr ? scaler.bias + first : nullptr),
        columns_(columns),
        zeros_(zeros, first, columns),
        activated_(activated_scaler(scaler)),
        y_(static_cast<std::uint8_t*>(y) + first),
        row_stride_(row_stride),
        bytes_(scaler.zero_point, scaler.minimum, scaler.maximum, flip, columns) {
    for (int v = 0; v < vector_count(); ++v) {
      const std::int64_t lanes = std::min<std::int64_t>(columns - v * kLanes, kLanes);
      new (&scales_[v]) Scale(kD32, scaler, first + v * kLanes, lanes);
    }
  }
  /// Sums that are given to this from now on begin with what it makes of `start`; or, if that is null, with nothing.
  HWY_INLINE void begin(std::int32_t* start) {
    has_start_ = start != nullptr;
    if (!has_start_ || bias_ == nullptr) return;
    for (std::int64_t c = 0; c < columns_; c += kLanes) {
      const auto bias = load_channels(kD32, bias_ + c, std::min<std::int64_t>(columns_ - c, kLanes));
      hn::Store(hn::Add(hn::Load(kD32, start + c), bias), kD32, start + c);
    }
  }

  HWY_INLINE void operator()(Sums& sums, std::int64_t m, std::int64_t rows, const std::int32_t* /*row_sums*/) const {
    std::uint8_t* y = y_ + m * row_stride_;
    if (activated_ != nullptr) return store_activated(sums, rows, y);
    if (!has_start_) return store(Rounded<false, false>(), sums.at, kMostColumns, rows, y);
    is_usual() ? store(Rounded<true, true>(), sums.at, kMostColumns, rows, y)
               : store(Rounded<true, false>(), sums.at, kMostColumns, rows, y);
  }

  /// Have columns zero points?
  bool has_zeros() const { return zeros_.any(); }

  /// Vectors of columns of whole tiles, which are stored from registers; 0 where they cannot be.
  int vectors() const {
    const bool is_short = activated_ == nullptr || has_short_steps(*activated_);
    return has_start_ && is_short && is_usual() ? vector_count() : 0;
  }

  /// Calls f of what stores them, from row m on, whose sums come first in `row_sums`.
  template <class F>
  HWY_INLINE void with_tiles(std::int64_t m, const std::int32_t* row_sums, F f) const {
    std::uint8_t* y = y_ + m * row_stride_;
    if (activated_ == nullptr) return f(Tiles(*this, Rounded<true, true>(), y, row_sums));
    if constexpr (kActivates)
      with_short_steps(*activated_,
                       [&](const auto& steps) HWY_ATTR { f(Tiles(*this, Activated(steps), y, row_sums)); });
  }

 private:
  using ByteRows = ops::HWY_NAMESPACE::ByteRows;
  using V = hn::Vec<D32>;
  static constexpr bool kActivates = std::is_same_v<Scale, AffineVector<D32>>;
  template <int i>
  static constexpr std::integral_constant<int, i> kIndex{};

  /// Makes numbers of sums. kTotals: these have their bias.
  template <bool kTotals, bool kUsual>
  struct Rounded {
    HWY_INLINE V operator()(const Scale& scale, V sum) const {
      return kTotals ? scale.template rounded_total<kUsual>(sum) : scale.template rounded<kUsual>(sum);
    }
  };

  /// The same with an activation, if all scales are usual; Steps: of with_short_steps.
  template <class Steps>
  struct Activated {
    const Steps& steps;

    HWY_INLINE explicit Activated(const Steps& from) : steps(from) {}
    HWY_INLINE V operator()(const Scale& scale, V sum) const { return scale.template activated<true>(steps, sum); }
  };

  /// Of numbers.
  struct Same {
    HWY_INLINE V operator()(const Scale& /*scale*/, V number) const { return number; }
  };

  /// Stores whole tiles, the first row at y. Number: Rounded or Activated.
  template <class Number>
  class Tiles {
   public:
    HWY_INLINE Tiles(const PanelEnd& end, const Number& make, std::uint8_t* y, const std::int32_t* row_sums)
        : end_(end), make_(make), y_(y), row_sums_(row_sums) {}

    template <int kTileRows, int kTileVectors>
    HWY_INLINE void operator()(V (&sum)[kTileRows][kTileVectors], std::int64_t tile) const {
      std::uint8_t* y = y_ + tile * kTileRows * end_.row_stride_;
      end_.zeros_.subtract(row_sums_, tile * kTileRows, sum);
      unroll<kTileVectors>([&](auto v) __attribute__((always_inline)) HWY_ATTR {
        unroll<kTileRows>([&](auto r) __attribute__((always_inline))
                          HWY_ATTR { sum[r][v] = make_(end_.scales_[v], sum[r][v]); });
      });
      end_.bytes_.is_plain() ? store<true>(sum, y) : store<false>(sum, y);
    }

   private:
    /// Numbers of a whole tile. In line by request: a call would put all sums into memory.
    template <bool kPlain, int kTileRows, int kTileVectors>
    HWY_INLINE void store(const V (&sum)[kTileRows][kTileVectors], std::uint8_t* y) const {
      // Copies, which nobody else has: bytes that are stored might change the members.
      const ByteRows bytes = end_.bytes_;
      const std::int64_t stride = end_.row_stride_;
      if constexpr (kTileVectors > 2) {
        unroll<kTileRows>([&](auto r) __attribute__((always_inline)) HWY_ATTR {
          bytes.template store<kPlain>(sum[r][0], sum[r][1], sum[r][2], sum[r][kTileVectors - 1], y + r * stride);
        });
      } else if constexpr (kTileVectors == 2) {
        static_assert(kTileRows % 2 == 0);
        unroll<kTileRows / 2>([&](auto i) __attribute__((always_inline)) HWY_ATTR {
          constexpr int r = 2 * i;
          bytes.template store<kPlain>(sum[r][0], sum[r][1], sum[r + 1][0], sum[r + 1][1], y + r * stride,
                                       y + (r + 1) * stride);
        });
      } else {
        static_assert(kTileRows % 4 == 0);
        unroll<kTileRows / 4>([&](auto i) __attribute__((always_inline)) HWY_ATTR {
          constexpr int r = 4 * i;
          bytes.template store_halves<kPlain>(sum[r][0], sum[r + 1][0], sum[r + 2][0], sum[r + 3][0], y + r * stride,
                                              stride);
        });
      }
    }

    const PanelEnd& end_;
    const Number& make_;
    std::uint8_t* y_;
    const std::int32_t* row_sums_;
  };

  int vector_count() const { return vectors_of(columns_); }

  bool is_usual() const {
    return std::all_of(scales_, scales_ + vector_count(), [](const Scale& scale) { return scale.is_usual(); });
  }

  HWY_NOINLINE void store_activated(Sums& sums, std::int64_t rows, std::uint8_t* y) const {
    if constexpr (kActivates) {
      const auto store_short = [&](const auto& steps)
                                   HWY_ATTR { store(Activated(steps), sums.at, kMostColumns, rows, y); };
      if (is_usual() && with_short_steps(*activated_, store_short)) return;
      const int vectors = vector_count();
      std::int32_t* to = sums.at;
      for (const std::int32_t* at = sums.at; at != sums.at + rows * kMostColumns; at += kMostColumns)
        for (int v = 0; v < vectors; ++v, to += kLanes)
          hn::Store(hn::BitCast(kD32, scales_[v].argument(hn::Load(kD32, at + v * kLanes))), kD32, to);
      round_activated(*activated_, sums.at, to - sums.at);
      store(Same(), sums.at, vectors * kLanes, rows, y);
    }
  }

  /// Rows of sums, each `step` behind the one before. make: Rounded, Activated or Same.
  template <class Number>
  HWY_INLINE void store(const Number& make, const std::int32_t* from, std::int64_t step, std::int64_t rows,
                        std::uint8_t* y) const {
    const std::int64_t stride = row_stride_;
    // Copies, which nobody else has: bytes that are stored might change the members.
    const ByteRows bytes = bytes_;
    const Scale first = scales_[0];
    if (columns_ > kColumns) {
      const int last = vector_count() - 1;
      const Scale second = scales_[1];
      const Scale third = scales_[2];
      const Scale fourth = scales_[last];
      for (; rows > 0; --rows, from += step, y += stride)
        bytes.store(make(first, hn::Load(kD32, from)), make(second, hn::Load(kD32, from + kLanes)),
                    make(third, hn::Load(kD32, from + 2 * kLanes)), make(fourth, hn::Load(kD32, from + last * kLanes)),
                    y);
      return;
    }
    if (columns_ > kLanes) {
      const Scale second = scales_[1];
      for (; rows >= 2; rows -= 2, from += 2 * step, y += 2 * stride)
        bytes.store(make(first, hn::Load(kD32, from)), make(second, hn::Load(kD32, from + kLanes)),
                    make(first, hn::Load(kD32, from + step)), make(second, hn::Load(kD32, from + step + kLanes)), y,
                    y + stride);
      if (rows == 0) return;
      const V low = make(first, hn::Load(kD32, from));
      const V high = make(second, hn::Load(kD32, from + kLanes));
      return bytes.store(low, high, low, high, y, y);
    }
    for (; rows >= 4; rows -= 4, from += 4 * step, y += 4 * stride)
      bytes.store_halves(make(first, hn::Load(kD32, from)), make(first, hn::Load(kD32, from + step)),
                         make(first, hn::Load(kD32, from + 2 * step)), make(first, hn::Load(kD32, from + 3 * step)), y,
                         stride);
    for (; rows > 0; --rows, from += step, y += stride) {
      const V number = make(first, hn::Load(kD32, from));
      bytes.store(number, number, number, number, y, y);
    }
  }

  const std::int32_t* bias_;  ///< of the first column; null: none
  std::int64_t columns_;
  ColumnZeros zeros_;
  const AffineScaler* activated_;  ///< not null: results have an activation
  std::uint8_t* y_;
  std::int64_t row_stride_;
  bool has_start_ = false;  ///< sums begin with what begin() made of their start
  /// Of the vectors of columns that there are: to make others would take as long as some tiles do.
  union {
    Scale scales_[kMostVectors];
  };
  ByteRows bytes_;
};

class Int8End : public PanelEnd<RequantizeVector<D32>> {
 public:
  HWY_INLINE Int8End(const Int8Result& y, std::int64_t first, std::int64_t columns)
      : PanelEnd(y.requantize, 0, {}, y.data, y.row_stride, first, columns) {}
};

class AffineEnd : public PanelEnd<AffineVector<D32>> {
 public:
  HWY_INLINE AffineEnd(const AffineResult<std::uint8_t>& y, std::int64_t first, std::int64_t columns)
      : PanelEnd(y.scaler, y.scaler.flip, y.zero_points, y.data, y.row_stride, first, columns),
        y_(y),
        first_(first),
        columns_(columns) {}

  HWY_INLINE void operator()(Sums& sums, std::int64_t m, std::int64_t rows, const std::int32_t* row_sums) const {
    if (has_zeros()) subtract_row_sums(y_, rows, first_, columns_, row_sums, sums);
    PanelEnd::operator()(sums, m, rows, row_sums);
  }

 private:
  const AffineResult<std::uint8_t>& y_;
  std::int64_t first_;
  std::int64_t columns_;
};

#elif HWY_ARCH_ARM_A64
/// finish_tile of bytes by what is made once for many rows.
template <typename Result, class Scaler>
class PanelEnd {
 public:
  PanelEnd(const Result& y, const Scaler& scaler, std::uint8_t flip, bool is_plain, std::int64_t first,
           std::int64_t columns)
      : plain_(y, first, columns),
        is_plain_(is_plain),
        y_(reinterpret_cast<std::uint8_t*>(y.data) + first),
        row_stride_(y.row_stride),
        store_(scaler, first, columns, flip) {}

  /// Sums that are given to this from now on begin with what it makes of `start`; or, if that is null, with nothing.
  void begin(std::int32_t* start) {
    is_plain_ = is_plain_ || start == nullptr;
    if (!is_plain_) store_.add_bias(start);
  }

  void operator()(Sums& sums, std::int64_t m, std::int64_t rows, const std::int32_t* row_sums) const {
    if (is_plain_) return plain_(sums, m, rows, row_sums);
    store_.store(sums.at, rows, y_ + m * row_stride_, row_stride_);
  }

 private:
  TileEnd<Result> plain_;
  bool is_plain_;
  std::uint8_t* y_;
  std::int64_t row_stride_;
  PanelStore<Scaler> store_;
};

class Int8End : public PanelEnd<Int8Result, Requantizer> {
 public:
  Int8End(const Int8Result& y, std::int64_t first, std::int64_t columns)
      : PanelEnd(y, y.requantize, 0, false, first, columns) {}
};

class AffineEnd : public PanelEnd<AffineResult<std::uint8_t>, AffineScaler> {
 public:
  AffineEnd(const AffineResult<std::uint8_t>& y, std::int64_t first, std::int64_t columns)
      : PanelEnd(y, y.scaler, y.scaler.flip, !y.zero_points.are_zero(first, columns), first, columns) {}
};

#endif

#if HWY_ARCH_ARM_A64 || (HWY_ARCH_X86 && (HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3_DL))
template <>
struct TileEndType<Int8Result> {
  using Type = Int8End;
};
template <>
struct TileEndType<AffineResult<std::uint8_t>> {
  using Type = AffineEnd;
};
#endif

template <typename Result>
using TileEndOf = typename TileEndType<Result>::Type;

}  // namespace
}  // namespace bantam::ops::gemm::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
