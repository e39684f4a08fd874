// The element types that float operators compute in. Freestanding, pure functions.
#pragma once

#include "bantam/status.h"
#include "bantam/tensor.h"

namespace bantam::ops {

inline Status check_float_type(const TensorDesc& desc, int operand) noexcept {
  if (desc.type != ElementType::kF32 && desc.type != ElementType::kF64)
    return failure(StatusCode::kUnsupported, "operand must be f32 or f64", static_cast<std::int64_t>(desc.type),
                   static_cast<std::int64_t>(ElementType::kF32))
        .at(operand);
  return ok_status();
}

}  // namespace bantam::ops
