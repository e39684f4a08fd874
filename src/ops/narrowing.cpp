#include "ops/narrowing.h"

#include "ops/nn/conv2d/conv2d.h"
#include "ops/nn/conv2d/kernels.h"
#include "ops/nn/gru/gru.h"
#include "ops/nn/gru/kernels.h"
#include "ops/nn/lstm/kernels.h"
#include "ops/nn/lstm/lstm.h"
#include "ops/nn/matmul/kernels.h"
#include "ops/nn/matmul/matmul.h"

namespace bantam::ops {
namespace {

#if BANTAM_SIMD
constexpr std::uint64_t kWeights = 1U << 1;
constexpr std::uint64_t kGates = 1U << rnn::kW | 1U << rnn::kR;

constexpr NarrowForm kHalfForm{.type = ElementType::kF16, .half_arithmetic = true};

constexpr Narrowing kNarrowings[] = {
    {&kConv2d, "f16_gemm__simd", kHalfForm, kWeights, conv2d::narrow_restore},
    {&kConv2d, "f32_gemm_f16__simd", {ElementType::kF16}, kWeights, conv2d::narrow_restore},
    {&kConv2d, "f32_gemm_bf16__simd", {ElementType::kBF16}, kWeights, conv2d::narrow_restore},
    {&kConv2d, "f32_gemm_i8__simd", {ElementType::kI8}, kWeights, conv2d::narrow_restore},
    {&kConv2d, "f32_gemm_i4__simd", {ElementType::kI4}, kWeights, conv2d::narrow_restore},
    {&kMatmul, "f16_packed__simd", kHalfForm, kWeights, matmul::narrow_restore},
    {&kMatmul, "f32_packed_f16__simd", {ElementType::kF16}, kWeights, matmul::narrow_restore},
    {&kMatmul, "f32_packed_bf16__simd", {ElementType::kBF16}, kWeights, matmul::narrow_restore},
    {&kMatmul, "f32_packed_i8__simd", {ElementType::kI8}, kWeights, matmul::narrow_restore},
    {&kMatmul, "f32_packed_i4__simd", {ElementType::kI4}, kWeights, matmul::narrow_restore},
    {&kLstm, "f32_packed_f16__simd", {ElementType::kF16}, kGates, lstm::restore},
    {&kLstm, "f32_packed_bf16__simd", {ElementType::kBF16}, kGates, lstm::restore},
    {&kLstm, "f32_packed_i8__simd", {ElementType::kI8}, kGates, lstm::restore},
    {&kLstm, "f32_packed_i4__simd", {ElementType::kI4}, kGates, lstm::restore},
    {&kGru, "f32_packed_f16__simd", {ElementType::kF16}, kGates, gru::restore},
    {&kGru, "f32_packed_bf16__simd", {ElementType::kBF16}, kGates, gru::restore},
    {&kGru, "f32_packed_i8__simd", {ElementType::kI8}, kGates, gru::restore},
    {&kGru, "f32_packed_i4__simd", {ElementType::kI4}, kGates, gru::restore},
};
#else
constexpr std::span<const Narrowing> kNarrowings;
#endif

}  // namespace

const Narrowing* find_narrowing(const OpDef& op, const KernelVariant& variant) noexcept {
  for (const Narrowing& narrowing : kNarrowings)
    if (narrowing.op == &op && narrowing.variant == variant.name) return &narrowing;
  return nullptr;
}

NarrowForm narrow_form(const OpDef& op, const KernelVariant& variant) noexcept {
  const Narrowing* narrowing = find_narrowing(op, variant);
  return narrowing != nullptr ? narrowing->form : NarrowForm{};
}

}  // namespace bantam::ops
