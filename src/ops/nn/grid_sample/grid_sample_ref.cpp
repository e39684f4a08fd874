#include <algorithm>

#include "ops/common/operands.h"
#include "ops/common/parallel.h"
#include "ops/nn/grid_sample/kernels.h"
#include "ops/nn/grid_sample/sampling.h"

namespace bantam::ops::grid_sample {
namespace {

/// Points [begin, end) of all images.
void sample_points(const Invocation& call, std::int64_t begin, std::int64_t end) {
  const TensorDesc& x = call.in(0);
  const std::int64_t channels = x.last(0);
  const std::int64_t per_image = elements_between(call.out(), 1, x.rank - 1);
  Sample samples[kMaxSamples];
  for (std::int64_t i = begin; i < end; ++i) {
    const float* image = call.input<float>(0) + i / per_image * x.strides[0];
    float* to = call.output<float>() + i * channels;
    std::fill_n(to, channels, 0.0F);
    const int count = samples_at(call.as<GridSampleParams>(), x, call.input<float>(1) + i * (x.rank - 2), samples);
    for (int s = 0; s < count; ++s)
      for (std::int64_t c = 0; c < channels; ++c) to[c] += samples[s].weight * image[samples[s].offset + c];
  }
}

}  // namespace

Status run_reference(const Invocation& call) {
  for_each_range(call, [&](std::int64_t begin, std::int64_t end) { sample_points(call, begin, end); });
  return ok_status();
}

}  // namespace bantam::ops::grid_sample
