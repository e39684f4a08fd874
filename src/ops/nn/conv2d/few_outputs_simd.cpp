#include <algorithm>
#include <type_traits>

#include "ops/common/byte_products.h"
#include "ops/common/linear_form.h"
#include "ops/nn/conv2d/few_outputs.h"
#include "ops/nn/conv2d/few_outputs_operands.h"
#include "ops/nn/conv2d/parallel_rows.h"

#ifndef BANTAM_FEW_OUTPUTS_OPERANDS_
#define BANTAM_FEW_OUTPUTS_OPERANDS_
namespace bantam::ops::conv2d::few_outputs {
namespace {

/// f32 results, of which `bias` may be null.
struct FloatResult {
  float* data;
  const float* bias;
  Activation activation;
};

/// The same for a group of channels that begins at `first`, here and below.
inline FloatResult from_channel(const FloatResult& y, std::int64_t first) {
  return {y.data + first, y.bias != nullptr ? y.bias + first : nullptr, y.activation};
}
inline gemm::Int8Result from_channel(const gemm::Int8Result& y, std::int64_t first) {
  return {y.data + first, y.row_stride, y.requantize.from_channel(first)};
}
template <typename Y>
gemm::AffineResult<Y> from_channel(const gemm::AffineResult<Y>& y, std::int64_t first) {
  return {y.data + first, y.row_stride, y.scaler.from_channel(first), {}};
}

/// `count` numbers of channels, repeated for each of kPixels pixels; none, if there are none.
template <typename T>
struct Repeated {
  T numbers[kPixels * kTogether] = {};

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
#include "ops/nn/conv2d/few_outputs_sums_simd-inl.h"
#include "ops/nn/gemm/unroll-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::conv2d::few_outputs::HWY_NAMESPACE {
namespace {

using ops::HWY_NAMESPACE::AffineVector;
using ops::HWY_NAMESPACE::demote_to_bytes;
using ops::HWY_NAMESPACE::RequantizeVector;

/// Finishes up to kPixels pixels of kOutputs each, and numbers up to the end of a vector.
template <int kOutputs>
class FloatFinisher {
 public:
  using Total = float;
  using Y = float;

  explicit FloatFinisher(const FloatResult& y) : y_(y), bias_(y.bias, kOutputs) {}
  void operator()(const float* totals, std::int64_t pixels, float* y) const {
    for (std::int64_t i = 0; i < pixels * kOutputs; ++i) y[i] = totals[i] + bias_.numbers[i];
    activate_rows(y_.activation, y, 1, pixels * kOutputs, pixels * kOutputs);
  }
  Y* data() const { return y_.data; }

