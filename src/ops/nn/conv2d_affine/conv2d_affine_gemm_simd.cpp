// conv2d_affine as an implicit matrix product: the windows of a block of output pixels are gathered, widened to int16
// with the zero point subtracted, and multiplied by the packed weights (nn/gemm/gemm_i8.h).
#include <algorithm>

#include "ops/common/parallel.h"
#include "ops/nn/conv2d/overlap.h"
#include "ops/nn/conv2d/widened_windows.h"
#include "ops/nn/conv2d_affine/kernels.h"

namespace bantam::ops::conv2d_affine {
namespace {

using conv2d::Problem;

constexpr std::int64_t kGrain = gemm::kMaxBlockRows;

Problem problem_of(const Conv2dAffineParams& params, const TensorDesc& x, const TensorDesc& w, const TensorDesc& y) {
  return conv2d::make_problem(window_of(params), x, w, y);
}

std::int64_t packed_group_bytes(const Problem& p) { return gemm::packed_i8_bytes(p.k, p.group_outputs); }

/// One application, while it runs.
template <typename X, typename Y>
struct Run {
  const Invocation& call;
  const Problem& p;
  const Conv2dAffineParams& params;
  AffineScaler scaler;
  ZeroPoints w_zeros;
  std::int32_t x_zero;  ///< of X
  Y* y;

  /// Output pixels [begin, end).
  void pixels(std::int64_t begin, std::int64_t end, const gemm::Workspace& workspace) const {
    const std::int64_t most = result_overlaps(call) ? conv2d::kOverlapPixels : gemm::kMaxBlockRows;
    for (std::int64_t index = begin; index < end;) {
      const conv2d::Pixel at = conv2d::pixel_at(p.g.y, index);
      std::int64_t count = std::min(most, end - index);
      if (!p.y_uniform) count = std::min(count, p.g.y.w - at.x);
      for (std::int32_t group = 0; group < p.g.groups; ++group) {
        const conv2d::WidenedWindows<X> windows(p, call.input<X>(0) + group * p.group_inputs, x_zero, index);
        const std::int64_t first = group * p.group_outputs;
        gemm::multiply(windows.rows(count), workspace,
                       gemm::RightPanelsI8{call.input<std::int8_t>(1) + group * packed_group_bytes(p), p.group_outputs,
                                           0, gemm::panel_count(p.group_outputs)},
                       gemm::AffineResult<Y>{y + p.g.y.offset(at.n, at.y, at.x) + first, p.g.y.w_stride,
                                             scaler.from_channel(first), w_zeros.from(first)});
      }
      index += count;
    }
  }
};

template <typename X>
void run_on(const Invocation& call, const Problem& p, std::int32_t x_zero) {
  const auto& params = call.as<Conv2dAffineParams>();
  with_affine_result(call, [&](auto* y) {
    using Y = std::remove_pointer_t<decltype(y)>;
    const Run<X, Y> run{call,
                        p,
                        params,
                        make_affine_scaler(call, params.form),
                        zero_points(call, 1, 5, params.form.weights_zero_point),
                        x_zero,
                        y};
    const std::int64_t pixels = static_cast<std::int64_t>(p.g.y.n) * p.g.y.h * p.g.y.w;
    parallel_slots(*call.threads, pixels, kGrain, [&](std::int64_t slot, std::int64_t begin, std::int64_t end) {
      const std::int64_t bytes = slot_scratch_bytes(call);
      run.pixels(begin, end,
                 {reinterpret_cast<std::int16_t*>(call.scratch + slot * bytes),
                  bytes / static_cast<std::int64_t>(sizeof(std::int16_t))});
    });
  });
}

}  // namespace

bool gemm_supports(const OpCall& call) {
  return call.inputs[1].data != nullptr && call.in(1).is_dense() && call.in(1).elements() > 0 &&
         call.out().elements() > 0;
}

Footprint gemm_footprint(const OpCall& call, int threads) {
  const Problem p = problem_of(call.as<Conv2dAffineParams>(), call.in(0), call.in(1), call.out());
  const conv2d::ProductScratch scratch = conv2d::product_scratch(p);
  return {.scratch_bytes = scratch.least * threads,
          .useful_scratch_bytes = scratch.useful * threads,
          .lead_bytes = lead_bytes(call, p.g, conv2d::kOverlapPixels, threads)};
}

std::int64_t gemm_packed_bytes(const OpCall& call, int input) {
  if (input != 1) return 0;
  const Problem p = problem_of(call.as<Conv2dAffineParams>(), call.in(0), call.in(1), call.out());
  return packed_group_bytes(p) * p.g.groups;
}

void gemm_pack(const OpCall& call, int /*input*/, std::byte* destination) {
  const Problem p = problem_of(call.as<Conv2dAffineParams>(), call.in(0), call.in(1), call.out());
  const auto* data = static_cast<const std::int8_t*>(call.inputs[1].data);
  auto* packed = reinterpret_cast<std::int8_t*>(destination);
  for (std::int32_t group = 0; group < p.g.groups; ++group)
    gemm::pack_panels_i8(data + group * p.group_outputs * p.k, p.k, p.group_outputs, 1, p.k,
                         packed + group * packed_group_bytes(p));
  // What pads the panels may have any value: it meets zeros of the left matrix, or belongs to no column.
  for (std::int64_t i = 0; i < packed_group_bytes(p) * p.g.groups; ++i)
    destination[i] ^= std::byte{sign_flip(call.in(1).type)};
}

Status run_gemm(const Invocation& call) {
  const auto& params = call.as<Conv2dAffineParams>();
  const Problem p = problem_of(params, call.in(0), call.in(1), call.out());
  const std::int32_t zero = zero_points(call, 0, 4, params.form.input_zero_point)[0];
  if (call.in(0).type == ElementType::kU8) {
    run_on<std::uint8_t>(call, p, zero + 128);
  } else {
    run_on<std::int8_t>(call, p, zero);
  }
  return ok_status();
}

}  // namespace bantam::ops::conv2d_affine
