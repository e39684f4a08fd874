// How a normalisation's operand, scale and bias lie in memory, as its kernels see them. Freestanding, values only.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "ops/common/operands.h"
#include "ops/nn/norm/norm.h"

namespace bantam::ops::norm {

/// x as [outer, n, inner], n elements being normalised together.
struct Geometry {
  std::int64_t outer = 0;
  std::int64_t n = 0;
  std::int64_t inner = 0;
};

/// Requires axes that lie side by side.
inline Geometry geometry_of(const NormParams& p, const TensorDesc& x) {
  const int first = p.axes[0];
  const int end = first + p.axes.size;
  return {elements_between(x, 0, first), elements_between(x, first, end), elements_between(x, end, x.rank)};
}

/// The dimension of x that the operand's broadcasts to, as the operand has it.
inline std::int32_t own_dim(const TensorDesc& parameter, const TensorDesc& x, int axis) {
  const int own = axis - (x.rank - parameter.rank);
  return own < 0 ? 1 : parameter.dims[own];
}

/// What a scale or bias has of the dimensions [first, end) of x: all of the `leading` ones that it has any of, or of
/// the trailing ones, and 1 of the others. -1: neither.
inline std::int64_t listed(const TensorDesc& parameter, const TensorDesc& x, int first, int end, bool leading) {
  std::int64_t elements = 1;
  bool ended = false;
  for (int i = 0; i < end - first; ++i) {
    const int axis = leading ? first + i : end - 1 - i;
    const std::int32_t dim = own_dim(parameter, x, axis);
    if (dim != x.dims[axis] || ended) {
      if (dim != 1) return -1;
      ended = ended || x.dims[axis] != 1;
    }
    elements *= dim;
  }
  return elements;
}

/// Scale or bias: `period` blocks, which outer indices use in turn, of a value for every n / steps elements that are
/// normalised together, or for every one of `inner`.
struct Parameter {
  const float* data = nullptr;
  std::int64_t period = 1;
  std::int64_t steps = 1;
  std::int64_t inner = 1;

  bool valid() const { return period > 0 && steps > 0 && inner > 0; }
  const float* block(std::int64_t outer) const { return data + outer % period * steps * inner; }
};

inline Parameter parameter_of(const NormParams& p, const TensorDesc& x, const TensorDesc& desc, const float* data) {
  const int first = p.axes[0];
  const int end = first + p.axes.size;
  return {data, listed(desc, x, 0, first, false), listed(desc, x, first, end, true),
          listed(desc, x, end, x.rank, true)};
}

/// x as [outer, rows, groups, members]: rows and members are normalised together, groups and members are columns.
struct GroupGeometry {
  std::int64_t outer = 1;
  std::int64_t rows = 1;
  std::int64_t groups = 1;
  std::int64_t members = 1;
  int first_column = 0;  ///< the axis of x from which on dimensions are columns

  std::int64_t columns() const { return groups * members; }
};

/// Parts of the rows that have sums of their own: of about 64 rows, or as many parts.
inline std::int64_t part_count(const GroupGeometry& g) {
  constexpr std::int64_t kRows = 64;
  constexpr std::int64_t kMostParts = 64;
  return std::clamp<std::int64_t>((g.rows + kRows - 1) / kRows, 1, kMostParts);
}

/// Nothing when the axes lie in more than two places or are not innermost, or x is empty. Of one run of axes the last
/// one is members, and what is left out before it a group each if it is the only one: as of an image of one pixel.
inline std::optional<GroupGeometry> group_geometry_of(const NormParams& p, const TensorDesc& x) {
  if (x.elements() == 0) return std::nullopt;
  GroupGeometry g;
  std::int64_t* const parts[] = {&g.outer, &g.rows, &g.groups, &g.members};
  g.first_column = x.rank;
  int part = 0;
  int last = -1;  // axis that is not of size 1, and
  int kept = -1;  // one that is not normalised
  for (int axis = 0, next = 0; axis < x.rank; ++axis) {
    const bool normalised = next < p.axes.size && p.axes[next] == axis;
    if (normalised) ++next;
    if (x.dims[axis] == 1) continue;
    if (normalised != (part % 2 != 0) && ++part == 4) return std::nullopt;
    if (part == 2 && g.groups == 1) g.first_column = axis;
    *parts[part] *= x.dims[axis];
    last = axis;
    if (!normalised) kept = axis;
  }
  if (part == 1) {
    g.members = x.dims[last];
    g.rows /= g.members;
    g.first_column = last;
    if (g.rows == 1 && kept >= 0) {
      g.groups = x.dims[kept];
      g.outer /= g.groups;
      g.first_column = kept;
    }
  }
  return part % 2 != 0 ? std::optional(g) : std::nullopt;
}

/// Has the operand one value for each column, or one for all?
inline bool lists_columns(const TensorDesc& parameter, const TensorDesc& x, const GroupGeometry& g) {
  if (parameter.elements() == 1) return true;
  for (int axis = 0; axis < x.rank; ++axis)
    if (own_dim(parameter, x, axis) != (axis < g.first_column ? 1 : x.dims[axis])) return false;
  return true;
}

}  // namespace bantam::ops::norm
