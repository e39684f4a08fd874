// conv2d_affine as an implicit matrix product: the windows of a block of output pixels, gathered where they are not
// pixels of the image, are multiplied by the packed weights (nn/gemm/gemm_i8.h).
#include <algorithm>

#include "ops/common/parallel.h"
#include "ops/nn/conv2d/overlap.h"
#include "ops/nn/conv2d/windows.h"
#include "ops/nn/conv2d_affine/kernels.h"

namespace bantam::ops::conv2d_affine {
namespace {

using conv2d::Problem;

/// Of an OpCall or an Invocation.
template <typename Call>
Problem problem_of(const Call& call) {
  constexpr int kWeightsZero = 5;
  const auto& params = call.template as<Conv2dAffineParams>();
  const Problem p = conv2d::make_problem(window_of(params), call.in(0), call.in(1), call.out());
  const bool has_zeros = static_cast<int>(call.inputs.size()) > kWeightsZero && call.in(kWeightsZero).present();
  return has_zeros || params.form.weights_zero_point != 0 ? p : conv2d::with_whole_quads(p);
}

/// One application, while it runs.
template <typename Y>
struct Run {
  const Invocation& call;
  const Problem& p;
  const Conv2dAffineParams& params;
  AffineScaler scaler;
  ZeroPoints w_zeros;
  gemm::ByteForm x_form;
  Y* y;

  /// Output pixels [begin, end).
  void pixels(std::int64_t begin, std::int64_t end, const gemm::Workspace& workspace) const {
    const bool in_lines = w_zeros.are_zero();
    conv2d::for_each_block(
        call, p, call.input<std::uint8_t>(0), x_form, call.input<std::int8_t>(1), workspace, in_lines, begin, end,
        [&](std::int32_t group, const gemm::LeftSource& rows, const gemm::RightPanelsI8& panels,
            const conv2d::Pixel& at) {
          const std::int64_t first = group * p.group_outputs;
          gemm::multiply(rows, workspace, panels,
                         gemm::AffineResult<Y>{y + p.g.y.offset(at.n, at.y, at.x) + first, p.g.y.w_stride,
                                               scaler.from_channel(first), w_zeros.from(first)});
        });
  }
};

}  // namespace

bool gemm_supports(const OpCall& call) {
  return call.inputs[1].data != nullptr && call.in(1).is_dense() && call.in(1).elements() > 0 &&
         call.out().elements() > 0;
}

Footprint gemm_footprint(const OpCall& call, int threads) {
  const Problem p = problem_of(call);
  const gemm::ProductScratch scratch = conv2d::product_scratch(p);
  return {.scratch_bytes = scratch.least * threads,
          .useful_scratch_bytes = scratch.useful * threads,
          .lead_bytes = lead_bytes(call, p.g, conv2d::kOverlapPixels, threads)};
}

std::int64_t gemm_packed_bytes(const OpCall& call, int input) {
  if (input != 1) return 0;
  const Problem p = problem_of(call);
  return conv2d::packed_window_bytes(p) * p.g.groups;
}

void gemm_pack(const OpCall& call, int /*input*/, std::byte* destination) {
  conv2d::pack_windows(problem_of(call), static_cast<const std::int8_t*>(call.inputs[1].data),
                       sign_flip(call.in(1).type), reinterpret_cast<std::int8_t*>(destination));
}

Status run_gemm(const Invocation& call) {
  const auto& params = call.as<Conv2dAffineParams>();
  const Problem p = problem_of(call);
  const std::int32_t zero = zero_points(call, 0, 4, params.form.input_zero_point)[0];
  with_affine_result(call, [&](auto* y) {
    using Y = std::remove_pointer_t<decltype(y)>;
    const Run<Y> run{call,
                     p,
                     params,
                     make_affine_scaler(call, params.form),
                     zero_points(call, 1, 5, params.form.weights_zero_point),
                     gemm::byte_form(sign_flip(call.in(0).type), zero),
                     y};
    const std::int64_t pixels = static_cast<std::int64_t>(p.g.y.n) * p.g.y.h * p.g.y.w;
    parallel_slots(*call.threads, pixels, conv2d::product_grain(p),
                   [&](std::int64_t slot, std::int64_t begin, std::int64_t end) {
                     const std::int64_t bytes = slot_scratch_bytes(call);
                     run.pixels(begin, end,
                                {reinterpret_cast<std::int16_t*>(call.scratch + slot * bytes),
                                 bytes / static_cast<std::int64_t>(sizeof(std::int16_t))});
                   });
  });
  return ok_status();
}

}  // namespace bantam::ops::conv2d_affine
