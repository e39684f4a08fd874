// How rows of a resampled tensor are made: where an output coordinate of the innermost resampled axis is sampled from
// is computed once, for all rows, and each row of the result is blended from a few rows of the operand. Shared by the
// kernels of resize and resize_affine. Tables lie in the scratch of a call. Freestanding.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "ops/common/operands.h"
#include "ops/nn/resize/sampling.h"

namespace bantam::ops::resize {

/// The taps of all output coordinates of one axis: those of tap t from t * size on, as distances in elements.
struct TapTable {
  std::int64_t size = 0;
  int count = 0;  ///< 0: the axis is not resampled
  std::int32_t* offset = nullptr;
  float* weight = nullptr;  ///< null where elements are only moved
};

inline int tap_count(const ResizeParams& p) {
  if (p.mode == ResizeMode::kNearest) return 1;
  return p.mode == ResizeMode::kLinear ? 2 : 4;
}

/// What the parts of a call have in common: axis `last` is the innermost that is resampled, or the first where none is,
/// of runs of `run` elements. Requires a rank of at least 1.
struct Resampling {
  Resampling(const ResizeParams& params, const TensorDesc& from, const TensorDesc& to)
      : p(params), x(from), last(std::max(last_resampled(params, from), 0)) {
    run = elements_between(x, last + 1, x.rank);
    in = x.dims[last];
    out = to.dims[last];
    rows = elements_between(to, 0, last);
  }

  bool moves() const { return p.mode == ResizeMode::kNearest; }
  /// Four-byte numbers in the table of an axis.
  std::int64_t table_numbers(int axis) const {
    return is_resampled(p, x, axis) ? std::int64_t{p.sizes[axis]} * tap_count(p) * (moves() ? 1 : 2) : 0;
  }
  std::int64_t table_bytes() const {
    std::int64_t numbers = 0;
    for (int axis = 0; axis <= last; ++axis) numbers += table_numbers(axis);
    return align_up(numbers * static_cast<std::int64_t>(sizeof(float)), kAlignment);
  }
  /// Of a blended row of the operand; one per thread.
  std::int64_t row_bytes() const {
    return moves() ? 0 : align_up(in * run * static_cast<std::int64_t>(sizeof(float)), kAlignment);
  }

  const ResizeParams& p;
  const TensorDesc& x;
  int last;
  std::int64_t run;
  std::int64_t in;
  std::int64_t out;
  std::int64_t rows;  ///< of the result
};

/// Linear upsampling of planes of elements: neighbouring rows of the result are made of the same two of the operand.
inline bool upsamples_planes(const Resampling& r) {
  if (r.p.mode != ResizeMode::kLinear || r.run != 1 || r.last == 0) return false;
  const int rows = r.last - 1;
  // By the scale, which a part of an image has in common with the whole: they are computed alike.
  if (!is_resampled(r.p, r.x, rows) || !(r.p.scales[rows] >= 1.0F)) return false;
  for (int axis = 0; axis < rows; ++axis)
    if (is_resampled(r.p, r.x, axis)) return false;
  return true;
}

/// Bytes of a row of elements of the result as floats.
inline std::int64_t sampled_bytes(const Resampling& r) {
  return align_up(r.out * static_cast<std::int64_t>(sizeof(float)), kAlignment);
}

inline TapTable fill_table(const Resampling& r, int axis, std::byte* memory) {
  if (!is_resampled(r.p, r.x, axis)) return {};
  TapTable table{r.p.sizes[axis], tap_count(r.p), reinterpret_cast<std::int32_t*>(memory), nullptr};
  if (!r.moves()) table.weight = reinterpret_cast<float*>(memory) + table.size * table.count;
  for (std::int64_t i = 0; i < table.size; ++i) {
    const Taps taps = taps_at(r.p, r.x, axis, static_cast<std::int32_t>(i));
    for (int t = 0; t < table.count; ++t) {
      // A tensor has fewer than 2^31 elements.
      table.offset[t * table.size + i] = static_cast<std::int32_t>(taps.index[t] * r.x.strides[axis]);
      if (table.weight != nullptr) table.weight[t * table.size + i] = taps.weight[t];
    }
  }
  return table;
}

/// Of all axes up to the last that is resampled, in the scratch of a call.
struct TapTables {
  TapTables(const Resampling& r, std::byte* memory) {
    for (int axis = 0; axis <= r.last; ++axis) {
      axes[axis] = fill_table(r, axis, memory);
      memory += r.table_numbers(axis) * static_cast<std::int64_t>(sizeof(float));
    }
  }

  TapTable axes[kMaxRank];
};

/// Rows of the operand that make up one row of the result.
struct Samples {
  static constexpr int kMax = 16;

  /// Every sample into those of `taps` taps, of which t lies offset(t) elements on and weighs weight_of(t): in place
  /// from the last to the first. Requires count * taps <= kMax.
  template <typename Offset, typename Weight>
  void split(int taps, Offset offset, Weight weight_of) {
    for (int s = count - 1; s >= 0; --s) {
      const std::int64_t begin = from[s];
      const float whole = weight[s];
      for (int t = taps - 1; t >= 0; --t) {
        from[s * taps + t] = begin + offset(t);
        weight[s * taps + t] = whole * weight_of(t);
      }
    }
    count *= taps;
  }

  int count;
  std::int64_t from[kMax];  ///< where they begin, in elements
  float weight[kMax];
};

/// Walks the places of the result along its first `axes` axes in their order: its rows, if these are all but the
/// innermost that is resampled.
class RowCursor {
 public:
  RowCursor(const Resampling& r, const TapTables& tables, int axes, std::int64_t row)
      : r_(r), tables_(tables), axes_(axes) {
    for (int axis = axes - 1; axis >= 0; --axis) {
      at_[axis] = row % r.p.sizes[axis];
      row /= r.p.sizes[axis];
    }
  }

  void next() {
    for (int axis = axes_ - 1; axis >= 0; --axis) {
      if (++at_[axis] < r_.p.sizes[axis]) return;
      at_[axis] = 0;
    }
  }

  /// Where the row begins that the present one is a copy of, if nothing but the innermost axis has weights.
  std::int64_t source() const {
    std::int64_t from = 0;
    for (int axis = 0; axis < axes_; ++axis) {
      const TapTable& table = tables_.axes[axis];
      from += table.count == 0 ? at_[axis] * r_.x.strides[axis] : table.offset[at_[axis]];
    }
    return from;
  }

  void find(Samples* samples) const {
    samples->count = 1;
    samples->from[0] = 0;
    samples->weight[0] = 1.0F;
    for (int axis = 0; axis < axes_; ++axis) {
      const TapTable& table = tables_.axes[axis];
      const std::int64_t at = at_[axis];
      if (table.count == 0) {
        for (int s = 0; s < samples->count; ++s) samples->from[s] += at * r_.x.strides[axis];
      } else {
        samples->split(
            table.count, [&](int t) { return table.offset[t * table.size + at]; },
            [&](int t) { return table.weight[t * table.size + at]; });
      }
    }
  }

 private:
  const Resampling& r_;
  const TapTables& tables_;
  int axes_;
  std::int64_t at_[kMaxRank] = {};
};

}  // namespace bantam::ops::resize
