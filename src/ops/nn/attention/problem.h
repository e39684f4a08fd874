// One attention's extents and strides, gathered once from the descs, and what a query sees. Freestanding, values only.
#pragma once

#include <algorithm>
#include <cstdint>

#include "ops/common/operands.h"
#include "ops/nn/attention/attention.h"

namespace bantam::ops::attention {

enum Operand : int { kQ = 0, kK, kV, kBias, kMask, kLengths };

/// A tensor [B,heads,rows,width]; strides in elements.
struct HeadView {
  std::int64_t heads = 0;
  std::int64_t rows = 0;
  std::int64_t width = 0;
  std::int64_t batch_stride = 0;
  std::int64_t head_stride = 0;
  std::int64_t row_stride = 0;

  std::int64_t at(std::int64_t b, std::int64_t h, std::int64_t row) const noexcept {
    return b * batch_stride + h * head_stride + row * row_stride;
  }
};

/// Requires rank 4.
inline HeadView head_view(const TensorDesc& desc, bool heads_last) noexcept {
  const int head = heads_last ? 2 : 1;
  const int row = heads_last ? 1 : 2;
  return {desc.dims[head], desc.dims[row], desc.dims[3], desc.strides[0], desc.strides[head], desc.strides[row]};
}

/// An operand that broadcasts to [B,H,S,T]; strides are 0 where it does.
struct ScoreView {
  std::int64_t strides[4] = {};

  std::int64_t at(std::int64_t b, std::int64_t h, std::int64_t s) const noexcept {
    return b * strides[0] + h * strides[1] + s * strides[2];
  }
};

inline ScoreView score_view(const TensorDesc& desc) noexcept {
  ScoreView view;
  for (int i = 0; i < desc.rank; ++i)
    if (desc.dims[i] != 1) view.strides[4 - desc.rank + i] = desc.strides[i];
  return view;
}

/// A half-open range of keys.
struct KeyRange {
  std::int64_t first = 0;
  std::int64_t last = 0;
};

struct Problem {
  HeadView q, k, v, y;
  ScoreView bias, mask;
  std::int64_t batch = 0;
  std::int64_t group = 1;  ///< query heads per key head

  /// The keys that query `s` sees of `length` keys.
  KeyRange visible(const AttentionParams& p, std::int64_t length, std::int64_t s) const noexcept {
    const std::int64_t position = s + (p.aligned_end != 0 ? length - q.rows : 0);
    const std::int64_t first = p.left < 0 ? 0 : std::clamp<std::int64_t>(position - p.left, 0, length);
    const std::int64_t last = p.right < 0 ? length : std::clamp<std::int64_t>(position + p.right + 1, 0, length);
    return {first, std::max(first, last)};
  }
};

template <typename Call>
Problem make_problem(const Call& call) noexcept {
  const auto& p = call.template as<AttentionParams>();
  Problem problem;
  problem.q = head_view(call.in(kQ), p.q_heads_last != 0);
  problem.k = head_view(call.in(kK), p.k_heads_last != 0);
  problem.v = head_view(call.in(kV), p.v_heads_last != 0);
  problem.y = head_view(call.out(), p.y_heads_last != 0);
  if (call.has(kBias)) problem.bias = score_view(call.in(kBias));
  if (call.has(kMask)) problem.mask = score_view(call.in(kMask));
  problem.batch = call.in(kQ).dims[0];
  problem.group = problem.k.heads > 0 ? problem.q.heads / problem.k.heads : 1;
  return problem;
}

/// The number of keys of batch item b.
inline std::int64_t length_of(const Invocation& call, const Problem& problem, std::int64_t b) noexcept {
  return call.has(kLengths) ? call.input<std::int32_t>(kLengths)[b * call.in(kLengths).strides[0]] : problem.k.rows;
}

/// Checks the lengths, which are data.
inline Status check_lengths(const Invocation& call, const Problem& problem) noexcept {
  for (std::int64_t b = 0; b < problem.batch; ++b) {
    const std::int64_t length = length_of(call, problem, b);
    if (length < 0 || length > problem.k.rows)
      return failure(StatusCode::kOutOfRange, "number of keys is outside the sequence", length, problem.k.rows);
  }
  return ok_status();
}

}  // namespace bantam::ops::attention
