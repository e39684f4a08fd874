// Graphs from text through plan and package to results: sharing memory must never change what a graph computes.
#include "compiler/planned_model.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "compiler/testing/compile_text.h"
#include "compiler/testing/placed_fleet.h"
#include "graph/testing/interpret.h"

namespace bantam::compiler {
namespace {

using testing::compile_graph;
using testing::compile_text;
using testing::fill_inputs;
using testing::outputs_of;
using testing::place_package;

using Outputs = std::vector<std::vector<std::byte>>;

/// What a planned graph says in some invokes on seeded data; the same as graph::testing::Interpreter would.
std::vector<Outputs> planned_results(const graph::Graph& graph, const PlanOptions& options, int rounds) {
  std::vector<Outputs> said;
  const auto text = compile_graph(graph, options);
  if (!text) {
    ADD_FAILURE() << text.error().message;
    return said;
  }
  auto placed = place_package(text->package.bytes(), options.threads);
  if (!placed) return said;
  for (int round = 0; round < rounds; ++round)
    said.push_back(testing::run(*placed->fleet->session(0), static_cast<std::uint32_t>(round)));
  EXPECT_TRUE(placed->arena.intact());
  return said;
}

/// The same by the interpreter, which shares no memory between values. Inputs come from a placed session.
std::vector<Outputs> interpreted_results(const graph::Graph& graph, int rounds) {
  std::vector<Outputs> said;
  const auto text = compile_graph(graph);
  if (!text) return said;
  auto placed = place_package(text->package.bytes());
  if (!placed) return said;
  Session& session = *placed->fleet->session(0);
  graph::testing::Interpreter interpreter(graph);
  for (int round = 0; round < rounds; ++round) {
    std::map<std::string, graph::testing::HostTensor> inputs;
    for (std::size_t i = 0; i < session.input_count(); ++i) {
      // One port at a time: the places of inputs may be those of others before the first invoke reads them.
      fill_inputs(session, static_cast<std::uint32_t>(round));
      const Tensor t = session.input(i);
      const auto* bytes = static_cast<const std::byte*>(t.data);
      inputs[std::string(session.input_info(i).name)] = {*t.desc, {bytes, bytes + t.desc->bytes()}};
    }
    const auto outputs = interpreter.run(inputs);
    if (!outputs) {
      ADD_FAILURE() << outputs.error().message;
      return said;
    }
    Outputs& row = said.emplace_back();
    for (const graph::Port& port : graph.outputs) row.push_back(outputs->at(port.name).bytes);
  }
  return said;
}

/// A random graph of exact operations on f32[4,6] values: chains, branches, views, concats, states, several outputs.
std::string random_graph(std::mt19937& random) {
  std::string text = "graph \"random\" {\n  %0 = const : f32[4,6] splat(0.5)\n";
  std::vector<int> values = {0};
  int next = 1;
  const auto pick = [&] { return values[random() % values.size()]; };
  for (const char* name : {"x", "y"}) {
    values.push_back(next);
    text += fmt::format("  %{} \"{}\" = input : f32[4,6]\n", next++, name);
  }
  const int state_count = static_cast<int>(random() % 3);
  for (int s = 0; s < state_count; ++s) {
    values.push_back(next);
    text += fmt::format("  %{} \"s{}\" = state : f32[4,6]{}\n", next++, s, s == 1 ? " splat(0.25)" : "");
  }
  const auto emit = [&](const std::string& call) { text += fmt::format("  %{} = {}\n", next++, call); };
  const auto keep = [&] { values.push_back(next - 1); };
  for (int n = 3 + static_cast<int>(random() % 12); n > 0; --n) {
    switch (random() % 6) {
      case 0: emit(fmt::format("unary(%{}) {{function=\"neg\"}}", pick())); break;
      case 1: emit(fmt::format("binary(%{}, %{}) {{function=\"max\"}}", pick(), pick())); break;
      case 2: emit(fmt::format("binary(%{}, %{})", pick(), pick())); break;
      case 3:
        emit(fmt::format("slice(%{}) {{starts=[0, 0], steps=[1, 1], sizes=[2, 6]}}", pick()));
        emit(fmt::format("slice(%{}) {{starts=[1, 0], steps=[1, 1], sizes=[2, 6]}}", pick()));
        emit(fmt::format("concat(%{}, %{}) {{axis=0}}", next - 2, next - 1));
        break;
      case 4:
        emit(fmt::format("slice(%{}) {{starts=[0, 2], steps=[1, 1], sizes=[4, 4]}}", pick()));
        emit(fmt::format("slice(%{}) {{starts=[0, 1], steps=[1, 1], sizes=[4, 2]}}", pick()));
        emit(fmt::format("unary(%{}) {{function=\"neg\"}}", next - 1));
        emit(fmt::format("concat(%{}, %{}) {{axis=1}}", next - 3, next - 1));
        break;
      default:
        emit(fmt::format("reshape(%{}) {{shape=[6, 4]}}", pick()));
        emit(fmt::format("transpose(%{}) {{perm=[1, 0]}}", next - 1));
        break;
    }
    keep();
  }
  for (int o = 0; o < 2; ++o) text += fmt::format("  output \"o{}\" %{}\n", o, pick());
  text += fmt::format("  output \"last\" %{}\n", values.back());
  for (int s = 0; s < state_count; ++s) text += fmt::format("  next \"s{}\" %{}\n", s, pick());
  return text + "}\n";
}

TEST(PlannedModel, RandomGraphsComputeWhatTheInterpreterComputes) {
  constexpr int kRounds = 3;
  const auto seed = static_cast<unsigned>(::testing::UnitTest::GetInstance()->random_seed());
  for (unsigned i = 0; i < 150; ++i) {
    std::mt19937 random(1000 * seed + i);
    const std::string text = random_graph(random);
    SCOPED_TRACE(fmt::format("graph {}, rerun with --gtest_random_seed={}\n{}", i, seed, text));
    const graph::Graph graph = testing::parse(text);
    ASSERT_FALSE(HasFailure());
    const auto expected = interpreted_results(graph, kRounds);
    ASSERT_EQ(planned_results(graph, {}, kRounds), expected);
    ASSERT_EQ(planned_results(graph, {.backend = Backend::kReference}, kRounds), expected);
  }
}

TEST(PlannedModel, SomeOutputsAreComputedAsIfAllWere) {
  const auto seed = static_cast<unsigned>(::testing::UnitTest::GetInstance()->random_seed());
  for (unsigned i = 0; i < 100; ++i) {
    std::mt19937 random(1000 * seed + i);
    const std::string text = random_graph(random);
    SCOPED_TRACE(fmt::format("graph {}, rerun with --gtest_random_seed={}\n{}", i, seed, text));
    const auto compiled = compile_text(text);
    ASSERT_TRUE(compiled) << compiled.error().message;
    auto whole = place_package(compiled->package.bytes());
    auto partial = place_package(compiled->package.bytes());
    ASSERT_TRUE(whole && partial);
    for (std::uint32_t round = 0; round < 5; ++round) {
      const Outputs expected = testing::run(*whole->fleet->session(0), round);
      Session& session = *partial->fleet->session(0);
      const auto chosen = static_cast<unsigned>(random() % 8);
      OutputSet outputs;
      for (unsigned o = 0; o < 3; ++o)
        if ((chosen >> o & 1U) != 0) outputs.add(o);
      fill_inputs(session, round);
      ASSERT_TRUE(session.invoke(outputs).ok());
      const Outputs said = outputs_of(session);
      for (unsigned o = 0; o < 3; ++o) {
        if ((chosen >> o & 1U) != 0) {
          ASSERT_EQ(said[o], expected[o]) << "output " << o << " of " << chosen;
        }
      }
    }
  }
}

TEST(PlannedModel, UnusedResultOfAnOperatorNeedsNoReader) {
  const auto text = compile_text(R"(graph "g" {
    %0 "x" = input : f32[5]
    %1 "values", %2 "indices" = topk(%0) {k=2}
    output "at" %2
  })");
  ASSERT_TRUE(text) << text.error().message;
  auto placed = place_package(text->package.bytes());
  ASSERT_TRUE(placed);
  fill_inputs(*placed->fleet->session(0), 1);
  EXPECT_TRUE(placed->fleet->session(0)->invoke().ok());
}

TEST(PlannedModel, AbsentResultOfAnOperatorHasMemoryAllTheSame) {
  const auto text = compile_text(R"(graph "g" {
    %0 "x" = input : f32[5]
    _, %1 "indices" = topk(%0) {k=2}
    output "at" %1
  })");
  ASSERT_TRUE(text) << text.error().message;
  auto placed = place_package(text->package.bytes());
  ASSERT_TRUE(placed);
  fill_inputs(*placed->fleet->session(0), 1);
  EXPECT_TRUE(placed->fleet->session(0)->invoke().ok());
}

