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

Place place_of(const MaxPoolIndicesParams& p, const TensorDesc& x, const TensorDesc& y, std::int64_t position) {
  Place place;
  place.axes = x.rank - 2;
  for (int i = place.axes - 1; i >= 0; --i) {
    const WindowAxis axis = window_axis(p, i);
    place.origin[i] = window_origin(axis, position % y.dims[2 + i]);
    place.taps[i] = taps_inside(axis, place.origin[i], 0, x.dims[2 + i]);
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

/// Visits the taps of axes `axis`.. in row-major order. There are at most kMaxRank - 2 axes, which is said once more
/// for compilers that unroll the recursion.
template <typename T>
void search(const MaxPoolIndicesParams& p, const TensorDesc& x, const Place& place, const T* channel, int axis,
            std::int64_t offset, std::int64_t column_major, std::int64_t column_stride, Best<T>& best) {
  if (axis == place.axes || axis == kMaxRank - 2) {
    const T value = channel[offset];
    const bool first = best.offset < 0 && comparable(value) == comparable(value);
    if (first || comparable(value) > comparable(best.value)) best = {value, offset, column_major};
    return;
  }
  for (std::int32_t k = place.taps[axis].first; k < place.taps[axis].last; ++k) {
    const std::int64_t at = place.origin[axis] + static_cast<std::int64_t>(k) * p.dilations[axis];
    search(p, x, place, channel, axis + 1, offset + at * x.strides[2 + axis], column_major + at * column_stride,
           column_stride * x.dims[2 + axis], best);
  }
}

template <typename T>
void run(const Invocation& call) {
  const auto& p = call.as<MaxPoolIndicesParams>();
  const TensorDesc& x = call.in(0);
  const TensorDesc& y = call.out();
  const std::int64_t channel_in = elements_between(x, 2, x.rank);
  const std::int64_t channel_out = elements_between(y, 2, y.rank);
  parallel_ranges(*call.threads, y.elements(), 256, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t base = i / channel_out * channel_in;
      Best<T> best;
      search(p, x, place_of(p, x, y, i % channel_out), call.input<T>(0) + base, 0, 0, 0, 1, best);
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
