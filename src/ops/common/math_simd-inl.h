// Transcendental functions on vectors of float, for Highway kernels: included by *_simd.cpp files and other -inl.h
// headers, compiled once per instruction set. Polynomials are minimax fits (Lawson iteration on the reduced range).
//
// Accuracy, in units in the last place of the exact result over the full range of float: exp_f32, expm1_f32 2; log_f32
// 2; sigmoid_f32 4; tanh_f32, erf_f32 5; normal_tail_f32 4 for t <= 1, growing to 2e-6 relative where it is below 1e-4;
// with AVX-512 as NormalTailTable.
// NaN gives NaN; infinities give the limits.
#if defined(BANTAM_OPS_COMMON_MATH_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BANTAM_OPS_COMMON_MATH_SIMD_INL_H_
#undef BANTAM_OPS_COMMON_MATH_SIMD_INL_H_
#else
#define BANTAM_OPS_COMMON_MATH_SIMD_INL_H_
#endif

#include <cstdint>

#include "hwy/highway.h"
#include "ops/common/normal_tail_table.h"
#include "ops/nn/gemm/unroll-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// x < low ? low : x, which lets NaN through.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V at_least(D, V x, V low) {
#if HWY_ARCH_X86 && HWY_TARGET != HWY_EMU128
  return hn::Max(low, x);  // MAXPS gives its second operand when either is NaN or both are zero
#else
  return hn::IfThenElse(hn::Lt(x, low), low, x);
#endif
}

/// x > high ? high : x, which lets NaN through.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V at_most(D, V x, V high) {
#if HWY_ARCH_X86 && HWY_TARGET != HWY_EMU128
  return hn::Min(high, x);
#else
  return hn::IfThenElse(hn::Gt(x, high), high, x);
#endif
}

/// The nearest integers, even ones on ties, of floats that are not above the range of int32; the least of int32 for
/// those below it, some integers for NaN.
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_SSE4
template <std::size_t N>
HWY_INLINE hn::Vec128<std::int32_t, N> nearest_in_range(hn::Vec128<float, N> v) {
  return hn::Vec128<std::int32_t, N>{_mm_cvtps_epi32(v.raw)};
}
#if HWY_TARGET <= HWY_AVX2
HWY_INLINE hn::Vec256<std::int32_t> nearest_in_range(hn::Vec256<float> v) {
  return hn::Vec256<std::int32_t>{_mm256_cvtps_epi32(v.raw)};
}
#endif
#if HWY_TARGET <= HWY_AVX3
HWY_INLINE hn::Vec512<std::int32_t> nearest_in_range(hn::Vec512<float> v) {
  return hn::Vec512<std::int32_t>{_mm512_cvtps_epi32(v.raw)};
}
#endif
#else
template <class V>
HWY_INLINE auto nearest_in_range(V v) {
  return hn::NearestInt(v);
}
#endif

/// A few vectors that are computed step by step together. Each step waits for the one before, and a processor does not
/// look far enough ahead to find the steps of the next vector by itself.
template <int kCount, class V>
struct Lockstep {
  V v[kCount];

  // Written, since constructors that the compiler adds are not compiled for the vectors' instruction set.
  HWY_INLINE Lockstep() {}
  HWY_INLINE explicit Lockstep(V one) : v{one} {}

  /// f(i) for each vector, in order.
  template <class F>
  HWY_INLINE void set(F f) {
    unroll<kCount>([&](auto i) HWY_ATTR { v[i] = in_register(f(i)); });
  }
};

template <int kCount, class V>
HWY_INLINE Lockstep<kCount, V> squares(const Lockstep<kCount, V>& x) {
  Lockstep<kCount, V> y;
  y.set([&](auto i) HWY_ATTR { return hn::Mul(x.v[i], x.v[i]); });
  return y;
}

