// The tensor vocabulary shared by every layer: element types, shapes with strides, and a typed view on memory.
//
// All types here are trivially copyable, have the same layout on every target (little endian, 32-bit dimensions) and
// are stored verbatim in packages. Views never own memory. Thread rule: values, no shared state.
#pragma once

#include <cstddef>
#include <cstdint>

namespace bantam {

enum class ElementType : std::uint8_t {
  kNone = 0,  ///< an absent optional operand
  kF32,
  kF16,
  kBF16,
  kF64,
  kI8,
  kU8,
  kI16,
  kU16,
  kI32,
  kU32,
  kI64,
  kU64,
  kBool,  ///< one byte, 0 or 1
  kI4,    ///< two's complement nibbles, two per byte, low nibble first; weights only
  kCount,
};

/// Bits per element; 0 for kNone and values outside the enumeration.
constexpr std::int32_t element_bits(ElementType type) noexcept {
  switch (type) {
    case ElementType::kI4: return 4;
    case ElementType::kI8:
    case ElementType::kU8:
    case ElementType::kBool: return 8;
    case ElementType::kF16:
    case ElementType::kBF16:
    case ElementType::kI16:
    case ElementType::kU16: return 16;
    case ElementType::kF32:
    case ElementType::kI32:
    case ElementType::kU32: return 32;
    case ElementType::kF64:
    case ElementType::kI64:
    case ElementType::kU64: return 64;
    case ElementType::kNone:
    case ElementType::kCount: break;
  }
  return 0;
}

/// Bytes of one element of a type with whole bytes (everything but kI4); 0 otherwise.
constexpr std::int32_t element_size(ElementType type) noexcept { return element_bits(type) / 8; }

/// "f32", "i8", ...; "none" for kNone, "?" outside the enumeration.
const char* element_type_name(ElementType type) noexcept;

/// The type of that name, or kNone.
ElementType element_type_from_name(const char* name, std::size_t length) noexcept;

constexpr bool is_float(ElementType t) noexcept {
  return t == ElementType::kF32 || t == ElementType::kF16 || t == ElementType::kBF16 || t == ElementType::kF64;
}

inline constexpr int kMaxRank = 8;

/// Element type, dimensions and strides of a tensor.
///
/// Dimensions are listed outermost first; images are N, H, W, C in the core operators. Strides are in elements. A
/// *dense* tensor has the strides of its row-major order; a *view* into a larger tensor may have larger ones, but the
/// innermost dimension is always contiguous (stride 1) so that rows stay vectorisable. Ranges: 0 <= rank <= kMaxRank,
/// 0 <= dim < 2^31, and the number of elements of a valid tensor is < 2^31 (`checked_elements` in base/shape.h).
struct TensorDesc {
  ElementType type = ElementType::kNone;
  std::uint8_t rank = 0;
  std::uint16_t reserved = 0;  ///< zero; keeps the layout free of padding
  std::int32_t dims[kMaxRank] = {};
  std::int32_t strides[kMaxRank] = {};

  constexpr bool present() const noexcept { return type != ElementType::kNone; }

  /// Product of the dimensions; 1 for a scalar. Defined for valid tensors only.
  constexpr std::int64_t elements() const noexcept {
    std::int64_t n = 1;
    for (int i = 0; i < rank; ++i) n *= dims[i];
    return n;
  }

  /// Storage of a dense tensor of this shape, in bytes (nibbles rounded up to whole bytes).
  constexpr std::int64_t bytes() const noexcept { return (elements() * element_bits(type) + 7) / 8; }

  constexpr void set_dense_strides() noexcept {
    std::int32_t s = 1;
    for (int i = rank - 1; i >= 0; --i) {
      strides[i] = s;
      s *= dims[i] > 0 ? dims[i] : 1;
    }
    for (int i = rank; i < kMaxRank; ++i) strides[i] = 0;
  }

  /// True when the elements lie in row-major order without gaps (dimensions of size 1 may have any stride).
  constexpr bool is_dense() const noexcept {
    std::int64_t s = 1;
    for (int i = rank - 1; i >= 0; --i) {
      if (dims[i] != 1 && strides[i] != s) return false;
      s *= dims[i] > 0 ? dims[i] : 1;
    }
    return true;
  }

  /// Dimension counted from the end: last(0) is the innermost. Requires i < rank.
  constexpr std::int32_t last(int i) const noexcept { return dims[rank - 1 - i]; }
};
static_assert(sizeof(TensorDesc) == 68, "TensorDesc is stored in packages");

/// True when type, rank and dimensions agree; strides are not compared.
constexpr bool same_shape_and_type(const TensorDesc& a, const TensorDesc& b) noexcept {
  if (a.type != b.type || a.rank != b.rank) return false;
  for (int i = 0; i < a.rank; ++i)
    if (a.dims[i] != b.dims[i]) return false;
  return true;
}

/// Affine quantisation of a model's input or output: real = scale * (stored - zero_point). scale 0 means none.
struct Quantization {
  float scale = 0.0F;
  std::int32_t zero_point = 0;
};

/// A typed view on memory that somebody else owns.
struct Tensor {
  void* data = nullptr;              ///< null when the operand is absent
  const TensorDesc* desc = nullptr;  ///< never null inside a kernel

  template <typename T>
  T* as() const noexcept {
    return static_cast<T*>(data);
  }
};

}  // namespace bantam
