// How scatter operators combine an element with its update. Shared by scatter_nd and scatter_elements. Freestanding.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "ops/common/dispatch.h"
#include "ops/common/operands.h"
#include "ops/common/params.h"
#include "ops/data/scatter_nd/scatter_nd.h"

namespace bantam::ops {

inline constexpr std::string_view kScatterReductionNames[] = {"none", "add", "mul", "min", "max"};

/// Replacing works on any type of whole bytes, the arithmetic on numbers of the host's own types.
inline Status check_reduction(ScatterReduction reduction, const TensorDesc& x) noexcept {
  if (!is_enumerator(reduction))
    return failure(StatusCode::kInvalidModel, "unknown reduction", static_cast<std::int64_t>(reduction), 0);
  BANTAM_RETURN_IF_ERROR(check_whole_bytes(x, 0));
  if (reduction != ScatterReduction::kNone && is_one_of<Half, BFloat16, Bool8>(x.type))
    return failure(StatusCode::kUnsupported, "scatter cannot combine elements of this type",
                   static_cast<std::int64_t>(x.type), static_cast<std::int64_t>(ElementType::kF32))
        .at(0);
  return ok_status();
}

/// a combined with b; integers wrap, a NaN on either side wins.
template <typename T>
T combine(ScatterReduction reduction, T a, T b) noexcept {
  using Wrapping = std::conditional_t<std::is_integral_v<T>, std::uint64_t, T>;
  switch (reduction) {
    case ScatterReduction::kAdd: return static_cast<T>(static_cast<Wrapping>(a) + static_cast<Wrapping>(b));
    case ScatterReduction::kMul: return static_cast<T>(static_cast<Wrapping>(a) * static_cast<Wrapping>(b));
    case ScatterReduction::kMin: return b < a || b != b ? b : a;
    case ScatterReduction::kMax: return b > a || b != b ? b : a;
    default: return b;
  }
}

/// Calls f(TypeTag<T>) with the arithmetic type, or, for plain replacement, with an unsigned integer of that size.
template <typename F>
void dispatch_reduction(ScatterReduction reduction, ElementType type, F&& f) {
  if (reduction == ScatterReduction::kNone) {
    dispatch_size(element_size(type), f);
  } else {
    dispatch_type<float, double, std::int8_t, std::uint8_t, std::int16_t, std::uint16_t, std::int32_t, std::uint32_t,
                  std::int64_t, std::uint64_t>(type, f);
  }
}

/// Result 0 may take operand 0's place.
inline Footprint scatter_footprint(const OpCall& /*call*/, int /*threads*/) {
  Footprint footprint;
  footprint.overwrites[0] = 1;
  return footprint;
}

/// The result starts as a copy of operand 0 unless it lies in its place.
inline void start_scatter(const Invocation& call) noexcept {
  const auto bytes = static_cast<std::size_t>(call.out().bytes());
  if (bytes != 0 && call.outputs[0].data != call.inputs[0].data)
    std::memcpy(call.outputs[0].data, call.inputs[0].data, bytes);
}

}  // namespace bantam::ops
