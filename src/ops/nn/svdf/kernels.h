// The kernels of svdf behind its variants table in svdf.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "ops/common/saturate.h"
#include "ops/fixed_point.h"
#include "ops/nn/svdf/svdf.h"

namespace bantam::ops::svdf {

inline constexpr int kFeatures = 0;
inline constexpr int kState = 1;
inline constexpr int kWeights = 2;
inline constexpr int kBias = 3;

/// Every filter's oldest feature gives way to what `store` makes of the newest: the state moves by one element as a
/// whole, then the new features take their places.
template <typename T, typename Store>
void push_features(const Invocation& call, Store store) noexcept {
  const auto memory = static_cast<std::size_t>(call.in(kWeights).dims[1]);
  const auto filters = static_cast<std::size_t>(call.in(kFeatures).elements());
  if (filters == 0) return;
  const T* features = call.input<T>(kFeatures);
  T* state = call.output<T>(1);
  std::memmove(state, call.input<T>(kState) + 1, (filters * memory - 1) * sizeof(T));
  for (std::size_t f = 0; f < filters; ++f) state[(f + 1) * memory - 1] = store(features[f]);
}

/// A unit's 8-bit result of the wrapping sum of its products, to which its bias, if not null, is yet to be added.
inline std::int8_t finish_unit(const SvdfParams& p, std::uint32_t sum, const std::int32_t* bias) noexcept {
  if (bias != nullptr) sum += static_cast<std::uint32_t>(*bias);
  const std::int64_t scaled = multiply_by_quantized_multiplier(static_cast<std::int32_t>(sum), p.multiplier, p.shift);
  return saturate_integer<std::int8_t>(scaled + p.output_zero_point);
}

/// Dense operands of int8 or int16, or of f32.
bool supports_integers(const OpCall& call);
bool supports_floats(const OpCall& call);
Status run_integers(const Invocation& call);
Status run_floats(const Invocation& call);

}  // namespace bantam::ops::svdf
