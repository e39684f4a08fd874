#include <algorithm>
#include <bit>
#include <type_traits>

#include "ops/common/linear_form.h"
#include "ops/common/parallel.h"
#include "ops/nn/conv2d/few_outputs.h"

#ifndef BANTAM_FEW_OUTPUTS_OPERANDS_
#define BANTAM_FEW_OUTPUTS_OPERANDS_
namespace bantam::ops::conv2d::few_outputs {
namespace {

/// Pixels whose results are finished together.
constexpr std::int64_t kPixels = 8;

/// f32 results, of which `bias` may be null.
struct FloatResult {
  float* data;
  const float* bias;
  Activation activation;
};

struct FloatOperands {
  const Problem& p;
  const float* x;
  const float* w;
};

struct ByteOperands {
  const Problem& p;
  const std::uint8_t* x;
  const std::uint8_t* w;
  gemm::ByteForm form;
  std::uint8_t flip;
};

/// `count` numbers of channels, repeated for each of kPixels pixels; none, if there are none.
template <typename T>
struct Repeated {
  T numbers[kPixels * kMostOutputs] = {};

  Repeated(const T* from, std::int64_t count, bool per_channel = true) {
    for (std::int64_t i = 0; i < kPixels * count && from != nullptr; ++i)
      numbers[i] = from[per_channel ? i % count : 0];
  }
};

}  // namespace
}  // namespace bantam::ops::conv2d::few_outputs
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/nn/conv2d/few_outputs_simd.cpp"
#include "hwy/foreach_target.h"
// Highway wants the headers below after foreach_target.h.
#include "hwy/highway.h"
#include "ops/common/activate_rows.h"
#include "ops/common/affine_simd-inl.h"
#include "ops/common/requantize_simd-inl.h"
#include "ops/nn/gemm/unroll-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::conv2d::few_outputs::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using ops::HWY_NAMESPACE::AffineVector;
using ops::HWY_NAMESPACE::demote_to_bytes;
using ops::HWY_NAMESPACE::RequantizeVector;
using ops::HWY_NAMESPACE::unroll;

/// How f32 operands are read, multiplied and summed. kWholeRuns: are all runs of taps whole vectors? kSums: that stay
/// in registers.
class FloatNumbers {
 public:
  using D = hn::CappedTag<float, kVector>;
  using Sums = D;
  using V = hn::Vec<D>;
  static constexpr bool kWholeRuns = false;
#if HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86
  static constexpr std::size_t kSums = 24;
#else
  static constexpr std::size_t kSums = 8;
#endif

  explicit FloatNumbers(const FloatOperands& /*o*/) {}
  HWY_INLINE V pixel(const float* x) const { return hn::LoadU(D(), x); }
  HWY_INLINE V weight(const float* w) const { return hn::LoadU(D(), w); }
  static HWY_INLINE V add(V x, V w, V sum, V& /*rest*/) { return hn::MulAdd(x, w, sum); }
  static HWY_INLINE float total(V sum, V /*rest*/) { return hn::GetLane(hn::SumOfLanes(D(), sum)); }
};

/// The same of bytes, in pairs of 16 bits.
class ByteNumbers {
 public:
  using D = hn::CappedTag<std::int16_t, kVector>;
  using Sums = hn::RepartitionToWide<D>;
  using V = hn::Vec<D>;
  using Sum = hn::Vec<Sums>;
  static constexpr bool kWholeRuns = true;
  static constexpr std::size_t kSums = 8;

  explicit ByteNumbers(const ByteOperands& o) : flip_(o.form.flip), zero_(o.form.zero), weight_flip_(o.flip) {}
  HWY_INLINE V pixel(const std::uint8_t* x) const {
    const auto bytes = hn::Xor(hn::LoadU(kBytes, x), hn::Set(kBytes, flip_));
    return hn::Sub(hn::PromoteTo(D(), bytes), hn::Set(D(), static_cast<std::int16_t>(zero_)));
  }
  HWY_INLINE V weight(const std::uint8_t* w) const {
    const hn::Rebind<std::int8_t, D> d8;
    return hn::PromoteTo(D(), hn::BitCast(d8, hn::Xor(hn::LoadU(kBytes, w), hn::Set(kBytes, weight_flip_))));
  }
  /// `rest`: see ReorderWidenMulAccumulate.
  static HWY_INLINE Sum add(V x, V w, Sum sum, Sum& rest) {
    return hn::ReorderWidenMulAccumulate(Sums(), x, w, sum, rest);
  }
  static HWY_INLINE std::int32_t total(Sum sum, Sum rest) {
    return hn::GetLane(hn::SumOfLanes(Sums(), hn::RearrangeToOddPlusEven(sum, rest)));
  }

