// Resampling of one axis with a filter that grows with the reduction, so that every element counts. Shared by infer and
// the reference kernel of resize. Freestanding, pure.
#pragma once

#include "ops/nn/resize/resize.h"

namespace bantam::ops::resize {

/// The only resampled axis, -1 when there is none, or -2 when there are several.
int filtered_axis(const ResizeParams& p, const TensorDesc& x) noexcept;

/// Checks what antialiasing needs beyond other resampling.
Status check_antialias(const ResizeParams& p, const TensorDesc& x) noexcept;

/// Bytes of one thread's weights.
std::int64_t filter_bytes(const ResizeParams& p, const TensorDesc& x) noexcept;

/// The kernel; the scratch holds filter_bytes for each thread.
Status run_antialias(const Invocation& call);

}  // namespace bantam::ops::resize
