#include "ops/nn/gemm/gemm_i8.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "hwy/targets.h"
#include "ops/common/byte_products.h"
#include "ops/testing/guarded_memory.h"
#include "ops/testing/harness.h"

namespace bantam::ops {
namespace {

using testing::GuardedMemory;
using testing::Random;
using testing::random_int;

std::int32_t integer(Random& random, std::int32_t low, std::int32_t high) {
  return static_cast<std::int32_t>(random_int(random, low, high));
}

/// A product of bytes, of which `share` percent may be anything and the others are near the zero point.
struct ByteProduct {
  std::int64_t rows, k, n;
  std::uint8_t flip;
  std::int32_t zero;
  std::vector<std::uint8_t> a;
  std::vector<std::int8_t> b;
  GuardedMemory panels;
  std::vector<std::int32_t> bias;
  std::vector<float> real_bias;
  std::vector<float> scale;
  AffineScaler scaler;
  ZeroPoints column_zero;

  explicit ByteProduct(Random& random) : ByteProduct(random, integer(random, 0, 9) == 0 ? 100 : 0) {}

  /// No side is shorter than `least` or so: then products may be of matrices of bytes.
  ByteProduct(Random& random, std::int32_t least)
      : ByteProduct(random, integer(random, 1 + least, 130 + least), integer(random, 1 + least, 200 + least),
                    integer(random, 1 + least, 150 + least)) {}

  ByteProduct(Random& random, std::int64_t row_count, std::int64_t length, std::int64_t columns)
      : rows(row_count),
        k(length),
        n(columns),
        flip(integer(random, 0, 1) == 0 ? 0x80 : 0),
        zero(integer(random, 0, 255)),
        a(static_cast<std::size_t>(rows * k)),
        b(static_cast<std::size_t>(k * n)),
        panels(static_cast<std::size_t>(gemm::packed_i8_bytes(k, n)), 64),
        bias(static_cast<std::size_t>(n)),
        real_bias(static_cast<std::size_t>(n)),
        scale(static_cast<std::size_t>(n)) {
    const int share = integer(random, 0, 3) * integer(random, 0, 33);
    for (std::uint8_t& x : a)
      x = flip ^ static_cast<std::uint8_t>(integer(random, 0, 99) < share
                                               ? integer(random, 0, 255)
                                               : std::clamp(zero + integer(random, -40, 40), 0, 255));
    // Without -128 kernels may add up two products in 16 bits: of the largest numbers, in some.
    const std::int32_t least_weight = integer(random, 0, 1) == 0 ? -128 : -127;
    const bool extreme = integer(random, 0, 5) == 0;
    if (extreme)
      for (std::uint8_t& x : a) x = flip ^ static_cast<std::uint8_t>(integer(random, 0, 3) == 0 ? 255 : 0);
    for (std::int8_t& w : b)
      w = static_cast<std::int8_t>(extreme && integer(random, 0, 3) > 0 ? least_weight
                                                                        : integer(random, least_weight, 127));
    for (std::int32_t& x : bias) x = integer(random, -9000, 9000);
    for (float& x : real_bias) x = static_cast<float>(integer(random, -90, 90)) / 16.0F;
    for (float& x : scale) x = static_cast<float>(integer(random, 1, 90)) / 65536.0F;
    gemm::pack_panels_i8(b.data(), k, n, n, 1, 0, reinterpret_cast<std::int8_t*>(panels.data()));
    scaler.scale = scale.data();
    scaler.per_channel = true;
    scaler.flip = integer(random, 0, 1) == 0 ? 0x80 : 0;
    scaler.zero_point = integer(random, -128, 127);
    scaler.minimum = integer(random, -128, -100);
    scaler.maximum = integer(random, 90, 127);
    scaler.bias = bias.data();
    if (integer(random, 0, 1) == 0) column_zero.constant = integer(random, -128, 127);
    if (integer(random, 0, 2) == 0) {
      scaler.bias = nullptr;
      scaler.real_bias = real_bias.data();
      scaler.activation.function = UnaryFunction::kHardSwish;
      scaler.output_scale = 0.375F;
    }
  }

