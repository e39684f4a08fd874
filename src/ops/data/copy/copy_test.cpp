#include "ops/data/copy/copy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "ops/common/box.h"
#include "ops/testing/harness.h"

namespace bantam::ops {
namespace {

using namespace testing;  // NOLINT: the harness is the vocabulary of operator tests

constexpr ElementType kTypesOfEachSize[] = {ElementType::kI8, ElementType::kF16, ElementType::kF32, ElementType::kI64};

TEST(Copy, AcceptsStridedOperandsAndResultsOfAllSizes) {
  Random random(1);
  for (const ElementType type : kTypesOfEachSize) {
    for (int round = 0; round < 20; ++round) {
      const auto dims = random_dims(random, static_cast<int>(random_int(random, 0, 5)), 0, 5);
      TestTensor x = random_tensor(type, dims, random, -100, 100);
      const TestTensor strided = x.with_strides(random_strides(x.desc(), random));
      RunOptions options;
      options.outputs = {random_strides(x.desc(), random)};
      const OpCase op_case = make_case(kCopy, {strided});
      const Outcome y = run_variant(op_case, reference_variant(kCopy), options);
      ASSERT_TRUE(y.status.ok());
      EXPECT_EQ(y.outputs[0].packed(), x.packed()) << describe(strided.desc());
    }
  }
}

TEST(Copy, RefusesNibbles) {
  std::vector<TensorDesc> outputs;
  EXPECT_EQ(infer_case(make_case(kCopy, {TestTensor(dense_desc(ElementType::kI4, {4}))}), &outputs).code,
            StatusCode::kUnsupported);
}

TEST(Box, EmptyBoxTouchesNothing) {
  Box box;
  box.add(3, 1, 1);
  box.add(0, 1, 1);
  copy_box(box, 4, nullptr, nullptr);
}

TEST(Box, NegativeSourceStrideReverses) {
  const std::int32_t from[] = {1, 2, 3};
  std::int32_t to[3] = {};
  Box box;
  box.add(3, -1, 1);
  copy_box(box, 4, from + 2, to);
  EXPECT_THAT(to, ::testing::ElementsAre(3, 2, 1));
}

TEST(Box, FillHonoursDestinationStrides) {
  std::int16_t to[6] = {9, 9, 9, 9, 9, 9};
  const std::int16_t value = 4;
  Box box;
  box.add(2, 0, 3);
  box.add(2, 0, 1);
  fill_box(Threads{}, box, 2, &value, to);
  EXPECT_THAT(to, ::testing::ElementsAre(4, 4, 9, 4, 4, 9));
}

// Pairs have loops of their own, and memory need not be aligned.
TEST(Box, RowsOfAnyStridesAreCopiedElementByElement) {
  for (const std::int64_t bytes : {1, 2, 4, 8})
    for (const std::int64_t in : {1, 2, 3, -1})
      for (const std::int64_t out : {1, 2, 3})
        for (const std::int64_t size : {2, 7, 37, 64}) {
          SCOPED_TRACE(::testing::Message() << size << " elements of " << bytes << " bytes: " << in << " to " << out);
          const std::int64_t first = in < 0 ? size - 1 : 0;
          std::vector<std::uint8_t> from(static_cast<std::size_t>(1 + size * 3 * bytes));
          std::iota(from.begin(), from.end(), std::uint8_t{1});
          std::vector<std::uint8_t> copied(static_cast<std::size_t>(1 + size * 3 * bytes), 99);
          std::vector<std::uint8_t> expected = copied;
          for (std::int64_t i = 0; i < size; ++i)
            for (std::int64_t b = 0; b < bytes; ++b)
              expected[static_cast<std::size_t>(1 + i * out * bytes + b)] =
                  from[static_cast<std::size_t>(1 + (first + i * in) * bytes + b)];
          Box box;
          box.add(size, in, out);
          copy_box(box, bytes, from.data() + 1 + first * bytes, copied.data() + 1);
          EXPECT_EQ(copied, expected);
        }
}

TEST(Box, NarrowMatricesAreTransposedWhereverTheyLie) {
  for (const std::int64_t bytes : {1, 2, 4, 8})
    for (const std::int64_t narrow : {2, 3, 4, 5})
      for (const bool to_narrow : {false, true}) {
        constexpr std::int64_t kWide = 33;
        SCOPED_TRACE(::testing::Message() << narrow << " elements of " << bytes << " bytes, " << to_narrow);
        const std::int64_t rows = to_narrow ? kWide : narrow;
        const std::int64_t columns = to_narrow ? narrow : kWide;
        std::vector<std::uint8_t> from(static_cast<std::size_t>(1 + narrow * kWide * bytes));
        std::iota(from.begin(), from.end(), std::uint8_t{1});
        std::vector<std::uint8_t> transposed(from.size(), 0);
        std::vector<std::uint8_t> expected = transposed;
        for (std::int64_t r = 0; r < rows; ++r)
          for (std::int64_t c = 0; c < columns; ++c)
            for (std::int64_t b = 0; b < bytes; ++b)
              expected[static_cast<std::size_t>(1 + (r * columns + c) * bytes + b)] =
                  from[static_cast<std::size_t>(1 + (c * rows + r) * bytes + b)];
        Box box;
        box.add(rows, 1, columns);
        box.add(columns, rows, 1);
        copy_box(box, bytes, from.data() + 1, transposed.data() + 1);
        EXPECT_EQ(transposed, expected);
      }
}

// Short runs are filled with copies of one.
TEST(Box, FillsRunsOfAnyLength) {
  for (const std::int64_t bytes : {1, 2, 4, 8})
    for (std::int64_t run = 1; run <= 80; ++run) {
      SCOPED_TRACE(::testing::Message() << run << " elements of " << bytes << " bytes");
      const std::int64_t step = run + 3;
      Box box;
      box.add(2, 0, 3 * step);
      box.add(3, 0, step);
      box.add(run, 0, 1);
      const std::uint8_t value[8] = {1, 2, 3, 4, 5, 6, 7, 8};
      std::vector<std::uint8_t> filled(static_cast<std::size_t>(6 * step * bytes), 99);
      std::vector<std::uint8_t> expected = filled;
      for (std::int64_t i = 0; i < 6; ++i)
        for (std::int64_t b = 0; b < run * bytes; ++b)
          expected[static_cast<std::size_t>(i * step * bytes + b)] = value[b % bytes];
      fill_box(Threads{}, box, bytes, value, filled.data());
      EXPECT_EQ(filled, expected);
    }
}

}  // namespace
}  // namespace bantam::ops
