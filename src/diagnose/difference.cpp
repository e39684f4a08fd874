#include "diagnose/difference.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "diagnose/tensor_walk.h"
#include "io/array.h"

namespace bantam::diagnose {
namespace {

template <typename T>
Difference measure(const Tensor& actual, const Walk& actual_walk, const Tensor& expected, const Walk& expected_walk) {
  Difference d;
  double largest = 0;
  const T* const values = actual.as<T>();
  const T* const reference = expected.as<T>();
  walk_pairs(*actual.desc, actual_walk, expected_walk, [&](std::int64_t at, std::int64_t at_expected) {
    const auto e = static_cast<double>(io::number_of(reference[at_expected]));
    const auto a = static_cast<double>(io::number_of(values[at]));
    if (std::isfinite(e)) largest = std::max(largest, std::abs(e));
    if (e == a || (std::isnan(e) && std::isnan(a))) return;
    ++d.mismatches;
    const double distance = std::abs(e - a);
    d.absolute = std::isnan(distance) ? std::numeric_limits<double>::infinity() : std::max(d.absolute, distance);
  });
  d.elements = actual.desc->elements();
  d.relative = d.absolute == 0 ? 0 : d.absolute / std::max(largest, 1e-30);
  return d;
}

}  // namespace

Difference difference(const Tensor& actual, const Tensor& expected, const std::int64_t* expected_strides) {
  Walk expected_walk;
  std::copy_n(expected_strides, actual.desc->rank, expected_walk.strides);
  Difference result;
  io::with_element_type(actual.desc->type, [&]<typename T>(std::type_identity<T>) {
    result = measure<T>(actual, Walk::of(*actual.desc), expected, expected_walk);
  });
  return result;
}

Difference difference(const Tensor& actual, const Tensor& expected) {
  return difference(actual, expected, Walk::of(*expected.desc).strides);
}

bool Tolerance::allows(const Difference& difference, ElementType type) const {
  if (!is_float(type)) return difference.absolute <= integers;
  return difference.relative <= floats || difference.absolute <= float_floor;
}

}  // namespace bantam::diagnose