  std::uint32_t sum(std::int64_t m, std::int64_t column) const {
    std::uint32_t result = 0;
    for (std::int64_t i = 0; i < k; ++i)
      result += static_cast<std::uint32_t>(((a[static_cast<std::size_t>(m * k + i)] ^ flip) - zero) *
                                           (b[static_cast<std::size_t>(i * n + column)] - column_zero[column]));
    return result;
  }

  /// With the scaler of f32 results.
  AffineScaler real_scaler() const {
    AffineScaler result = scaler;
    result.bias = nullptr;
    result.real_bias = real_bias.data();
    return result;
  }
  template <typename Y>
  AffineScaler scaler_of() const {
    return std::is_same_v<Y, float> ? real_scaler() : scaler;
  }

  template <typename Y>
  std::vector<Y> expected() const {
    std::vector<Y> y(static_cast<std::size_t>(rows * n));
    for (std::int64_t m = 0; m < rows; ++m)
      for (std::int64_t column = 0; column < n; ++column)
        scaler_of<Y>().store(sum(m, column), column, &y[static_cast<std::size_t>(m * n + column)]);
    return y;
  }

  /// Numbers of 16 bits instead of bytes.
  static void gather(const void* context, std::int64_t row, std::int64_t rows, std::int64_t first, std::int64_t count,
                     std::int64_t stride, std::int16_t* to) {
    const auto& self = *static_cast<const ByteProduct*>(context);
    for (std::int64_t m = 0; m < rows; ++m)
      for (std::int64_t i = 0; i < count; ++i)
        to[m * stride + i] = static_cast<std::int16_t>(
            (self.a[static_cast<std::size_t>((row + m) * self.k + first + i)] ^ self.flip) - self.zero);
  }

  /// With a workspace of `numbers`.
  template <typename Y>
  std::vector<Y> multiplied(std::int64_t numbers, bool as_numbers = false) const {
    const GuardedMemory left(a.size(), 1);
    std::copy(a.begin(), a.end(), reinterpret_cast<std::uint8_t*>(left.data()));
    const GuardedMemory workspace(static_cast<std::size_t>(numbers) * sizeof(std::int16_t), 64);
    const GuardedMemory y(static_cast<std::size_t>(rows * n) * sizeof(Y), alignof(Y));
    auto* first = reinterpret_cast<Y*>(y.data());
    gemm::LeftSource source{.rows = rows, .k = k};
    if (as_numbers) {
      source.gather_numbers = gather;
      source.context = this;
    } else {
      source.flip = flip;
      source.zero = zero;
      source.data = reinterpret_cast<const std::uint8_t*>(left.data());
      source.row_stride = k;
    }
    gemm::multiply(source, {reinterpret_cast<std::int16_t*>(workspace.data()), numbers},
                   {reinterpret_cast<const std::int8_t*>(panels.data()), n, 0, gemm::panel_count(n)},
                   gemm::AffineResult<Y>{first, n, scaler_of<Y>(), column_zero});
    EXPECT_TRUE(y.intact() && workspace.intact());
    return std::vector<Y>(first, first + rows * n);
  }
};

TEST(GemmI8, PacksOnVectorsTheSameBytesHoweverTheMatrixLies) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const std::int64_t k = random_int(random, 1, 600);
    const std::int64_t n = random_int(random, 1, 40);
    const std::int64_t gap = random_int(random, 0, 2);
    const auto flip = static_cast<std::uint8_t>(random_int(random, 0, 1) * 0x80);
    const auto bytes = static_cast<std::size_t>(gemm::packed_i8_bytes(k, n));
    const std::array<std::array<std::int64_t, 2>, 3> strides{{{n + gap, 1}, {1, k + gap}, {2, 2 * k}}};
    for (const auto& [k_stride, n_stride] : strides) {
      const GuardedMemory b(static_cast<std::size_t>((k - 1) * k_stride + (n - 1) * n_stride + 1), 1);
      auto* first = reinterpret_cast<std::int8_t*>(b.data());
      for (std::size_t i = 0; i < b.size(); ++i) first[i] = static_cast<std::int8_t>(random_int(random, -128, 127));
      std::vector<std::int8_t> expected(bytes, 1);
      std::vector<std::int8_t> packed(bytes, 2);
      gemm::pack_panels_i8(first, k, n, k_stride, n_stride, flip, expected.data());
      gemm::pack_panels_i8_simd(first, k, n, k_stride, n_stride, flip, packed.data());
      ASSERT_EQ(expected, packed) << "k " << k << " n " << n << " strides " << k_stride << ' ' << n_stride;
    }
  }
}

