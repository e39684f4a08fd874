// Sizes that a model computes while it runs: every step after them works at the size that was found, in the memory that
// was planned for the largest.
#include "compiler/measured_sizes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>
#include <random>
#include <string>

#include "compiler/emit.h"
#include "compiler/legalize.h"
#include "compiler/testing/compile_text.h"
#include "compiler/testing/placed_fleet.h"
#include "graph/text.h"
#include "passes/passes.h"

namespace bantam::compiler {
namespace {

using ::testing::ElementsAre;
using TextAt = std::function<std::string(const std::string& size)>;

Result<void> prepare(graph::Graph& graph, bool any_size) {
  if (auto passed = passes::run_passes(graph, {.any_size = any_size}); !passed) return passed;
  if (auto legal = legalize(graph); !legal) return legal;
  graph::compact(graph);
  return {};
}

Result<testing::TextPackage> compile_measured(const std::string& name, std::int64_t bound, const TextAt& text) {
  auto sized = size_model(
      {{name, bound}}, [&](const Sizes& sizes) { return graph::from_text(text(std::to_string(sizes[0]))); }, prepare);
  if (!sized) return fail(sized.error());
  PlanOptions options;
  options.dimensions = sized->dimensions;
  options.instances = sized->instances;
  return testing::compile_graph(sized->instances.front().graph, options);
}

template <typename T>
void set_input(Session& session, const char* name, const std::vector<T>& values) {
  const Tensor input = session.input(static_cast<std::size_t>(session.find_input(name)));
  ASSERT_EQ(static_cast<std::size_t>(input.desc->bytes()), values.size() * sizeof(T));
  std::memcpy(input.data, values.data(), values.size() * sizeof(T));
}

template <typename T>
std::vector<T> get_output(Session& session, const char* name) {
  const Tensor output = session.output(static_cast<std::size_t>(session.find_output(name)));
  return {output.as<T>(), output.as<T>() + output.desc->elements()};
}

/// The positive elements of x times ten, and a count from the first of them on; beside them x as it was, joined with a
/// tensor that is there before the size is known.
std::string positives(const std::string& n) {
  return R"(graph "positives" {
    %x "x" = input : f32[12]
    %early = unary(%x) {function="neg"}
    %zero = const : f32[] {0}
    %mask = binary(%x, %zero) {function="greater"}
    %rows, %count = nonzero(%mask) {capacity=12}
    %found = slice(%rows) {starts=[0,0], steps=[1,1], sizes=[)" +
         n + R"(,1]}
    %indices = reshape(%found) {shape=[)" +
         n + R"(]}
    %picked = gather(%x, %indices)
    %ten = const : f32[] {10}
    %y = binary(%picked, %ten) {function="mul"}
    %all = concat(%y, %early)
    %spread = expand(%ten) {shape=[)" +
         n + R"(]}
    output "y" %y
    output "all" %all
    output "spread" %spread
    size "found" %count 12
  })";
}

TEST(MeasuredSizes, EveryStepAfterThemWorksAtTheSizeThatWasFound) {
  const auto compiled = compile_measured("found", 12, positives);
  ASSERT_TRUE(compiled) << compiled.error().message;
  auto placed = testing::place_package(compiled->package.bytes());
  ASSERT_TRUE(placed);
  Session& session = *placed->fleet->session(0);
  ASSERT_EQ(session.dim_count(), 1U);
  EXPECT_EQ(session.dim_least(0), 0);
  EXPECT_TRUE(session.dim_is_measured(0));
  std::mt19937 random(7);
  for (int round = 0; round < 60; ++round) {
    std::vector<float> x(12);
    const auto likely = static_cast<int>(random() % 12);
    for (float& element : x) {
      const auto size = static_cast<float>(1 + random() % 9);
      element = static_cast<int>(random() % 12) < likely ? size : -size;
    }
    if (round == 0) std::ranges::fill(x, -1.0F);
    if (round == 1) std::ranges::fill(x, 1.0F);
    set_input(session, "x", x);
    const Status status = session.invoke();
    ASSERT_TRUE(status.ok()) << status.message << ", step " << status.index;
    std::vector<float> expected;
    for (const float element : x)
      if (element > 0) expected.push_back(10 * element);
    EXPECT_EQ(session.dim("found"), static_cast<std::int64_t>(expected.size()));
    EXPECT_EQ(get_output<float>(session, "y"), expected) << "round " << round;
    EXPECT_EQ(get_output<float>(session, "spread"), std::vector<float>(expected.size(), 10.0F));
    for (const float element : x) expected.push_back(-element);
    EXPECT_EQ(get_output<float>(session, "all"), expected) << "round " << round;
  }
  EXPECT_TRUE(placed->arena.intact());
}

TEST(MeasuredSizes, CannotBeSetByTheApplication) {
  const auto compiled = compile_measured("found", 12, positives);
  ASSERT_TRUE(compiled);
  auto placed = testing::place_package(compiled->package.bytes());
  EXPECT_EQ(placed->fleet->session(0)->set_dim("found", 3).code, StatusCode::kInvalidArgument);
}

/// The first n elements of x, where n is an input.
std::string prefix(const std::string& n) {
  return R"(graph "prefix" {
    %x "x" = input : f32[3,8]
    %n "n" = input : i64[1]
    %y = slice(%x) {starts=[0,0], steps=[1,1], sizes=[3,)" +
         n + R"(]}
    %z = unary(%y) {function="relu"}
    output "z" %z
    size "n" %n 8
  })";
}

TEST(MeasuredSizes, MayBeKnownWhenTheInvokeBegins) {
  const auto compiled = compile_measured("n", 8, prefix);
  ASSERT_TRUE(compiled) << compiled.error().message;
  auto placed = testing::place_package(compiled->package.bytes());
  Session& session = *placed->fleet->session(0);
  std::vector<float> x(24);
  std::iota(x.begin(), x.end(), 1.0F);
  for (const std::int64_t n : {2, 8, 0, 1, 5}) {
    set_input(session, "x", x);
    set_input(session, "n", std::vector{n});
    ASSERT_TRUE(session.invoke().ok());
    std::vector<float> expected;
    for (std::int64_t row = 0; row < 3; ++row)
      for (std::int64_t i = 0; i < n; ++i) expected.push_back(static_cast<float>(8 * row + i + 1));
    EXPECT_EQ(get_output<float>(session, "z"), expected) << n;
  }
}

TEST(MeasuredSizes, OutsideTheirLimitsTheyFailAtTheStepThatComputedThem) {
  const auto compiled = compile_measured("found", 12, [](const std::string& n) {
    return R"(graph "outside" {
      %x "x" = input : f32[12]
      %n "n" = input : i64[]
      %one = const : i64[] {1}
      %a = unary(%x) {function="exp"}
      %m "m" = binary(%n, %one) {function="add"}
      %y = slice(%a) {starts=[0], steps=[1], sizes=[)" +
           n + R"(]}
      %z = unary(%y) {function="neg"}
      output "z" %z
      size "found" %m 12
    })";
  });
  ASSERT_TRUE(compiled) << compiled.error().message;
  auto placed = testing::place_package(compiled->package.bytes());
  Session& session = *placed->fleet->session(0);
  set_input(session, "x", std::vector<float>(12, 1.0F));
  for (const std::int64_t n : {std::int64_t{12}, std::int64_t{-2}, std::int64_t{1} << 40, -(std::int64_t{1} << 62)}) {
    set_input(session, "n", std::vector{n});
    const Status status = session.invoke();
    EXPECT_EQ(status.code, StatusCode::kOutOfRange);
    EXPECT_EQ(status.found, n + 1);
    ASSERT_GE(status.index, 0);
    EXPECT_EQ(session.step_operator(static_cast<std::size_t>(status.index)), "binary");
  }
  // The session works on.
  set_input(session, "n", std::vector<std::int64_t>{4});
  ASSERT_TRUE(session.invoke().ok());
  EXPECT_EQ(get_output<float>(session, "z").size(), 5U);
}

TEST(MeasuredSizes, SeveralMayDependOnOneAnother) {
  // Positive elements of x, and of these the ones above five.
  const auto text = [](const Sizes& s) {
    return R"(graph "twice" {
      %x "x" = input : f32[9]
      %zero = const : f32[] {0}
      %mask = binary(%x, %zero) {function="greater"}
      %rows, %count = nonzero(%mask) {capacity=9}
      %found = slice(%rows) {starts=[0,0], steps=[1,1], sizes=[)" +
           std::to_string(s[0]) + R"(,1]}
      %indices = reshape(%found) {shape=[)" +
           std::to_string(s[0]) + R"(]}
      %picked = gather(%x, %indices)
      %five = const : f32[] {5}
      %large = binary(%picked, %five) {function="greater"}
      %rows2, %count2 = nonzero(%large) {capacity=9}
      %found2 = slice(%rows2) {starts=[0,0], steps=[1,1], sizes=[)" +
           std::to_string(s[1]) + R"(,1]}
      %indices2 = reshape(%found2) {shape=[)" +
           std::to_string(s[1]) + R"(]}
      %y = gather(%picked, %indices2)
      output "picked" %picked
      output "y" %y
      size "a" %count 9
      size "b" %count2 9
    })";
  };
  auto sized = size_model(
      {{"a", 9}, {"b", 9}}, [&](const Sizes& s) { return graph::from_text(text(s)); }, prepare);
  ASSERT_TRUE(sized) << sized.error().message;
  PlanOptions options;
  options.dimensions = sized->dimensions;
  options.instances = sized->instances;
  const auto compiled = testing::compile_graph(sized->instances.front().graph, options);
  ASSERT_TRUE(compiled) << compiled.error().message;
  auto placed = testing::place_package(compiled->package.bytes());
  Session& session = *placed->fleet->session(0);
  std::mt19937 random(3);
  for (int round = 0; round < 50; ++round) {
    std::vector<float> x(9);
    for (float& element : x) element = static_cast<float>(static_cast<int>(random() % 24) - 12);
    set_input(session, "x", x);
    const Status status = session.invoke();
    ASSERT_TRUE(status.ok()) << status.message << ", step " << status.index;
    std::vector<float> picked;
    std::vector<float> large;
    std::ranges::copy_if(x, std::back_inserter(picked), [](float e) { return e > 0; });
    std::ranges::copy_if(x, std::back_inserter(large), [](float e) { return e > 5; });
    EXPECT_EQ(get_output<float>(session, "picked"), picked) << "round " << round;
    EXPECT_EQ(get_output<float>(session, "y"), large) << "round " << round;
  }
}

TEST(MeasuredSizes, NodesThatFollowThemWaitForThem) {
  const graph::Graph graph = testing::parse(positives("12"));
  const graph::Graph smaller = testing::parse(positives("7"));
  const std::vector<SizedGraph> instances = {{{12}, graph}, {{7}, smaller}};
  const std::vector<Dimension> dimensions = {{"found", 0, 12}};
  const auto measures = planned_measures(graph, dimensions);
  ASSERT_EQ(measures.size(), 1U);
  const auto precedences = size_precedences(graph, instances, dimensions);
  std::vector<std::string> waiting;
  for (const Precedence& p : precedences) {
    EXPECT_EQ(p.before, measures[0].by);
    waiting.emplace_back(graph.node(p.after).op->name);
  }
  EXPECT_THAT(waiting, ElementsAre("slice", "reshape", "expand"));
  // The expand reads nothing that is measured; whatever order is taken, it comes after.
  for (const auto& order : {order_of_model(graph, precedences), order_by_memory(graph, precedences)}) {
    ASSERT_EQ(order.size(), graph.nodes.size());
    const auto place = [&](graph::NodeId n) { return std::ranges::find(order, n) - order.begin(); };
    for (const Precedence& p : precedences) EXPECT_LT(place(p.before), place(p.after));
  }
  EXPECT_THAT(order_of_model(graph, {{3, 5}, {5, 3}}).size(), ::testing::Lt(graph.nodes.size()));
}

format::PackageData measured_package() {
  const auto compiled = compile_measured("found", 12, positives);
  EXPECT_TRUE(compiled) << compiled.error().message;
  format::PackageData data;
  EXPECT_TRUE(emit_model(compiled->planned, "positives", data));
  data.fleet.emplace_back("positives", std::uint16_t{0});
  return data;
}

std::string refusal(const format::PackageData& data) {
  const format::PackageBytes bytes = format::write_package(data);
  Package package;
  return Package::open(bytes.bytes(), &package).message;
}

TEST(MeasuredSizes, ContradictoryPackagesAreRefused) {
  const format::PackageData good = measured_package();
  ASSERT_EQ(good.models[0].measures.size(), 1U);
  EXPECT_STREQ(refusal(good).c_str(), "");
  const format::Measure m = good.models[0].measures[0];
  const auto with = [&](std::vector<format::Measure> measures) {
    format::PackageData bad = good;
    bad.models[0].measures = std::move(measures);
    return refusal(bad);
  };
  const auto steps = static_cast<std::uint32_t>(good.models[0].steps.size());
  EXPECT_EQ(with({m, m}), "a dimension is measured twice");
  EXPECT_EQ(with({{m.step(), m.value(), 1}}), "a measured size belongs to no dimension");
  EXPECT_EQ(with({{m.step(), m.value(), 0xffffffffU}}), "a measured size belongs to no dimension");
  EXPECT_EQ(with({{steps + 1, m.value(), 0}}), "a size is measured at no step, or out of order");
  EXPECT_EQ(with({{m.step(), 0xfffffffeU, 0}}), "a measured size names no value");
  for (std::uint32_t v = 0; v < good.models[0].values.size(); ++v) {
    if (v == m.value()) continue;
    EXPECT_EQ(with({{m.step(), v, 0}}), "a measured size is not one integer that a step writes") << v;
  }
}

TEST(MeasuredSizes, SizesAtTheWrongTimeStayWithinTheirMemory) {
  const format::PackageData good = measured_package();
  const format::Measure m = good.models[0].measures[0];
  std::mt19937 random(11);
  for (std::uint32_t step = 0; step <= good.models[0].steps.size(); ++step) {
    format::PackageData data = good;
    data.models[0].measures = {{step, m.value(), 0}};
    const format::PackageBytes bytes = format::write_package(data);
    auto placed = testing::place_package(bytes.bytes());
    ASSERT_TRUE(placed);
    Session& session = *placed->fleet->session(0);
    for (int round = 0; round < 8; ++round) {
      testing::fill_inputs(session, static_cast<std::uint32_t>(random()));
      static_cast<void>(session.invoke());
    }
    EXPECT_TRUE(placed->arena.intact());
  }
}

}  // namespace
}  // namespace bantam::compiler