TEST(PlannedModel, EqualWeightsAreStoredOnce) {
  const auto two = compile_text(R"(graph "g" {
    %0 "x" = input : f32[64]
    %1 = const : f32[64] splat(0.5)
    %2 = const : f32[64] splat(0.5)
    %3 = binary(%0, %1)
    %4 = binary(%3, %2) {function="mul"}
    output "y" %4
  })");
  ASSERT_TRUE(two) << two.error().message;
  auto placed = place_package(two->package.bytes());
  ASSERT_TRUE(placed);
  EXPECT_EQ(placed->need().weights_bytes, 256U);
}

TEST(PlannedModel, StatesKeepTheirInitialValuesAndComeBackAfterReset) {
  const auto text = compile_text(R"(graph "counter" {
    %0 "step" = input : f32[1]
    %1 "n" = state : f32[1] {3}
    %2 = binary(%1, %0)
    output "n" %2
    next "n" %2
  })");
  ASSERT_TRUE(text) << text.error().message;
  auto placed = place_package(text->package.bytes());
  ASSERT_TRUE(placed);
  Session& session = *placed->fleet->session(0);
  for (int run = 0; run < 2; ++run) {
    for (int i = 1; i <= 3; ++i) {
      session.input(0).as<float>()[0] = 2.0F;
      ASSERT_TRUE(session.invoke().ok());
      EXPECT_EQ(session.output(0).as<float>()[0], 3.0F + 2.0F * static_cast<float>(i));
    }
    session.reset();
  }
}

