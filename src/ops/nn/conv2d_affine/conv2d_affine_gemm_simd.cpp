// conv2d_affine as an implicit matrix product: the windows of a block of output pixels are gathered, widened to int16
// with the zero point subtracted, and multiplied by the packed weights (nn/gemm/gemm_i8.h).
#include <algorithm>

#include "ops/common/parallel.h"
#include "ops/nn/conv2d/problem.h"
#include "ops/nn/conv2d_affine/kernels.h"
#include "ops/nn/gemm/gemm_i8.h"

namespace bantam::ops::conv2d_affine {
namespace {

using conv2d::Problem;

constexpr std::int64_t kGrain = 4 * gemm::kMaxTileRows;

Problem problem_of(const Conv2dAffineParams& params, const TensorDesc& x, const TensorDesc& w, const TensorDesc& y) {
  return conv2d::make_problem(window_of(params), x, w, y);
}

/// Pixels of a block: many enough to reuse the weights, few enough to stay in the cache.
std::int64_t block_rows(std::int64_t k) {
  constexpr std::int64_t kBlockNumbers = 12288;
  return std::clamp<std::int64_t>(kBlockNumbers / k, 1, 4) * gemm::kMaxTileRows;
}

std::int64_t row_numbers(const Problem& p) { return 2 * gemm::pair_count(p.k); }

/// One thread's block: widened rows, then the sum of each row.
std::int64_t rows_bytes(const Problem& p) {
  constexpr std::int64_t kNumber = sizeof(std::int16_t);
  return align_up(block_rows(p.k) * row_numbers(p) * kNumber, kAlignment);
}
std::int64_t block_bytes(const Problem& p) {
  constexpr std::int64_t kSum = sizeof(std::int32_t);
  return rows_bytes(p) + align_up(block_rows(p.k) * kSum, kAlignment);
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

  void gather(std::int32_t group, std::int64_t index, std::int64_t count, std::int16_t* rows) const {
    const X* x = call.input<X>(0) + group * p.group_inputs;
    if (p.one_run && p.g.x.w_stride == p.k && p.k % 2 == 0) {
      // Pixels of a dense image, of which the convolution sees one at a time, are the rows already.
      gemm::widen(x + index * p.k, count * p.k, x_zero, rows);
      return;
    }
    for (std::int64_t i = 0; i < count; ++i, rows += row_numbers(p)) {
      conv2d::gather_window(p, x, conv2d::pixel_at(p.g.y, index + i), rows,
                            [this](const X* from, std::int64_t n, std::int16_t* to) {
                              constexpr std::int64_t kShort = 16;  // a call costs more than so many elements
                              if (n > kShort) return gemm::widen(from, n, x_zero, to);
                              for (std::int64_t j = 0; j < n; ++j) to[j] = static_cast<std::int16_t>(from[j] - x_zero);
                            });
      if (p.k % 2 != 0) rows[p.k] = 0;
    }
  }

  /// Output pixels [begin, end).
  void pixels(std::int64_t begin, std::int64_t end, std::byte* scratch) const {
    auto* rows = reinterpret_cast<std::int16_t*>(scratch);
    auto* sums = reinterpret_cast<std::int32_t*>(scratch + rows_bytes(p));
    for (std::int64_t index = begin; index < end;) {
      const conv2d::Pixel at = conv2d::pixel_at(p.g.y, index);
      std::int64_t count = std::min(block_rows(p.k), end - index);
      if (!p.y_uniform) count = std::min(count, p.g.y.w - at.x);
      for (std::int32_t group = 0; group < p.g.groups; ++group) {
        gather(group, index, count, rows);
        const gemm::LeftRowsI16 left{rows, count, gemm::pair_count(p.k)};
        const std::int64_t first = group * p.group_outputs;
        gemm::AffineResult<Y> result{y + p.g.y.offset(at.n, at.y, at.x) + first, p.g.y.w_stride,
                                     scaler.from_channel(first), nullptr, w_zeros.from(first)};
        if (!w_zeros.are_zero()) {
          gemm::sum_rows(left, sums);
          result.row_sums = sums;
        }
        gemm::multiply(left,
                       gemm::RightPanelsI8{call.input<std::int8_t>(1) + group * packed_group_bytes(p), p.group_outputs,
                                           0, gemm::panel_count(p.group_outputs)},
                       result);
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
      run.pixels(begin, end, call.scratch + slot * block_bytes(p));
    });
  });
}

}  // namespace

bool gemm_supports(const OpCall& call) {
  return call.inputs[1].data != nullptr && call.in(1).is_dense() && call.in(1).elements() > 0 &&
         call.out().elements() > 0;
}

Footprint gemm_footprint(const OpCall& call, int threads) {
  return {.scratch_bytes =
              block_bytes(problem_of(call.as<Conv2dAffineParams>(), call.in(0), call.in(1), call.out())) * threads};
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