/// c[0] + c[1] x + ..., even and odd powers by themselves: half as many steps that wait for each other as by Horner's
/// rule (Estrin 1960). `square` is x^2.
template <class D, std::size_t N, int kCount, class V = hn::Vec<D>>
HWY_INLINE Lockstep<kCount, V> polynomial(D d, const Lockstep<kCount, V>& x, const Lockstep<kCount, V>& square,
                                          const float (&c)[N]) {
  static_assert(N >= 2);
  Lockstep<kCount, V> last, before;
  last.set([&](auto) HWY_ATTR { return hn::Set(d, c[N - 1]); });
  before.set([&](auto) HWY_ATTR { return hn::Set(d, c[N - 2]); });
  // Powers N - 1, N - 3 ... are in `last`, the others in `before`.
  for (std::size_t k = N - 2; k-- > 0;) {
    auto& sum = (N - 1 - k) % 2 == 0 ? last : before;
    sum.set([&](auto i) HWY_ATTR { return hn::MulAdd(sum.v[i], square.v[i], hn::Set(d, c[k])); });
  }
  const auto& odd = N % 2 == 0 ? last : before;
  const auto& even = N % 2 == 0 ? before : last;
  Lockstep<kCount, V> result;
  result.set([&](auto i) HWY_ATTR { return hn::MulAdd(odd.v[i], x.v[i], even.v[i]); });
  return result;
}

template <class D, std::size_t N, class V = hn::Vec<D>>
HWY_INLINE V polynomial(D d, V x, const float (&c)[N]) {
  const Lockstep<1, V> one(x);
  return polynomial(d, one, squares(one), c).v[0];
}

/// 2^n for integers -126 <= n <= 127.
template <class D, class VI = hn::Vec<hn::RebindToSigned<D>>>
HWY_INLINE hn::Vec<D> power_of_two(D d, VI n) {
  const hn::RebindToSigned<D> di;
  return hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(n, hn::Set(di, 127))));
}

/// Added to a number below 2^21, this leaves the nearest integer, 127 larger, in the lowest bits of the sum.
constexpr float kRounder = 0x1.8p23F + 127.0F;

/// x = n ln 2 + r with |r| <= ln 2 / 2: kRounder + n, and r. A NaN gives NaN and some n. Requires |x| < 2^20.
template <class D, int kCount, class V = hn::Vec<D>>
HWY_INLINE Lockstep<kCount, V> reduce(D d, const Lockstep<kCount, V>& x, Lockstep<kCount, V>* n) {
  n->set([&](auto i) HWY_ATTR { return hn::MulAdd(x.v[i], hn::Set(d, 1.44269504088896341F), hn::Set(d, kRounder)); });
  // ln 2 in two parts; the first has so few bits that n * part is exact.
  Lockstep<kCount, V> r;
  r.set([&](auto i) HWY_ATTR {
    const V whole = hn::Sub(n->v[i], hn::Set(d, kRounder));
    const V most = hn::NegMulAdd(whole, hn::Set(d, 0.693359375F), x.v[i]);
    return hn::NegMulAdd(whole, hn::Set(d, -2.12194440e-4F), most);
  });
  return r;
}

/// The same, with e^r - 1 for r.
template <class D, int kCount, class V = hn::Vec<D>>
HWY_INLINE Lockstep<kCount, V> reduce_exp(D d, const Lockstep<kCount, V>& x, Lockstep<kCount, V>* n) {
  const Lockstep<kCount, V> r = reduce(d, x, n);
  static constexpr float kC[] = {0x1.fffffcp-2F, 0x1.55549p-3F, 0x1.5558f4p-5F, 0x1.123a6cp-7F, 0x1.6a234ep-10F};
  const Lockstep<kCount, V> square = squares(r);
  Lockstep<kCount, V> y = polynomial(d, r, square, kC);
  y.set([&](auto i) HWY_ATTR { return hn::MulAdd(square.v[i], y.v[i], r.v[i]); });
  return y;
}

/// 2^n of what reduce_exp gave, for -126 <= n <= 127: the bits above n + 127 leave the number.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V reduced_power_of_two(D d, V n) {
  return hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(hn::RebindToSigned<D>(), n)));
}

/// (y + 1) 2^n of what reduce_exp gave, for n in [-150, 128]; results below 2^-126 are rounded once more.
#if HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86
template <class D, class V = hn::Vec<D>>
HWY_INLINE V scale_exp(D d, V y, V n) {
  const V one_more = hn::Add(y, hn::Set(d, 1.0F));
  const V power = hn::Sub(n, hn::Set(d, kRounder));
  if constexpr (hn::MaxLanes(D()) == 16) return V{_mm512_scalef_ps(one_more.raw, power.raw)};
  if constexpr (hn::MaxLanes(D()) == 8) return V{_mm256_scalef_ps(one_more.raw, power.raw)};
  if constexpr (hn::MaxLanes(D()) <= 4) return V{_mm_scalef_ps(one_more.raw, power.raw)};
}
#else
template <class D, class V = hn::Vec<D>>
HWY_INLINE V scale_exp(D d, V y, V n) {
  // Two steps keep both factors normal.
  const hn::RebindToSigned<D> di;
  const auto power = hn::Sub(hn::BitCast(di, n), hn::BitCast(di, hn::Set(d, kRounder)));
  const auto half = hn::ShiftRight<1>(power);
  const V first = power_of_two(d, half);
  return hn::Mul(hn::MulAdd(y, first, first), power_of_two(d, hn::Sub(power, half)));
}
#endif

