#include <algorithm>
#include <cstring>

#include "ops/common/operands.h"
#include "ops/common/parallel.h"
#include "ops/nn/resize/antialias.h"
#include "ops/nn/resize/kernels.h"
#include "ops/nn/resize/sampling.h"

namespace bantam::ops::resize {
namespace {

/// Elements of one output run, and how many runs there are.
struct Runs {
  int last = -1;  ///< innermost resampled axis
  std::int64_t count = 1;
  std::int64_t length = 1;
};

Runs runs_of(const ResizeParams& p, const TensorDesc& x, const TensorDesc& out) {
  const int last = last_resampled(p, x);
  return {last, elements_between(out, 0, last + 1), elements_between(out, last + 1, out.rank)};
}

/// to += weight * run, for every combination of the taps of axes `axis`..last. At most kMaxRank deep.
void accumulate(const Cursor& cursor, const TensorDesc& x, const Runs& runs, int axis, std::int64_t offset,
                float weight, const float* from, float* to) {
  if (axis > runs.last) {
    for (std::int64_t i = 0; i < runs.length; ++i) to[i] += weight * from[offset + i];
    return;
  }
  const Taps& taps = cursor.taps(axis);
  for (int i = 0; i < taps.count; ++i)
    accumulate(cursor, x, runs, axis + 1, offset + static_cast<std::int64_t>(taps.index[i]) * x.strides[axis],
               weight * taps.weight[i], from, to);
}

void copy_nearest(const Cursor& cursor, const TensorDesc& x, const Runs& runs, const std::byte* from, std::byte* to) {
  const std::int64_t bytes = element_size(x.type);
  std::int64_t offset = 0;
  for (int axis = 0; axis <= runs.last; ++axis)
    offset += static_cast<std::int64_t>(cursor.taps(axis).index[0]) * x.strides[axis];
  std::memcpy(to, from + offset * bytes, static_cast<std::size_t>(runs.length * bytes));
}

void sample_run(const Invocation& call, const Cursor& cursor, const Runs& runs, std::int64_t run) {
  const auto& p = call.as<ResizeParams>();
  const TensorDesc& x = call.in(0);
  if (p.mode == ResizeMode::kNearest && !cursor.outside()) {
    copy_nearest(cursor, x, runs, call.input<std::byte>(0),
                 call.output<std::byte>() + run * runs.length * element_size(x.type));
    return;
  }
  float* to = call.output<float>() + run * runs.length;
  std::fill_n(to, runs.length, cursor.outside() ? p.extrapolation : 0.0F);
  if (!cursor.outside()) accumulate(cursor, x, runs, 0, 0, 1.0F, call.input<float>(0), to);
}

}  // namespace

Status run_reference(const Invocation& call) {
  const auto& p = call.as<ResizeParams>();
  if (p.antialias != 0) return run_antialias(call);
  const Runs runs = runs_of(p, call.in(0), call.out());
  if (call.out().elements() == 0) return ok_status();
  const std::int64_t grain = std::max<std::int64_t>(4096 / runs.length, 1);
  parallel_ranges(*call.threads, runs.count, grain, [&](std::int64_t begin, std::int64_t end) {
    Cursor cursor(p, call.in(0), runs.last, begin);
    for (std::int64_t run = begin; run < end; ++run, cursor.next()) sample_run(call, cursor, runs, run);
  });
  return ok_status();
}

}  // namespace bantam::ops::resize
