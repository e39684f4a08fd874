// Iteration over tensors with strides and broadcasting: the shape common to N operands becomes a loop nest of as few
// levels as possible, whose innermost level, the row, has one stride per operand (0 where the operand is broadcast).
//
//   const auto rows = make_rows<2>(out_desc, {&out_desc, &in_desc});
//   for_each_row(rows, [&](const auto& offsets, std::int64_t n) { move(out + offsets[0], in + offsets[1], n); });
//
// Offsets and strides are in elements. Freestanding, no allocation; everything re-entrant.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "bantam/tensor.h"

namespace bantam::ops {

template <int N>
struct StridedRows {
  int outer_rank = 0;                      ///< levels around the row
  std::int32_t outer_dims[kMaxRank] = {};  ///< outermost first
  std::array<std::int64_t, N> outer_strides[kMaxRank] = {};
  std::int64_t row_length = 1;                ///< elements of the innermost level; 0 when the shape is empty
  std::array<std::int64_t, N> row_strides{};  ///< usually 0 or 1
  std::int64_t elements = 1;                  ///< of the whole shape

  /// True when operand i has stride 1 along the row (a row of one element has any stride).
  bool contiguous(int i) const noexcept { return row_length <= 1 || row_strides[static_cast<std::size_t>(i)] == 1; }

  /// True when all operands have stride 1 along the row.
  bool all_contiguous() const noexcept {
    for (int i = 0; i < N; ++i)
      if (!contiguous(i)) return false;
    return true;
  }

