#include "ops/data/range/range.h"

#include <cmath>
#include <optional>

#include "ops/common/dispatch.h"
#include "ops/common/operands.h"

namespace bantam::ops {
namespace {

/// Steps from start to limit, or nothing when delta is zero (or not a number).
template <typename T>
std::optional<std::int64_t> count_steps(T start, T limit, T delta) {
  if constexpr (std::is_floating_point_v<T>) {
    if (delta == 0 || std::isnan(delta) || std::isnan(start) || std::isnan(limit)) return std::nullopt;
    const double steps = std::ceil((static_cast<double>(limit) - static_cast<double>(start)) / delta);
    if (std::isnan(steps)) return std::nullopt;
    if (steps <= 0) return 0;
    return steps > static_cast<double>(kMaxElements) ? kMaxElements + 1 : static_cast<std::int64_t>(steps);
  } else {
    if (delta == 0) return std::nullopt;
    if (delta > 0 ? limit <= start : limit >= start) return 0;
    // Distances of 64-bit integers need 64 unsigned bits.
    const auto a = static_cast<std::uint64_t>(static_cast<std::int64_t>(start));
    const auto b = static_cast<std::uint64_t>(static_cast<std::int64_t>(limit));
    const auto step = static_cast<std::uint64_t>(static_cast<std::int64_t>(delta));
    const std::uint64_t distance = delta > 0 ? b - a : a - b;
    const std::uint64_t stride = delta > 0 ? step : 0 - step;
    const std::uint64_t steps = distance / stride + (distance % stride != 0 ? 1 : 0);
    return steps > static_cast<std::uint64_t>(kMaxElements) ? kMaxElements + 1 : static_cast<std::int64_t>(steps);
  }
}

template <typename F>
bool dispatch_range(ElementType type, F&& f) {
  return dispatch_type<float, double, std::int16_t, std::int32_t, std::int64_t>(type, f);
}

Status infer_range(const void* /*params*/, std::span<const Tensor> inputs, std::span<TensorDesc> outputs) {
  const ElementType type = desc_of(inputs, 0).type;
  for (int i = 0; i < 3; ++i) {
    BANTAM_RETURN_IF_ERROR(check_type(desc_of(inputs, i), type, i));
    if (desc_of(inputs, i).elements() != 1)
      return failure(StatusCode::kInvalidModel, "range needs single elements", desc_of(inputs, i).elements(), 1).at(i);
    if (inputs[static_cast<std::size_t>(i)].data == nullptr)
      return failure(StatusCode::kUnsupported, "bounds of a range must be constants: they set its length").at(i);
  }
  std::optional<std::int64_t> count;
  const bool known = dispatch_range(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    count = count_steps(*inputs[0].as<const T>(), *inputs[1].as<const T>(), *inputs[2].as<const T>());
  });
  if (!known)
    return failure(StatusCode::kUnsupported, "element type of a range is not f32, f64, i16, i32 or i64",
                   static_cast<std::int64_t>(type), 0);
  if (!count) return failure(StatusCode::kInvalidModel, "range has a zero step or a bound that is not a number");
  return make_desc(type, &*count, 1, &outputs[0]);
}

/// start + i * delta. Integers are computed modulo 2^64: the results lie between start and limit, the products may not.
template <typename T>
void fill_range(T start, T delta, std::int64_t count, T* out) {
  for (std::int64_t i = 0; i < count; ++i) {
    if constexpr (std::is_floating_point_v<T>) {
      out[i] = start + static_cast<T>(i) * delta;
    } else {
      out[i] = static_cast<T>(static_cast<std::uint64_t>(start) +
                              static_cast<std::uint64_t>(i) * static_cast<std::uint64_t>(delta));
    }
  }
}

Status run_range(const Invocation& call) {
  dispatch_range(call.out().type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    fill_range(*call.input<T>(0), *call.input<T>(2), call.out().dims[0], call.output<T>());
  });
  return ok_status();
}

constexpr KernelVariant kVariants[] = {{.name = "any__ref", .supports = all_dense, .run = run_range}};

}  // namespace

constexpr OpDef kRange{.name = "range", .min_inputs = 3, .max_inputs = 3, .infer = infer_range, .variants = kVariants};

}  // namespace bantam::ops