/// Calls test() with each instruction set and each way to multiply bytes.
template <class Test>
void for_each_way(Test test) {
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(target);
    for (int products = 0; products <= static_cast<int>(best_byte_products()); ++products) {
      limit_byte_products(static_cast<ByteProducts>(products));
      SCOPED_TRACE("target " + std::to_string(target) + ", products " + std::to_string(products));
      test();
    }
  }
  limit_byte_products(ByteProducts::kMatrices);
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

TEST(GemmI8, IsExactHoweverLargeTheBytesAreAndInAnyWorkspace) {
  for_each_way([] {
    for (std::uint64_t seed = 1; seed <= 60; ++seed) {
      SCOPED_TRACE("seed " + std::to_string(seed));
      Random random(seed);
      const ByteProduct p(random);
      const std::int64_t useful = gemm::useful_numbers(p.rows, p.k);
      const std::int64_t least = gemm::least_numbers(p.rows, p.k);
      const std::int64_t numbers = std::max<std::int64_t>(least, random_int(random, 0, 1) == 0 ? useful : useful / 3);
      ASSERT_EQ(p.expected<std::uint8_t>(), p.multiplied<std::uint8_t>(numbers));
      ASSERT_EQ(p.expected<std::uint8_t>(), p.multiplied<std::uint8_t>(least));
      ASSERT_EQ(p.expected<std::uint8_t>(), p.multiplied<std::uint8_t>(numbers, true)) << "as numbers";
      ASSERT_EQ(p.expected<float>(), p.multiplied<float>(numbers));
      if (p.scaler.has_activation()) continue;
      ASSERT_EQ(p.expected<std::int32_t>(), p.multiplied<std::int32_t>(numbers));
    }
  });
}

TEST(GemmI8, FewerRowsNeedNoLargerWorkspace) {
  for (std::int64_t k = 0; k < 600; ++k)
    for (std::int64_t rows = 1; rows < 40; ++rows)
      ASSERT_LE(gemm::least_numbers(rows, k), gemm::least_numbers(rows + 1, k)) << rows << " rows, k " << k;
}

TEST(GemmI8, ScratchUpToASizeIsEnoughForSmallerOnes) {
  const auto least = [](std::int64_t rows, std::int64_t k) {
    return gemm::product_scratch_up_to(rows, k, 12 * (rows * k + 64 * k + 64 * rows)).least;
  };
  for (const std::int64_t other : {1, 11, 12, 40, 500})
    for (std::int64_t size = 1; size < 1000; ++size) {
      ASSERT_LE(least(other, size), least(other, size + 1)) << other << " rows, k " << size;
      ASSERT_LE(least(size, other), least(size + 1, other)) << size << " rows, k " << other;
      ASSERT_LE(2 * gemm::least_numbers(other, size), least(other, size)) << other << " rows, k " << size;
    }
}

TEST(GemmI8, CutsAnyRowsAndColumnsIntoTiles) {
  for_each_way([] {
    for (const std::int64_t n : {15, 33, 48, 50, 64, 79, 80, 96, 112, 127, 144, 160}) {
      for (std::int64_t rows = 1; rows <= 20; ++rows) {
        SCOPED_TRACE(std::to_string(rows) + " rows and " + std::to_string(n) + " columns");
        Random random(static_cast<std::uint64_t>(1000 * rows + n));
        const ByteProduct p(random, rows, random_int(random, 1, 20), n);
        const std::int64_t numbers = gemm::useful_numbers(p.rows, p.k);
        ASSERT_EQ(p.expected<std::uint8_t>(), p.multiplied<std::uint8_t>(numbers));
        ASSERT_EQ(p.expected<float>(), p.multiplied<float>(numbers));
      }
    }
  });
}

