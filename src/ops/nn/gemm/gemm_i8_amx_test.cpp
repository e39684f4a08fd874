#include "ops/nn/gemm/gemm_i8_amx.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "ops/common/byte_products.h"
#include "ops/testing/guarded_memory.h"
#include "ops/testing/harness.h"

#if BANTAM_SIMD && defined(__x86_64__)

namespace bantam::ops::gemm {
namespace {

using testing::GuardedMemory;
using testing::Random;
using testing::random_int;

struct Operands {
  std::int64_t k, stride, panels;
  GuardedMemory a;
  GuardedMemory b;
  alignas(64) std::int32_t start[kAmxPanels * kPanel];

  /// Rows end where the memory ends, and so do panels.
  Operands(Random& random, std::int64_t rows, std::int64_t quads)
      : k(4 * quads),
        stride(k + random_int(random, 0, 70)),
        panels(random_int(random, 1, kAmxPanels)),
        a(static_cast<std::size_t>((rows - 1) * stride + k), 1),
        b(static_cast<std::size_t>(packed_i8_bytes(k, panels * kPanel)), 64) {
    for (std::byte& x : a.bytes()) x = static_cast<std::byte>(random_int(random, 0, 255));
    for (std::byte& x : b.bytes()) x = static_cast<std::byte>(random_int(random, 0, 255));
    for (std::int32_t& x : start) x = static_cast<std::int32_t>(random_int(random, -90000, 90000));
  }

  std::int32_t sum(std::int64_t row, std::int64_t column, bool is_signed) const {
    const auto* panel = reinterpret_cast<const std::int8_t*>(b.data()) + column / kPanel * panel_bytes(k);
    std::int32_t result = start[column];
    for (std::int64_t i = 0; i < k; ++i) {
      const std::byte x = a.data()[row * stride + i];
      result += (is_signed ? static_cast<std::int8_t>(x) : static_cast<std::uint8_t>(x)) *
                panel[(i / 4 * kPanel + column % kPanel) * 4 + i % 4];
    }
    return result;
  }
};

TEST(AmxTiles, SumExactlyAnyRowsAndQuadsAndReadNothingElse) {
  if (byte_products() < ByteProducts::kMatrices) GTEST_SKIP() << "this processor has no AMX-INT8";
  for (std::int64_t rows = 1; rows <= 3 * kAmxRows; rows += rows < 70 ? 1 : 13) {
    for (const std::int64_t quads : {1, 2, 15, 16, 17, 24, 29, 31, 33, 48, 50}) {
      SCOPED_TRACE(std::to_string(rows) + " rows of " + std::to_string(quads) + " quads");
      Random random(static_cast<std::uint64_t>(1000 * rows + quads));
      const Operands o(random, rows, quads);
      const bool is_signed = random_int(random, 0, 1) == 0;
      AmxTiles tiles;
      tiles.set_rows({reinterpret_cast<const std::uint8_t*>(o.a.data()), o.stride, is_signed, rows, quads});
      tiles.set_panels({reinterpret_cast<const std::int8_t*>(o.b.data()), panel_bytes(o.k), o.panels, o.start});
      std::int64_t done = 0;
      for (std::int64_t group = 0; group < tiles.groups(); ++group) {
        alignas(64) std::int32_t sums[kAmxRows * kAmxSumsStride];
        const AmxTiles::Rows of_group = tiles.sum(group, sums);
        ASSERT_LE(of_group.first, done);
        done = of_group.first + of_group.count;
        for (std::int64_t r = 0; r < of_group.count; ++r)
          for (std::int64_t c = 0; c < o.panels * kPanel; ++c)
            ASSERT_EQ(sums[r * kAmxSumsStride + c], o.sum(of_group.first + r, c, is_signed))
                << "row " << of_group.first + r << " column " << c;
      }
      ASSERT_EQ(done, rows);
    }
  }
}

}  // namespace
}  // namespace bantam::ops::gemm

#endif
