// The plain definition of matmul_blocks: a column's weights become numbers once, then meet every row.
#include <algorithm>

#include "ops/nn/matmul_blocks/kernels.h"

namespace bantam::ops::matmul_blocks {
namespace {

/// The first `count` numbers of one block.
void unpack(const Blocks& blocks, std::int64_t n, std::int64_t b, std::int64_t count, float* to) {
  const std::uint8_t* data = blocks.block(n, b);
  const float scale = blocks.scale(n, b);
  const float zero_point = blocks.zero_point(n, b);
  for (std::int64_t i = 0; i < count; ++i) {
    const int q = blocks.bits == 8 ? data[i] : (data[i / 2] >> (i % 2 * 4)) & 15;
    to[i] = (static_cast<float>(q) - zero_point) * scale;
  }
}

}  // namespace

Footprint reference_footprint(const OpCall& call, int /*threads*/) {
  return {.scratch_bytes = static_cast<std::int64_t>(sizeof(float)) * call.in(0).last(0)};
}

Status run_reference(const Invocation& call) {
  const Rows rows(call);
  const Blocks blocks(call);
  auto* column = reinterpret_cast<float*>(call.scratch);
  for (std::int64_t n = 0; n < rows.n; ++n) {
    for (std::int64_t b = 0; b < blocks.count; ++b)
      unpack(blocks, n, b, std::min(blocks.size, rows.k - b * blocks.size), column + b * blocks.size);
    for_each_element(rows.batch, [&](const auto& offsets) {
      for (std::int64_t m = 0; m < rows.m; ++m) {
        const float* a = call.input<float>(0) + offsets[1] + m * rows.a_stride;
        float sum = 0.0F;
        for (std::int64_t k = 0; k < rows.k; ++k) sum += a[k] * column[k];
        call.output<float>()[offsets[0] + m * rows.y_stride + n] = call.has(4) ? sum + call.input<float>(4)[n] : sum;
      }
    });
  }
  return ok_status();
}

}  // namespace bantam::ops::matmul_blocks