 private:
  static constexpr hn::Rebind<std::uint8_t, D> kBytes{};

  std::uint8_t flip_;
  std::int32_t zero_;
  std::uint8_t weight_flip_;
};

/// The taps of windows that lie inside the image, as runs of numbers.
template <typename X>
struct Window {
  const X* x;  ///< the first tap of the first pixel
  const X* w;
  std::int64_t rows;
  std::int64_t runs;  ///< of a row
  std::int64_t length;
  std::int64_t row_step;
  std::int64_t run_step;
  std::int64_t pixel_step;
  std::int64_t w_row_step;
  std::int64_t w_output_step;
};

/// Pixels, a power of two, whose sums of kOutputs each stay in registers beside the weights of all outputs.
template <class Numbers, int kOutputs>
constexpr int kShared = static_cast<int>(std::min<std::size_t>(std::bit_floor<std::size_t>(Numbers::kSums / kOutputs),
                                                               kPixels));

/// The sums of kCount pixels, to totals[pixel][output]. Runs are no shorter than a vector.
template <int kCount, int kOutputs, class Numbers, typename X, typename Total>
HWY_INLINE void window_sums(const Numbers& numbers, const Window<X>& window, Total* totals) {
  using Sums = typename Numbers::Sums;
  constexpr typename Numbers::D d;
  constexpr auto kLanes = static_cast<std::int64_t>(hn::MaxLanes(d));
  hn::Vec<Sums> sums[kCount][kOutputs];
  hn::Vec<Sums> rests[kCount][kOutputs];
  unroll<kCount>([&](auto i) HWY_ATTR {
    unroll<kOutputs>([&](auto o) HWY_ATTR { sums[i][o] = rests[i][o] = hn::Zero(Sums()); });
  });
  const std::int64_t whole = window.length / kLanes * kLanes;
  const auto add = [&](const X* x, const X* w, auto take) HWY_ATTR {
    typename Numbers::V weights[kOutputs];
    unroll<kOutputs>([&](auto o) HWY_ATTR { weights[o] = numbers.weight(w + o * window.w_output_step); });
    unroll<kCount>([&](auto i) HWY_ATTR {
      const auto pixel = numbers.pixel(x + i * window.pixel_step);
      unroll<kOutputs>([&](auto o) HWY_ATTR {
        sums[i][o] = take(Numbers::add(pixel, weights[o], sums[i][o], rests[i][o]), sums[i][o]);
      });
    });
  };
  for (std::int64_t row = 0; row < window.rows; ++row) {
    const X* x = window.x + row * window.row_step;
    const X* w = window.w + row * window.w_row_step;
    for (std::int64_t run = 0; run < window.runs; ++run, x += window.run_step, w += window.length) {
      for (std::int64_t c = 0; c < whole; c += kLanes) add(x + c, w + c, [](auto sum, auto) HWY_ATTR { return sum; });
      if constexpr (!Numbers::kWholeRuns) {
        if (whole == window.length) continue;
        // The last vector of the run, without what was added before.
        const std::int64_t last = window.length - kLanes;
        const auto is_added = hn::FirstN(d, static_cast<std::size_t>(whole - last));
        add(x + last, w + last, [&](auto sum, auto before) HWY_ATTR { return hn::IfThenElse(is_added, before, sum); });
      }
    }
  }
  unroll<kCount>([&](auto i) HWY_ATTR {
    unroll<kOutputs>([&](auto o) HWY_ATTR { totals[i * kOutputs + o] = Numbers::total(sums[i][o], rests[i][o]); });
  });
}

/// The same of one pixel whose runs are shorter than a vector, as at the edges of the image.
template <int kOutputs>
void short_window_sums(const Window<float>& window, float* totals) {
  for (int o = 0; o < kOutputs; ++o) {
    float sum = 0.0F;
    for (std::int64_t row = 0; row < window.rows; ++row)
      for (std::int64_t run = 0; run < window.runs; ++run) {
        const float* x = window.x + row * window.row_step + run * window.run_step;
        const float* w = window.w + o * window.w_output_step + row * window.w_row_step + run * window.length;
        for (std::int64_t i = 0; i < window.length; ++i) sum += x[i] * w[i];
      }
    totals[o] = sum;
  }
}

