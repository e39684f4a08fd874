// The float functions of one argument on Highway vectors. Kernels that keep results in registers call apply_activation,
// others activate_rows.h; the operator `unary` calls its template form. Included by *_simd.cpp files, compiled once per
// instruction set. Results agree with apply_unary (function.h) within 4e-7 of the exact value's magnitude or 1e-6 of
// the normal tail for gelu, with AVX-512 as NormalTailTable; NaN gives NaN.
#if defined(BANTAM_OPS_ACTIVATION_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BANTAM_OPS_ACTIVATION_SIMD_INL_H_
#undef BANTAM_OPS_ACTIVATION_SIMD_INL_H_
#else
#define BANTAM_OPS_ACTIVATION_SIMD_INL_H_
#endif

#include "hwy/highway.h"
#include "ops/common/math_simd-inl.h"
#include "ops/elementwise/unary/function.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// A function of one vector as one of several.
template <class F>
struct EachVector {
  F f;

  template <class D, int kCount, class V>
  HWY_INLINE Lockstep<kCount, V> operator()(D d, const Lockstep<kCount, V>& x) const {
    Lockstep<kCount, V> y;
    y.set([&](auto i) HWY_ATTR { return f(d, x.v[i]); });
    return y;
  }
};

/// Each of these is one function of UnaryFunction; a and b are its parameters.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V relu_f32(D d, V x) {
  return at_least(d, x, hn::Zero(d));
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V clip_f32(D d, V x, V a, V b) {
  return at_most(d, at_least(d, x, a), b);
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V leaky_relu_f32(D d, V x, V a) {
  return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Mul(a, x), x);
}

