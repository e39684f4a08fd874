// VNNI's, AVX-VNNI's and Arm's sums of products of bytes, for *_simd.cpp files inside Highway's per-target compilation.
// Highway 1.0.3 asks the processor for VNNI before it chooses AVX3_DL, but does not name it to the compiler, nor does
// it know Arm's dot products; the assembler knows them.
#if defined(BANTAM_OPS_QUAD_PRODUCTS_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BANTAM_OPS_QUAD_PRODUCTS_SIMD_INL_H_
#undef BANTAM_OPS_QUAD_PRODUCTS_SIMD_INL_H_
#else
#define BANTAM_OPS_QUAD_PRODUCTS_SIMD_INL_H_
#endif

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::HWY_NAMESPACE {

#if HWY_TARGET == HWY_AVX3_DL && HWY_ARCH_X86
/// Per 32-bit lane: sum + the products of four unsigned bytes and four signed ones, wrapping.
template <class V>
HWY_INLINE V add_quad_products(V sum, V bytes, V weights) {
  asm("vpdpbusd %2, %1, %0" : "+v"(sum.raw) : "v"(bytes.raw), "v"(weights.raw));
  return sum;
}
#elif HWY_TARGET == HWY_AVX2 && HWY_ARCH_X86
/// The same with AVX-VNNI; only where byte_products() says that the processor has it.
template <class V>
HWY_INLINE V add_quad_products(V sum, V bytes, V weights) {
  asm("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sum.raw) : "x"(bytes.raw), "x"(weights.raw));
  return sum;
}
#elif HWY_ARCH_ARM_A64
/// The same of signed bytes and signed ones; only where byte_products() says that the processor has dot products.
template <class V>
HWY_INLINE V add_quad_products(V sum, V bytes, V weights) {
  asm(".arch armv8.2-a+crypto+dotprod\n\tsdot %0.4s, %1.16b, %2.16b"
      : "+w"(sum.raw)
      : "w"(bytes.raw), "w"(weights.raw));
  return sum;
}
#endif

}  // namespace bantam::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
