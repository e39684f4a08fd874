#include "schedule/processor/roof_rounds.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "schedule/processor/roof_simd.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "ops/common/byte_products.h"
#include "ops/common/quad_products_simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::schedule::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// As many independent sums as hide the latency of two multiply-accumulates per cycle and leave registers for operands.
constexpr int kSums = 12;

/// What follows may not know that `v` has not changed, so it cannot be computed once for all rounds.
template <typename V>
HWY_INLINE void forget(V& v) {
#if HWY_ARCH_X86
  asm volatile("" : "+x"(v.raw));
#else
  asm volatile("" : "+w"(v.raw));
#endif
}

/// Calls round(sum) for every sum, `rounds` times, and gives the sum of sums.
template <typename V, typename Round>
HWY_INLINE V sum_of_rounds(V zero, std::int64_t rounds, const Round& round) {
  V s0 = zero, s1 = zero, s2 = zero, s3 = zero, s4 = zero, s5 = zero;
  V s6 = zero, s7 = zero, s8 = zero, s9 = zero, s10 = zero, s11 = zero;
  for (std::int64_t i = 0; i < rounds; ++i) {
    s0 = round(s0), s1 = round(s1), s2 = round(s2), s3 = round(s3), s4 = round(s4), s5 = round(s5);
    s6 = round(s6), s7 = round(s7), s8 = round(s8), s9 = round(s9), s10 = round(s10), s11 = round(s11);
  }
  return hn::Add(hn::Add(hn::Add(hn::Add(s0, s1), hn::Add(s2, s3)), hn::Add(hn::Add(s4, s5), hn::Add(s6, s7))),
                 hn::Add(hn::Add(s8, s9), hn::Add(s10, s11)));
}

std::int64_t float_rounds_target(std::int64_t rounds, float seed, float* sink) {
  const hn::ScalableTag<float> d;
  auto a = hn::Set(d, seed * 1e-3F);
  const auto b = hn::Set(d, seed);
  const auto sum = sum_of_rounds(hn::Zero(d), rounds, [&](auto s) HWY_ATTR {
    forget(a);
    return hn::MulAdd(a, b, s);
  });
  *sink = hn::GetLane(hn::SumOfLanes(d, sum));
  return rounds * kSums * static_cast<std::int64_t>(hn::Lanes(d));
}

/// Adds the products of 16-bit floats in the bits of `a` and `b`. For the assembler alone: the processor is asked
/// before this is called.
template <typename V>
HWY_INLINE V add_half_products(V sum, [[maybe_unused]] V a, [[maybe_unused]] V b) {
#if HWY_TARGET == HWY_AVX3_DL
  asm("vfmadd231ph %2, %1, %0" : "+v"(sum.raw) : "v"(a.raw), "v"(b.raw));
#elif HWY_ARCH_ARM_A64
  asm(".arch armv8.2-a+fp16\n\tfmla %0.8h, %1.8h, %2.8h" : "+w"(sum.raw) : "w"(a.raw), "w"(b.raw));
#endif
  return sum;
}

std::int64_t half_rounds_target(std::int64_t rounds, float seed, float* sink) {
  const hn::ScalableTag<float> d;
  const hn::Repartition<std::uint16_t, decltype(d)> d16;
  auto a = hn::BitCast(d, hn::Set(d16, std::uint16_t{0x0400}));  // the smallest normal number
  const auto b = hn::Set(d, seed);
  const auto sum = sum_of_rounds(hn::Zero(d), rounds, [&](auto s) HWY_ATTR {
    forget(a);
    return add_half_products(s, a, b);
  });
  *sink = hn::GetLane(hn::SumOfLanes(d, sum));
  return rounds * kSums * static_cast<std::int64_t>(hn::Lanes(d16));
}

using D32 = hn::ScalableTag<std::int32_t>;
using V32 = hn::Vec<D32>;