template <class D, int kCount, class V = hn::Vec<D>>
HWY_INLINE Lockstep<kCount, V> elu_f32(D d, const Lockstep<kCount, V>& x, V a) {
  Lockstep<kCount, V> y;
  y.set([&](auto i) HWY_ATTR { return hn::IfThenElseZero(hn::Lt(x.v[i], hn::Zero(d)), x.v[i]); });
  y = expm1_f32(d, y);
  y.set([&](auto i) HWY_ATTR { return hn::IfThenElse(hn::Lt(x.v[i], hn::Zero(d)), hn::Mul(a, y.v[i]), x.v[i]); });
  return y;
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V elu_f32(D d, V x, V a) {
  return elu_f32(d, Lockstep<1, V>(x), a).v[0];
}

template <class D, int kCount, class V = hn::Vec<D>>
HWY_INLINE Lockstep<kCount, V> celu_f32(D d, const Lockstep<kCount, V>& x, V a) {
  Lockstep<kCount, V> y;
  y.set([&](auto i) HWY_ATTR { return at_most(d, hn::Div(x.v[i], a), hn::Set(d, 88.0F)); });
  y = expm1_f32(d, y);
  y.set([&](auto i) HWY_ATTR { return hn::IfThenElse(hn::Lt(x.v[i], hn::Zero(d)), hn::Mul(a, y.v[i]), x.v[i]); });
  return y;
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V hard_sigmoid_f32(D d, V x, V a, V b) {
  return clip_f32(d, hn::Add(hn::Mul(a, x), b), hn::Zero(d), hn::Set(d, 1.0F));
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V hard_swish_f32(D d, V x) {
  return hn::Mul(x, hard_sigmoid_f32(d, x, hn::Set(d, 1.0F / 6.0F), hn::Set(d, 0.5F)));
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V gelu_f32(D d, V x) {
  // x (1 - tail(x)) for positive numbers, x tail(-x) for negative ones; far out the product with the tail is nothing.
  V t;
  const V tail = normal_tail_f32(d, x, &t);
  return hn::NegMulAdd(t, tail, relu_f32(d, x));
}

template <class D, int kCount, class V = hn::Vec<D>>
HWY_INLINE Lockstep<kCount, V> silu_f32(D d, const Lockstep<kCount, V>& x) {
  const SigmoidRatio<kCount, V> ratio = sigmoid_ratio_f32(d, x);
  Lockstep<kCount, V> y;
  y.set([&](auto i) HWY_ATTR { return hn::Div(hn::Mul(x.v[i], ratio.above.v[i]), ratio.below.v[i]); });
  return y;
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V silu_f32(D d, V x) {
  return silu_f32(d, Lockstep<1, V>(x)).v[0];
}

/// sigmoid(x) / step and silu(x) / step for results of 8 bits: relative errors as of rough_sigmoid_reciprocal.
template <class D, int kCount, class V = hn::Vec<D>>
HWY_INLINE Lockstep<kCount, V> sigmoid_steps(D d, const Lockstep<kCount, V>& x, V step) {
  const Lockstep<kCount, V> below = rough_sigmoid_reciprocal(d, x);
  Lockstep<kCount, V> y;
  y.set([&](auto i) HWY_ATTR { return hn::Div(hn::Set(d, 1.0F), hn::Mul(below.v[i], step)); });
  return y;
}

template <class D, int kCount, class V = hn::Vec<D>>
HWY_INLINE Lockstep<kCount, V> silu_steps(D d, const Lockstep<kCount, V>& x, V step) {
  const Lockstep<kCount, V> below = rough_sigmoid_reciprocal(d, x);
  Lockstep<kCount, V> y;
  y.set([&](auto i) HWY_ATTR { return hn::Div(x.v[i], hn::Mul(below.v[i], step)); });
  return y;
}

template <class D, int kCount, class V = hn::Vec<D>>
HWY_INLINE Lockstep<kCount, V> gelu_tanh_f32(D d, const Lockstep<kCount, V>& x) {
  // x sigmoid(2 u), u = sqrt(2 / pi) (x + 0.044715 x^3)
  Lockstep<kCount, V> y;
  y.set([&](auto i) HWY_ATTR {
    const V cubic = hn::MulAdd(hn::Mul(hn::Mul(x.v[i], x.v[i]), hn::Set(d, 0.044715F)), x.v[i], x.v[i]);
    return hn::Mul(cubic, hn::Set(d, 1.59576912160573071F));
  });
  const SigmoidRatio<kCount, V> ratio = sigmoid_ratio_f32(d, y);
  y.set([&](auto i) HWY_ATTR { return hn::Div(hn::Mul(x.v[i], ratio.above.v[i]), ratio.below.v[i]); });
  return y;
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V mish_f32(D d, V x) {
  // tanh(log(1 + e)) = n / (n + 2) with n = e (e + 2); from 20 on it is 1 in float.
  const V two = hn::Set(d, 2.0F);
  const V e = exp_bounded_f32(d, at_most(d, x, hn::Set(d, 20.0F)));
  const V n = hn::Mul(e, hn::Add(e, two));
  return hn::Mul(x, hn::Div(n, hn::Add(n, two)));
}

/// activation(x) for the functions that is_fusible allows; any other leaves x as it is. The choice depends on nothing
/// in the vector, so it predicts perfectly; hoist it with a template where even that matters.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V apply_activation(D d, V x, const Activation& activation) {
  switch (activation.function) {
    case UnaryFunction::kRelu: return relu_f32(d, x);
    case UnaryFunction::kClip: return clip_f32(d, x, hn::Set(d, activation.a), hn::Set(d, activation.b));
    case UnaryFunction::kLeakyRelu: return leaky_relu_f32(d, x, hn::Set(d, activation.a));
    case UnaryFunction::kSigmoid: return sigmoid_f32(d, x);
    case UnaryFunction::kTanh: return tanh_f32(d, x);
    case UnaryFunction::kHardSwish: return hard_swish_f32(d, x);
    case UnaryFunction::kHardSigmoid: return hard_sigmoid_f32(d, x, hn::Set(d, activation.a), hn::Set(d, activation.b));
    case UnaryFunction::kSilu: return silu_f32(d, x);
    case UnaryFunction::kGelu: return gelu_f32(d, x);
    case UnaryFunction::kElu: return elu_f32(d, x, hn::Set(d, activation.a));
    default: return x;
  }
}

}  // namespace bantam::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
