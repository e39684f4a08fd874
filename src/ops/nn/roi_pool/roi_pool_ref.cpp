#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/common/operands.h"
#include "ops/common/parallel.h"
#include "ops/nn/roi_pool/kernels.h"

namespace bantam::ops::roi_pool {
namespace {

/// One axis of a region: bins of equal length with points spread evenly in each.
struct Bins {
  std::int32_t size = 0;  ///< elements of the image's axis
  float start = 0;
  float length = 0;  ///< of one bin
  float points = 0;  ///< per bin

  float point(std::int64_t bin, std::int64_t i) const noexcept {
    return start + static_cast<float>(bin) * length + (static_cast<float>(i) + 0.5F) * length / points;
  }
};

Bins bins_of(const RoiPoolParams& p, float first, float last, std::int32_t count, std::int32_t size) {
  const float shift = p.half_pixel != 0 ? 0.5F : 0.0F;
  const float start = first * p.spatial_scale - shift;
  float extent = last * p.spatial_scale - shift - start;
  if (p.half_pixel == 0) extent = std::max(extent, 1.0F);
  Bins bins{size, start, extent / static_cast<float>(count), 0};
  // Neither a negative extent nor one that is not a number has points.
  bins.points = p.samples > 0 ? static_cast<float>(p.samples) : bins.length > 0.0F ? std::ceil(bins.length) : 0.0F;
  return bins;
}

/// The points [first, last) of a bin that can lie in [-1, size]; at most about two per element, because points are at
/// least half an element apart unless their number is a parameter.
struct PointRange {
  std::int64_t first = 0;
  std::int64_t last = 0;
};

PointRange points_inside(const Bins& bins, std::int64_t bin) {
  constexpr std::int64_t kFew = 1024;
  if (bins.points <= static_cast<float>(kFew)) return {0, static_cast<std::int64_t>(bins.points)};
  const double step = static_cast<double>(bins.length) / static_cast<double>(bins.points);
  const double begin = static_cast<double>(bins.start) + static_cast<double>(bin) * static_cast<double>(bins.length);
  const double first = (-1.0 - begin) / step - 2.0;
  const double count = std::min(static_cast<double>(bins.points), 1e15);
  if (!(first < count)) return {};
  PointRange range;
  range.first = static_cast<std::int64_t>(std::max(first, 0.0));
  const double length = std::min(count - static_cast<double>(range.first), 2.0 * bins.size + 8.0);
  range.last = range.first + static_cast<std::int64_t>(std::max(length, 0.0));
  return range;
}

/// The two elements around a point.
struct Neighbours {
  bool inside = false;
  std::int32_t index[2] = {};
  float weight[2] = {};
};

Neighbours neighbours_of(float at, std::int32_t size) {
  Neighbours result;
  if (!(at >= -1.0F && at <= static_cast<float>(size))) return result;
  result.inside = true;
  const float bounded = std::clamp(at, 0.0F, static_cast<float>(size - 1));
  const auto low = std::min(static_cast<std::int32_t>(bounded), size - 1);
  result.index[0] = low;
  result.index[1] = std::min(low + 1, size - 1);
  result.weight[1] = bounded - static_cast<float>(low);
  result.weight[0] = 1.0F - result.weight[1];
  return result;
}

/// Calls f(four offsets, four weights) for every point of a bin that lies inside the image.
template <typename F>
std::int64_t for_each_point(const TensorDesc& x, const Bins& rows, const Bins& columns, std::int64_t row,
                            std::int64_t column, F&& f) {
  std::int64_t met = 0;
  const PointRange down = points_inside(rows, row);
  const PointRange across = points_inside(columns, column);
  for (std::int64_t i = down.first; i < down.last; ++i) {
    const Neighbours v = neighbours_of(rows.point(row, i), rows.size);
    for (std::int64_t j = across.first; v.inside && j < across.last; ++j) {
      const Neighbours h = neighbours_of(columns.point(column, j), columns.size);
      if (!h.inside) continue;
      std::int64_t offsets[4];
      float weights[4];
      for (int k = 0; k < 4; ++k) {
        offsets[k] = static_cast<std::int64_t>(v.index[k / 2]) * x.strides[1] +
                     static_cast<std::int64_t>(h.index[k % 2]) * x.strides[2];
        weights[k] = v.weight[k / 2] * h.weight[k % 2];
      }
      f(offsets, weights);
      ++met;
    }
  }
  return met;
}

void pool_average(const TensorDesc& x, const float* image, const Bins& rows, const Bins& columns, std::int64_t row,
                  std::int64_t column, float* y) {
  const std::int32_t channels = x.dims[3];
  std::fill_n(y, channels, 0.0F);
  for_each_point(x, rows, columns, row, column, [&](const std::int64_t* offsets, const float* weights) {
    for (int k = 0; k < 4; ++k)
      for (std::int32_t c = 0; c < channels; ++c) y[c] += weights[k] * image[offsets[k] + c];
  });
  const float points = std::max(rows.points * columns.points, 1.0F);
  for (std::int32_t c = 0; c < channels; ++c) y[c] /= points;
}

void pool_max(const TensorDesc& x, const float* image, const Bins& rows, const Bins& columns, std::int64_t row,
              std::int64_t column, float* y) {
  const std::int32_t channels = x.dims[3];
  std::fill_n(y, channels, -std::numeric_limits<float>::infinity());
  const std::int64_t met =
      for_each_point(x, rows, columns, row, column, [&](const std::int64_t* offsets, const float* weights) {
        for (int k = 0; k < 4; ++k)
          for (std::int32_t c = 0; c < channels; ++c) y[c] = std::max(y[c], weights[k] * image[offsets[k] + c]);
      });
  // Points outside the image are zero.
  if (static_cast<double>(met) < static_cast<double>(rows.points) * static_cast<double>(columns.points) || met == 0)
    for (std::int32_t c = 0; c < channels; ++c) y[c] = met == 0 ? 0.0F : std::max(y[c], 0.0F);
}

/// Elements [first, last) of a bin whose region has rounded corners.
struct Cells {
  std::int64_t first = 0;
  std::int64_t last = 0;
};

Cells cells_of(const RoiPoolParams& p, float first, float last, std::int32_t bin, std::int32_t bins,
               std::int32_t size) {
  const auto rounded = [&](float value) {
    const float at = std::round(value * p.spatial_scale);
    constexpr float kFar = 1073741824.0F;
    return at >= -kFar ? static_cast<std::int64_t>(std::min(at, kFar)) : -static_cast<std::int64_t>(kFar);
  };
  const std::int64_t start = rounded(first);
  const std::int64_t extent = std::max<std::int64_t>(rounded(last) - start + 1, 1);
  const float length = static_cast<float>(extent) / static_cast<float>(bins);
  const auto begin = static_cast<std::int64_t>(std::floor(static_cast<float>(bin) * length));
  const auto end = static_cast<std::int64_t>(std::ceil(static_cast<float>(bin + 1) * length));
  return {std::clamp<std::int64_t>(begin + start, 0, size), std::clamp<std::int64_t>(end + start, 0, size)};
}

void pool_cells(const TensorDesc& x, const float* image, const Cells& rows, const Cells& columns, float* y) {
  const std::int32_t channels = x.dims[3];
  const bool empty = rows.first >= rows.last || columns.first >= columns.last;
  std::fill_n(y, channels, empty ? 0.0F : std::numeric_limits<float>::lowest());
  for (std::int64_t i = rows.first; i < rows.last; ++i)
    for (std::int64_t j = columns.first; j < columns.last; ++j)
      for (std::int32_t c = 0; c < channels; ++c) y[c] = std::max(y[c], image[i * x.strides[1] + j * x.strides[2] + c]);
}

void pool_bin(const RoiPoolParams& p, const TensorDesc& x, const float* image, const float* region, std::int32_t row,
              std::int32_t column, float* y) {
  if (p.mode == RoiPoolMode::kRoundedMax) {
    pool_cells(x, image, cells_of(p, region[1], region[3], row, p.output_h, x.dims[1]),
               cells_of(p, region[0], region[2], column, p.output_w, x.dims[2]), y);
    return;
  }
  const Bins rows = bins_of(p, region[1], region[3], p.output_h, x.dims[1]);
  const Bins columns = bins_of(p, region[0], region[2], p.output_w, x.dims[2]);
  (p.mode == RoiPoolMode::kMax ? pool_max : pool_average)(x, image, rows, columns, row, column, y);
}

}  // namespace

Status run_reference(const Invocation& call) {
  const auto& p = call.as<RoiPoolParams>();
  const TensorDesc& x = call.in(0);
  const std::int64_t regions = call.in(1).dims[0];
  for (std::int64_t r = 0; r < regions; ++r)
    if (const std::int64_t image = index_at(call.inputs[2], r); image < 0 || image >= x.dims[0])
      return index_fault(image, x.dims[0]).at(2);
  const std::int64_t bins = elements_between(call.out(), 1, 3);
  if (call.out().elements() == 0) return ok_status();
  parallel_ranges(*call.threads, regions * bins, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t r = i / bins;
      const float* image = call.input<float>(0) + index_at(call.inputs[2], r) * x.strides[0];
      pool_bin(p, x, image, call.input<float>(1) + r * 4, static_cast<std::int32_t>(i % bins / p.output_w),
               static_cast<std::int32_t>(i % p.output_w), call.output<float>() + i * x.dims[3]);
    }
  });
  return ok_status();
}

}  // namespace bantam::ops::roi_pool