/// e^x for any x; results below 2^-126 are rounded once more, beyond the range they are 0 and infinity.
template <class D, int kCount, class V = hn::Vec<D>>
HWY_INLINE Lockstep<kCount, V> exp_f32(D d, Lockstep<kCount, V> x) {
  x.set([&](auto i) HWY_ATTR { return at_least(d, at_most(d, x.v[i], hn::Set(d, 89.0F)), hn::Set(d, -104.0F)); });
  Lockstep<kCount, V> n;
  Lockstep<kCount, V> y = reduce_exp(d, x, &n);
  y.set([&](auto i) HWY_ATTR { return scale_exp(d, y.v[i], n.v[i]); });
  return y;
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V exp_f32(D d, V x) {
  return exp_f32(d, Lockstep<1, V>(x)).v[0];
}

/// e^x, or with kLessOne e^x - 1, for x <= 88, without infinities; e^x counts as 0 where it is below 2^-126.5. e^x - 1
/// is exact to the last places near 0, too.
template <bool kLessOne, class D, int kCount, class V = hn::Vec<D>>
HWY_INLINE Lockstep<kCount, V> exp_less(D d, Lockstep<kCount, V> x) {
  // e^-88 has n = -127, which as an exponent field makes the scale 0.
  x.set([&](auto i) HWY_ATTR { return at_least(d, x.v[i], hn::Set(d, -88.0F)); });
  Lockstep<kCount, V> n;
  Lockstep<kCount, V> y = reduce_exp(d, x, &n);
  y.set([&](auto i) HWY_ATTR {
    const V scale = reduced_power_of_two(d, n.v[i]);
    return hn::MulAdd(y.v[i], scale, kLessOne ? hn::Sub(scale, hn::Set(d, 1.0F)) : scale);
  });
  return y;
}

/// e^x for x <= 88, without infinities; 0 where it is below 2^-126.5.
template <class D, int kCount, class V = hn::Vec<D>>
HWY_INLINE Lockstep<kCount, V> exp_bounded_f32(D d, const Lockstep<kCount, V>& x) {
  return exp_less<false>(d, x);
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V exp_bounded_f32(D d, V x) {
  return exp_bounded_f32(d, Lockstep<1, V>(x)).v[0];
}

/// e^x - 1 for x <= 88; exact to the last places near 0, too.
template <class D, int kCount, class V = hn::Vec<D>>
HWY_INLINE Lockstep<kCount, V> expm1_f32(D d, const Lockstep<kCount, V>& x) {
  return exp_less<true>(d, x);
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V expm1_f32(D d, V x) {
  return expm1_f32(d, Lockstep<1, V>(x)).v[0];
}

/// 2^x for -127 <= x <= 127; 0 at -127, which as an exponent field makes the scale 0.
template <class D, int kCount, class V = hn::Vec<D>>
HWY_INLINE Lockstep<kCount, V> exp2_bounded_f32(D d, const Lockstep<kCount, V>& x) {
  static constexpr float kC[] = {0x1.62e430p-1F, 0x1.ebfbdcp-3F,  0x1.c6aee8p-5F,
                                 0x1.3b2d4cp-7F, 0x1.5f3e54p-10F, 0x1.41fbbcp-13F};
  Lockstep<kCount, V> n, r;
  n.set([&](auto i) HWY_ATTR { return hn::Add(x.v[i], hn::Set(d, kRounder)); });
  r.set([&](auto i) HWY_ATTR { return hn::Sub(x.v[i], hn::Sub(n.v[i], hn::Set(d, kRounder))); });
  Lockstep<kCount, V> y = polynomial(d, r, squares(r), kC);
  y.set([&](auto i) HWY_ATTR {
    const V scale = reduced_power_of_two(d, n.v[i]);
    return hn::MulAdd(hn::Mul(r.v[i], y.v[i]), scale, scale);
  });
  return y;
}

/// log(1 + f) + n ln 2 for sqrt(1/2) <= 1 + f < sqrt(2).
template <class D, class V = hn::Vec<D>>
HWY_INLINE V finish_log(D d, V f, V n) {
  static constexpr float kC[] = {0x1.555548p-2F,  -0x1.000006p-2F, 0x1.99a4bcp-3F,  -0x1.555c5ap-3F, 0x1.2336e0p-3F,
                                 -0x1.fc1f6ep-4F, 0x1.e6f630p-4F,  -0x1.de4fa4p-4F, 0x1.1462c0p-4F};
  const V f2 = hn::Mul(f, f);
  V tail = hn::Mul(hn::Mul(polynomial(d, f, kC), f2), f);
  tail = hn::MulAdd(n, hn::Set(d, -2.12194440e-4F), tail);
  tail = hn::NegMulAdd(hn::Set(d, 0.5F), f2, tail);
  return hn::MulAdd(n, hn::Set(d, 0.693359375F), hn::Add(f, tail));
}

/// Natural logarithm: -infinity at 0, NaN below.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V log_f32(D d, V x) {
  const hn::RebindToSigned<D> di;
  const auto tiny = hn::Lt(x, hn::Set(d, 1.17549435e-38F));
  const V scaled = hn::IfThenElse(tiny, hn::Mul(x, hn::Set(d, 0x1p24F)), x);
  // 1 + f = x / 2^n in [sqrt(1/2), sqrt(2)): subtracting the bits of sqrt(1/2) leaves n in the exponent field.
  const auto bits = hn::BitCast(di, scaled);
  const auto offset = hn::Sub(bits, hn::Set(di, 0x3f3504f3));
  const auto exponent = hn::ShiftRight<23>(offset);
  const V mantissa = hn::BitCast(d, hn::Add(hn::And(offset, hn::Set(di, 0x007fffff)), hn::Set(di, 0x3f3504f3)));
  const V n = hn::Sub(hn::ConvertTo(d, exponent), hn::IfThenElseZero(tiny, hn::Set(d, 24.0F)));
  V y = finish_log(d, hn::Sub(mantissa, hn::Set(d, 1.0F)), n);
  const V infinity = hn::BitCast(d, hn::Set(di, 0x7f800000));
  // Infinity and NaN pass through; zero gives -infinity, negative numbers NaN.
  y = hn::IfThenElse(hn::Lt(x, infinity), y, x);
  y = hn::IfThenElse(hn::Eq(x, hn::Zero(d)), hn::Neg(infinity), y);
  return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::BitCast(d, hn::Set(di, 0x7fc00000)), y);
}

/// log(1 + x) for 0 <= x <= 1 and NaN.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V log1p_unit_f32(D d, V x) {
  const V one = hn::Set(d, 1.0F);
  const auto large = hn::Gt(x, hn::Set(d, 0.41421356F));
  // (1 + x) / 2 - 1 = (x - 1) / 2, exactly.
  const V f = hn::IfThenElse(large, hn::Mul(hn::Sub(x, one), hn::Set(d, 0.5F)), x);
  return finish_log(d, f, hn::IfThenElseZero(large, one));
}