 private:
  const FloatResult& y_;
  Repeated<float> bias_;
};

using D32 = hn::CappedTag<std::int32_t, 16>;
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
  void operator()(const std::int32_t* totals, std::int64_t pixels, std::int8_t* y) const {
    Requantizer all = y_.requantize;
    all.bias = bias_.numbers;
    all.multiplier = multiplier_.numbers;
    all.shift = shift_.numbers;
    const hn::Rebind<std::int8_t, D32> d8;
    for (std::int64_t i = 0; i < pixels * kOutputs; i += kSums) {
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
  void operator()(const std::int32_t* totals, std::int64_t pixels, T* y) const {
    AffineScaler all = y_.scaler;
    if (all.bias != nullptr) all.bias = bias_.numbers;
    if (all.real_bias != nullptr) all.real_bias = real_bias_.numbers;
    if (all.scale != nullptr) all.scale = scale_.numbers;
    all.per_channel = true;
    for (std::int64_t i = 0; i < pixels * kOutputs; i += kSums) {
      const AffineVector<D32> scale(D32(), all, i, kSums);
      hn::Vec<D32> sums[1] = {hn::LoadU(D32(), totals + i)};
      if constexpr (std::is_same_v<T, std::uint8_t>) scale.to_bytes(all, sums);
      scale.store(sums[0], kSums, y + i);
    }
    if constexpr (std::is_same_v<T, float>) activate_rows(all.activation, y, 1, pixels * kOutputs, pixels * kOutputs);
  }
  Y* data() const { return y_.data; }

 private:
  const gemm::AffineResult<T>& y_;
  Repeated<std::int32_t> bias_;
  Repeated<float> real_bias_;
  Repeated<float> scale_;
};

/// One row of results after the other, for kOutputs outputs from `first` on, which the finisher knows.
template <int kOutputs, class Numbers, class Finisher, class Operands>
class RowConvolver {
 public:
  RowConvolver(const Operands& o, std::int64_t first, const Finisher& finisher)
      : shape_(o.p.g.y), sum_pixels_(o, first), finisher_(finisher) {}

  void row(std::int64_t n, std::int64_t oy) {
    sum_pixels_.set_row(n, oy);
    typename Finisher::Total totals[Summer::totals_of(kPixels)] = {};
    typename Finisher::Y results[kPixels * kOutputs];
    for (std::int64_t ox = 0; ox < shape_.w; ox += kPixels) {
      const std::int64_t count = std::min<std::int64_t>(kPixels, shape_.w - ox);
      sum_pixels_(ox, count, totals);
      finisher_(totals, count, results);
      auto* y = finisher_.data() + shape_.offset(n, oy, ox);
      for (std::int64_t i = 0; i < count; ++i, y += shape_.w_stride) std::copy_n(results + i * kOutputs, kOutputs, y);
    }
  }

 private:
  using Summer = WindowSummer<kOutputs, Numbers, Operands>;

  const ImageShape& shape_;
  Summer sum_pixels_;
  const Finisher& finisher_;
};

template <int kOutputs, class Numbers, class Finisher, class Operands, class Result>
void convolve_outputs(const Operands& o, std::int64_t first, const Result& y, std::int64_t begin, std::int64_t end) {
  const Result part = from_channel(y, first);
  const Finisher finisher(part);
  RowConvolver<kOutputs, Numbers, Finisher, Operands> convolver(o, first, finisher);
  for (std::int64_t row = begin; row < end; ++row) convolver.row(row / o.p.g.y.h, row % o.p.g.y.h);
}

template <class Numbers, template <int> class Finisher, class Operands, class Result>
void convolve(const Operands& o, const Result& y, std::int64_t begin, std::int64_t end) {
  constexpr std::int64_t kRows = 8;  // of which the second outputs find the image in the caches
  const std::int64_t outputs = o.p.group_outputs;
  const std::int64_t at_once = outputs <= kTogether ? std::max<std::int64_t>(end - begin, 1) : kRows;
  for (std::int64_t row = begin; row < end; row += at_once)
    for (std::int64_t first = 0; first < outputs; first += kTogether)
      unroll<kTogether>([&](auto i) HWY_ATTR {
        constexpr int kOutputs = i + 1;
        if (std::min(outputs - first, kTogether) == kOutputs)
          convolve_outputs<kOutputs, Numbers, Finisher<kOutputs>>(o, first, y, row, std::min(row + at_once, end));
      });
}

#if HWY_TARGET == HWY_AVX3_DL || HWY_TARGET == HWY_AVX2 || HWY_ARCH_ARM_A64
/// By quads, in the largest vectors, of kBytes at most, that the runs of whole windows fill.
template <std::size_t kBytes, template <int> class Finisher, class Result>
void convolve_quads(const ByteOperands& o, const Result& y, std::int64_t begin, std::int64_t end) {
  using Numbers = QuadNumbers<kBytes>;
  constexpr std::size_t kLanes = hn::MaxLanes(typename Numbers::D());
  if constexpr (kLanes > kVector) {
    if (run_length(o.p) < static_cast<std::int64_t>(kLanes))
      return convolve_quads<kLanes / 2, Finisher>(o, y, begin, end);
  }
  convolve<Numbers, Finisher>(o, y, begin, end);
}
#endif

template <template <int> class Finisher, class Result>
void convolve_bytes(const ByteOperands& o, const Result& y, std::int64_t begin, std::int64_t end) {
#if HWY_TARGET == HWY_AVX3_DL
  convolve_quads<HWY_MAX_BYTES, Finisher>(o, y, begin, end);
#else
#if HWY_TARGET == HWY_AVX2 || HWY_ARCH_ARM_A64
  if (byte_products() >= ByteProducts::kDot) return convolve_quads<HWY_MAX_BYTES, Finisher>(o, y, begin, end);
#endif
  if (o.form.flip == 0 && o.flip == 0) return convolve<PairNumbers<false>, Finisher>(o, y, begin, end);
  convolve<PairNumbers<true>, Finisher>(o, y, begin, end);
#endif
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
  convolve_bytes<Int8Finisher>(o, y, begin, end);
}
void convolve_affine_u8(const ByteOperands& o, const gemm::AffineResult<std::uint8_t>& y, std::int64_t begin,
                        std::int64_t end) {
  convolve_bytes<ByteFinisher>(o, y, begin, end);
}
void convolve_affine_i32(const ByteOperands& o, const gemm::AffineResult<std::int32_t>& y, std::int64_t begin,
                         std::int64_t end) {
  convolve_bytes<SumFinisher>(o, y, begin, end);
}
void convolve_affine_f32(const ByteOperands& o, const gemm::AffineResult<float>& y, std::int64_t begin,
                         std::int64_t end) {
  convolve_bytes<RealFinisher>(o, y, begin, end);
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

FloatOperands with_problem(const FloatOperands& o, const Problem& p) { return {p, o.x, o.w}; }
ByteOperands with_problem(const ByteOperands& o, const Problem& p) { return {p, o.x, o.w, o.form, o.flip}; }

template <class Operands, class Result, typename Convolve>
void run_rows(const Invocation& call, const Operands& operands, const Result& y, Convolve convolve) {
  constexpr std::int64_t kWork = 50'000;
  const Grain pixels(kWork / (operands.p.group_outputs * operands.p.k) + 1, kPixels);
  parallel_rows(*call.threads, operands.p.g, pixels, [&](const ConvGeometry& g, std::int64_t begin, std::int64_t end) {
    Problem part = operands.p;
    part.g = g;
    convolve(with_problem(operands, part), y, begin, end);
  });
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