/// Windows as lines, and the product of what they are row by row.
struct LinesProduct {
  gemm::Lines lines;
  std::int64_t pixel;  ///< bytes from one row of a line to the next
  ByteProduct rows;
  GuardedMemory image;  ///< ends with the last window

  explicit LinesProduct(Random& random)
      : LinesProduct(random, integer(random, 1, 30), integer(random, 1, 4), integer(random, 1, 5)) {}

  LinesProduct(Random& random, std::int64_t line_rows, std::int64_t line_count, std::int64_t segments)
      : lines{.rows = line_rows, .stride = integer(random, 0, 40), .segment = 4 * integer(random, 1, 9)},
        pixel(integer(random, 1, 20)),
        rows(random, line_rows * line_count, segments * lines.segment, integer(random, 1, 130)),
        image(bytes(random, line_count, segments), 1) {
    rows.flip = 0;
    rows.column_zero = {};
    auto* first = reinterpret_cast<std::uint8_t*>(image.data());
    for (std::size_t i = 0; i < image.size(); ++i) first[i] = static_cast<std::uint8_t>(integer(random, 0, 255));
    for (std::int64_t m = 0; m < rows.rows; ++m)
      for (std::int64_t i = 0; i < rows.k; ++i)
        rows.a[static_cast<std::size_t>(m * rows.k + i)] =
            first[m / lines.rows * lines.stride + m % lines.rows * pixel + i / lines.segment * lines.segment_stride +
                  i % lines.segment];
  }

  template <typename Y>
  std::vector<Y> multiplied() const {
    const GuardedMemory y(static_cast<std::size_t>(rows.rows * rows.n) * sizeof(Y), alignof(Y));
    auto* first = reinterpret_cast<Y*>(y.data());
    const gemm::LeftSource source{.rows = rows.rows,
                                  .k = rows.k,
                                  .zero = rows.zero,
                                  .data = reinterpret_cast<const std::uint8_t*>(image.data()),
                                  .row_stride = pixel,
                                  .lines = lines};
    gemm::multiply(source, {},
                   {reinterpret_cast<const std::int8_t*>(rows.panels.data()), rows.n, 0, gemm::panel_count(rows.n)},
                   gemm::AffineResult<Y>{first, rows.n, rows.scaler_of<Y>(), {}});
    EXPECT_TRUE(y.intact());
    return std::vector<Y>(first, first + rows.rows * rows.n);
  }

 private:
  std::size_t bytes(Random& random, std::int64_t line_count, std::int64_t segments) {
    lines.segment_stride = integer(random, 0, 80);
    return static_cast<std::size_t>((line_count - 1) * lines.stride + (lines.rows - 1) * pixel +
                                    (segments - 1) * lines.segment_stride + lines.segment);
  }
};

TEST(GemmI8, MultipliesWindowsWhereTheyLie) {
  for_each_way([] {
    if (!gemm::takes_lines(1000, 4, 1, 0)) return;
    for (std::uint64_t seed = 1; seed <= 200; ++seed) {
      SCOPED_TRACE("seed " + std::to_string(seed));
      Random random(seed);
      const LinesProduct p(random);
      ASSERT_EQ(p.rows.expected<std::uint8_t>(), p.multiplied<std::uint8_t>());
      ASSERT_EQ(p.rows.expected<float>(), p.multiplied<float>());
      if (p.rows.scaler.has_activation()) continue;
      ASSERT_EQ(p.rows.expected<std::int32_t>(), p.multiplied<std::int32_t>());
    }
  });
}

}  // namespace
}  // namespace bantam::ops
