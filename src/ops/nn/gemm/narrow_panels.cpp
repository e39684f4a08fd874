#include "ops/nn/gemm/narrow_panels.h"

#include <cmath>
#include <cstring>

#include "ops/common/half.h"

namespace bantam::ops::gemm {
namespace {

constexpr float kLargestHalf = 65504.0F;

/// One column of the matrix that is packed.
struct Column {
  const float* data;
  std::int64_t stride;

  float operator[](std::int64_t k) const noexcept { return data[k * stride]; }

  float largest(std::int64_t first, std::int64_t last) const noexcept {
    float result = 0.0F;
    for (std::int64_t k = first; k < last; ++k) result = std::max(result, std::fabs((*this)[k]));
    return result;
  }
};

/// w / scale to nearest, ties to even, within [-limit, limit]; 0 where there is no scale.
int quantize(float w, float scale, float limit) noexcept {
  if (scale == 0.0F) return 0;
  return static_cast<int>(std::clamp(std::nearbyint(w / scale), -limit, limit));
}

template <typename T>
void store(T value, std::byte* to) noexcept {
  std::memcpy(to, &value, sizeof(T));
}

template <typename T>
T load(const std::byte* from) noexcept {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

/// Where row k of a panel begins, behind the scales.
std::int64_t row_offset(ElementType type, std::int64_t k) noexcept {
  const std::int64_t numbers = k * kPanel * element_bits(type) / 8;
  switch (type) {
    case ElementType::kI8: return numbers + kPanel * static_cast<std::int64_t>(sizeof(float));
    case ElementType::kI4: return numbers + (k / kScaleBlock + 1) * kPanel * 2;
    default: return numbers;
  }
}

/// Where column c is in a row of bf16.
std::int64_t bfloat_offset(std::int64_t c) noexcept { return (c % 8 * 2 + c / 8) * 2; }

/// Where the scales are that row k of a panel of 4-bit numbers has.
std::int64_t scales_offset(std::int64_t k) noexcept {
  return row_offset(ElementType::kI4, k / kScaleBlock * kScaleBlock) - kPanel * 2;
}

void pack_bytes(const Column& column, std::int64_t k, std::int64_t c, std::byte* panel) noexcept {
  const float scale = column.largest(0, k) / 127.0F;
  store(scale, panel + c * static_cast<std::int64_t>(sizeof(float)));
  for (std::int64_t i = 0; i < k; ++i)
    panel[row_offset(ElementType::kI8, i) + c] = static_cast<std::byte>(quantize(column[i], scale, 127.0F));
}

/// Requires a panel of zeros.
void pack_nibbles(const Column& column, std::int64_t k, std::int64_t c, std::byte* panel) noexcept {
  float scale = 0.0F;
  for (std::int64_t i = 0; i < k; ++i) {
    if (i % kScaleBlock == 0) {
      const float largest = column.largest(i, std::min(i + kScaleBlock, k));
      const Half half = to_half(std::min(largest / 7.0F, kLargestHalf));
      store(half, panel + scales_offset(i) + c * 2);
      scale = to_f32(half);
    }
    const auto q = static_cast<unsigned>(quantize(column[i], scale, 7.0F) + 8);
    panel[row_offset(ElementType::kI4, i) + c % 8] |= static_cast<std::byte>(q << (c / 8 * 4));
  }
}

void pack_column(ElementType type, const Column& column, std::int64_t k, std::int64_t c, std::byte* panel) noexcept {
  switch (type) {
    case ElementType::kI8: return pack_bytes(column, k, c, panel);
    case ElementType::kI4: return pack_nibbles(column, k, c, panel);
    case ElementType::kBF16:
      for (std::int64_t i = 0; i < k; ++i)
        store(to_bfloat16(column[i]), panel + row_offset(type, i) + bfloat_offset(c));
      return;
    default:
      for (std::int64_t i = 0; i < k; ++i) store(to_half(column[i]), panel + row_offset(type, i) + c * 2);
  }
}

/// Element (k, c) of a panel.
float weight(ElementType type, const std::byte* panel, std::int64_t k, std::int64_t c) noexcept {
  const std::byte* row = panel + row_offset(type, k);
  switch (type) {
    case ElementType::kI8:
      return static_cast<float>(static_cast<std::int8_t>(row[c])) *
             load<float>(panel + c * static_cast<std::int64_t>(sizeof(float)));
    case ElementType::kI4: {
      const int q = static_cast<int>(std::to_integer<unsigned>(row[c % 8]) >> (c / 8 * 4) & 15U) - 8;
      return static_cast<float>(q) * to_f32(load<Half>(panel + scales_offset(k) + c * 2));
    }
    case ElementType::kBF16: return to_f32(load<BFloat16>(row + bfloat_offset(c)));
    default: return to_f32(load<Half>(row + c * 2));
  }
}

}  // namespace

void pack_narrow(ElementType type, const float* b, std::int64_t k, std::int64_t n, std::int64_t k_stride,
                 std::int64_t n_stride, std::byte* packed) noexcept {
  if (type == ElementType::kF32)
    return pack_panels(b, k, n, k_stride, n_stride, 0, panel_count(n), reinterpret_cast<float*>(packed));
  const std::int64_t panel_bytes = narrow_panel_bytes(type, k);
  std::fill_n(packed, narrow_bytes(type, k, n), std::byte{0});
  for (std::int64_t column = 0; column < n; ++column)
    pack_column(type, {b + column * n_stride, k_stride}, k, column % kPanel, packed + column / kPanel * panel_bytes);
}

void restore_narrow(const NarrowPanels& panels, std::int64_t k_stride, std::int64_t n_stride, float* b) noexcept {
  const std::int64_t panel_bytes = narrow_panel_bytes(panels.type, panels.k);
  for (std::int64_t column = 0; column < panels.n; ++column)
    for (std::int64_t k = 0; k < panels.k; ++k)
      b[k * k_stride + column * n_stride] =
          weight(panels.type, panels.data + column / kPanel * panel_bytes, k, column % kPanel);
}

}  // namespace bantam::ops::gemm