  /// True when operand 0 has stride 1 along the row and each other one stride 0 or 1.
  bool contiguous_or_broadcast() const noexcept {
    for (int i = 1; i < N; ++i)
      if (!contiguous(i) && row_strides[static_cast<std::size_t>(i)] != 0) return false;
    return contiguous(0);
  }
};

/// Stride of `operand` along dimension `dim` of a shape of rank `rank` to which it is broadcast (aligned at the end).
constexpr std::int64_t broadcast_stride(const TensorDesc& operand, int rank, int dim) noexcept {
  const int own = dim - (rank - operand.rank);
  return own < 0 || operand.dims[own] == 1 ? 0 : operand.strides[own];
}

/// The loop nest of `shape`. Each operand's shape equals `shape` or broadcasts to it. Dimensions of size 1 vanish;
/// neighbouring dimensions merge where all operands allow it.
template <int N>
StridedRows<N> make_rows(const TensorDesc& shape, const std::array<const TensorDesc*, N>& operands) noexcept {
  StridedRows<N> rows;
  rows.elements = shape.elements();
  if (rows.elements == 0) {
    rows.row_length = 0;
    return rows;
  }
  // Levels outermost first; the last one becomes the row.
  int levels = 0;
  std::int64_t lengths[kMaxRank];
  std::array<std::int64_t, N> strides[kMaxRank];
  for (int dim = 0; dim < shape.rank; ++dim) {
    const std::int32_t length = shape.dims[dim];
    if (length == 1) continue;
    std::array<std::int64_t, N> own;
    for (std::size_t i = 0; i < N; ++i) own[i] = broadcast_stride(*operands[i], shape.rank, dim);
    bool merges = levels > 0;
    for (std::size_t i = 0; merges && i < N; ++i) merges = strides[levels - 1][i] == own[i] * length;
    if (merges) {
      lengths[levels - 1] *= length;
      strides[levels - 1] = own;
    } else {
      lengths[levels] = length;
      strides[levels++] = own;
    }
  }
  if (levels == 0) {
    rows.row_strides.fill(1);
    return rows;
  }
  rows.outer_rank = levels - 1;
  for (int i = 0; i < rows.outer_rank; ++i) {
    rows.outer_dims[i] = static_cast<std::int32_t>(lengths[i]);  // a tensor has < 2^31 elements
    rows.outer_strides[i] = strides[i];
  }
  rows.row_length = lengths[levels - 1];
  rows.row_strides = strides[levels - 1];
  return rows;
}

/// The levels around the row of a shape that is not empty: an element for each row.
template <int N>
StridedRows<N> without_rows(const StridedRows<N>& rows) noexcept {
  StridedRows<N> result = rows;
  result.elements = rows.elements / rows.row_length;
  result.outer_rank = std::max(rows.outer_rank - 1, 0);
  result.row_length = rows.outer_rank > 0 ? rows.outer_dims[result.outer_rank] : 1;
  result.row_strides = rows.outer_strides[result.outer_rank];
  return result;
}

/// Calls f(offsets, strides, count, n) for consecutive runs that cover elements [begin, end) of the row-major order: a
/// run is `count` neighbouring whole rows, or a piece of one, of n elements each. `offsets` and `strides`
/// (std::array<std::int64_t, N>) lead to the run's first element and from a row to the next in each operand.
template <int N, typename F>
void for_each_run(const StridedRows<N>& rows, std::int64_t begin, std::int64_t end, F&& f) {
  if (begin >= end) return;
  std::int64_t row = begin / rows.row_length;
  std::int64_t within = begin % rows.row_length;
  const int last = rows.outer_rank - 1;  // the level whose rows make runs
  std::int32_t index[kMaxRank] = {};
  std::array<std::int64_t, N> base{};
  for (int i = last; i >= 0; --i) {
    index[i] = static_cast<std::int32_t>(row % rows.outer_dims[i]);
    row /= rows.outer_dims[i];
    for (std::size_t k = 0; k < N; ++k) base[k] += index[i] * rows.outer_strides[i][k];
  }
  const std::array<std::int64_t, N> strides = last >= 0 ? rows.outer_strides[last] : std::array<std::int64_t, N>{};
  for (std::int64_t left = end - begin; left > 0;) {
    const std::int64_t n = std::min(left, rows.row_length - within);
    std::int64_t count = 1;
    if (last >= 0 && n == rows.row_length)
      count = std::min<std::int64_t>(left / n, std::int64_t{rows.outer_dims[last]} - index[last]);
    std::array<std::int64_t, N> offsets = base;
    for (std::size_t k = 0; k < N; ++k) offsets[k] += within * rows.row_strides[k];
    f(offsets, strides, count, n);
    left -= count * n;
    within = 0;
    std::int64_t step = count;
    for (int i = last; i >= 0; --i, step = 1) {
      for (std::size_t k = 0; k < N; ++k) base[k] += step * rows.outer_strides[i][k];
      index[i] += static_cast<std::int32_t>(step);
      if (index[i] < rows.outer_dims[i]) break;
      for (std::size_t k = 0; k < N; ++k) base[k] -= rows.outer_strides[i][k] * rows.outer_dims[i];
      index[i] = 0;
    }
  }
}

/// Calls f(offsets, n) for consecutive pieces of rows that cover elements [begin, end) of the row-major order:
/// `offsets` (std::array<std::int64_t, N>) lead to the first element of the piece in each operand, n is its length.
template <int N, typename F>
void for_each_segment(const StridedRows<N>& rows, std::int64_t begin, std::int64_t end, F&& f) {
  using Offsets = std::array<std::int64_t, N>;
  for_each_run(rows, begin, end, [&](Offsets offsets, const Offsets& strides, std::int64_t count, std::int64_t n) {
    for (std::int64_t i = 0; i < count; ++i) {
      f(offsets, n);
      for (std::size_t k = 0; k < N; ++k) offsets[k] += strides[k];
    }
  });
}

/// for_each_segment over the whole shape: one call per row.
template <int N, typename F>
void for_each_row(const StridedRows<N>& rows, F&& f) {
  for_each_segment(rows, 0, rows.elements, f);
}

/// Calls f(offsets) for elements [begin, end), in row-major order.
template <int N, typename F>
void for_each_element(const StridedRows<N>& rows, std::int64_t begin, std::int64_t end, F&& f) {
  for_each_segment(rows, begin, end, [&](std::array<std::int64_t, N> offsets, std::int64_t n) {
    for (std::int64_t i = 0; i < n; ++i) {
      f(offsets);
      for (std::size_t k = 0; k < N; ++k) offsets[k] += rows.row_strides[k];
    }
  });
}

/// The same for every element.
template <int N, typename F>
void for_each_element(const StridedRows<N>& rows, F&& f) {
  for_each_element(rows, 0, rows.elements, f);
}

}  // namespace bantam::ops
