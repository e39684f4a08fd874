// The sums of convolutions with few outputs (few_outputs.h). Vectors run over the channels and the taps of a row that
// touch, several pixels share the weights that were loaded, and the vectors of four sums are added up together. Bytes
// are multiplied by quads where the processor does that (VNNI, Arm's dot products), else by pairs of 16 bits, and as
// they lie: what their zero point adds is taken from what sums begin with. Included by few_outputs_simd.cpp inside
// Highway's per-target compilation.
#if defined(BANTAM_OPS_FEW_OUTPUTS_SUMS_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BANTAM_OPS_FEW_OUTPUTS_SUMS_SIMD_INL_H_
#undef BANTAM_OPS_FEW_OUTPUTS_SUMS_SIMD_INL_H_
#else
#define BANTAM_OPS_FEW_OUTPUTS_SUMS_SIMD_INL_H_
#endif

#include <algorithm>
#include <bit>
#include <cstdint>

#include "hwy/highway.h"
#include "ops/common/quad_products_simd-inl.h"
#include "ops/nn/conv2d/few_outputs_operands.h"
#include "ops/nn/gemm/unroll-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::conv2d::few_outputs::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using ops::HWY_NAMESPACE::unroll;

/// Sums that stay in registers beside the weights of all outputs, where each sum is one vector.
#if HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86
inline constexpr std::size_t kRegisterSums = 24;
#elif HWY_ARCH_ARM_A64
inline constexpr std::size_t kRegisterSums = 16;
#else
inline constexpr std::size_t kRegisterSums = 8;
#endif

/// How f32 operands are read, multiplied and summed. Narrow: the same in vectors that windows at the edges fill.
/// Wrapping: in what single numbers are summed, which like vectors must not care for overflow.
class FloatNumbers {
 public:
  using Narrow = FloatNumbers;
  using D = hn::CappedTag<float, kVector>;
  using Sums = D;
  using Total = float;
  using Wrapping = float;
  using V = hn::Vec<D>;
  static constexpr bool kHasZero = false;
  static constexpr std::size_t kSums = kRegisterSums;

  explicit FloatNumbers(const FloatOperands& /*o*/) {}
  HWY_INLINE V pixel(const float* x) const { return hn::LoadU(D(), x); }
  HWY_INLINE V weight(const float* w) const { return hn::LoadU(D(), w); }
  float pixel_number(float x) const { return x; }
  float weight_number(float w) const { return w; }
  static HWY_INLINE V add(V x, V w, V sum, V& /*rest*/) { return hn::MulAdd(x, w, sum); }
  static HWY_INLINE V finish(V sum, V /*rest*/) { return sum; }
};

#if HWY_TARGET == HWY_AVX3_DL || HWY_TARGET == HWY_AVX2 || HWY_ARCH_ARM_A64
/// The same of bytes, by quads, kBytes of them in a vector or as many as it has.
template <std::size_t kBytes>
class QuadNumbers {
 public:
  using Narrow = QuadNumbers<kVector>;
  using D = hn::CappedTag<std::uint8_t, kBytes>;
  using Sums = hn::Repartition<std::int32_t, D>;
  using Total = std::int32_t;
  using Wrapping = std::uint32_t;
  using V = hn::Vec<D>;
  using Sum = hn::Vec<Sums>;
  static constexpr bool kHasZero = true;
  static constexpr std::size_t kSums = kRegisterSums;

  explicit QuadNumbers(const ByteOperands& o)
      : flip_(o.form.flip ^ kSigned), zero_(o.form.zero - kSigned), weight_flip_(o.flip) {}

