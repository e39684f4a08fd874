// Arrays written out in tests.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "gtest/gtest.h"
#include "io/array.h"

namespace bantam::io::testing {

inline TensorDesc desc_of(ElementType type, std::initializer_list<std::int64_t> dims) {
  auto array = make_array(type, std::vector<std::int64_t>(dims));
  EXPECT_TRUE(array.has_value());
  return array ? array->desc : TensorDesc{};
}

template <typename T>
Array array_of(std::initializer_list<std::int64_t> dims, const std::vector<T>& values) {
  auto array = make_array(kElementTypeOf<T>, std::vector<std::int64_t>(dims));
  EXPECT_TRUE(array.has_value());
  if (!array) return {};
  EXPECT_EQ(elements_of<T>(*array).size(), values.size());
  std::ranges::copy(values, elements_of<T>(*array).begin());
  return *array;
}

template <typename T>
std::vector<T> values_of(const Array& array) {
  EXPECT_EQ(array.desc.type, kElementTypeOf<T>);
  const auto elements = elements_of<T>(array);
  return {elements.begin(), elements.end()};
}

}  // namespace bantam::io::testing
