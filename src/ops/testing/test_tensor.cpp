#include "ops/testing/test_tensor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <span>
#include <type_traits>

#include "base/shape.h"
#include "ops/common/strides.h"
#include "ops/op.h"

namespace bantam::ops::testing {
namespace {

std::size_t storage_bytes(const TensorDesc& desc) {
  return static_cast<std::size_t>((storage_span(desc) * element_bits(desc.type) + 7) / 8);
}

std::size_t alignment_of(const TensorDesc& desc, Placement placement) {
  return placement == Placement::kAligned ? kAlignment : static_cast<std::size_t>(std::max(element_size(desc.type), 1));
}

/// Calls f(byte offset in storage, byte offset when packed, bytes) for each run of elements that lie together: one of
/// dense ones, which nibbles always are, else rows.
template <typename F>
void for_each_piece(const TensorDesc& desc, F f) {
  if (desc.type == ElementType::kI4 || desc.is_dense()) {
    if (desc.bytes() > 0) f(std::size_t{0}, std::size_t{0}, static_cast<std::size_t>(desc.bytes()));
    return;
  }
  const auto size = static_cast<std::size_t>(element_size(desc.type));
  const StridedRows<1> rows = make_rows<1>(desc, {&desc});
  std::size_t packed = 0;
  const auto visit = [&](std::int64_t offset, std::int64_t elements) {
    const std::size_t bytes = static_cast<std::size_t>(elements) * size;
    f(static_cast<std::size_t>(offset) * size, packed, bytes);
    packed += bytes;
  };
  if (rows.contiguous(0)) {
    for_each_row(rows, [&](const auto& offsets, std::int64_t n) { visit(offsets[0], n); });
  } else {
    for_each_element(rows, [&](const auto& offsets) { visit(offsets[0], 1); });
  }
}

/// Without the library's loop over single bytes.
bool equal_bytes(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0);
}

template <typename T>
double as_double(T value) {
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
    return static_cast<double>(to_f32(value));
  } else if constexpr (std::is_same_v<T, Bool8>) {
    return value ? 1.0 : 0.0;
  } else {
    return static_cast<double>(value);
  }
}

template <typename T>
T random_element(Random& random, double low, double high) {
  const double x = std::uniform_real_distribution<double>(low, high)(random);
  if constexpr (std::is_same_v<T, Half>) {
    return to_half(static_cast<float>(x));
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    return to_bfloat16(static_cast<float>(x));
  } else if constexpr (std::is_same_v<T, Bool8>) {
    return Bool8{static_cast<std::uint8_t>(random() & 1)};
  } else if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(x);
  } else {
    // 2^digits is the first value beyond the type; the comparison is exact, the limits themselves may not be.
    const double beyond = std::ldexp(1.0, std::numeric_limits<T>::digits);
    if (x >= beyond) return std::numeric_limits<T>::max();
    if (x <= static_cast<double>(std::numeric_limits<T>::min())) return std::numeric_limits<T>::min();
    const double rounded = std::nearbyint(x);
    return rounded >= beyond ? std::numeric_limits<T>::max() : static_cast<T>(rounded);
  }
}

}  // namespace

std::int64_t random_int(Random& random, std::int64_t low, std::int64_t high) {
  return std::uniform_int_distribution<std::int64_t>(low, high)(random);
}

TestTensor::TestTensor(const TensorDesc& desc, Placement placement)
    : desc_(desc), placement_(placement), memory_(storage_bytes(desc), alignment_of(desc, placement)) {}

TestTensor::TestTensor(const TestTensor& other) : desc_(other.desc_), placement_(other.placement_) {
  if (!present()) return;
  memory_ = GuardedMemory(storage_bytes(desc_), alignment_of(desc_, placement_));
  std::ranges::copy(other.memory_.bytes(), memory_.data());
}

TestTensor& TestTensor::operator=(const TestTensor& other) {
  if (this != &other) *this = TestTensor(other);
  return *this;
}

std::vector<std::byte> TestTensor::packed() const {
  std::vector<std::byte> bytes(static_cast<std::size_t>(desc_.bytes()));
  for_each_piece(desc_, [&](std::size_t stored, std::size_t packed, std::size_t n) {
    std::memcpy(bytes.data() + packed, memory_.data() + stored, n);
  });
  return bytes;
}

void TestTensor::set_packed(const std::vector<std::byte>& bytes) {
  if (bytes.size() != static_cast<std::size_t>(desc_.bytes())) std::abort();
  for_each_piece(desc_, [&](std::size_t stored, std::size_t packed, std::size_t n) {
    std::memcpy(memory_.data() + stored, bytes.data() + packed, n);
  });
}

