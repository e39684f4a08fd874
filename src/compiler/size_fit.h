// Numbers that follow the sizes of a model's dimensions: from samples at several sizes to an expression that a package
// can hold. Called where the compiler compares graphs (sized_model.h), shares storage and writes packages. Pure.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "graph/graph.h"

namespace bantam::compiler {

/// One size per dimension, in the order of the model's dimensions.
using Sizes = std::vector<std::int64_t>;

/// floor((base + scale * x * y) / divisor), x and y being sizes of dimensions, counted from 1; 0 stands for the
/// number 1.
struct SizeExpression {
  std::int32_t base = 0;
  std::int32_t scale = 0;
  std::uint16_t divisor = 1;
  std::uint8_t first = 0;
  std::uint8_t second = 0;

  bool is_constant() const { return scale == 0; }
  auto operator<=>(const SizeExpression&) const = default;
};

std::int64_t evaluate(const SizeExpression& expression, const Sizes& sizes);

/// The simplest expression that gives numbers[i] at sizes[i] for all i, or nothing. Quotients need samples of as many
/// neighbouring sizes as the divisor; where several divisors fit, the one with most factors of two is taken.
std::optional<SizeExpression> fit_sizes(std::span<const std::int64_t> numbers, std::span<const Sizes> sizes);
/// The same for the samples that matter; a constant when none does.
std::optional<SizeExpression> fit_sizes(std::span<const std::int64_t> numbers, std::span<const Sizes> sizes,
                                        const std::vector<bool>& matters);

/// Does anything depend on that stride? Not where there is at most one row, or no element at all.
inline bool stride_matters(const TensorDesc& desc, int dim) { return desc.elements() != 0 && desc.dims[dim] != 1; }

}  // namespace bantam::compiler
