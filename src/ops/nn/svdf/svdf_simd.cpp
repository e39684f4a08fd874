// svdf with vectors: each unit is one sum of products of what lies one behind the other. Sums of integers wrap, so that
// their order does not matter; those of floats are rounded in another order than the reference's.
#include "ops/common/dispatch.h"
#include "ops/common/operands.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/nn/svdf/svdf_simd.cpp"
#include "hwy/foreach_target.h"
// Highway wants the headers below after foreach_target.h.
#include "hwy/highway.h"
#include "ops/common/rows_simd-inl.h"
#include "ops/nn/svdf/kernels.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::svdf::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using ops::HWY_NAMESPACE::load_partial;

// Units have some ten to some hundred products: longer vectors would seldom be whole.
constexpr std::size_t kMostLanes = 8;

/// Sums of products of floats.
class FloatSum {
 public:
  using T = float;
  using D = hn::CappedTag<float, kMostLanes>;
  using V = hn::Vec<D>;
  static HWY_INLINE V load(const float* from) { return hn::LoadU(D(), from); }
  static HWY_INLINE V load_some(const float* from, std::size_t n) { return load_partial(D(), from, n); }

  HWY_INLINE explicit FloatSum(std::int32_t /*zero_point*/) : sum_(hn::Zero(D())) {}

  HWY_INLINE void add(V w, V x) { sum_ = hn::MulAdd(w, x, sum_); }
  HWY_INLINE float total() const { return hn::GetLane(hn::SumOfLanes(D(), sum_)); }

 private:
  V sum_;
};

/// Wrapping sums of products of int8 or int16 and the distances of others from a zero point.
template <typename TNumber>
class IntegerSum {
 public:
  using T = TNumber;
  using D = hn::CappedTag<std::int16_t, kMostLanes>;
  using V = hn::Vec<D>;
  static HWY_INLINE V load(const T* from) {
    if constexpr (sizeof(T) == 1) return hn::PromoteTo(D(), hn::LoadU(hn::Rebind<T, D>(), from));
    if constexpr (sizeof(T) == 2) return hn::LoadU(D(), from);
  }
  static HWY_INLINE V load_some(const T* from, std::size_t n) {
    if constexpr (sizeof(T) == 1) return hn::PromoteTo(D(), load_partial(hn::Rebind<T, D>(), from, n));
    if constexpr (sizeof(T) == 2) return load_partial(D(), from, n);
  }

  HWY_INLINE explicit IntegerSum(std::int32_t zero_point)
      : zero_point_(zero_point),
        products_(hn::Zero(D32())),
        more_products_(hn::Zero(D32())),
        weights_(hn::Zero(D32())),
        more_weights_(hn::Zero(D32())) {}

  HWY_INLINE void add(V w, V x) {
    products_ = hn::ReorderWidenMulAccumulate(D32(), w, x, products_, more_products_);
    if (zero_point_ != 0)
      weights_ = hn::ReorderWidenMulAccumulate(D32(), w, hn::Set(D(), std::int16_t{1}), weights_, more_weights_);
  }
  HWY_INLINE std::uint32_t total() const {
    const std::uint32_t products = sum(hn::Add(products_, more_products_));
    if (zero_point_ == 0) return products;
    return products - sum(hn::Add(weights_, more_weights_)) * static_cast<std::uint32_t>(zero_point_);
  }

 private:
  using D32 = hn::RepartitionToWide<D>;
  using V32 = hn::Vec<D32>;

  static HWY_INLINE std::uint32_t sum(V32 v) {
    return static_cast<std::uint32_t>(hn::GetLane(hn::SumOfLanes(D32(), v)));
  }

  std::int32_t zero_point_;
  V32 products_;
  V32 more_products_;  ///< see ReorderWidenMulAccumulate
  V32 weights_;
  V32 more_weights_;
};

/// Adds n products. The last vector reaches back over those before it, which count as zeros.
template <class Sum, typename T = typename Sum::T>
HWY_INLINE void add_products(const T* w, const T* x, std::size_t n, Sum& sum) {
  const typename Sum::D d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) sum.add(Sum::load(w + i), Sum::load(x + i));
  if (i == n) return;
  if (n < lanes) return sum.add(Sum::load_some(w, n), Sum::load_some(x, n));
  const auto done = hn::FirstN(d, lanes - (n - i));
  const std::size_t last = n - lanes;
  sum.add(hn::IfThenZeroElse(done, Sum::load(w + last)), hn::IfThenZeroElse(done, Sum::load(x + last)));
}

/// y = finish(sum, unit) for the units of all items.
template <class Sum, typename Y, class Finish>
HWY_INLINE void sum_units(const Invocation& call, std::int32_t zero_point, Finish finish) {
  using T = typename Sum::T;
  const auto per_unit =
      static_cast<std::size_t>(call.as<SvdfParams>().rank) * static_cast<std::size_t>(call.in(kWeights).dims[1]);
  const T* stored = call.output<T>(1);
  Y* y = call.output<Y>();
  for (std::int32_t b = 0; b < call.out().dims[0]; ++b) {
    const T* w = call.input<T>(kWeights);
    for (std::int32_t unit = 0; unit < call.out().dims[1]; ++unit, w += per_unit, stored += per_unit) {
      Sum sum(zero_point);
      add_products(w, stored, per_unit, sum);
      *y++ = finish(sum.total(), unit);
    }
  }
}

void run_integers_target(const Invocation& call) {
  const auto& p = call.as<SvdfParams>();
  const auto* bias = call.has(kBias) ? call.input<std::int32_t>(kBias) : nullptr;
  dispatch_type<std::int8_t, std::int16_t>(call.in(kFeatures).type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    push_features<T>(call, [&](T feature) { return static_cast<T>(feature + p.state_zero_point); });
    sum_units<IntegerSum<T>, std::int8_t>(call, p.state_zero_point, [&](std::uint32_t sum, std::int32_t unit) {
      return finish_unit(p, sum, bias != nullptr ? bias + unit : nullptr);
    });
  });
}

void run_floats_target(const Invocation& call) {
  const Activation& activation = call.as<SvdfParams>().activation;
  const auto* bias = call.has(kBias) ? call.input<float>(kBias) : nullptr;
  push_features<float>(call, [](float feature) { return feature; });
  sum_units<FloatSum, float>(call, 0, [&](float sum, std::int32_t unit) {
    return apply_activation(bias != nullptr ? bias[unit] + sum : sum, activation);
  });
}

}  // namespace
}  // namespace bantam::ops::svdf::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bantam::ops::svdf {

HWY_EXPORT(run_integers_target);
HWY_EXPORT(run_floats_target);

bool supports_integers(const OpCall& call) { return call.in(kFeatures).type != ElementType::kF32 && all_dense(call); }

bool supports_floats(const OpCall& call) { return call.in(kFeatures).type == ElementType::kF32 && all_dense(call); }

Status run_integers(const Invocation& call) {
  HWY_DYNAMIC_DISPATCH(run_integers_target)(call);
  return ok_status();
}

Status run_floats(const Invocation& call) {
  HWY_DYNAMIC_DISPATCH(run_floats_target)(call);
  return ok_status();
}

}  // namespace bantam::ops::svdf
#endif
