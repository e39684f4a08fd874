#include "ops/nn/resize/antialias.h"

#include <algorithm>
#include <cmath>

#include "ops/common/interpolate.h"
#include "ops/common/operands.h"
#include "ops/common/parallel.h"
#include "ops/nn/resize/sampling.h"

namespace bantam::ops::resize {
namespace {

/// How far the filter reaches on either side, in elements of the operand.
float reach_of(const ResizeParams& p, int axis) noexcept {
  const float support = p.mode == ResizeMode::kCubic ? 2.0F : 1.0F;
  return support * std::max(1.0F / p.scales[axis], 1.0F);
}

/// The filter at a distance in units of its own width.
float filter(const ResizeParams& p, float distance) noexcept {
  const float t = std::abs(distance);
  if (p.mode == ResizeMode::kLinear) return std::max(1.0F - t, 0.0F);
  if (!(t < 2.0F)) return 0.0F;
  float weights[4];
  cubic_weights(t < 1.0F ? t : t - 1.0F, p.cubic_coefficient, weights);
  return t < 1.0F ? weights[1] : weights[0];
}

/// The elements [first, first + count) that make up one element of the result.
struct Filtered {
  std::int32_t first = 0;
  std::int32_t count = 0;
};

/// Fills `weights`, which sum to one. What the filter asks for outside the operand falls on its end, or on all alike
/// with exclude_outside.
Filtered weigh(const ResizeParams& p, std::int32_t in, int axis, std::int32_t position, float* weights) noexcept {
  const float reach = reach_of(p, axis);
  const float width = std::min(p.scales[axis], 1.0F);
  const float centre = source_coordinate(p, in, axis, position) + 0.5F;
  const auto size = static_cast<float>(in);
  const float margin = reach + 1.0F;
  // Far outside only the end counts.
  const float bounded = centre >= -margin ? std::min(centre, size + margin) : -margin;
  const auto begin = static_cast<std::int64_t>(std::floor(bounded - reach + 0.5F));
  const auto end = static_cast<std::int64_t>(std::floor(bounded + reach + 0.5F));
  Filtered result;
  result.first = static_cast<std::int32_t>(std::clamp<std::int64_t>(begin, 0, in - 1));
  result.count = static_cast<std::int32_t>(std::clamp<std::int64_t>(end, result.first + 1, in)) - result.first;
  std::fill_n(weights, result.count, 0.0F);
  float sum = 0.0F;
  for (std::int64_t i = begin; i < end; ++i) {
    if (p.exclude_outside != 0 && (i < 0 || i >= in)) continue;
    const float weight = filter(p, (static_cast<float>(i) - bounded + 0.5F) * width);
    weights[std::clamp<std::int64_t>(i - result.first, 0, result.count - 1)] += weight;
    sum += weight;
  }
  for (std::int32_t i = 0; i < result.count && sum != 0.0F; ++i) weights[i] /= sum;
  return result;
}

}  // namespace

int filtered_axis(const ResizeParams& p, const TensorDesc& x) noexcept {
  int found = -1;
  for (int i = 0; i < x.rank; ++i)
    if (is_resampled(p, x, i)) found = found == -1 ? i : -2;
  return found;
}

Status check_antialias(const ResizeParams& p, const TensorDesc& x) noexcept {
  if (p.mode == ResizeMode::kNearest || p.coordinates == ResizeCoordinates::kCropAndResize)
    return failure(StatusCode::kUnsupported, "antialiasing is for linear and cubic resampling of whole tensors");
  const int axis = filtered_axis(p, x);
  if (axis == -2) return failure(StatusCode::kUnsupported, "antialiasing takes one axis at a time");
  // Keeps the filter within a few times the operand.
  if (axis >= 0 && p.sizes[axis] > 0 && p.scales[axis] * static_cast<float>(x.dims[axis]) < 0.5F)
    return failure(StatusCode::kInvalidModel, "scale leaves less than half an element").at(axis);
  return ok_status();
}

std::int64_t filter_bytes(const ResizeParams& p, const TensorDesc& x) noexcept {
  const int axis = filtered_axis(p, x);
  if (axis < 0) return 0;
  const float widest = std::min(2.0F * reach_of(p, axis) + 3.0F, static_cast<float>(x.dims[axis]));
  return align_up((static_cast<std::int64_t>(widest) + 1) * static_cast<std::int64_t>(sizeof(float)), kAlignment);
}

Status run_antialias(const Invocation& call) {
  const auto& p = call.as<ResizeParams>();
  const TensorDesc& x = call.in(0);
  const int axis = std::max(filtered_axis(p, x), 0);
  const std::int64_t outer = elements_between(x, 0, axis);
  const std::int64_t inner = elements_between(x, axis + 1, x.rank);
  const std::int64_t in = x.rank > 0 ? x.dims[axis] : 1;
  const std::int64_t out = x.rank > 0 ? p.sizes[axis] : 1;
  const std::int64_t bytes = filter_bytes(p, x);
  const float* from = call.input<float>(0);
  float* to = call.output<float>();
  if (call.out().elements() == 0) return ok_status();
  if (filtered_axis(p, x) < 0) {
    std::copy_n(from, x.elements(), to);
    return ok_status();
  }
  parallel_slots(*call.threads, out, 1, [&](std::int64_t slot, std::int64_t begin, std::int64_t end) {
    auto* weights = reinterpret_cast<float*>(call.scratch + slot * bytes);
    for (std::int64_t o = begin; o < end; ++o) {
      const Filtered taps = weigh(p, static_cast<std::int32_t>(in), axis, static_cast<std::int32_t>(o), weights);
      for (std::int64_t n = 0; n < outer; ++n) {
        float* row = to + (n * out + o) * inner;
        std::fill_n(row, inner, 0.0F);
        for (std::int32_t k = 0; k < taps.count; ++k) {
          const float* element = from + (n * in + taps.first + k) * inner;
          for (std::int64_t i = 0; i < inner; ++i) row[i] += weights[k] * element[i];
        }
      }
    }
  });
  return ok_status();
}

}  // namespace bantam::ops::resize