  /// What stands for zero among the numbers of pixels.
  std::int32_t zero() const { return zero_; }
  HWY_INLINE V pixel(const std::uint8_t* x) const { return hn::Xor(hn::LoadU(D(), x), hn::Set(D(), flip_)); }
  HWY_INLINE V weight(const std::uint8_t* w) const { return hn::Xor(hn::LoadU(D(), w), hn::Set(D(), weight_flip_)); }
  static HWY_INLINE V ones() { return hn::Set(D(), 1); }
  std::int32_t pixel_number(std::uint8_t x) const { return static_cast<std::uint8_t>(x ^ flip_ ^ kSigned) - kSigned; }
  std::int32_t weight_number(std::uint8_t w) const { return static_cast<std::int8_t>(w ^ weight_flip_); }
  static HWY_INLINE Sum add(V x, V w, Sum sum, Sum& /*rest*/) {
    return ops::HWY_NAMESPACE::add_quad_products(sum, hn::BitCast(Sums(), x), hn::BitCast(Sums(), w));
  }
  static HWY_INLINE Sum finish(Sum sum, Sum /*rest*/) { return sum; }

 private:
  /// Arm multiplies signed bytes by signed ones, x86-64 unsigned ones by signed ones.
  static constexpr std::uint8_t kSigned = HWY_ARCH_ARM_A64 ? 0x80 : 0;

  std::uint8_t flip_;
  std::int32_t zero_;
  std::uint8_t weight_flip_;
};
#endif

#if HWY_TARGET != HWY_AVX3_DL
/// The same of bytes in pairs of 16 bits. kFlips: are bits of bytes inverted?
template <bool kFlips>
class PairNumbers {
 public:
  using Narrow = PairNumbers;
  using D = hn::CappedTag<std::int16_t, kVector>;
  using Sums = hn::RepartitionToWide<D>;
  using Total = std::int32_t;
  using Wrapping = std::uint32_t;
  using V = hn::Vec<D>;
  using Sum = hn::Vec<Sums>;
  static constexpr bool kHasZero = true;
  static constexpr std::size_t kSums = 8;

  explicit PairNumbers(const ByteOperands& o) : flip_(o.form.flip), zero_(o.form.zero), weight_flip_(o.flip) {}

  std::int32_t zero() const { return zero_; }
  HWY_INLINE V pixel(const std::uint8_t* x) const { return hn::PromoteTo(D(), load(x, flip_)); }
  HWY_INLINE V weight(const std::uint8_t* w) const {
    return hn::PromoteTo(D(), hn::BitCast(hn::Rebind<std::int8_t, D>(), load(w, weight_flip_)));
  }
  static HWY_INLINE V ones() { return hn::Set(D(), 1); }
  std::int32_t pixel_number(std::uint8_t x) const { return static_cast<std::uint8_t>(x ^ flip_); }
  std::int32_t weight_number(std::uint8_t w) const { return static_cast<std::int8_t>(w ^ weight_flip_); }
  /// `rest`: see ReorderWidenMulAccumulate.
  static HWY_INLINE Sum add(V x, V w, Sum sum, Sum& rest) {
    return hn::ReorderWidenMulAccumulate(Sums(), x, w, sum, rest);
  }
  static HWY_INLINE Sum finish(Sum sum, Sum rest) { return hn::RearrangeToOddPlusEven(sum, rest); }

 private:
  static HWY_INLINE auto load(const std::uint8_t* from, std::uint8_t flip) {
    constexpr hn::Rebind<std::uint8_t, D> d8;
    const auto bytes = hn::LoadU(d8, from);
    if constexpr (kFlips) {
      return hn::Xor(bytes, hn::Set(d8, flip));
    } else {
      return bytes;
    }
  }

  std::uint8_t flip_;
  std::int32_t zero_;
  std::uint8_t weight_flip_;
};
#endif

/// Windows of ones: their sums are those of the weights.
template <class Numbers>
class OnesInPlaceOf : public Numbers {
 public:
  explicit OnesInPlaceOf(const Numbers& numbers) : Numbers(numbers) {}
  template <typename X>
  HWY_INLINE auto pixel(const X* /*x*/) const {
    return Numbers::ones();
  }
  template <typename X>
  auto pixel_number(X /*x*/) const {
    return typename Numbers::Total{1};
  }
};

/// Pixels, a power of two, whose sums of kOutputs each stay in registers beside the weights of all outputs.
template <class Numbers, int kOutputs>
constexpr int kShared = static_cast<int>(std::min<std::size_t>(std::bit_floor<std::size_t>(Numbers::kSums / kOutputs),
                                                               8));

