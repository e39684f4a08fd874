// Deformable convolution as matrix products: the samples of several windows are the rows of the left matrix.
#include <algorithm>

#include "ops/common/operands.h"
#include "ops/common/parallel.h"
#include "ops/nn/deform_conv2d/kernels.h"
#include "ops/nn/gemm/gemm_f32.h"

namespace bantam::ops::deform_conv2d {
namespace {

/// Windows that are multiplied at once.
constexpr std::int64_t kWindows = 2 * gemm::kMaxTileRows;
/// Few output channels per group leave most of a panel empty: fine while it costs little memory.
constexpr std::int64_t kSmallPackedBytes = 65536;
constexpr std::int64_t kMaxPackedGrowth = 4;

/// The matrices of one call, one per group.
struct Products {
  std::int64_t groups = 1;
  std::int64_t taps = 0;
  std::int64_t members = 0;  ///< channels of a group
  std::int64_t outputs = 0;  ///< of a group

  Products(const DeformConv2dParams& p, const TensorDesc& w) noexcept
      : groups(p.groups), taps(elements_between(w, 1, 3)), members(w.dims[3]), outputs(w.dims[0] / p.groups) {}

  std::int64_t k() const noexcept { return taps * members; }
  std::int64_t window() const noexcept { return taps * members * groups; }
  std::int64_t group_floats() const noexcept { return gemm::packed_floats(k(), outputs); }
  std::int64_t slot_bytes() const noexcept {
    return align_up(kWindows * window() * static_cast<std::int64_t>(sizeof(float)), kAlignment);
  }
};

Products products_of(const OpCall& call) { return {call.as<DeformConv2dParams>(), call.in(1)}; }

/// Outputs of windows [first, first + rows), whose samples these are.
void multiply_windows(const Invocation& call, const Products& p, const float* samples, std::int64_t first,
                      std::int64_t rows) {
  const std::int64_t channels = p.groups * p.outputs;
  for (std::int64_t g = 0; g < p.groups; ++g)
    gemm::multiply({.data = samples + g * p.members,
                    .rows = rows,
                    .row_stride = p.window(),
                    .segments = p.taps,
                    .segment_stride = p.groups * p.members,
                    .length = p.members},
                   {.data = call.input<float>(1) + g * p.group_floats(),
                    .n = p.outputs,
                    .first = 0,
                    .last = gemm::panel_count(p.outputs)},
                   {.data = call.output<float>() + first * channels + g * p.outputs,
                    .row_stride = channels,
                    .bias = call.has(3) ? call.input<float>(3) + g * p.outputs : nullptr});
}

}  // namespace

bool gemm_supports(const OpCall& call) {
  if (!all_dense(call) || call.inputs[1].data == nullptr || call.out().elements() == 0 || call.in(1).elements() == 0)
    return false;
  const std::int64_t packed = gemm_packed_bytes(call, 1);
  return packed <= kSmallPackedBytes || packed <= kMaxPackedGrowth * call.in(1).bytes();
}

Footprint gemm_footprint(const OpCall& call, int threads) {
  return {.scratch_bytes = products_of(call).slot_bytes() * threads};
}

std::int64_t gemm_packed_bytes(const OpCall& call, int input) {
  if (input != 1) return 0;
  const Products p = products_of(call);
  return p.groups * p.group_floats() * static_cast<std::int64_t>(sizeof(float));
}

void gemm_pack(const OpCall& call, int /*input*/, std::byte* destination) {
  const Products p = products_of(call);
  const auto* w = static_cast<const float*>(call.inputs[1].data);
  auto* to = reinterpret_cast<float*>(destination);
  for (std::int64_t g = 0; g < p.groups; ++g)
    gemm::pack_panels(w + g * p.outputs * p.k(), p.k(), p.outputs, 1, p.k(), 0, gemm::panel_count(p.outputs),
                      to + g * p.group_floats());
}

Status run_gemm(const Invocation& call) {
  const Products p(call.as<DeformConv2dParams>(), call.in(1));
  const std::int64_t windows = elements_between(call.out(), 0, 3);
  parallel_slots(*call.threads, windows, kWindows, [&](std::int64_t slot, std::int64_t begin, std::int64_t end) {
    auto* samples = reinterpret_cast<float*>(call.scratch + slot * p.slot_bytes());
    for (std::int64_t first = begin; first < end; first += kWindows) {
      const std::int64_t rows = std::min(kWindows, end - first);
      for (std::int64_t i = 0; i < rows; ++i) gather(call, first + i, samples + i * p.window());
      multiply_windows(call, p, samples, first, rows);
    }
  });
  return ok_status();
}

}  // namespace bantam::ops::deform_conv2d