/// Finishes kPixels pixels of kOutputs each.
template <int kOutputs>
class FloatFinisher {
 public:
  using Total = float;
  using Y = float;

  explicit FloatFinisher(const FloatResult& y) : y_(y), bias_(y.bias, kOutputs) {}
  void operator()(const float* totals, float* y) const {
    for (std::int64_t i = 0; i < kPixels * kOutputs; ++i) y[i] = totals[i] + bias_.numbers[i];
    activate_rows(y_.activation, y, 1, kPixels * kOutputs, kPixels * kOutputs);
  }
  Y* data() const { return y_.data; }

 private:
  const FloatResult& y_;
  Repeated<float> bias_;
};

using D32 = hn::CappedTag<std::int32_t, kPixels>;
constexpr auto kSums = static_cast<std::int64_t>(hn::MaxLanes(D32()));

template <int kOutputs>
class Int8Finisher {
 public:
  using Total = std::int32_t;
  using Y = std::int8_t;

  explicit Int8Finisher(const gemm::Int8Result& y)
      : y_(y),
        bias_(y.requantize.bias, kOutputs),
        multiplier_(y.requantize.multiplier, kOutputs),
        shift_(y.requantize.shift, kOutputs) {}
  void operator()(const std::int32_t* totals, std::int8_t* y) const {
    Requantizer all = y_.requantize;
    all.bias = bias_.numbers;
    all.multiplier = multiplier_.numbers;
    all.shift = shift_.numbers;
    const hn::Rebind<std::int8_t, D32> d8;
    for (std::int64_t i = 0; i < kPixels * kOutputs; i += kSums) {
      const RequantizeVector<D32> scale(D32(), all, i, kSums);
      hn::StoreU(demote_to_bytes(D32(), scale(hn::LoadU(D32(), totals + i))), d8, y + i);
    }
  }
  Y* data() const { return y_.data; }

 private:
  const gemm::Int8Result& y_;
  Repeated<std::int32_t> bias_;
  Repeated<std::int32_t> multiplier_;
  Repeated<std::int32_t> shift_;
};

template <int kOutputs, typename T>
class AffineFinisher {
 public:
  using Total = std::int32_t;
  using Y = T;

  explicit AffineFinisher(const gemm::AffineResult<T>& y)
      : y_(y),
        bias_(y.scaler.bias, kOutputs),
        real_bias_(y.scaler.real_bias, kOutputs),
        scale_(y.scaler.scale, kOutputs, y.scaler.per_channel) {}
  void operator()(const std::int32_t* totals, T* y) const {
    AffineScaler all = y_.scaler;
    if (all.bias != nullptr) all.bias = bias_.numbers;
    if (all.real_bias != nullptr) all.real_bias = real_bias_.numbers;
    if (all.scale != nullptr) all.scale = scale_.numbers;
    all.per_channel = true;
    for (std::int64_t i = 0; i < kPixels * kOutputs; i += kSums) {
      const AffineVector<D32> scale(D32(), all, i, kSums);
      hn::Vec<D32> sums[1] = {hn::LoadU(D32(), totals + i)};
      if constexpr (std::is_same_v<T, std::uint8_t>) scale.to_bytes(all, sums);
      scale.store(sums[0], kSums, y + i);
    }
    if constexpr (std::is_same_v<T, float>) activate_rows(all.activation, y, 1, kPixels * kOutputs, kPixels * kOutputs);
  }
  Y* data() const { return y_.data; }

 private:
  const gemm::AffineResult<T>& y_;
  Repeated<std::int32_t> bias_;
  Repeated<float> real_bias_;
  Repeated<float> scale_;
};

template <int kOutputs, class Numbers, class Finisher, class Operands>
class RowConvolver {
 public:
  RowConvolver(const Operands& o, const Finisher& finisher) : o_(o), numbers_(o), finisher_(finisher) {}

