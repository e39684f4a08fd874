// batch_matmul_q in i8 on packed panels (nn/gemm/gemm_i8.h): each b is packed into scratch, its products with some rows
// of a are summed up there, and the sums are rescaled by vectors.
#include <algorithm>

#include "ops/common/parallel.h"
#include "ops/nn/batch_matmul_q/kernels.h"
#include "ops/nn/gemm/gemm_i8.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/nn/batch_matmul_q/batch_matmul_q_simd.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "ops/common/requantize_simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::batch_matmul_q::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

/// y[i] = the result of sums[i], for 0 <= i < n.
void rescale(const BatchMatmulQParams& p, std::int64_t n, const std::int32_t* sums, std::int8_t* y) {
  const hn::ScalableTag<std::int32_t> d;
  const hn::Rebind<std::int8_t, decltype(d)> bytes;
  constexpr auto kLanes = static_cast<std::int64_t>(hn::MaxLanes(d));
  std::int32_t multipliers[kLanes];
  std::int32_t shifts[kLanes];
  std::fill_n(multipliers, kLanes, p.multiplier);
  std::fill_n(shifts, kLanes, p.shift);
  const Requantizer all{.multiplier = multipliers, .shift = shifts, .zero_point = p.output_zero_point};
  const ops::HWY_NAMESPACE::RequantizeVector<hn::ScalableTag<std::int32_t>> requantize(d, all, 0, kLanes);
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    hn::StoreU(hn::DemoteTo(bytes, requantize(hn::LoadU(d, sums + i))), bytes, y + i);
  for (; i < n; ++i) y[i] = all(static_cast<std::uint32_t>(sums[i]), 0);
}

}  // namespace
}  // namespace bantam::ops::batch_matmul_q::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bantam::ops::batch_matmul_q {

HWY_EXPORT(rescale);

namespace {

/// Rows whose sums are rescaled together.
constexpr std::int64_t kBlockRows = 2 * gemm::kMaxTileRows;

std::int64_t block_rows(const Matrices& m) { return std::min(m.rows, kBlockRows); }

/// Of a thread's scratch, in front of what products need: the sums of some rows.
std::int64_t sum_bytes(const Matrices& m) {
  return align_up(block_rows(m) * m.columns * static_cast<std::int64_t>(sizeof(std::int32_t)), kAlignment);
}

std::int64_t packed_bytes(const Matrices& m) { return align_up(gemm::packed_i8_bytes(m.depth, m.columns), kAlignment); }

/// One product, while it runs.
struct Product {
  const Invocation& call;
  const Matrices& m;
  const std::int8_t* a;
  const std::int8_t* panels;
  std::int8_t* y;

  /// Numbers of rows of a matrix that is transposed.
  static void gather(const void* context, std::int64_t row, std::int64_t rows, std::int64_t first, std::int64_t count,
                     std::int64_t stride, std::uint8_t* to) {
    const Product& self = *static_cast<const Product*>(context);
    for (std::int64_t i = row; i < row + rows; ++i, to += stride)
      for (std::int64_t k = 0; k < count; ++k)
        to[k] = static_cast<std::uint8_t>(self.a[i * self.m.a_row + (first + k) * self.m.a_step]);
  }

  /// Rows [begin, end).
  void run(std::int64_t slot, std::int64_t begin, std::int64_t end) const {
    const auto& p = call.as<BatchMatmulQParams>();
    const gemm::ByteForm form = gemm::byte_form(0, p.a_zero_point);
    const std::int64_t bytes = slot_scratch_bytes(call, packed_bytes(m));
    std::byte* const scratch = call.scratch + packed_bytes(m) + slot * bytes;
    auto* const sums = reinterpret_cast<std::int32_t*>(scratch);
    const gemm::Workspace workspace{reinterpret_cast<std::int16_t*>(scratch + sum_bytes(m)),
                                    (bytes - sum_bytes(m)) / static_cast<std::int64_t>(sizeof(std::int16_t))};
    const ZeroPoints zero_points{.constant = p.b_zero_point};
    for (std::int64_t i = begin, count; i < end; i += count) {
      count = std::min(end - i, block_rows(m));
      const Product from{call, m, a + i * m.a_row, panels, y};
      gemm::LeftSource rows{.rows = count, .k = m.depth, .flip = form.flip, .zero = form.zero};
      if (m.a_step == 1) {
        rows.data = reinterpret_cast<const std::uint8_t*>(from.a);
        rows.row_stride = m.a_row;
      } else {
        rows.gather_bytes = gather;
        rows.context = &from;
      }
      gemm::multiply(rows, workspace, gemm::RightPanelsI8{panels, m.columns, 0, gemm::panel_count(m.columns)},
                     gemm::AffineResult<std::int32_t>{sums, m.columns, {}, zero_points});
      HWY_DYNAMIC_DISPATCH(rescale)(p, count * m.columns, sums, y + i * m.columns);
    }
  }
};

}  // namespace

bool packed_supports(const OpCall& call) {
  return call.out().type == ElementType::kI8 && all_dense(call) && call.out().elements() > 0 &&
         Matrices(call).depth > 0;
}

Footprint packed_footprint(const OpCall& call, int threads) {
  const Matrices m(call);
  const auto bytes = [&](std::int64_t numbers) {
    return packed_bytes(m) +
           (sum_bytes(m) + align_up(numbers * static_cast<std::int64_t>(sizeof(std::int16_t)), kAlignment)) * threads;
  };
  return {.scratch_bytes = bytes(gemm::least_numbers_up_to(block_rows(m), m.depth)),
          .useful_scratch_bytes = bytes(gemm::useful_numbers(block_rows(m), m.depth))};
}

Status run_packed(const Invocation& call) {
  const OpCall described{call.params, call.inputs, call.outputs};
  const Matrices m(described);
  auto* const panels = reinterpret_cast<std::int8_t*>(call.scratch);
  const std::int8_t* packed = nullptr;  // what of b is there
  for_each_pair(described, [&](const auto& offsets) {
    const std::int8_t* b = call.input<std::int8_t>(1) + offsets[2];
    if (packed != b) gemm::pack_panels_i8_simd(b, m.depth, m.columns, m.b_step, m.b_column, 0, panels);
    packed = b;
    const Product product{call, m, call.input<std::int8_t>(0) + offsets[1], panels,
                          call.output<std::int8_t>() + offsets[0]};
    parallel_slots(*call.threads, m.rows, kBlockRows,
                   [&](std::int64_t slot, std::int64_t begin, std::int64_t end) { product.run(slot, begin, end); });
  });
  return ok_status();
}

}  // namespace bantam::ops::batch_matmul_q
#endif
