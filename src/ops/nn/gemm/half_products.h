// Whether this processor multiplies and adds 16-bit floating-point numbers, which Highway 1.0.3 does not know: Arm's
// FEAT_FP16 and x86-64's AVX512-FP16. Asked by kernels at every call; switched by schedule/processor and tests, not
// while kernels run in another thread. Freestanding; nothing is allocated.
#pragma once

namespace bantam::ops::gemm {

/// Do this processor and this build?
bool has_half_products() noexcept;

/// May kernels use them?
bool half_products() noexcept;

/// From now on kernels use them where the processor has them, or do not.
void allow_half_products(bool allowed) noexcept;

}  // namespace bantam::ops::gemm
