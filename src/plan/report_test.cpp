#include "plan/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <random>
#include <stack>

#include "plan/solve.h"
#include "plan/testing/instances.h"

namespace bantam::plan {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

MapView small_view() {
  MapView view{
      .title = "two buffers", .blocks = {}, .step_labels = {"conv", "pool"}, .total_bytes = 96, .lower_bound = 96};
  view.blocks.push_back(
      {.name = "input", .kind = "activation", .lower = 0, .upper = 1, .offset = 32, .size = 64, .detail = "1x8x8x1"});
  view.blocks.push_back(
      {.name = "ring", .kind = "state", .lower = 0, .upper = 2, .offset = 0, .size = 32, .detail = {}});
  return view;
}

/// True when tags are balanced and nothing but the entities this writer uses follows an ampersand.
bool is_well_formed(std::string_view text) {
  std::stack<std::string> open;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '&') {
      const std::string_view rest = text.substr(i);
      const std::array entities = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};
      if (std::none_of(entities.begin(), entities.end(),
                       [&](std::string_view e) { return rest.substr(0, e.size()) == e; }))
        return false;
    }
    if (text[i] == '>') return false;
    if (text[i] != '<') continue;
    const std::size_t end = text.find('>', i);
    if (end == std::string_view::npos) return false;
    const std::string tag(text.substr(i + 1, end - i - 1));
    i = end;
    if (tag[0] == '?' || tag[0] == '!' || tag.back() == '/') continue;
    const std::string name = tag.substr(tag[0] == '/' ? 1 : 0, tag.find(' ') - (tag[0] == '/' ? 1 : 0));
    if (name == "meta") continue;
    if (tag[0] != '/') {
      open.push(name);
      continue;
    }
    if (open.empty() || open.top() != name) return false;
    open.pop();
  }
  return open.empty();
}

TEST(ReportTest, BlockShowsNameSizePlaceLifetimeAndDetail) {
  const std::string svg = render_svg(small_view());
  EXPECT_TRUE(is_well_formed(svg));
  EXPECT_THAT(svg,
              HasSubstr("<title>input\nactivation, 64 B\nbytes 32 to 95\nalive from step 0 (conv) to step 0 (conv)\n"
                        "1x8x8x1</title>"));
  EXPECT_THAT(svg, HasSubstr("alive from step 0 (conv) to step 1 (pool)</title>"));
}

TEST(ReportTest, MarksThePeakAndNamesBounds) {
  const std::string svg = render_svg(small_view());
  EXPECT_THAT(svg, HasSubstr("most alive at once: 96 B at step 0 (conv)"));
  EXPECT_THAT(svg, HasSubstr("arena 96 B, lower bound 96 B"));
}

TEST(ReportTest, PageIsSelfContainedAndListsThePeak) {
  const std::array views = {small_view(), small_view()};
  const std::string page = render_html("plan", views);
  EXPECT_TRUE(is_well_formed(page));
  EXPECT_THAT(page, Not(HasSubstr("<script")));
  EXPECT_THAT(page, Not(HasSubstr("href")));
  EXPECT_THAT(page, Not(HasSubstr("url(")));
  EXPECT_THAT(page, HasSubstr("prefers-color-scheme:dark"));
  EXPECT_THAT(page, HasSubstr("Alive at step 0 (conv): 96 B"));
}

TEST(ReportTest, PageShowsWhatWasTriedAndWhatWasKept) {
  MapView view = small_view();
  view.note = "order: optimal";
  view.trials = {{"model order", 192, 160, 1000, false}, {"searched order", 96, 96, 1000, true}};
  const std::string page = render_html("plan", std::array{view});
  EXPECT_TRUE(is_well_formed(page));
  EXPECT_THAT(page, HasSubstr("<p>order: optimal</p>"));
  EXPECT_THAT(page, HasSubstr("<tr><td>model order</td><td class=\"n\">192</td><td class=\"n\">160</td>"));
  EXPECT_THAT(page, HasSubstr("<tr class=\"kept\"><td>searched order</td><td class=\"n\">96</td>"));
  EXPECT_THAT(page, HasSubstr("width:160px"));
}

TEST(ReportTest, WhatMakesThePeakStandsOut) {
  const std::string svg = render_svg(small_view());
  EXPECT_THAT(svg, HasSubstr("<g class=\"block c0 hot\"><title>input"));
  MapView view = small_view();
  view.blocks.push_back(
      {.name = "late", .kind = "activation", .lower = 1, .upper = 2, .offset = 32, .size = 8, .detail = {}});
  EXPECT_THAT(render_svg(view), HasSubstr("<g class=\"block c0\"><title>late"));
}

TEST(ReportTest, HostileNamesStayText) {
  MapView view = small_view();
  const std::string hostile = "</title><script>alert('x')</script>\"&\x01\xff\xc0\x80";
  view.title = view.blocks[0].name = view.blocks[0].kind = view.blocks[0].detail = view.step_labels[0] = hostile;
  view.note = hostile;
  view.trials = {{hostile, 1, 1, 1, true}};
  const std::string page = render_html(hostile, std::array{view});
  EXPECT_TRUE(is_well_formed(page));
  EXPECT_THAT(page, Not(HasSubstr("<script")));
  EXPECT_EQ(page.find('\xff'), std::string::npos);
  EXPECT_EQ(page.find('\x01'), std::string::npos);
}

TEST(ReportTest, EscapeKeepsUtf8AndReplacesWhatIsNot) {
  EXPECT_EQ(escape_markup("größe <1>"), "größe &lt;1&gt;");
  EXPECT_EQ(escape_markup("a\xe2\x82"), "a\xef\xbf\xbd\xef\xbf\xbd");
  EXPECT_EQ(escape_markup("\xed\xa0\x80").find('\xed'), std::string::npos);  // a surrogate
  EXPECT_EQ(escape_markup("abcdef", 3), "abc…");
  EXPECT_EQ(escape_markup("abö", 3), "ab…");
}

TEST(ReportTest, RandomBytesAreEscapedWellFormed) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    std::mt19937_64 random(seed);
    std::string text(random() % 40, ' ');
    for (char& c : text) c = static_cast<char>(random());
    std::string wrapped = "<p>";
    wrapped.append(escape_markup(text)).append("</p>");
    EXPECT_TRUE(is_well_formed(wrapped));
  }
}

TEST(ReportTest, EmptyAndSenselessViewsAreDrawn) {
  EXPECT_TRUE(is_well_formed(render_svg({})));
  MapView view = small_view();
  view.blocks[0].upper = view.blocks[0].lower;
  view.blocks[1].offset = -5;
  view.total_bytes = std::numeric_limits<std::int64_t>::max();
  EXPECT_TRUE(is_well_formed(render_svg(view)));
  view = small_view();
  for (MapBlock& b : view.blocks) b.size = std::int64_t{1} << 60;
  EXPECT_TRUE(is_well_formed(render_html("huge", std::array{view})));
}

TEST(ReportTest, SolvedProblemIsDrawnWithEveryBuffer) {
  const Problem problem = testing::random_problem(4, {.buffers = 150, .steps = 90, .max_size = 5000});
  const auto result = solve(problem, {.step_budget = 1'000'000});
  ASSERT_TRUE(result);
  const std::string svg = render_svg(make_map_view("random", problem, result->solution, result->lower_bound.bytes));
  EXPECT_TRUE(is_well_formed(svg));
  for (const Buffer& b : problem.buffers) {
    if (b.size > 0) {
      EXPECT_THAT(svg, HasSubstr("<title>" + b.id + "\n"));
    }
  }
}

}  // namespace
}  // namespace bantam::plan