  void row(std::int64_t n, std::int64_t oy) const {
    const ImageShape& shape = o_.p.g.y;
    for (std::int64_t ox = 0; ox < shape.w; ox += kPixels) {
      const std::int64_t count = std::min<std::int64_t>(kPixels, shape.w - ox);
      typename Finisher::Total totals[kPixels * kOutputs] = {};
      typename Finisher::Y results[kPixels * kOutputs];
      sum_pixels(n, oy, ox, count, totals);
      finisher_(totals, results);
      auto* y = finisher_.data() + shape.offset(n, oy, ox);
      for (std::int64_t i = 0; i < count; ++i, y += shape.w_stride) std::copy_n(results + i * kOutputs, kOutputs, y);
    }
  }

 private:
  using X = std::remove_cvref_t<decltype(*Operands::x)>;
  HWY_NOINLINE void sum_pixels(std::int64_t n, std::int64_t oy, std::int64_t ox, std::int64_t count,
                               typename Finisher::Total* totals) const {
    for (std::int64_t i = 0; i < count;)
      i += sum_some<kShared<Numbers, kOutputs>>(window_at(n, oy, ox + i), ox + i, count - i, totals + i * kOutputs);
  }

  /// The sums of kCount of `left` pixels, of fewer at the edges of the image; returns how many.
  template <int kCount>
  HWY_INLINE std::int64_t sum_some(const Window<X>& window, std::int64_t ox, std::int64_t left,
                                   typename Finisher::Total* totals) const {
    if constexpr (kCount == 1) {
      sum_pixel(window, totals);
      return 1;
    } else {
      if (left < kCount || !is_inside(ox) || !is_inside(ox + kCount - 1))
        return sum_some<kCount / 2>(window, ox, left, totals);
      window_sums<kCount, kOutputs>(numbers_, window, totals);
      return kCount;
    }
  }

  HWY_INLINE void sum_pixel(const Window<X>& window, typename Finisher::Total* totals) const {
    if constexpr (!Numbers::kWholeRuns) {
      constexpr auto kLanes = static_cast<std::int64_t>(hn::MaxLanes(typename Numbers::D()));
      if (window.length < kLanes) return short_window_sums<kOutputs>(window, totals);
    }
    window_sums<1, kOutputs>(numbers_, window, totals);
  }

  TapRange columns_of(std::int64_t ox) const {
    const WindowAxis& axis = o_.p.g.horizontal;
    return taps_inside(axis, window_origin(axis, ox), 0, o_.p.g.x.w);
  }
  bool is_inside(std::int64_t ox) const { return columns_of(ox).size() == o_.p.g.horizontal.kernel; }

  Window<X> window_at(std::int64_t n, std::int64_t oy, std::int64_t ox) const {
    const ConvGeometry& g = o_.p.g;
    const std::int64_t y0 = window_origin(g.vertical, oy);
    const std::int64_t x0 = window_origin(g.horizontal, ox);
    const TapRange rows = taps_inside(g.vertical, y0, 0, g.x.h);
    const TapRange columns = columns_of(ox);
    const std::int64_t channels = o_.p.group_inputs;
    const std::int64_t w_row_step = g.horizontal.kernel * channels;
    Window<X> window{};
    if (rows.size() <= 0 || columns.size() <= 0) return window;  // nothing but padding
    window.x = o_.x + g.x.offset(n, y0 + std::int64_t{rows.first} * g.vertical.dilation,
                                 x0 + std::int64_t{columns.first} * g.horizontal.dilation);
    window.w = o_.w + rows.first * w_row_step + columns.first * channels;
    window.rows = rows.size();
    window.runs = o_.p.taps_touch ? 1 : columns.size();
    window.length = o_.p.taps_touch ? columns.size() * channels : channels;
    window.row_step = g.vertical.dilation * g.x.h_stride;
    window.run_step = g.horizontal.dilation * g.x.w_stride;
    window.pixel_step = g.horizontal.stride * g.x.w_stride;
    window.w_row_step = w_row_step;
    window.w_output_step = o_.p.k;
    return window;
  }

  const Operands& o_;
  Numbers numbers_;
  const Finisher& finisher_;
};

template <class Numbers, template <int> class Finisher, class Operands, class Result>
void convolve(const Operands& o, const Result& y, std::int64_t begin, std::int64_t end) {
  const auto rows = [&](auto outputs) HWY_ATTR {
    const Finisher<outputs> finisher(y);
    const RowConvolver<outputs, Numbers, Finisher<outputs>, Operands> convolver(o, finisher);
    for (std::int64_t row = begin; row < end; ++row) convolver.row(row / o.p.g.y.h, row % o.p.g.y.h);
  };
  unroll<kMostOutputs>([&](auto i) HWY_ATTR {
    if (o.p.group_outputs == i + 1) rows(std::integral_constant<int, i + 1>());
  });
}