/// Blocks of 128 bits added up, into one.
template <class D>
HWY_INLINE auto block_sum(D /*d*/, hn::Vec<D> v) {
  if constexpr (sizeof(hn::TFromD<D>) * hn::MaxLanes(D()) <= 16) {
    return v;
  } else {
    constexpr hn::Half<D> half;
    return block_sum(half, hn::Add(hn::UpperHalf(half, v), hn::LowerHalf(half, v)));
  }
}

/// The numbers of a and of b added up in pairs: a, b, a, b in each block.
template <class D>
HWY_INLINE hn::Vec<D> pair_sums(D d, hn::Vec<D> a, hn::Vec<D> b) {
  return hn::Add(hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b));
}

/// The numbers of each of kTotal vectors added up, and something up to a multiple of four.
template <int kTotal, class D>
HWY_INLINE void store_totals(D d, const hn::Vec<D> (&sums)[kTotal], hn::TFromD<D>* totals) {
  unroll<(kTotal + 3) / 4>([&](auto four) HWY_ATTR {
    constexpr int kA = 4 * four;
    constexpr int kB = std::min(kA + 1, kTotal - 1);
    constexpr int kC = std::min(kA + 2, kTotal - 1);
    constexpr int kD = std::min(kA + 3, kTotal - 1);
    const hn::Repartition<double, D> pairs;
    const auto low = hn::BitCast(pairs, pair_sums(d, sums[kA], sums[kB]));
    const auto high = hn::BitCast(pairs, pair_sums(d, sums[kC], sums[kD]));
    const auto both = hn::Add(hn::BitCast(d, hn::InterleaveLower(pairs, low, high)),
                              hn::BitCast(d, hn::InterleaveUpper(pairs, low, high)));
    hn::StoreU(block_sum(d, both), hn::CappedTag<hn::TFromD<D>, 4>(), totals + kA);
  });
}

/// What the sums of each output begin with, in the first number of a vector.
template <typename Total, int kOutputs>
struct Starts {
  static constexpr std::int64_t kStep = kVector;
  alignas(HWY_MAX_BYTES) Total numbers[kOutputs * kStep] = {};
};

/// The sums of kCount pixels, to totals[pixel][output] and up to three numbers behind them. Runs are no shorter than a
/// vector.
template <int kCount, int kOutputs, class Numbers, typename X, typename Total>
HWY_INLINE void window_sums(const Numbers& numbers, const Window<X>& window, const Starts<Total, kOutputs>& starts,
                            Total* totals) {
  using Sums = typename Numbers::Sums;
  constexpr typename Numbers::D d;
  constexpr auto kLanes = static_cast<std::int64_t>(hn::MaxLanes(d));
  hn::Vec<Sums> sums[kCount * kOutputs];
  hn::Vec<Sums> rests[kCount * kOutputs];
  unroll<kCount * kOutputs>([&](auto i) HWY_ATTR {
    sums[i] = hn::Load(Sums(), starts.numbers + i % kOutputs * starts.kStep);
    rests[i] = hn::Zero(Sums());
  });
  const std::int64_t whole = window.length / kLanes * kLanes;
  // The last vector of a run begins within the one before, where its numbers count no more.
  const std::int64_t last = window.length - kLanes;
  const auto counted = hn::FirstN(d, static_cast<std::size_t>(whole - last));
  const auto add = [&](const X* x, const X* w, auto part) __attribute__((always_inline)) HWY_ATTR {
    typename Numbers::V weights[kOutputs];
    unroll<kOutputs>([&](auto o) HWY_ATTR { weights[o] = part(numbers.weight(w + o * window.w_output_step)); });
    unroll<kCount>([&](auto i) HWY_ATTR {
      const auto pixel = part(numbers.pixel(x + i * window.pixel_step));
      unroll<kOutputs>([&](auto o) HWY_ATTR {
        constexpr int kSum = i * kOutputs + o;
        sums[kSum] = Numbers::add(pixel, weights[o], sums[kSum], rests[kSum]);
      });
    });
  };
  for (std::int64_t row = 0; row < window.rows; ++row) {
    const X* x = window.x + row * window.row_step;
    const X* w = window.w + row * window.w_row_step;
    for (std::int64_t run = 0; run < window.runs; ++run, x += window.run_step, w += window.length) {
      for (std::int64_t c = 0; c < whole; c += kLanes) add(x + c, w + c, [](auto v) HWY_ATTR { return v; });
      // Both, so that what is no number in an image does not become one of a sum.
      if (whole < window.length)
        add(x + last, w + last, [&](auto v) HWY_ATTR { return hn::IfThenZeroElse(counted, v); });
    }
  }
  // An array of its own, so that compilers keep the sums in registers until here.
  hn::Vec<Sums> finished[kCount * kOutputs];
  unroll<kCount * kOutputs>([&](auto i) HWY_ATTR { finished[i] = Numbers::finish(sums[i], rests[i]); });
  store_totals(Sums(), finished, totals);
}

