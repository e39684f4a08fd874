// How this processor multiplies bytes, where vector kernels cannot learn it from Highway: 1.0.3 knows one NEON, while
// 64-bit Arm processors may have instructions for sums of four products, and for products of small matrices, besides;
// and x86-64 ones the sums of AVX-VNNI without AVX-512, and products of matrices with it. Linux lets a process use the
// latter, whose registers are large, once it asks for them; that is done when they are first asked about here.
// Asked by integer kernels at every call; limited by schedule/processor and tests, not while kernels run in another
// thread. Nothing is allocated.
#pragma once

namespace bantam::ops {

/// Each includes those before it.
enum class ByteProducts : int {
  kNone = 0,      ///< nothing beyond the instruction set that was compiled for
  kDot = 1,       ///< Arm's dotprod, AVX-VNNI
  kMatrices = 2,  ///< Arm's i8mm, AMX-INT8 beside AVX-512
};

/// The best that this processor and build have.
ByteProducts best_byte_products() noexcept;

/// The best that kernels may use.
ByteProducts byte_products() noexcept;

/// From now on nothing better than `most` is used.
void limit_byte_products(ByteProducts most) noexcept;

}  // namespace bantam::ops