std::vector<double> TestTensor::to_doubles() const {
  std::vector<double> result;
  dispatch_any_type(desc_.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (const T value : values<T>()) result.push_back(as_double(value));
  });
  return result;
}

TestTensor TestTensor::with_strides(const TensorDesc& strided) const {
  TestTensor result(strided, placement_);
  result.set_packed(packed());
  return result;
}

TestTensor TestTensor::with_placement(Placement placement) const {
  if (!present()) return {};
  TestTensor result(desc_, placement);
  result.set_packed(packed());
  return result;
}

bool TestTensor::intact() const {
  if (!present()) return true;
  if (!memory_.intact()) return false;
  if (desc_.is_dense() && memory_.size() == static_cast<std::size_t>(desc_.bytes())) return true;
  std::vector<std::byte> expected(memory_.size(), kCanary);
  for_each_piece(desc_, [&](std::size_t stored, std::size_t, std::size_t n) {
    std::memcpy(expected.data() + stored, memory_.data() + stored, n);
  });
  return equal_bytes(memory_.bytes(), expected);
}

bool TestTensor::has_elements_of(const TestTensor& other) const { return equal_bytes(packed(), other.packed()); }

TensorDesc dense_desc(ElementType type, const std::vector<std::int64_t>& dims) {
  TensorDesc desc;
  if (!make_desc(type, dims.data(), static_cast<int>(dims.size()), &desc).ok()) std::abort();
  return desc;
}

TensorDesc random_strides(const TensorDesc& desc, Random& random) {
  TensorDesc result = desc;
  std::int64_t stride = 1;
  for (int i = desc.rank - 1; i >= 0; --i) {
    result.strides[i] = static_cast<std::int32_t>(stride);
    stride = stride * std::max(desc.dims[i], 1) + random_int(random, 0, 1) * random_int(random, 1, 5);
  }
  return result;
}

void fill_random(TestTensor& tensor, Random& random, double low, double high) {
  const bool known = dispatch_any_type(tensor.desc().type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    std::vector<T> values(static_cast<std::size_t>(tensor.desc().elements()));
    for (T& value : values) value = random_element<T>(random, low, high);
    tensor.set_values(values);
  });
  if (!known) fill_garbage(tensor, random);
}

void fill_garbage(TestTensor& tensor, Random& random) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(tensor.desc().bytes()));
  for (std::byte& b : bytes) b = static_cast<std::byte>(random() & 0xff);
  tensor.set_packed(bytes);
}

TestTensor random_tensor(ElementType type, const std::vector<std::int64_t>& dims, Random& random, double low,
                         double high) {
  TestTensor tensor(dense_desc(type, dims));
  fill_random(tensor, random, low, high);
  return tensor;
}

TestTensor random_activations(ElementType type, const std::vector<std::int64_t>& dims, Random& random, double zero) {
  const TestTensor far = random_tensor(type, dims, random, -128, 255);
  const double spread = static_cast<double>(random_int(random, 1, 70));
  TestTensor result = random_tensor(type, dims, random, zero - spread, zero + spread);
  std::vector<std::byte> bytes = result.packed();
  const std::vector<std::byte> other = far.packed();
  for (std::size_t i = 0; i < bytes.size(); ++i)
    if (random() % 50 == 0) bytes[i] = other[i];
  result.set_packed(bytes);
  return result;
}

std::vector<std::int64_t> random_dims(Random& random, int rank, std::int64_t low, std::int64_t high) {
  std::vector<std::int64_t> dims(static_cast<std::size_t>(rank));
  for (std::int64_t& d : dims) {
    const bool one = low <= 1 && high >= 1 && random_int(random, 0, 4) == 0;
    d = one ? 1 : random_int(random, low, high);
  }
  return dims;
}

TestTensor filled(const std::vector<std::int64_t>& dims, float value) {
  TestTensor tensor(dense_desc(ElementType::kF32, dims));
  tensor.set_values(std::vector<float>(static_cast<std::size_t>(tensor.desc().elements()), value));
  return tensor;
}

void expect_near(const std::vector<float>& actual, const std::vector<float>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  float largest = 1.0F;
  for (const float x : expected) largest = std::max(largest, std::abs(x));
  for (std::size_t i = 0; i < actual.size(); ++i) EXPECT_NEAR(actual[i], expected[i], 4e-6F * largest) << i;
}

std::string describe(const TensorDesc& desc) {
  const auto list = [&desc](const std::int32_t* values) {
    std::string text = "[";
    for (int i = 0; i < desc.rank; ++i) text += (i > 0 ? "," : "") + std::to_string(values[i]);
    return text + "]";
  };
  std::string text = element_type_name(desc.type) + list(desc.dims);
  if (!desc.is_dense()) text += " strides " + list(desc.strides);
  return text;
}

}  // namespace bantam::ops::testing
