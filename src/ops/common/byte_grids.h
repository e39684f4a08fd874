// What operators have in common that take 8-bit numbers from a grid to another, of whichever arithmetic: parameters P
// with the members x_scale, x_zero_point, to, y_scale, y_zero_point, minimum and maximum. Freestanding, pure.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>

#include "bantam/status.h"
#include "bantam/tensor.h"
#include "ops/common/affine_form.h"
#include "ops/common/dispatch.h"
#include "ops/common/params.h"

namespace bantam::ops {

/// Field rows of these members.
template <typename P>
constexpr std::array<ParamField, 7> byte_grid_fields() noexcept {
  return {{
      f32_field("x_scale", offsetof(P, x_scale)),
      i32_field("x_zero_point", offsetof(P, x_zero_point)),
      type_field("to", offsetof(P, to)),
      f32_field("y_scale", offsetof(P, y_scale)),
      i32_field("y_zero_point", offsetof(P, y_zero_point)),
      i32_field("minimum", offsetof(P, minimum)),
      i32_field("maximum", offsetof(P, maximum)),
  }};
}

/// Fails unless both grids are of 8-bit numbers, operand 0 being x, and the limits are a range.
template <typename P>
Status check_byte_grids(const P& p, const TensorDesc& x) noexcept {
  const ElementType to = p.to;
  if (!is_one_of<std::int8_t, std::uint8_t>(x.type))
    return failure(StatusCode::kUnsupported, "operand must be i8 or u8", static_cast<std::int64_t>(x.type),
                   static_cast<std::int64_t>(ElementType::kI8))
        .at(0);
  if (!is_one_of<std::int8_t, std::uint8_t>(to))
    return failure(StatusCode::kUnsupported, "the result must be i8 or u8", static_cast<std::int64_t>(to),
                   static_cast<std::int64_t>(ElementType::kI8));
  for (const float scale : {p.x_scale, p.y_scale})
    if (!std::isfinite(scale) || scale <= 0.0F)
      return failure(StatusCode::kInvalidModel, "a scale must be a positive number");
  if (!fits_byte(p.x_zero_point, x.type))
    return failure(StatusCode::kInvalidModel, "input zero point is outside its type", p.x_zero_point, 0);
  return check_byte_results(to, p.y_zero_point, p.minimum, p.maximum);
}

}  // namespace bantam::ops