/// The same of one pixel whose runs are shorter than a vector, as at the edges of the image.
template <int kOutputs, class Numbers, typename X, typename Total>
void short_window_sums(const Numbers& numbers, const Window<X>& window, const Starts<Total, kOutputs>& starts,
                       Total* totals) {
  for (int o = 0; o < kOutputs; ++o) {
    auto sum = static_cast<typename Numbers::Wrapping>(starts.numbers[o * starts.kStep]);
    for (std::int64_t row = 0; row < window.rows; ++row)
      for (std::int64_t run = 0; run < window.runs; ++run) {
        const X* x = window.x + row * window.row_step + run * window.run_step;
        const X* w = window.w + o * window.w_output_step + row * window.w_row_step + run * window.length;
        for (std::int64_t i = 0; i < window.length; ++i)
          sum += numbers.pixel_number(x[i]) * numbers.weight_number(w[i]);
      }
    totals[o] = static_cast<Total>(sum);
  }
}

/// The sums of pixels, row by row, for kOutputs outputs from `first` on.
template <int kOutputs, class Numbers, class Operands>
class WindowSummer {
 public:
  using Total = typename Numbers::Total;

  /// Numbers of `totals`, below, for `pixels` of them.
  static constexpr std::int64_t totals_of(std::int64_t pixels) { return pixels * kOutputs + 3; }

  WindowSummer(const Operands& o, std::int64_t first) : o_(o), w_(o.w + first * o.p.k), numbers_(o), narrow_(o) {
    const std::int64_t width = o.p.g.y.w;
    while (inside_.first < width && !is_inside(inside_.first)) ++inside_.first;
    inside_.last = width;
    while (inside_.last > inside_.first && !is_inside(inside_.last - 1)) --inside_.last;
  }

  /// Turns to a row of results.
  void set_row(std::int64_t n, std::int64_t oy) {
    const ConvGeometry& g = o_.p.g;
    const std::int64_t y0 = window_origin(g.vertical, oy);
    const TapRange rows = taps_inside(g.vertical, y0, 0, g.x.h);
    const std::int64_t channels = o_.p.group_inputs;
    row_.w_row_step = g.horizontal.kernel * channels;
    row_.w_output_step = o_.p.k;
    row_.x = o_.x + g.x.offset(n, std::max<std::int64_t>(y0 + std::int64_t{rows.first} * g.vertical.dilation, 0), 0);
    row_.row_step = g.vertical.dilation * g.x.h_stride;
    row_.run_step = g.horizontal.dilation * g.x.w_stride;
    row_.pixel_step = g.horizontal.stride * g.x.w_stride;
    const X* w = w_ + rows.first * row_.w_row_step;
    const bool other_rows = row_.w != w || row_.rows != rows.size();
    row_.w = w;
    row_.rows = std::max<std::int64_t>(rows.size(), 0);
    if (other_rows && inside_.first < inside_.last) starts_ = starts(window_at(inside_.first));
  }

