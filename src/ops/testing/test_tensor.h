// An owning tensor for operator tests, in guarded memory, dense or with gaps between rows, plus seeded random data.
// Test code only: allocates freely and aborts on misuse.
#pragma once

#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "bantam/tensor.h"
#include "ops/common/dispatch.h"
#include "ops/testing/guarded_memory.h"

namespace bantam::ops::testing {

using Random = std::mt19937_64;

/// Uniform integer in [low, high].
std::int64_t random_int(Random& random, std::int64_t low, std::int64_t high);

/// Where a tensor lies relative to the guard page behind it.
enum class Placement {
  kFlush,    ///< the last element touches the guard page; aligned to the element only
  kAligned,  ///< aligned to kAlignment, as constants are
};

class TestTensor {
 public:
  /// An absent operand.
  TestTensor() = default;

  /// Elements and gaps hold canaries. `desc` may be strided.
  explicit TestTensor(const TensorDesc& desc, Placement placement = Placement::kFlush);

  TestTensor(TestTensor&&) noexcept = default;
  TestTensor& operator=(TestTensor&&) noexcept = default;
  /// Copies keep shape, strides, bytes and placement.
  TestTensor(const TestTensor& other);
  TestTensor& operator=(const TestTensor& other);
  ~TestTensor() = default;

  const TensorDesc& desc() const noexcept { return desc_; }
  bool present() const noexcept { return desc_.present(); }
  void* data() const noexcept { return present() ? memory_.data() : nullptr; }

  /// The view a kernel gets; valid while this object stays where it is.
  Tensor tensor() const noexcept { return {data(), &desc_}; }
  /// The same without data: an operand that is not constant, at compile time.
  Tensor shape_only() const noexcept { return {nullptr, &desc_}; }

  /// The elements in row-major order, without gaps.
  std::vector<std::byte> packed() const;
  void set_packed(const std::vector<std::byte>& bytes);
  /// Are they the other's, bit by bit?
  bool has_elements_of(const TestTensor& other) const;

  template <typename T>
  std::vector<T> values() const;
  template <typename T>
  void set_values(const std::vector<T>& values);

  /// Every element as a double, in row-major order; any type of whole bytes.
  std::vector<double> to_doubles() const;

  /// The same elements with other strides, in fresh memory.
  TestTensor with_strides(const TensorDesc& strided) const;
  TestTensor with_placement(Placement placement) const;

  /// True while nothing but the elements has been written: canaries around and gaps between.
  bool intact() const;

 private:
  TensorDesc desc_;
  Placement placement_ = Placement::kFlush;
  GuardedMemory memory_;
};

/// A dense desc; aborts when the shape is invalid.
TensorDesc dense_desc(ElementType type, const std::vector<std::int64_t>& dims);

/// `desc` with random gaps between rows (dimensions but the innermost), where it has rows.
TensorDesc random_strides(const TensorDesc& desc, Random& random);

/// A dense tensor with these elements. T is the C++ type of the element type: float, std::int8_t, Half ...
template <typename T>
TestTensor tensor_of(const std::vector<std::int64_t>& dims, const std::vector<T>& values) {
  TestTensor tensor(dense_desc(kElementTypeOf<T>, dims));
  tensor.set_values(values);
  return tensor;
}

/// A dense f32 tensor whose elements are all `value`.
TestTensor filled(const std::vector<std::int64_t>& dims, float value);

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// A dense tensor with elements uniform in [low, high] (rounded and limited to the type's range; bool: 0 or 1).
TestTensor random_tensor(ElementType type, const std::vector<std::int64_t>& dims, Random& random, double low = -1.0,
                         double high = 1.0);

/// A dense tensor of 8-bit integers as quantised activations are: most of them near `zero`, one in fifty anywhere.
TestTensor random_activations(ElementType type, const std::vector<std::int64_t>& dims, Random& random, double zero);

/// Fills the elements as random_tensor does.
void fill_random(TestTensor& tensor, Random& random, double low, double high);

/// Fills the elements with random bytes: NaNs, infinities, booleans other than 0 and 1.
void fill_garbage(TestTensor& tensor, Random& random);

/// `rank` dimensions, each in [low, high]; 1 more often than others, because it is where strides differ.
std::vector<std::int64_t> random_dims(Random& random, int rank, std::int64_t low, std::int64_t high);

/// Expects equal sizes, and differences that the digits of published examples leave: 4e-6 of the largest expected
/// magnitude, or of 1 where all are smaller.
void expect_near(const std::vector<float>& actual, const std::vector<float>& expected);

/// "f32[2,3]" or "f32[2,3] strides [8,1]".
std::string describe(const TensorDesc& desc);

template <typename T>
std::vector<T> TestTensor::values() const {
  const std::vector<std::byte> bytes = packed();
  std::vector<T> result(bytes.size() / sizeof(T));
  if (!result.empty()) std::memcpy(result.data(), bytes.data(), result.size() * sizeof(T));
  return result;
}

template <typename T>
void TestTensor::set_values(const std::vector<T>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  set_packed(bytes);
}

}  // namespace bantam::ops::testing
