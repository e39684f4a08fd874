// Operands that quantize and dequantize share: x, a scale and an optional zero point per tensor or per slice along an
// axis. Freestanding, pure functions.
#pragma once

#include <cstdint>
#include <span>

#include "bantam/status.h"
#include "bantam/tensor.h"
#include "ops/common/dispatch.h"

namespace bantam::ops {

/// Types that real numbers are quantised to.
constexpr bool is_quantized_type(ElementType type) noexcept {
  return is_one_of<std::int8_t, std::uint8_t, std::int16_t, std::uint16_t, std::int32_t>(type);
}

/// Verifies operands 1 (scale) and 2 (zero point, of type `zero_point_type`) against operand 0.
inline Status check_scale_operands(std::span<const Tensor> inputs, std::int32_t axis,
                                   ElementType zero_point_type) noexcept {
  const TensorDesc& x = *inputs[0].desc;
  const TensorDesc& scale = *inputs[1].desc;
  if (scale.type != ElementType::kF32)
    return failure(StatusCode::kInvalidModel, "scale is not f32", static_cast<std::int64_t>(scale.type),
                   static_cast<std::int64_t>(ElementType::kF32))
        .at(1);
  if (scale.rank > 1) return failure(StatusCode::kInvalidModel, "scale is not a scalar or a list", scale.rank, 1).at(1);
  const std::int64_t count = scale.elements();
  if (count != 1) {
    if (axis < 0 || axis >= x.rank)
      return failure(StatusCode::kInvalidModel, "axis is outside the tensor", axis, x.rank - 1);
    if (count != x.dims[axis])
      return failure(StatusCode::kInvalidModel, "scale does not fit the axis", count, x.dims[axis]).at(1);
  }
  if (inputs.size() < 3 || !inputs[2].desc->present()) return ok_status();
  const TensorDesc& zero_point = *inputs[2].desc;
  if (zero_point.type != zero_point_type)
    return failure(StatusCode::kInvalidModel, "zero point has the wrong element type",
                   static_cast<std::int64_t>(zero_point.type), static_cast<std::int64_t>(zero_point_type))
        .at(2);
  if (zero_point.rank > 1 || zero_point.elements() != count)
    return failure(StatusCode::kInvalidModel, "zero point has not as many elements as scale", zero_point.elements(),
                   count)
        .at(2);
  return ok_status();
}

/// Elements that share one scale before the next slice along `axis` begins; 1 when there is one scale only.
inline std::int64_t slice_length(const TensorDesc& x, std::int64_t slices, std::int32_t axis) noexcept {
  std::int64_t inner = 1;
  if (slices > 1)
    for (int i = axis + 1; i < x.rank; ++i) inner *= x.dims[i];
  return inner;
}

}  // namespace bantam::ops
