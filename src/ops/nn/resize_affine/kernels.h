// The kernels of `resize_affine`, for its table of variants. Contracts: resize_affine.h and ops/op.h.
#pragma once

#include "ops/common/affine_form.h"
#include "ops/nn/resize_affine/resize_affine.h"

namespace bantam::ops::resize_affine {

/// What results are rescaled by.
inline float factor_of(const ResizeAffineParams& p) noexcept { return p.x_scale / p.y_scale; }

inline AffineScaler scaler_of(const ResizeAffineParams& p) noexcept {
  return make_byte_scaler(p.to, p.y_zero_point, p.minimum, p.maximum);
}

Status run_reference(const Invocation& call);

/// How many axes are resampled.
int resampled_axes(const ResizeAffineParams& p, const TensorDesc& x) noexcept;

/// At least one resampled axis.
bool supports_rows(const OpCall& call);
Footprint rows_footprint(const OpCall& call, int threads);
Status run_rows(const Invocation& call);

}  // namespace bantam::ops::resize_affine
