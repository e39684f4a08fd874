#include <type_traits>

#include "ops/common/activate_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/common/activate_rows_simd.cpp"
#include "hwy/foreach_target.h"
// Highway wants the headers below after foreach_target.h.
#include "hwy/highway.h"
#include "ops/common/activation_steps_simd-inl.h"
#include "ops/common/divisor_simd-inl.h"
#include "ops/common/requantize_simd-inl.h"
#include "ops/elementwise/unary/activation_simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using DF = hn::CappedTag<float, 16>;
using DI = hn::RebindToSigned<DF>;
using VF = hn::Vec<DF>;
constexpr DF kF;
constexpr DI kI;
constexpr auto kLanes = static_cast<std::int64_t>(hn::MaxLanes(DF()));
constexpr int kAtOnce = 4;  ///< vectors: each step of a function waits for the one before

/// Calls run(f), f being the activation of several vectors, unless it changes nothing: so loops know their function.
template <class Run>
HWY_INLINE void with_activation(const Activation& activation, Run run) {
  // Numbers are captured, not vectors: the compiler's own constructors know nothing of the instruction set.
  const float a = activation.a;
  const float b = activation.b;
  const auto each = [&](auto f)
                        HWY_ATTR { run([f](const auto& x) HWY_ATTR { return EachVector<decltype(f)>{f}(kF, x); }); };
  switch (activation.function) {
    case UnaryFunction::kRelu: return each([](DF, VF x) HWY_ATTR { return relu_f32(kF, x); });
    case UnaryFunction::kClip:
      return each([a, b](DF, VF x) HWY_ATTR { return clip_f32(kF, x, hn::Set(kF, a), hn::Set(kF, b)); });
    case UnaryFunction::kLeakyRelu:
      return each([a](DF, VF x) HWY_ATTR { return leaky_relu_f32(kF, x, hn::Set(kF, a)); });
    case UnaryFunction::kHardSwish: return each([](DF, VF x) HWY_ATTR { return hard_swish_f32(kF, x); });
    case UnaryFunction::kHardSigmoid:
      return each([a, b](DF, VF x) HWY_ATTR { return hard_sigmoid_f32(kF, x, hn::Set(kF, a), hn::Set(kF, b)); });
    case UnaryFunction::kSigmoid: return run([](const auto& x) HWY_ATTR { return sigmoid_f32(kF, x); });
    case UnaryFunction::kTanh: return run([](const auto& x) HWY_ATTR { return tanh_f32(kF, x); });
    case UnaryFunction::kSilu: return run([](const auto& x) HWY_ATTR { return silu_f32(kF, x); });
    case UnaryFunction::kGelu: return each([](DF, VF x) HWY_ATTR { return gelu_f32(kF, x); });
    case UnaryFunction::kElu: return run([a](const auto& x) HWY_ATTR { return elu_f32(kF, x, hn::Set(kF, a)); });
    default: return;
  }
}

/// The same for f = activation(x) / step, where with_short_steps has none: by one division where the activation ends
/// with one, and exponentials are computed for results of few digits.
template <class Run>
HWY_INLINE void with_long_steps(const Activation& activation, float step, Run run) {
  if (activation.function == UnaryFunction::kSigmoid)
    return run([step](const auto& x) HWY_ATTR { return sigmoid_steps(kF, x, hn::Set(kF, step)); });
  if (activation.function == UnaryFunction::kSilu)
    return run([step](const auto& x) HWY_ATTR { return silu_steps(kF, x, hn::Set(kF, step)); });
  const Divisor divisor(step);
  with_activation(activation, [&](auto f) HWY_ATTR {
    run([f, divisor](const auto& x) HWY_ATTR {
      auto y = f(x);
      y.set([&](auto i) HWY_ATTR { return divisor.quotient(kF, y.v[i]); });
      return y;
    });
  });
}

/// Replaces the numbers at kCount places by f of them.
template <int kCount, class F>
HWY_INLINE void activate_at(const F& f, float* const (&at)[kCount]) {
  Lockstep<kCount, VF> x;
  x.set([&](auto i) HWY_ATTR { return hn::LoadU(kF, at[i]); });
  const auto y = f(x);
  unroll<kCount>([&](auto i) HWY_ATTR { hn::StoreU(y.v[i], kF, at[i]); });
}

/// The same for the first `count` numbers of a vector.
template <class F>
HWY_INLINE void activate_part(const F& f, float* y, std::int64_t count) {
  store_lanes(kF, f(Lockstep<1, VF>(load_channels(kF, y, count))).v[0], count, y);
}