/// Adds the products of the bytes of `a` and `b` to `sum`, four to a lane; returns how many.
HWY_INLINE V32 add_byte_products(V32 sum, V32 a, V32 b) {
#if HWY_TARGET == HWY_AVX3_DL
  return ops::HWY_NAMESPACE::add_quad_products(sum, a, b);
#elif HWY_TARGET == HWY_AVX2
  const __m256i pairs = _mm256_maddubs_epi16(a.raw, b.raw);
  return hn::Add(sum, V32{_mm256_madd_epi16(pairs, b.raw)});
#elif HWY_ARCH_X86
  const __m128i pairs = _mm_maddubs_epi16(a.raw, b.raw);
  return hn::Add(sum, V32{_mm_madd_epi16(pairs, b.raw)});
#else
  const hn::Repartition<std::int16_t, D32> d16;
  V32 high = hn::Zero(D32());
  return hn::ReorderWidenMulAccumulate(D32(), hn::BitCast(d16, a), hn::BitCast(d16, b), sum, high);
#endif
}

#if HWY_ARCH_X86
constexpr int kProductsPerLane = 4;
#else
constexpr int kProductsPerLane = 2;  // of bytes that were widened
#endif

/// add(sum, a, b) adds so many products per lane.
template <typename Add>
HWY_INLINE std::int64_t byte_rounds(std::int64_t rounds, int seed, std::int32_t* sink, int products_per_lane,
                                    const Add& add) {
  auto a = hn::Set(D32(), seed * 0x01010101);
  const auto b = a;
  const auto sum = sum_of_rounds(hn::Zero(D32()), rounds, [&](auto s) HWY_ATTR {
    forget(a);
    return add(s, a, b);
  });
  *sink = hn::GetLane(hn::SumOfLanes(D32(), sum));
  return rounds * kSums * products_per_lane * static_cast<std::int64_t>(hn::Lanes(D32()));
}

#if HWY_ARCH_ARM_A64
/// For the assembler alone: the processor is asked before these are called.
HWY_INLINE V32 add_dot_products(V32 sum, V32 a, V32 b) {
  asm(".arch armv8.2-a+dotprod\n\tsdot %0.4s, %1.16b, %2.16b" : "+w"(sum.raw) : "w"(a.raw), "w"(b.raw));
  return sum;
}
HWY_INLINE V32 add_matrix_products(V32 sum, V32 a, V32 b) {
  asm(".arch armv8.2-a+i8mm\n\tsmmla %0.4s, %1.16b, %2.16b" : "+w"(sum.raw) : "w"(a.raw), "w"(b.raw));
  return sum;
}
#endif

std::int64_t integer_rounds_target(std::int64_t rounds, int seed, std::int32_t* sink) {
#if HWY_ARCH_X86 && HWY_TARGET == HWY_AVX2
  if (ops::byte_products() == ops::ByteProducts::kDot)
    return byte_rounds(rounds, seed, sink, kProductsPerLane,
                       [](V32 s, V32 a, V32 b) HWY_ATTR { return ops::HWY_NAMESPACE::add_quad_products(s, a, b); });
#elif HWY_ARCH_ARM_A64
  if (ops::byte_products() == ops::ByteProducts::kMatrices)
    return byte_rounds(rounds, seed, sink, 8, [](V32 s, V32 a, V32 b) { return add_matrix_products(s, a, b); });
  if (ops::byte_products() == ops::ByteProducts::kDot)
    return byte_rounds(rounds, seed, sink, 4, [](V32 s, V32 a, V32 b) { return add_dot_products(s, a, b); });
#endif
  return byte_rounds(rounds, seed, sink, kProductsPerLane,
                     [](V32 s, V32 a, V32 b) HWY_ATTR { return add_byte_products(s, a, b); });
}

}  // namespace
}  // namespace bantam::schedule::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bantam::schedule {

HWY_EXPORT(float_rounds_target);
HWY_EXPORT(half_rounds_target);
HWY_EXPORT(integer_rounds_target);

std::int64_t float_rounds(std::int64_t rounds, float seed, float* sink) {
  return HWY_DYNAMIC_DISPATCH(float_rounds_target)(rounds, seed, sink);
}

std::int64_t half_rounds(std::int64_t rounds, float seed, float* sink) {
  return HWY_DYNAMIC_DISPATCH(half_rounds_target)(rounds, seed, sink);
}

std::int64_t integer_rounds(std::int64_t rounds, int seed, std::int32_t* sink) {
  return HWY_DYNAMIC_DISPATCH(integer_rounds_target)(rounds, seed, sink);
}

}  // namespace bantam::schedule
#endif
