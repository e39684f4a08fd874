#include <limits>
#include <type_traits>

#include "ops/common/dispatch.h"
#include "ops/common/operands.h"
#include "ops/common/parallel.h"
#include "ops/nn/max_pool_indices/kernels.h"

namespace bantam::ops::max_pool_indices {
namespace {

/// 16-bit floats are compared as float, everything else as it is.
template <typename T>
auto comparable(T x) {
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
    return to_f32(x);
  } else {
    return x;
  }
}

template <typename T>
T lowest() {
  if constexpr (std::is_same_v<T, Half>) {
    return to_half(-std::numeric_limits<float>::infinity());
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    return to_bfloat16(-std::numeric_limits<float>::infinity());
  } else if constexpr (std::is_floating_point_v<T>) {
    return -std::numeric_limits<T>::infinity();
  } else {
    return std::numeric_limits<T>::lowest();
  }
}

/// The window over one channel that belongs to one element of the result.
struct Place {
  int axes = 0;
  std::int64_t origin[kMaxRank] = {};
  TapRange taps[kMaxRank] = {};
};

void place_along(const MaxPoolIndicesParams& p, const TensorDesc& x, int axis, std::int64_t position, Place& place) {
  const WindowAxis window = window_axis(p, axis);
  place.origin[axis] = window_origin(window, position);
  place.taps[axis] = taps_inside(window, place.origin[axis], 0, x.dims[2 + axis]);
}

Place place_of(const MaxPoolIndicesParams& p, const TensorDesc& x, const TensorDesc& y, std::int64_t position) {
  Place place;
  place.axes = x.rank - 2;
  for (int i = place.axes - 1; i >= 0; --i) {
    place_along(p, x, i, position % y.dims[2 + i], place);
    position /= y.dims[2 + i];
  }
  return place;
}

template <typename T>
struct Best {
  T value = lowest<T>();
  std::int64_t offset = -1;  ///< row-major, within the channel
  std::int64_t column_major = -1;
};

/// Visits the taps of the innermost axis, from the first of them on.
template <typename T>
void search_row(const T* channel, std::int64_t offset, std::int64_t column_major, std::int64_t step,
                std::int64_t column_step, std::int32_t taps, Best<T>& best) {
  Best<T> row = best;
  for (std::int32_t k = 0; k < taps; ++k, offset += step, column_major += column_step) {
    const T value = channel[offset];
    const bool first = row.offset < 0 && comparable(value) == comparable(value);
    if (first || comparable(value) > comparable(row.value)) row = {value, offset, column_major};
  }
  best = row;
}

/// Visits the taps of axes `axis`.. in row-major order. There are at most kMaxRank - 2 axes, which is said once more
/// for compilers that unroll the recursion.
template <typename T>
void search(const MaxPoolIndicesParams& p, const TensorDesc& x, const Place& place, const T* channel, int axis,
            std::int64_t offset, std::int64_t column_major, std::int64_t column_stride, Best<T>& best) {
  const TapRange taps = place.taps[axis];
  const std::int64_t first = place.origin[axis] + static_cast<std::int64_t>(taps.first) * p.dilations[axis];
  if (axis == place.axes - 1 || axis == kMaxRank - 3)
    return search_row(channel, offset + first, column_major + first * column_stride, p.dilations[axis],
                      p.dilations[axis] * column_stride, taps.size(), best);
  std::int64_t at = first;
  for (std::int32_t k = taps.first; k < taps.last; ++k, at += p.dilations[axis])
    search(p, x, place, channel, axis + 1, offset + at * x.strides[2 + axis], column_major + at * column_stride,
           column_stride * x.dims[2 + axis], best);
}

template <typename T>
void run(const Invocation& call) {
  const auto& p = call.as<MaxPoolIndicesParams>();
  const TensorDesc& x = call.in(0);
  const TensorDesc& y = call.out();
  const std::int64_t channel_in = elements_between(x, 2, x.rank);
  const std::int64_t channel_out = elements_between(y, 2, y.rank);
  const std::int64_t row = y.dims[y.rank - 1];
  parallel_ranges(*call.threads, y.elements(), 256, [&](std::int64_t begin, std::int64_t end) {
    Place place;
    std::int64_t base = 0;
    std::int64_t column = begin % row;
    for (std::int64_t i = begin; i < end; ++i, ++column) {
      if (column == row) column = 0;
      if (i == begin || column == 0) {
        base = i / channel_out * channel_in;
        place = place_of(p, x, y, i % channel_out);
      } else {
        place_along(p, x, place.axes - 1, column, place);
      }
      Best<T> best;
      search(p, x, place, call.input<T>(0) + base, 0, 0, 0, 1, best);
      call.output<T>(0)[i] = best.value;
      const std::int64_t index = p.column_major != 0 ? best.column_major : best.offset;
      call.output<std::int64_t>(1)[i] = index < 0 ? -1 : base + index;
    }
  });
}

}  // namespace

Status run_reference(const Invocation& call) {
  dispatch_type<float, Half, BFloat16, double, std::int8_t, std::uint8_t, std::int16_t, std::uint16_t, std::int32_t,
                std::uint32_t, std::int64_t, std::uint64_t>(call.in(0).type,
                                                            [&](auto tag) { run<typename decltype(tag)::type>(call); });
  return ok_status();
}

}  // namespace bantam::ops::max_pool_indices
