#include "ops/nn/gemm/narrow_panels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "hwy/targets.h"
#include "ops/common/half.h"
#include "ops/testing/harness.h"

namespace bantam::ops {
namespace {

using ::testing::ElementsAre;
using testing::Random;
using testing::random_int;

constexpr ElementType kTypes[] = {ElementType::kF16, ElementType::kBF16, ElementType::kI8, ElementType::kI4};

/// A matrix [k,n] with columns of different magnitudes, and what its packed form stands for.
struct Weights {
  ElementType type;
  std::int64_t k, n;
  std::vector<std::byte> packed;
  std::vector<float> restored;

  Weights(ElementType t, const std::vector<float>& b, std::int64_t columns)
      : type(t),
        k(static_cast<std::int64_t>(b.size()) / columns),
        n(columns),
        packed(static_cast<std::size_t>(gemm::narrow_bytes(t, k, n))),
        restored(b.size()) {
    gemm::pack_narrow(t, b.data(), k, n, n, 1, packed.data());
    gemm::restore_narrow(panels(), n, 1, restored.data());
  }

  gemm::NarrowPanels panels() const { return {type, packed.data(), k, n}; }
};

std::vector<float> restored(ElementType type, const std::vector<float>& column) {
  return Weights(type, column, 1).restored;
}

TEST(NarrowPanels, RoundToNearestWithScalesOfTheLargestWeight) {
  EXPECT_THAT(restored(ElementType::kF16, {1.0F + 0x1p-11F, 1.0F + 0x1.8p-10F, -0x1p-24F, 65504.0F}),
              ElementsAre(1.0F, 1.0F + 0x1p-9F, -0x1p-24F, 65504.0F));
  EXPECT_THAT(restored(ElementType::kBF16, {1.0F + 0x1p-8F, 0x1p100F, 3.0F}), ElementsAre(1.0F, 0x1p100F, 3.0F));
  // A scale of 1: ties go to even.
  EXPECT_THAT(restored(ElementType::kI8, {-127.0F, 2.5F, 3.5F, -0.5F, 0.75F}),
              ElementsAre(-127.0F, 2.0F, 4.0F, 0.0F, 1.0F));
  EXPECT_THAT(restored(ElementType::kI8, {0.0F, 0.0F}), ElementsAre(0.0F, 0.0F));
  EXPECT_THAT(restored(ElementType::kI4, {-7.0F, 2.5F, 3.5F, -0.5F, 0.75F}),
              ElementsAre(-7.0F, 2.0F, 4.0F, 0.0F, 1.0F));
  // The 33rd weight begins a block with a scale of its own.
  std::vector<float> two_blocks(33, 7.0F);
  two_blocks[32] = 0.5F;
  EXPECT_EQ(restored(ElementType::kI4, two_blocks)[32], 7.0F * to_f32(to_half(0.5F / 7.0F)));
}

TEST(NarrowPanels, TakeTheBytesOfTheirTypeAndScales) {
  EXPECT_EQ(gemm::narrow_bytes(ElementType::kF16, 40, 17), 2 * 40 * 16 * 2);
  EXPECT_EQ(gemm::narrow_bytes(ElementType::kI8, 40, 17), 2 * (64 + 40 * 16));
  EXPECT_EQ(gemm::narrow_bytes(ElementType::kI4, 40, 17), 2 * (2 * 32 + 40 * 8));
}

/// `rows` rows times the weights in f32, as gemm_f32.h multiplies.
std::vector<float> plain_product(const std::vector<float>& a, const Weights& w, const gemm::Result& form,
                                 std::int64_t rows) {
  std::vector<float> panels(static_cast<std::size_t>(gemm::packed_floats(w.k, w.n)));
  gemm::pack_panels(w.restored.data(), w.k, w.n, w.n, 1, 0, gemm::panel_count(w.n), panels.data());
  std::vector<float> y(static_cast<std::size_t>(rows * w.n));
  gemm::Result result = form;
  result.data = y.data();
  gemm::multiply({.data = a.data(), .rows = rows, .row_stride = w.k, .length = w.k},
                 {.data = panels.data(), .n = w.n, .first = 0, .last = gemm::panel_count(w.n)}, result);
  return y;
}

/// The same by panels that are widened into `floats` floats, or, with none, in registers, row by row.
std::vector<float> narrow_product(const std::vector<float>& a, const Weights& w, const gemm::Result& form,
                                  std::int64_t rows, std::int64_t floats) {
  std::vector<float> y(static_cast<std::size_t>(rows * w.n), 7.0F);
  gemm::Result result = form;
  result.data = y.data();
  const std::int64_t last = gemm::panel_count(w.n);
  if (floats == 0) {
    gemm::NarrowPanels panels = w.panels();
    for (std::int64_t m = 0; m < rows; ++m, result.data += w.n, panels.backward = !panels.backward)
      gemm::multiply_row(a.data() + m * w.k, panels, 0, last, result);
    return y;
  }
  std::vector<float> wide(static_cast<std::size_t>(floats));
  gemm::for_each_widened(
      w.panels(), 0, last, {wide.data(), floats, w.k},
      [&](const gemm::RightPanels& right, std::int64_t column, std::int64_t first_k, std::int64_t count) {
        gemm::multiply({.data = a.data() + first_k, .rows = rows, .row_stride = w.k, .length = count}, right,
                       gemm::part_of(result, column, first_k, first_k + count == w.k));
      });
  return y;
}

TEST(NarrowPanels, GiveTheBitsOfTheSameWeightsInF32) {
  Random random(11);
  const auto numbers = [&](std::int64_t count) {
    std::vector<float> values(static_cast<std::size_t>(count));
    for (float& v : values) v = static_cast<float>(random_int(random, -1000, 1000)) / 700.0F;
    return values;
  };
  constexpr UnaryFunction kFunctions[] = {UnaryFunction::kIdentity, UnaryFunction::kRelu, UnaryFunction::kTanh};
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(target);
    for (const ElementType type : kTypes) {
      for (int round = 0; round < 6; ++round) {
        const std::int64_t k = random_int(random, 1, 150);
        const std::int64_t n = random_int(random, 1, 200);
        const std::int64_t rows = random_int(random, 1, 14);
        const Weights w(type, numbers(k * n), n);
        const std::vector<float> a = numbers(rows * k);
        const std::vector<float> bias = numbers(n);
        const gemm::Result form{nullptr, n, round % 2 == 0 ? bias.data() : nullptr, {kFunctions[round % 3], 0, 0}};
        const std::vector<float> expected = plain_product(a, w, form, rows);
        const auto [least, useful] = gemm::wide_floats(k, n, 0);
        for (const std::int64_t floats : {std::int64_t{0}, least, 3 * least, 7 * least, useful})
          ASSERT_EQ(narrow_product(a, w, form, rows, floats), expected)
              << element_type_name(type) << ", target " << target << ", round " << round << ", " << rows << "x" << k
              << "x" << n << ", room for " << floats;
      }
    }
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace
}  // namespace bantam::ops