template <class F>
HWY_NOINLINE void activate_all(const F& f, float* y, std::int64_t rows, std::int64_t stride, std::int64_t columns) {
  if (stride == columns) {
    columns *= rows;
    rows = 1;
  }
  const std::int64_t whole = columns / kLanes * kLanes;
  float* row = y;
  std::int64_t column = 0;
  const auto next = [&] {
    float* at = row + column;
    column += kLanes;
    row += column == whole ? stride : 0;
    column = column == whole ? 0 : column;
    return at;
  };
  std::int64_t left = rows * (whole / kLanes);
  for (; left >= kAtOnce; left -= kAtOnce) activate_at<kAtOnce>(f, {next(), next(), next(), next()});
  for (; left > 0; --left) activate_at<1>(f, {next()});
  if (whole == columns) return;
  for (std::int64_t r = 0; r < rows; ++r) activate_part(f, y + r * stride + whole, columns - whole);
}

void activate_rows_target(const Activation& activation, float* y, std::int64_t rows, std::int64_t stride,
                          std::int64_t columns) {
  with_activation(activation, [&](auto f) HWY_ATTR { activate_all(f, y, rows, stride, columns); });
}

/// To the nearest integers. `high`: an upper limit, for what exceeds int32 becomes its least number on x86.
HWY_INLINE hn::Vec<DI> rounded(VF steps, VF high) {
#if HWY_ARCH_ARM_A64
  static_cast<void>(high);
  return nearest_in_range(steps);  // NaN becomes 0, too
#elif HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86
  const __mmask16 numbers = _mm512_cmp_ps_mask(steps.raw, steps.raw, _CMP_ORD_Q);
  return hn::Vec<DI>{_mm512_maskz_cvtps_epi32(numbers, hn::Min(steps, high).raw)};
#else
  const VF number = hn::IfThenElseZero(hn::Eq(steps, steps), steps);
  return nearest_in_range(hn::Min(number, high));
#endif
}

/// In place of the arguments of vectors: integers(arguments).
template <int kCount, class F>
HWY_INLINE void round_at(const F& integers, std::int32_t* numbers) {
  Lockstep<kCount, VF> x;
  x.set([&](auto i) HWY_ATTR { return hn::BitCast(kF, hn::LoadU(kI, numbers + i * kLanes)); });
  const auto y = integers(x);
  unroll<kCount>([&](auto i) HWY_ATTR { hn::StoreU(y.v[i], kI, numbers + i * kLanes); });
}

template <class F>
HWY_NOINLINE void round_all(const F& integers, std::int32_t* numbers, std::int64_t count) {
  std::int64_t i = 0;
  for (; i + kAtOnce * kLanes <= count; i += kAtOnce * kLanes) round_at<kAtOnce>(integers, numbers + i);
  for (; i + kLanes <= count; i += kLanes) round_at<1>(integers, numbers + i);
  if (i == count) return;
  HWY_ALIGN std::int32_t part[kLanes] = {};
  for (std::int64_t k = 0; k < count - i; ++k) part[k] = numbers[i + k];
  round_at<1>(integers, part);
  for (std::int64_t k = 0; k < count - i; ++k) numbers[i + k] = part[k];
}

/// The integers of some vectors of steps: round(step) of each.
template <int kCount, class F>
HWY_INLINE auto integers_of(const Lockstep<kCount, VF>& steps, F round) {
  Lockstep<kCount, hn::Vec<DI>> y;
  y.set([&](auto i) HWY_ATTR { return round(steps.v[i]); });
  return y;
}

void round_activated_target(const AffineScaler& scaler, std::int32_t* numbers, std::int64_t count) {
  const auto high = static_cast<float>(scaler.maximum - scaler.zero_point);
  const bool is_short = with_short_steps(scaler, [&](const auto& f) HWY_ATTR {
    const EachVector<std::remove_cvref_t<decltype(f)>> each{f};
    const auto round = [high](VF steps) HWY_ATTR { return nearest_in_range(hn::Min(steps, hn::Set(kF, high))); };
    round_all([each, round](const auto& x) HWY_ATTR { return integers_of(each(kF, x), round); }, numbers, count);
  });
  if (is_short) return;
  with_long_steps(scaler.activation, scaler.output_scale, [&](auto f) HWY_ATTR {
    const auto round = [high](VF steps) HWY_ATTR { return rounded(steps, hn::Set(kF, high)); };
    round_all([f, round](const auto& x) HWY_ATTR { return integers_of(f(x), round); }, numbers, count);
  });
}

}  // namespace
}  // namespace bantam::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bantam::ops {

HWY_EXPORT(activate_rows_target);
HWY_EXPORT(round_activated_target);

void activate_rows(const Activation& activation, float* y, std::int64_t rows, std::int64_t stride,
                   std::int64_t columns) {
  HWY_DYNAMIC_DISPATCH(activate_rows_target)(activation, y, rows, stride, columns);
}

void round_activated(const AffineScaler& scaler, std::int32_t* numbers, std::int64_t count) {
  HWY_DYNAMIC_DISPATCH(round_activated_target)(scaler, numbers, count);
}

}  // namespace bantam::ops
#endif