template <int kOutputs>
using ByteFinisher = AffineFinisher<kOutputs, std::uint8_t>;
template <int kOutputs>
using SumFinisher = AffineFinisher<kOutputs, std::int32_t>;
template <int kOutputs>
using RealFinisher = AffineFinisher<kOutputs, float>;

void convolve_f32(const FloatOperands& o, const FloatResult& y, std::int64_t begin, std::int64_t end) {
  convolve<FloatNumbers, FloatFinisher>(o, y, begin, end);
}
void convolve_int8(const ByteOperands& o, const gemm::Int8Result& y, std::int64_t begin, std::int64_t end) {
  convolve<ByteNumbers, Int8Finisher>(o, y, begin, end);
}
void convolve_affine_u8(const ByteOperands& o, const gemm::AffineResult<std::uint8_t>& y, std::int64_t begin,
                        std::int64_t end) {
  convolve<ByteNumbers, ByteFinisher>(o, y, begin, end);
}
void convolve_affine_i32(const ByteOperands& o, const gemm::AffineResult<std::int32_t>& y, std::int64_t begin,
                         std::int64_t end) {
  convolve<ByteNumbers, SumFinisher>(o, y, begin, end);
}
void convolve_affine_f32(const ByteOperands& o, const gemm::AffineResult<float>& y, std::int64_t begin,
                         std::int64_t end) {
  convolve<ByteNumbers, RealFinisher>(o, y, begin, end);
}

}  // namespace
}  // namespace bantam::ops::conv2d::few_outputs::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bantam::ops::conv2d::few_outputs {

HWY_EXPORT(convolve_f32);
HWY_EXPORT(convolve_int8);
HWY_EXPORT(convolve_affine_u8);
HWY_EXPORT(convolve_affine_i32);
HWY_EXPORT(convolve_affine_f32);

namespace {

template <class Operands, class Result, typename Convolve>
void run_rows(const Invocation& call, const Operands& operands, const Result& y, Convolve convolve) {
  const ImageShape& shape = operands.p.g.y;
  const std::int64_t row_work = shape.w * operands.p.group_outputs * operands.p.k;
  const std::int64_t grain = std::max<std::int64_t>(50'000 / row_work, 1);
  parallel_ranges(*call.threads, static_cast<std::int64_t>(shape.n) * shape.h, grain,
                  [&](std::int64_t begin, std::int64_t end) { convolve(operands, y, begin, end); });
}

ByteOperands byte_operands(const Invocation& call, const Problem& p, gemm::ByteForm x, std::uint8_t flip) {
  return {p, call.input<std::uint8_t>(0), call.input<std::uint8_t>(1), x, flip};
}

}  // namespace

void run(const Invocation& call, const Problem& p, const Activation& activation) {
  const FloatResult y{call.output<float>(), optional_input<float>(call, 2), activation};
  run_rows(call, FloatOperands{p, call.input<float>(0), call.input<float>(1)}, y, HWY_DYNAMIC_DISPATCH(convolve_f32));
}
void run(const Invocation& call, const Problem& p, gemm::ByteForm x, std::uint8_t flip, const gemm::Int8Result& y) {
  run_rows(call, byte_operands(call, p, x, flip), y, HWY_DYNAMIC_DISPATCH(convolve_int8));
}
void run(const Invocation& call, const Problem& p, gemm::ByteForm x, std::uint8_t flip,
         const gemm::AffineResult<std::uint8_t>& y) {
  run_rows(call, byte_operands(call, p, x, flip), y, HWY_DYNAMIC_DISPATCH(convolve_affine_u8));
}
void run(const Invocation& call, const Problem& p, gemm::ByteForm x, std::uint8_t flip,
         const gemm::AffineResult<std::int32_t>& y) {
  run_rows(call, byte_operands(call, p, x, flip), y, HWY_DYNAMIC_DISPATCH(convolve_affine_i32));
}
void run(const Invocation& call, const Problem& p, gemm::ByteForm x, std::uint8_t flip,
         const gemm::AffineResult<float>& y) {
  run_rows(call, byte_operands(call, p, x, flip), y, HWY_DYNAMIC_DISPATCH(convolve_affine_f32));
}

}  // namespace bantam::ops::conv2d::few_outputs
#endif