/// The sigmoid function as above / below: what follows it needs no second division.
template <int kCount, class V>
struct SigmoidRatio {
  Lockstep<kCount, V> above, below;

  HWY_INLINE SigmoidRatio() {}
};

template <class D, int kCount, class V = hn::Vec<D>>
HWY_INLINE SigmoidRatio<kCount, V> sigmoid_ratio_f32(D d, const Lockstep<kCount, V>& x) {
  // 1 / (1 + 2^n e^r), with e^r = (even + odd) / (even - odd) to 1e-8: a Pade approximant of third degree.
  Lockstep<kCount, V> bounded, n, even, odd;
  bounded.set([&](auto i)
                  HWY_ATTR { return at_least(d, at_most(d, hn::Neg(x.v[i]), hn::Set(d, 88.0F)), hn::Set(d, -88.0F)); });
  const Lockstep<kCount, V> r = reduce(d, bounded, &n);
  const Lockstep<kCount, V> square = squares(r);
  even.set([&](auto i) HWY_ATTR { return hn::MulAdd(square.v[i], hn::Set(d, 0.1F), hn::Set(d, 1.0F)); });
  odd.set([&](auto i) HWY_ATTR {
    return hn::Mul(r.v[i], hn::MulAdd(square.v[i], hn::Set(d, 1.0F / 120.0F), hn::Set(d, 0.5F)));
  });
  SigmoidRatio<kCount, V> ratio;
  ratio.above.set([&](auto i) HWY_ATTR { return hn::Sub(even.v[i], odd.v[i]); });
  ratio.below.set([&](auto i) HWY_ATTR {
    return hn::MulAdd(hn::Add(even.v[i], odd.v[i]), reduced_power_of_two(d, n.v[i]), ratio.above.v[i]);
  });
  return ratio;
}