  /// Of `count` of the row's pixels from `ox` on: totals[pixel][output].
  HWY_NOINLINE void operator()(std::int64_t ox, std::int64_t count, Total* totals) const {
    for (std::int64_t i = 0; i < count;)
      i += sum_some<kShared<Numbers, kOutputs>>(ox + i, count - i, totals + i * kOutputs);
  }

 private:
  using X = std::remove_cvref_t<decltype(*Operands::x)>;
  using Narrow = typename Numbers::Narrow;

  /// The sums of kCount of `left` pixels, of fewer at the edges of the image; returns how many.
  template <int kCount>
  HWY_INLINE std::int64_t sum_some(std::int64_t ox, std::int64_t left, Total* totals) const {
    if (left >= kCount && inside_.first <= ox && ox + kCount <= inside_.last) {
      window_sums<kCount>(numbers_, window_at(ox), starts_, totals);
      return kCount;
    }
    if constexpr (kCount > 1) return sum_some<kCount / 2>(ox, left, totals);
    sum_at_edge(ox, totals);
    return 1;
  }

  HWY_NOINLINE void sum_at_edge(std::int64_t ox, Total* totals) const {
    const Window<X> window = window_at(ox);
    sum_narrow(narrow_, window, starts(window), totals);
  }

  template <class N>
  static HWY_INLINE void sum_narrow(const N& numbers, const Window<X>& window, const Starts<Total, kOutputs>& starts,
                                    Total* totals) {
    if (window.length < static_cast<std::int64_t>(hn::MaxLanes(typename N::D())))
      return short_window_sums(numbers, window, starts, totals);
    window_sums<1>(numbers, window, starts, totals);
  }

  /// Without what a zero point adds to the sums of such a window.
  Starts<Total, kOutputs> starts(const Window<X>& window) const {
    Starts<Total, kOutputs> result;
    if constexpr (Numbers::kHasZero) {
      if (narrow_.zero() == 0) return result;
      Total weights[totals_of(1)];
      sum_narrow(OnesInPlaceOf<Narrow>(narrow_), window, {}, weights);
      const auto zero = static_cast<typename Numbers::Wrapping>(narrow_.zero());
      for (int o = 0; o < kOutputs; ++o) result.numbers[o * result.kStep] = static_cast<Total>(-zero * weights[o]);
    }
    return result;
  }

  TapRange columns_of(std::int64_t ox) const {
    const WindowAxis& axis = o_.p.g.horizontal;
    return taps_inside(axis, window_origin(axis, ox), 0, o_.p.g.x.w);
  }
  bool is_inside(std::int64_t ox) const { return columns_of(ox).size() == o_.p.g.horizontal.kernel; }

  /// The row's window at that pixel.
  HWY_INLINE Window<X> window_at(std::int64_t ox) const {
    const WindowAxis& axis = o_.p.g.horizontal;
    const bool whole = inside_.first <= ox && ox < inside_.last;
    const TapRange columns = whole ? TapRange{0, axis.kernel} : columns_of(ox);
    if (row_.rows <= 0 || columns.size() <= 0) return {};  // nothing but padding
    const std::int64_t channels = o_.p.group_inputs;
    Window<X> window = row_;
    window.x += (window_origin(axis, ox) + std::int64_t{columns.first} * axis.dilation) * o_.p.g.x.w_stride;
    window.w += columns.first * channels;
    window.runs = o_.p.taps_touch ? 1 : columns.size();
    window.length = o_.p.taps_touch ? columns.size() * channels : channels;
    return window;
  }

  struct Pixels {
    std::int64_t first = 0;
    std::int64_t last = 0;
  };

  const Operands& o_;
  const X* w_;
  Numbers numbers_;
  Narrow narrow_;
  Pixels inside_;                   ///< of a row, whose windows lose no column
  Window<X> row_{};                 ///< of a row, as if it began at the first column and ended there
  Starts<Total, kOutputs> starts_;  ///< of windows that lose no column
};

}  // namespace bantam::ops::conv2d::few_outputs::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