TEST(PlannedModel, PreservedInputSurvivesTheInvoke) {
  PlanOptions options;
  options.external_inputs = {true};
  const auto text = compile_text(R"(graph "g" {
    %0 "x" = input : f32[8]
    %1 = unary(%0) {function="exp"}
    %2 = reduce(%1) {axes=[0]}
    output "y" %2
  })",
                                 options);
  ASSERT_TRUE(text) << text.error().message;
  auto placed = place_package(text->package.bytes());
  ASSERT_TRUE(placed);
  Session& session = *placed->fleet->session(0);
  EXPECT_EQ(session.invoke().code, StatusCode::kInvalidArgument) << "nothing was bound";
  std::vector<float> memory(8, 1.5F);
  ASSERT_TRUE(session.bind_input(0, memory.data(), memory.size() * sizeof(float)).ok());
  ASSERT_TRUE(session.invoke().ok());
  EXPECT_EQ(memory, std::vector<float>(8, 1.5F));
}

// The plan that is kept has the smaller state, another that was tried the smaller activations.
TEST(PlannedModel, OrdersAreBoundedByEveryPlanThatWasTried) {
  const auto compiled = compile_text(R"(graph "shared" {
  %1 "y" = input : f32[4,6]
  %5 "s" = state : f32[4,6] splat(0.25)
  %6 = unary(%1) {function="neg"}
  %7 = slice(%5) {starts=[0, 0], steps=[1, 1], sizes=[2, 6]}
  %8 = slice(%5) {starts=[1, 0], steps=[1, 1], sizes=[2, 6]}
  %9 = concat(%7, %8) {axis=0}
  %10 = slice(%6) {starts=[0, 0], steps=[1, 1], sizes=[2, 6]}
  %11 = slice(%5) {starts=[1, 0], steps=[1, 1], sizes=[2, 6]}
  %12 = concat(%10, %11) {axis=0}
  %14 = slice(%9) {starts=[0, 0], steps=[1, 1], sizes=[2, 6]}
  %15 = slice(%6) {starts=[1, 0], steps=[1, 1], sizes=[2, 6]}
  %16 = concat(%14, %15) {axis=0}
  %17 = binary(%16, %12)
  output "o0" %12
  output "last" %17
  next "s" %9
})");
  ASSERT_TRUE(compiled) << compiled.error().message;
  EXPECT_GT(compiled->planned.order_bound_bytes, 0);
  for (const PlanTrial& trial : compiled->planned.trials)
    EXPECT_LE(compiled->planned.order_bound_bytes, trial.lower_bound_bytes) << trial.name;
}

}  // namespace
}  // namespace bantam::compiler