template <class D, int kCount, class V = hn::Vec<D>>
HWY_INLINE Lockstep<kCount, V> sigmoid_f32(D d, const Lockstep<kCount, V>& x) {
  const SigmoidRatio<kCount, V> ratio = sigmoid_ratio_f32(d, x);
  Lockstep<kCount, V> y;
  y.set([&](auto i) HWY_ATTR { return hn::Div(ratio.above.v[i], ratio.below.v[i]); });
  return y;
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V sigmoid_f32(D d, V x) {
  return sigmoid_f32(d, Lockstep<1, V>(x)).v[0];
}

/// 1 + e^-x for results of few digits: relative errors are below 4e-6 within 16 of zero, below 2e-5 beyond, where it
/// ends at 2^126. 2^t = 2^n 2^f with a polynomial of fourth degree for 2^f, |f| <= 1/2. NaN gives a number.
template <class D, int kCount, class V = hn::Vec<D>>
HWY_INLINE Lockstep<kCount, V> rough_sigmoid_reciprocal(D d, const Lockstep<kCount, V>& x) {
  Lockstep<kCount, V> t, n, y;
  t.set([&](auto i) HWY_ATTR {
    const V power = hn::Mul(x.v[i], hn::Set(d, -1.44269504088896341F));
    return hn::Max(hn::Min(power, hn::Set(d, 126.0F)), hn::Set(d, -126.0F));
  });
  n.set([&](auto i) HWY_ATTR { return hn::Add(t.v[i], hn::Set(d, kRounder)); });
  t.set([&](auto i) HWY_ATTR { return hn::Sub(t.v[i], hn::Sub(n.v[i], hn::Set(d, kRounder))); });
  // Horner's rule takes fewer instructions than `polynomial`, and these are what counts here.
  y.set([&](auto) HWY_ATTR { return hn::Set(d, 0x1.39978ep-7F); });
  for (const float c : {0x1.ca1424p-5F, 0x1.ec06dap-3F, 0x1.62e0dep-1F, 0x1.ffffe8p-1F})
    y.set([&](auto i) HWY_ATTR { return hn::MulAdd(y.v[i], t.v[i], hn::Set(d, c)); });
  y.set([&](auto i) HWY_ATTR { return hn::MulAdd(y.v[i], reduced_power_of_two(d, n.v[i]), hn::Set(d, 1.0F)); });
  return y;
}

/// x p(x^2) / q(x^2) for -limit <= x <= limit, and its values there beyond: an odd function that soon is constant.
template <class D, std::size_t N, std::size_t M, int kCount, class V = hn::Vec<D>>
HWY_INLINE Lockstep<kCount, V> odd_ratio(D d, Lockstep<kCount, V> x, float limit, const float (&p)[N],
                                         const float (&q)[M]) {
  x.set([&](auto i) HWY_ATTR { return at_least(d, at_most(d, x.v[i], hn::Set(d, limit)), hn::Set(d, -limit)); });
  const Lockstep<kCount, V> square = squares(x);
  const Lockstep<kCount, V> fourth = squares(square);
  Lockstep<kCount, V> y = polynomial(d, square, fourth, p);
  const Lockstep<kCount, V> below = polynomial(d, square, fourth, q);
  y.set([&](auto i) HWY_ATTR { return hn::Div(hn::Mul(x.v[i], y.v[i]), below.v[i]); });
  return y;
}

template <class D, int kCount, class V = hn::Vec<D>>
HWY_INLINE Lockstep<kCount, V> tanh_f32(D d, const Lockstep<kCount, V>& x) {
  static constexpr float kP[] = {1.0F, 0x1.1207b2p-3F, 0x1.ca127ap-9F, 0x1.598c7ap-16F, 0x1.ca4090p-27F};
  static constexpr float kQ[] = {1.0F, 0x1.de5922p-2F, 0x1.a7eb92p-6F, 0x1.58640ep-12F, 0x1.a11c7cp-21F};
  return odd_ratio(d, x, 9.01F, kP, kQ);
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V tanh_f32(D d, V x) {
  return tanh_f32(d, Lockstep<1, V>(x)).v[0];
}

/// log(1 + e^x).
template <class D, class V = hn::Vec<D>>
HWY_INLINE V softplus_f32(D d, V x) {
  return hn::Add(at_least(d, x, hn::Zero(d)), log1p_unit_f32(d, exp_bounded_f32(d, hn::Neg(hn::Abs(x)))));
}

template <class D, int kCount, class V = hn::Vec<D>>
HWY_INLINE Lockstep<kCount, V> erf_f32(D d, const Lockstep<kCount, V>& x) {
  static constexpr float kP[] = {0x1.20dd74p+0F, 0x1.85f414p-3F,  0x1.b01e3cp-5F,
                                 0x1.ed91e4p-9F, 0x1.2ab8d6p-12F, 0x1.132876p-19F};
  static constexpr float kQ[] = {1.0F,           0x1.01102cp-1F,  0x1.d3644ap-4F,
                                 0x1.ea8344p-7F, 0x1.30c0d6p-10F, 0x1.3f896cp-15F};
  return odd_ratio(d, x, 3.92F, kP, kQ);
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V erf_f32(D d, V x) {
  return erf_f32(d, Lockstep<1, V>(x)).v[0];
}

#if HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86
/// The probability that a normally distributed number exceeds |x|, and |x|, or 6 beyond, where it is 1e-9, and for NaN:
/// by NormalTailTable, whose coefficients fill two registers each, in half of the instructions that an exponential
/// and a ratio take.
HWY_INLINE hn::Vec512<float> normal_tail_f32(hn::Full512<float> d, hn::Vec512<float> x, hn::Vec512<float>* magnitude) {
  using Table = NormalTailTable;
  constexpr int kLesserMagnitude = 0b1010;  // without the sign
  constexpr float kNearest = 0x1.8p23F;     // added, it leaves the nearest integer in the lowest bits
  const hn::Vec512<float> t{_mm512_range_ps(x.raw, hn::Set(d, Table::kLast).raw, kLesserMagnitude)};
  const auto place = hn::MulAdd(t, hn::Set(d, 1 / Table::kWidth), hn::Set(d, kNearest));
  const auto offset = hn::NegMulAdd(hn::Sub(place, hn::Set(d, kNearest)), hn::Set(d, Table::kWidth), t);
  const auto piece = [&](int i) HWY_ATTR {
    const float* c = kNormalTailTable.c[i];
    return hn::Vec512<float>{
        _mm512_permutex2var_ps(_mm512_load_ps(c), _mm512_castps_si512(place.raw), _mm512_load_ps(c + 16))};
  };
  auto y = piece(Table::kDegree);
  unroll<Table::kDegree>([&](auto i) HWY_ATTR { y = hn::MulAdd(y, offset, piece(Table::kDegree - 1 - i)); });
  *magnitude = t;
  return y;
}
#endif

/// The probability that a normally distributed number exceeds |x|, and |x|, or 9.2 beyond, where it is 2e-20. One
/// vector at a time: its three polynomials are independent, and those of several vectors do not fit in the registers.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V normal_tail_f32(D d, V x, V* magnitude) {
  // e^(-t^2 / 2) times a ratio that changes little
  static constexpr float kP[] = {0x1.000000p-1F, 0x1.b151aap-2F, 0x1.60b81ap-3F, 0x1.2ee022p-5F, 0x1.d5da9ep-9F};
  static constexpr float kQ[] = {1.0F, 0x1.a4eb02p+0F, 0x1.2805f4p+0F, 0x1.c301b4p-2F, 0x1.7ba718p-4F, 0x1.266d5ap-7F};
  const Lockstep<1, V> t(at_most(d, hn::Abs(x), hn::Set(d, 9.2F)));
  const Lockstep<1, V> square = squares(t);
  const V power = hn::Mul(square.v[0], hn::Set(d, -0.721347520F));
  const V bell = exp2_bounded_f32(d, Lockstep<1, V>(power)).v[0];
  *magnitude = t.v[0];
  return hn::Mul(bell, hn::Div(polynomial(d, t, square, kP).v[0], polynomial(d, t, square, kQ).v[0]));
}

}  // namespace bantam::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
