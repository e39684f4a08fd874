// matmul_blocks on constant weights: packed in panels of 16 columns, of which a thread unpacks one at a time into
// scratch, in the layout of nn/gemm/gemm_f32.h, and multiplies all rows by it. So every weight is read once, in its
// stored size, which is what bounds products of few rows; products of many rows run at the speed of the f32 kernel.
//
// Packed form: per panel and k, 16 numbers; of 4 bits, byte c holds column c in its low half and column c + 8 in its
// high half.
#include <algorithm>

#include "base/shape.h"
#include "ops/common/parallel.h"
#include "ops/nn/gemm/gemm_f32.h"
#include "ops/nn/matmul_blocks/kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/nn/matmul_blocks/matmul_blocks_simd.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::matmul_blocks::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

/// Rows [first, last) of a panel, all of one block, as numbers.
void unpack_rows(const std::uint8_t* packed, int bits, std::int64_t rows, const float* scales, const float* zero_points,
                 float* to) {
  const hn::CappedTag<float, 8> d;
  const hn::Rebind<std::int32_t, decltype(d)> d32;
  const hn::Rebind<std::uint8_t, decltype(d)> d8;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto number = [&](hn::Vec<decltype(d32)> q, std::int64_t column) HWY_ATTR {
    const auto centred = hn::Sub(hn::ConvertTo(d, q), hn::LoadU(d, zero_points + column));
    return hn::Mul(centred, hn::LoadU(d, scales + column));
  };
  for (std::int64_t k = 0; k < rows; ++k, to += gemm::kPanel, packed += gemm::kPanel * bits / 8) {
    if (bits == 8) {
      for (std::int64_t c = 0; c < gemm::kPanel; c += lanes)
        hn::StoreU(number(hn::PromoteTo(d32, hn::LoadU(d8, packed + c)), c), d, to + c);
    } else {
      for (std::int64_t c = 0; c < gemm::kPanel / 2; c += lanes) {
        const auto pairs = hn::PromoteTo(d32, hn::LoadU(d8, packed + c));
        hn::StoreU(number(hn::And(pairs, hn::Set(d32, 15)), c), d, to + c);
        hn::StoreU(number(hn::ShiftRight<4>(pairs), c + gemm::kPanel / 2), d, to + c + gemm::kPanel / 2);
      }
    }
  }
}

}  // namespace
}  // namespace bantam::ops::matmul_blocks::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bantam::ops::matmul_blocks {

HWY_EXPORT(unpack_rows);

namespace {

std::int64_t panel_bytes(std::int64_t k, std::int32_t bits) { return k * gemm::kPanel * bits / 8; }

/// One unpacked panel.
std::int64_t scratch_bytes(std::int64_t k) {
  return align_up(static_cast<std::int64_t>(sizeof(float)) * k * gemm::kPanel, kAlignment);
}

void unpack_panel(const Blocks& blocks, const std::uint8_t* packed, std::int64_t k, std::int64_t first_column,
                  std::int64_t columns, float* to) {
  const auto unpack = HWY_DYNAMIC_DISPATCH(unpack_rows);
  for (std::int64_t b = 0; b < blocks.count; ++b) {
    float scales[gemm::kPanel] = {};
    float zero_points[gemm::kPanel] = {};
    for (std::int64_t c = 0; c < columns; ++c) {
      scales[c] = blocks.scale(first_column + c, b);
      zero_points[c] = blocks.zero_point(first_column + c, b);
    }
    const std::int64_t begin = b * blocks.size;
    unpack(packed + panel_bytes(begin, blocks.bits), blocks.bits, std::min(blocks.size, k - begin), scales, zero_points,
           to + begin * gemm::kPanel);
  }
}

}  // namespace

bool panels_supports(const OpCall& call) {
  return call.inputs[1].data != nullptr && call.out().elements() > 0 && call.in(0).last(0) > 0;
}

Footprint panels_footprint(const OpCall& call, int threads) {
  return {.scratch_bytes = scratch_bytes(call.in(0).last(0)) * threads};
}

std::int64_t panels_packed_bytes(const OpCall& call, int input) {
  if (input != 1) return 0;
  const std::int64_t panels =
      gemm::panel_count(call.out().last(0)) * panel_bytes(call.in(0).last(0), call.as<MatmulBlocksParams>().bits);
  // Panels leave out what pads the last block; packing must not make a constant smaller.
  return std::max(panels, call.in(1).bytes());
}

void panels_pack(const OpCall& call, int /*input*/, std::byte* destination) {
  const auto& p = call.as<MatmulBlocksParams>();
  const auto* data = static_cast<const std::uint8_t*>(call.inputs[1].data);
  const std::int64_t n = call.out().last(0);
  const std::int64_t k = call.in(0).last(0);
  const std::int64_t column_bytes = static_cast<std::int64_t>(call.in(1).dims[1]) * call.in(1).dims[2];
  // Blocks follow each other without gaps, so that a column is one run of numbers.
  const auto number = [&](std::int64_t column, std::int64_t i) -> unsigned {
    if (column >= n) return 0;
    const std::uint8_t* q = data + column * column_bytes;
    return p.bits == 8 ? q[i] : (q[i / 2] >> (i % 2 * 4)) & 15U;
  };
  std::byte* const end = destination + panels_packed_bytes(call, 1);
  for (std::int64_t panel = 0; panel < gemm::panel_count(n); ++panel)
    for (std::int64_t i = 0; i < k; ++i)
      for (std::int64_t c = 0; c < gemm::kPanel * p.bits / 8; ++c) {
        const std::int64_t column = panel * gemm::kPanel + c;
        const unsigned high = p.bits == 8 ? 0 : number(column + gemm::kPanel / 2, i);
        *destination++ = static_cast<std::byte>(number(column, i) | high << 4U);
      }
  std::fill(destination, end, std::byte{0});
}

Status run_panels(const Invocation& call) {
  const Rows rows(call);
  const Blocks blocks(call);
  const auto* packed = call.input<std::uint8_t>(1);
  const auto* bias = call.has(4) ? call.input<float>(4) : nullptr;
  const std::int64_t panel_work = std::max<std::int64_t>((call.in(0).elements() + rows.k) * gemm::kPanel, 1);
  const std::int64_t grain = std::max<std::int64_t>(100'000 / panel_work, 1);
  parallel_slots(
      *call.threads, gemm::panel_count(rows.n), grain, [&](std::int64_t slot, std::int64_t first, std::int64_t last) {
        auto* panel = reinterpret_cast<float*>(call.scratch + slot * scratch_bytes(rows.k));
        for (std::int64_t p = first; p < last; ++p) {
          const std::int64_t column = p * gemm::kPanel;
          const std::int64_t columns = std::min(gemm::kPanel, rows.n - column);
          unpack_panel(blocks, packed + p * panel_bytes(rows.k, blocks.bits), rows.k, column, columns, panel);
          for_each_element(rows.batch, [&](const auto& offsets) {
            const gemm::LeftRows left{.data = call.input<float>(0) + offsets[1],
                                      .rows = rows.m,
                                      .row_stride = rows.a_stride,
                                      .length = rows.k};
            gemm::multiply(
                left, {panel, columns, 0, 1},
                {call.output<float>() + offsets[0] + column, rows.y_stride, bias != nullptr ? bias + column : nullptr});
          });
        }
      });
  return ok_status();
}

}  // namespace bantam::ops::matmul_blocks
#endif
