#include "plan/curve.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace bantam::plan {
namespace {

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

const CurveView kView = {"memory of <m>", "ms", {{"fast", 4096, 1.0}, {"small & slow", 1024, 3.5}}};

TEST(Curve, EveryPointIsDrawnAndNamesAreText) {
  const std::string svg = render_curve_svg(kView);
  EXPECT_EQ(count(svg, "<circle"), 2U);
  EXPECT_EQ(count(svg, "&lt;m&gt;"), 1U);
  EXPECT_EQ(count(svg, "small &amp; slow"), 1U);
}

TEST(Curve, PageListsThePointsBesideTheCurve) {
  const std::string page = render_curve_html(kView);
  EXPECT_EQ(count(page, "<svg"), 1U);
  EXPECT_EQ(count(page, "<tr>"), 3U);
  EXPECT_EQ(count(page, "<td class=\"n\">1024</td>"), 1U);
}

TEST(Curve, OnePointAloneLiesWithinThePicture) {
  const std::string svg = render_curve_svg({"one", "ms", {{"", 0, 0.0}}});
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(svg.find("inf"), std::string::npos);
  EXPECT_EQ(count(svg, "<circle"), 1U);
}

}  // namespace
}  // namespace bantam::plan
