#include "ops/nn/conv2d/overlap.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "ops/testing/sampling.h"

namespace bantam::ops {
namespace {

using testing::Random;
using testing::random_int;

TensorDesc image_desc(std::int64_t n, std::int64_t h, std::int64_t w, std::int64_t c) {
  TensorDesc desc;
  desc.type = ElementType::kI8;
  desc.rank = 4;
  const std::int64_t dims[] = {n, h, w, c};
  for (int i = 0; i < 4; ++i) desc.dims[i] = static_cast<std::int32_t>(dims[i]);
  desc.set_dense_strides();
  return desc;
}

ImageShape dense_image(std::int64_t n, std::int64_t h, std::int64_t w, std::int64_t c) {
  return ImageShape(image_desc(n, h, w, c));
}

WindowAxis random_axis(Random& random, std::int64_t extent) {
  WindowAxis axis;
  axis.stride = static_cast<std::int32_t>(random_int(random, 1, 3));
  axis.dilation = static_cast<std::int32_t>(random_int(random, 1, 2));
  axis.pad_before = static_cast<std::int32_t>(random_int(random, 0, 3));
  axis.pad_after = static_cast<std::int32_t>(random_int(random, 0, 3));
  const std::int64_t room = extent + axis.pad_before + axis.pad_after;
  axis.kernel = static_cast<std::int32_t>(random_int(random, 1, std::max<std::int64_t>((room - 1) / axis.dilation, 1)));
  return axis;
}

/// The first byte of x that each output pixel reads, in the order of memory; past the end for none.
std::vector<std::int64_t> first_bytes_read(const ConvGeometry& g, std::int64_t element) {
  const std::int64_t end = std::int64_t{g.x.n} * g.x.h * g.x.w * g.x.c * element;
  std::vector<std::int64_t> first;
  for (std::int32_t n = 0; n < g.y.n; ++n)
    for (std::int32_t oy = 0; oy < g.y.h; ++oy)
      for (std::int32_t ox = 0; ox < g.y.w; ++ox) {
        std::int64_t least = end;
        for (std::int32_t ky = 0; ky < g.vertical.kernel; ++ky)
          for (std::int32_t kx = 0; kx < g.horizontal.kernel; ++kx) {
            const std::int64_t iy = window_origin(g.vertical, oy) + std::int64_t{ky} * g.vertical.dilation;
            const std::int64_t ix = window_origin(g.horizontal, ox) + std::int64_t{kx} * g.horizontal.dilation;
            if (iy >= 0 && iy < g.x.h && ix >= 0 && ix < g.x.w)
              least = std::min(least, g.x.offset(n, iy, ix) * element);
          }
        first.push_back(least);
      }
  return first;
}

/// The least lead at which no block of `pixels` output pixels, wherever it begins, reaches what it or a later pixel
/// reads.
std::int64_t least_lead(const ConvGeometry& g, std::int64_t x_element, std::int64_t y_element, std::int64_t pixels) {
  std::vector<std::int64_t> first = first_bytes_read(g, x_element);
  for (std::size_t i = first.size() - 1; i-- > 0;) first[i] = std::min(first[i], first[i + 1]);
  std::int64_t lead = INT64_MIN;
  for (std::size_t i = 0; i < first.size(); ++i) {
    const auto end = std::min<std::int64_t>(static_cast<std::int64_t>(i) + pixels, std::ssize(first));
    lead = std::max(lead, end * g.y.c * y_element - first[i]);
  }
  return lead;
}

TEST(WindowLead, IsEnoughForEveryGeometryAndNotMuchMore) {
  int tight = 0;
  for (std::uint64_t seed = 1; seed <= 3000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    ConvGeometry g;
    g.x = dense_image(random_int(random, 1, 2), random_int(random, 1, 9), random_int(random, 1, 9),
                      random_int(random, 1, 4));
    g.vertical = random_axis(random, g.x.h);
    g.horizontal = random_axis(random, g.x.w);
    std::int64_t h = 0;
    std::int64_t w = 0;
    if (!window_positions(g.vertical, g.x.h, false, &h).ok() || !window_positions(g.horizontal, g.x.w, false, &w).ok())
      continue;
    g.y = dense_image(g.x.n, h, w, random_int(random, 1, 6));
    const std::int64_t x_element = random_int(random, 0, 1) != 0 ? 4 : 1;
    const std::int64_t y_element = random_int(random, 0, 1) != 0 ? 4 : 1;
    const std::int64_t pixels = random_int(random, 1, 12);
    const std::int64_t needed = least_lead(g, x_element, y_element, pixels);
    const std::int64_t lead = window_lead_bytes(g, x_element, y_element, pixels);
    ASSERT_GE(lead, needed);
    // Beyond the block that ends outside the result, and rows without taps, nothing is given away.
    tight += lead - needed <= pixels * g.y.c * y_element ? 1 : 0;
  }
  EXPECT_GT(tight, 2000);
}

TEST(RowLead, IsEnoughForEveryGeometryAndTightForSingleImages) {
  int tight = 0;
  int single = 0;
  for (std::uint64_t seed = 1; seed <= 1500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    ConvGeometry g;
    g.x = dense_image(random_int(random, 1, 2), random_int(random, 1, 9), random_int(random, 1, 5), 2);
    g.vertical = random_axis(random, g.x.h);
    std::int64_t h = 0;
    if (!window_positions(g.vertical, g.x.h, false, &h).ok()) continue;
    g.y = dense_image(g.x.n, h, g.x.w, random_int(random, 1, 4));
    const std::vector<std::int64_t> first = first_bytes_read(g, 1);
    // What is still to be read when the rows up to one have been written.
    std::int64_t needed = INT64_MIN;
    const std::int64_t rows = g.y.n * h;
    for (std::int64_t row = 0; row + 1 < rows; ++row) {
      const auto next = first.begin() + (row + 1) * g.y.w;
      needed = std::max(needed, (row + 1) * g.y.w * g.y.c - *std::min_element(next, first.end()));
    }
    const std::int64_t lead = row_lead_bytes(g, 1, 1);
    if (rows == 1) {
      EXPECT_EQ(lead, 0);
      continue;
    }
    ASSERT_GE(lead, needed);
    single += g.y.n == 1 ? 1 : 0;
    tight += g.y.n == 1 && lead == std::max<std::int64_t>(needed, 0) ? 1 : 0;
  }
  EXPECT_GT(tight, single / 2);
}

TEST(Ranges, CoverAllRowsInOrderAndOverlapOnlyWhereTheySaySo) {
  std::int64_t free_rows = 0;
  std::int64_t overlapping_rows = 0;
  for (std::uint64_t seed = 1; seed <= 1500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    ConvGeometry g;
    g.x = dense_image(random_int(random, 1, 2), random_int(random, 1, 24), random_int(random, 1, 6), 2);
    g.vertical = random_axis(random, std::min<std::int64_t>(g.x.h, 6));
    g.horizontal = random_axis(random, g.x.w);
    std::int64_t h = 0;
    std::int64_t w = 0;
    if (!window_positions(g.vertical, g.x.h, false, &h).ok() || !window_positions(g.horizontal, g.x.w, false, &w).ok())
      continue;
    g.y = dense_image(g.x.n, h, w, random_int(random, 1, 3));
    const TensorDesc x_desc = image_desc(g.x.n, g.x.h, g.x.w, g.x.c);
    const TensorDesc y_desc = image_desc(g.y.n, g.y.h, g.y.w, g.y.c);
    const std::int64_t lead = std::max<std::int64_t>(window_lead_bytes(g, 1, 1, 4), 0);
    std::vector<std::byte> memory(static_cast<std::size_t>(std::max(y_desc.bytes(), lead + x_desc.bytes())));
    const Tensor x{memory.data() + lead, &x_desc};
    const Tensor y{memory.data(), &y_desc};
    Invocation call;
    call.inputs = {&x, 1};
    call.outputs = {&y, 1};
    const std::vector<std::int64_t> first = first_bytes_read(g, 1);
    const std::int64_t rows = std::int64_t{g.y.n} * h;
    std::int64_t next = 0;
    for_each_range(call, g, 0, rows, [&](std::int64_t begin, std::int64_t end, bool overlaps) {
      ASSERT_EQ(begin, next);
      ASSERT_LT(begin, end);
      next = end;
      (overlaps ? overlapping_rows : free_rows) += end - begin;
      if (overlaps) return;
      const std::int64_t read = lead + *std::min_element(first.begin() + begin * w, first.end());
      ASSERT_LE(end * w * g.y.c, read);
    });
    ASSERT_EQ(next, rows);
  }
  EXPECT_GT(free_rows, 1000);
  EXPECT_GT(overlapping_rows, 1000);
}

TEST(WindowLead, PointwiseOfAsManyChannelsLeadsByOneBlock) {
  ConvGeometry g;
  g.x = dense_image(1, 8, 8, 16);
  g.y = dense_image(1, 8, 8, 16);
  EXPECT_EQ(window_lead_bytes(g, 1, 1, 12), 12 * 16);
}

TEST(WindowLead, ThreeByThreeLeadsByARowAndAPixelBesidesItsBlock) {
  ConvGeometry g;
  g.x = dense_image(1, 8, 8, 16);
  g.y = dense_image(1, 8, 8, 16);
  g.vertical = g.horizontal = {3, 1, 1, 1, 1};
  EXPECT_EQ(window_lead_bytes(g, 1, 1, 4), (8 + 1 + 4) * 16);
}

}  // namespace
}  // namespace bantam::ops
