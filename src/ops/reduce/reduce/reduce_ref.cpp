#include <cmath>
#include <limits>
#include <type_traits>

#include "ops/common/dispatch.h"
#include "ops/reduce/reduce/kernels.h"
#include "ops/reduce/reduce/reduce.h"
#include "ops/reduce/reduce_loops.h"

namespace bantam::ops {
namespace {

constexpr std::int64_t kBlock = 64;

/// Sums term(x) in blocks, so that the rounding error grows with the number of blocks.
template <typename T, typename Term>
T blocked_sum(const StridedRows<1>& elements, const T* x, std::int64_t block_size, Term term) {
  T total = 0;
  T block = 0;
  std::int64_t count = 0;
  for_each_element(elements, [&](const auto& offsets) {
    block += term(x[offsets[0]]);
    if (++count % block_size != 0) return;
    total += block;
    block = 0;
  });
  return total + block;
}

template <typename T, typename F>
T fold(const StridedRows<1>& elements, const T* x, T start, F f) {
  for_each_element(elements, [&](const auto& offsets) { start = f(start, x[offsets[0]]); });
  return start;
}

template <typename T>
T reduce_float(const ReduceParams& params, const StridedRows<1>& elements, const T* x) {
  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  // One block of everything is the sequential sum: adding it to a total of zero changes nothing.
  const std::int64_t block_size = params.sequential != 0 ? elements.elements + 1 : kBlock;
  const auto sum = [&](auto term) { return blocked_sum(elements, x, block_size, term); };
  const auto same = [](T v) { return v; };
  const auto square = [](T v) { return v * v; };
  const auto larger = [](T a, T b) { return a > b || std::isnan(a) ? a : b; };
  const auto smaller = [](T a, T b) { return a < b || std::isnan(a) ? a : b; };
  switch (params.function) {
    case ReduceFunction::kSum: return sum(same);
    case ReduceFunction::kMean: return sum(same) / static_cast<T>(elements.elements);
    case ReduceFunction::kMax: return fold(elements, x, -kInfinity, larger);
    case ReduceFunction::kMin: return fold(elements, x, kInfinity, smaller);
    case ReduceFunction::kProd: return fold(elements, x, T{1}, [](T a, T b) { return a * b; });
    case ReduceFunction::kL1: return sum([](T v) { return std::abs(v); });
    case ReduceFunction::kL2: return std::sqrt(sum(square));
    case ReduceFunction::kLogSum: return std::log(sum(same));
    case ReduceFunction::kSumSquare: return sum(square);
    case ReduceFunction::kLogSumExp: {
      const T largest = fold(elements, x, -kInfinity, larger);
      if (std::isinf(largest)) return largest;
      return largest + std::log(sum([largest](T v) { return std::exp(v - largest); }));
    }
    default: return T{0};
  }
}

template <typename T>
T reduce_integer(ReduceFunction function, const StridedRows<1>& elements, const T* x) {
  // 64-bit unsigned arithmetic wraps for every T; a sum of fewer than 2^31 elements of up to 32 bits is exact in it.
  const auto sum = [&](auto term) {
    std::uint64_t total = 0;
    for_each_element(elements, [&](const auto& offsets) { total += term(static_cast<std::uint64_t>(x[offsets[0]])); });
    return total;
  };
  const auto same = [](std::uint64_t v) { return v; };
  switch (function) {
    case ReduceFunction::kSum: return static_cast<T>(sum(same));
    case ReduceFunction::kMean:
      if (elements.elements == 0) return T{0};
      if constexpr (std::is_unsigned_v<T>) {
        return static_cast<T>(sum(same) / static_cast<std::uint64_t>(elements.elements));
      } else {
        return static_cast<T>(static_cast<std::int64_t>(sum(same)) / elements.elements);
      }
    case ReduceFunction::kMax:
      return fold(elements, x, std::numeric_limits<T>::lowest(), [](T a, T b) { return a > b ? a : b; });
    case ReduceFunction::kMin:
      return fold(elements, x, std::numeric_limits<T>::max(), [](T a, T b) { return a < b ? a : b; });
    case ReduceFunction::kL1:
      return static_cast<T>(
          sum([](std::uint64_t v) { return std::is_signed_v<T> && static_cast<std::int64_t>(v) < 0 ? 0 - v : v; }));
    case ReduceFunction::kSumSquare: return static_cast<T>(sum([](std::uint64_t v) { return v * v; }));
    case ReduceFunction::kProd:
      return fold(elements, x, T{1}, [](T a, T b) {
        return static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
      });
    default: return T{0};
  }
}

std::uint8_t reduce_bool(ReduceFunction function, const StridedRows<1>& elements, const std::uint8_t* x) {
  const bool any = function == ReduceFunction::kAny;
  bool result = !any;
  for_each_element(elements, [&](const auto& offsets) {
    const bool value = x[offsets[0]] != 0;
    result = any ? result || value : result && value;
  });
  return result ? 1 : 0;
}

}  // namespace

Status run_reduce_ref(const Invocation& invocation) {
  const auto& params = invocation.as<ReduceParams>();
  const ReduceFunction function = params.function;
  const ElementType type = invocation.in(0).type;
  const ReduceLoops loops = make_reduce_loops(params.axes, params.keep_dims, invocation.in(0), invocation.out());
  if (type == ElementType::kBool) {
    for_each_result<std::uint8_t>(invocation, loops, [function](const StridedRows<1>& elements, const std::uint8_t* x) {
      return reduce_bool(function, elements, x);
    });
    return ok_status();
  }
  if (params.wide != 0) {
    dispatch_type<std::int8_t, std::uint8_t, std::int16_t>(type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      for_each_result<T, std::int32_t>(invocation, loops,
                                       [](const auto& elements, const T* x) { return wide_sum(elements, x); });
    });
    return ok_status();
  }
  dispatch_type<float, double, std::int8_t, std::uint8_t, std::int16_t, std::uint16_t, std::int32_t, std::uint32_t,
                std::int64_t, std::uint64_t>(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for_each_result<T>(invocation, loops, [&](const StridedRows<1>& elements, const T* x) {
      if constexpr (std::is_floating_point_v<T>) {
        return reduce_float(params, elements, x);
      } else {
        return reduce_integer<T>(function, elements, x);
      }
    });
  });
  return ok_status();
}

}  // namespace bantam::ops
