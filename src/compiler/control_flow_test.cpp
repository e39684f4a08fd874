// Branches and loops through plan, package and runtime: what runs is what the interpreter says, memory is shared only
// where that changes nothing.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "base/testing/sanitizers.h"
#include "compiler/flatten.h"
#include "compiler/testing/compile_text.h"
#include "compiler/testing/placed_fleet.h"
#include "graph/testing/interpret.h"
#include "graph/text.h"

namespace bantam::compiler {
namespace {

using graph::testing::HostTensor;
using testing::compile_text;
using testing::place_package;

using Inputs = std::map<std::string, HostTensor>;

/// All outputs of a session as bytes, by name.
std::map<std::string, std::vector<std::byte>> invoke(Session& session, const Inputs& inputs) {
  for (std::size_t i = 0; i < session.input_count(); ++i) {
    const auto& given = inputs.at(std::string(session.input_info(i).name)).bytes;
    std::memcpy(session.input(i).data, given.data(), given.size());
  }
  const Status status = session.invoke();
  EXPECT_TRUE(status.ok()) << status.message << " at step " << status.index;
  std::map<std::string, std::vector<std::byte>> outputs;
  for (std::size_t o = 0; o < session.output_count(); ++o) {
    const Tensor t = session.output(o);
    const auto* bytes = static_cast<const std::byte*>(t.data);
    outputs[std::string(session.output_info(o).name)] = {bytes, bytes + t.desc->bytes()};
  }
  return outputs;
}

/// Runs a graph planned and interpreted on the same inputs, several times, and expects equal bytes.
void expect_as_interpreted(std::string_view text, const std::vector<Inputs>& rounds, const PlanOptions& options = {}) {
  const graph::Graph graph = testing::parse(text);
  ASSERT_FALSE(::testing::Test::HasFailure());
  const auto compiled = testing::compile_graph(graph, options);
  ASSERT_TRUE(compiled) << compiled.error().message;
  for (const PlanTrial& trial : compiled->planned.trials)
    EXPECT_LE(compiled->planned.order_bound_bytes, trial.lower_bound_bytes) << trial.name;
  auto placed = place_package(compiled->package.bytes());
  ASSERT_TRUE(placed);
  graph::testing::Interpreter interpreter(graph);
  for (const Inputs& inputs : rounds) {
    const auto expected = interpreter.run(inputs);
    ASSERT_TRUE(expected) << expected.error().message;
    const auto found = invoke(*placed->fleet->session(0), inputs);
    for (const auto& [name, tensor] : *expected) ASSERT_EQ(found.at(name), tensor.bytes) << name;
    ASSERT_TRUE(placed->arena.intact());
  }
}

template <typename T>
HostTensor tensor(std::initializer_list<std::int64_t> dims, std::vector<T> elements) {
  HostTensor t;
  t.desc.type = graph::element_type_of<T>();
  t.desc.rank = static_cast<std::uint8_t>(dims.size());
  std::copy(dims.begin(), dims.end(), t.desc.dims);
  t.desc.set_dense_strides();
  t.bytes.resize(elements.size() * sizeof(T));
  std::memcpy(t.bytes.data(), elements.data(), t.bytes.size());
  return t;
}

HostTensor flag(bool value) {
  HostTensor t = tensor<std::uint8_t>({}, {static_cast<std::uint8_t>(value ? 1 : 0)});
  t.desc.type = ElementType::kBool;
  return t;
}

HostTensor count(std::int64_t value) { return tensor<std::int64_t>({}, {value}); }

constexpr const char* kBranches = R"(graph "branches" {
  %c "c" = input : bool[]
  %x "x" = input : f32[64]
  %a = unary(%x) {function="neg"}
  %r = if(%c, %a, %x) : f32[64]
    body "then" {
      %0 = input : f32[64]
      %1 = input : f32[64]
      %2 = unary(%0) {function="neg"}
      %3 = binary(%2, %0)
      %4 = binary(%3, %2)
      output "r" %4
    }
    body "else" {
      %0 = input : f32[64]
      %1 = input : f32[64]
      %2 = binary(%0, %1) {function="max"}
      %3 = binary(%2, %1)
      %4 = binary(%3, %2)
      output "r" %4
    }
  %y = binary(%r, %a)
  output "y" %y
})";

TEST(ControlFlow, OrdersOfGraphsWithBranchesAreBounded) {
  const auto compiled = compile_text(kBranches);
  ASSERT_TRUE(compiled) << compiled.error().message;
  // Before the branch: x and what is computed from it.
  EXPECT_GE(compiled->planned.order_bound_bytes, 64 * 4);
  EXPECT_LE(compiled->planned.order_bound_bytes, compiled->planned.lower_bound_bytes);
}

constexpr const char* kDoubling = R"(graph "doubling" {
  %n "n" = input : i64[]
  %x "x" = input : f32[8]
  %r, %last = loop(%n, _, %x, %x) {limit=10} : f32[8], f32[8]
    body "body" {
      %i = input : i64[]
      %v = input : f32[8]
      %w = input : f32[8]
      %go = const : bool[] {1}
      %s = binary(%v, %v)
      output "go" %go
      output "v" %s
      output "w" %v
    }
  output "r" %r
  output "last" %last
})";

TEST(ControlFlow, TextFormOfBodiesIsReadAsItIsWritten) {
  for (const char* text : {kBranches, kDoubling}) {
    const graph::Graph graph = testing::parse(text);
    const std::string once = graph::to_text(graph);
    EXPECT_EQ(graph::to_text(testing::parse(once)), once);
  }
}

TEST(ControlFlow, OneOfTwoBranchesRuns) {
  const HostTensor x = tensor<float>({64}, std::vector<float>(64, 3.0F));
  expect_as_interpreted(kBranches, {{{"c", flag(true)}, {"x", x}}, {{"c", flag(false)}, {"x", x}}});
}

TEST(ControlFlow, BranchesShareMemoryWithEachOther) {
  const auto compiled = compile_text(kBranches);
  ASSERT_TRUE(compiled) << compiled.error().message;
  std::int64_t sum = 0;
  std::int64_t of_branches = 0;
  for (const PlanBlock& block : compiled->planned.blocks) {
    sum += block.bytes;
    of_branches = std::max(of_branches, block.offset + block.bytes);
  }
  EXPECT_LT(compiled->planned.activation_bytes, sum);
  // a, r and the value that each branch has besides: never more than four tensors at once, x and y included.
  EXPECT_LE(compiled->planned.activation_bytes, 4 * 256 + 16);
}

TEST(ControlFlow, LoopRunsAsOftenAsItsCountSays) {
  const HostTensor x = tensor<float>({8}, {1, 2, 3, 4, 5, 6, 7, 8});
  std::vector<Inputs> rounds;
  for (const int n : {3, 0, -1, 1, 10}) rounds.push_back({{"n", count(n)}, {"x", x}});
  expect_as_interpreted(kDoubling, rounds);
}

TEST(ControlFlow, LoopBeyondItsLimitFailsTheInvoke) {
  const auto compiled = compile_text(kDoubling);
  ASSERT_TRUE(compiled) << compiled.error().message;
  auto placed = place_package(compiled->package.bytes());
  ASSERT_TRUE(placed);
  Session& session = *placed->fleet->session(0);
  const std::int64_t n = 11;
  std::memcpy(session.input(0).data, &n, sizeof n);
  const Status status = session.invoke();
  EXPECT_EQ(status.code, StatusCode::kOutOfRange);
  EXPECT_EQ(status.found, 11);
  EXPECT_EQ(status.expected, 10);
}

TEST(ControlFlow, LoopEndsWhenItsConditionSaysSo) {
  const HostTensor x = tensor<float>({}, {100.0F});
  expect_as_interpreted(R"(graph "while" {
    %x "x" = input : f32[]
    %go "go" = input : bool[]
    %half = const : f32[] {0.5}
    %one = const : f32[] {1}
    %r = loop(_, %go, %x, %half, %one) {limit=100} : f32[]
      body "body" {
        %i = input : i64[]
        %v = input : f32[]
        %half = input : f32[]
        %one = input : f32[]
        %n = binary(%v, %half) {function="mul"}
        %c = binary(%n, %one) {function="greater"}
        output "go" %c
        output "v" %n
      }
    output "r" %r
  })",
                        {{{"x", x}, {"go", flag(true)}}, {{"x", x}, {"go", flag(false)}}});
}

TEST(ControlFlow, CarriedValuesMayTradePlaces) {
  expect_as_interpreted(R"(graph "swap" {
    %n "n" = input : i64[]
    %x "x" = input : f32[4]
    %y "y" = input : f32[4]
    %z "z" = input : f32[4]
    %a, %b, %c = loop(%n, _, %x, %y, %z) {limit=10} : f32[4], f32[4], f32[4]
      body "body" {
        %i = input : i64[]
        %a = input : f32[4]
        %b = input : f32[4]
        %c = input : f32[4]
        %go = const : bool[] {1}
        output "go" %go
        output "a" %b
        output "b" %c
        output "c" %a
      }
    output "a" %a
    output "b" %b
    output "c" %c
  })",
                        {{{"n", count(4)},
                          {"x", tensor<float>({4}, {1, 2, 3, 4})},
                          {"y", tensor<float>({4}, {5, 6, 7, 8})},
                          {"z", tensor<float>({4}, {9, 10, 11, 12})}}});
}

TEST(ControlFlow, RowsOfALoopAreWrittenInPlace) {
  constexpr const char* kRows = R"(graph "rows" {
    %x "x" = input : f32[4,16]
    %n = const : i64[] {4}
    %r = loop(%n, _, _, %x) {limit=4} : f32[4,16]
      body "body" {
        %i = input : i64[]
        %rows = input : f32[4,16]
        %x = input : f32[4,16]
        %go = const : bool[] {1}
        %row = gather(%x, %i)
        %e = unary(%row) {function="exp"}
        %u = reshape(%e) {shape=[1, 16]}
        %at = reshape(%i) {shape=[1, 1]}
        %next = scatter_nd(%rows, %at, %u)
        output "go" %go
        output "rows" %next
      }
    output "r" %r
  })";
  std::vector<float> x(64);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = 0.01F * static_cast<float>(i);
  expect_as_interpreted(kRows, {{{"x", tensor<float>({4, 16}, x)}}}, {.backend = Backend::kReference});
  const auto compiled = compile_text(kRows);
  ASSERT_TRUE(compiled);
  // Input, output and two rows; no second tensor of all rows.
  EXPECT_LT(compiled->planned.activation_bytes, 2 * 256 + 4 * 64);
}

TEST(ControlFlow, StatesAdvanceThroughBranches) {
  const HostTensor x = tensor<float>({4}, {1, 2, 3, 4});
  expect_as_interpreted(R"(graph "state" {
    %c "c" = input : bool[]
    %x "x" = input : f32[4]
    %s "s" = state : f32[4] splat(0.5)
    %n = if(%c, %s, %x) : f32[4]
      body "then" {
        %0 = input : f32[4]
        %1 = input : f32[4]
        %2 = binary(%0, %1)
        output "n" %2
      }
      body "else" {
        %0 = input : f32[4]
        %1 = input : f32[4]
        output "n" %0
      }
    %y = binary(%s, %x)
    output "y" %y
    next "s" %n
  })",
                        {{{"c", flag(true)}, {"x", x}},
                         {{"c", flag(false)}, {"x", x}},
                         {{"c", flag(true)}, {"x", x}},
                         {{"c", flag(true)}, {"x", x}}});
}

/// Random graphs of exact operations with branches and loops inside one another.
class RandomControl {
 public:
  explicit RandomControl(std::mt19937& random) : random_(random) {}

  std::string run() {
    std::string text = "graph \"random\" {\n";
    Scope scope;
    for (const char* name : {"x", "y"}) {
      scope.values.push_back(next_);
      text += fmt::format("  %{} \"{}\" = input : f32[4,6]\n", next_++, name);
    }
    for (const char* name : {"c", "d"}) {
      scope.flags.push_back(next_);
      text += fmt::format("  %{} \"{}\" = input : bool[]\n", next_++, name);
    }
    scope.count = next_;
    text += fmt::format("  %{} \"n\" = input : i64[]\n", next_++);
    const bool state = random_() % 2 == 0;
    if (state) {
      scope.values.push_back(next_);
      text += fmt::format("  %{} \"s\" = state : f32[4,6] splat(0.25)\n", next_++);
    }
    text += nodes(scope, 4 + static_cast<int>(random_() % 6), 0);
    for (int o = 0; o < 2; ++o) text += fmt::format("  output \"o{}\" %{}\n", o, pick(scope.values));
    text += fmt::format("  output \"last\" %{}\n", scope.values.back());
    if (state) text += fmt::format("  next \"s\" %{}\n", pick(scope.values));
    return text + "}\n";
  }

 private:
  struct Scope {
    std::vector<int> values;  ///< f32[4,6]
    std::vector<int> flags;   ///< bool[]
    int count = 0;            ///< i64[]
  };

  int pick(const std::vector<int>& from) { return from[random_() % from.size()]; }

  std::string nodes(Scope& scope, int count, int depth) {
    std::string text;
    const auto emit = [&](const std::string& call) { text += fmt::format("  %{} = {}\n", next_++, call); };
    for (; count > 0; --count) {
      switch (random_() % (depth < 3 ? 8 : 5)) {
        case 0: emit(fmt::format("unary(%{}) {{function=\"neg\"}}", pick(scope.values))); break;
        case 1:
          emit(fmt::format("binary(%{}, %{}) {{function=\"max\"}}", pick(scope.values), pick(scope.values)));
          break;
        case 2: emit(fmt::format("binary(%{}, %{})", pick(scope.values), pick(scope.values))); break;
        case 3:
          emit(fmt::format("slice(%{}) {{starts=[0, 0], steps=[1, 1], sizes=[2, 6]}}", pick(scope.values)));
          emit(fmt::format("slice(%{}) {{starts=[1, 0], steps=[1, 1], sizes=[2, 6]}}", pick(scope.values)));
          emit(fmt::format("concat(%{}, %{}) {{axis=0}}", next_ - 2, next_ - 1));
          break;
        case 4:
          emit(fmt::format("reshape(%{}) {{shape=[6, 4]}}", pick(scope.values)));
          emit(fmt::format("reshape(%{}) {{shape=[4, 6]}}", next_ - 1));
          break;
        case 5:
        case 6: text += branches(scope, depth); continue;
        default: text += loop(scope, depth); continue;
      }
      scope.values.push_back(next_ - 1);
    }
    return text;
  }

  /// What a body captures, with the numbers that it gives them.
  std::string capture(const Scope& outer, Scope& inner, std::string& operands) {
    std::string text;
    for (std::size_t i = 0; i < outer.values.size(); ++i) {
      if (random_() % 2 == 0 && i + 1 != outer.values.size()) continue;
      operands += fmt::format(", %{}", outer.values[i]);
      inner.values.push_back(next_);
      text += fmt::format("  %{} = input : f32[4,6]\n", next_++);
    }
    for (const int f : outer.flags) {
      operands += fmt::format(", %{}", f);
      inner.flags.push_back(next_);
      text += fmt::format("  %{} = input : bool[]\n", next_++);
    }
    operands += fmt::format(", %{}", outer.count);
    inner.count = next_;
    return text + fmt::format("  %{} = input : i64[]\n", next_++);
  }

  std::string branches(Scope& scope, int depth) {
    const int results = 1 + static_cast<int>(random_() % 3);
    std::string operands = fmt::format("%{}", pick(scope.flags));
    std::string bodies;
    const std::mt19937 seed = random_;
    for (const char* name : {"then", "else"}) {
      Scope inner;
      std::string captured;
      std::mt19937 own = std::exchange(random_, seed);
      bodies += fmt::format("body \"{}\" {{\n", name) + capture(scope, inner, captured);
      random_ = own;
      if (name[0] == 't') operands += captured;
      bodies += nodes(inner, static_cast<int>(random_() % 5), depth + 1);
      for (int r = 0; r < results; ++r) bodies += fmt::format("  output \"r{}\" %{}\n", r, pick(inner.values));
      bodies += "}\n";
    }
    return declare(scope, results, fmt::format("if({})", operands)) + bodies;
  }

  std::string loop(Scope& scope, int depth) {
    const int carried = 1 + static_cast<int>(random_() % 3);
    std::string operands = random_() % 2 == 0 ? fmt::format("%{}", scope.count) : std::string("_");
    const bool counted = operands != "_";
    operands += random_() % 2 == 0 ? fmt::format(", %{}", pick(scope.flags)) : std::string(", _");
    Scope inner;
    std::string body = fmt::format("body \"body\" {{\n  %{} = input : i64[]\n", next_);
    const int iteration = next_++;
    for (int v = 0; v < carried; ++v) {
      operands += fmt::format(", %{}", pick(scope.values));
      inner.values.push_back(next_);
      body += fmt::format("  %{} = input : f32[4,6]\n", next_++);
    }
    body += capture(scope, inner, operands);
    // Goes on for two iterations more at most, so that loops without a count end.
    body += fmt::format("  %{} = const : i64[] {{1}}\n", next_);
    body += fmt::format("  %{} = binary(%{}, %{}) {{function=\"less\"}}\n", next_ + 1, iteration, next_);
    const int goes_on = next_ + 1;
    next_ += 2;
    inner.flags.push_back(goes_on);
    body += nodes(inner, static_cast<int>(random_() % 5), depth + 1);
    body += fmt::format("  output \"go\" %{}\n", counted ? pick(inner.flags) : goes_on);
    for (int v = 0; v < carried; ++v) body += fmt::format("  output \"v{}\" %{}\n", v, pick(inner.values));
    return declare(scope, carried, fmt::format("loop({}) {{limit=8}}", operands)) + body + "}\n";
  }

  std::string declare(Scope& scope, int results, const std::string& call) {
    std::string names;
    std::string types;
    for (int r = 0; r < results; ++r) {
      scope.values.push_back(next_);
      names += fmt::format("{}%{}", r == 0 ? "" : ", ", next_++);
      types += r == 0 ? "f32[4,6]" : ", f32[4,6]";
    }
    return fmt::format("  {} = {} : {}\n", names, call, types);
  }

  std::mt19937& random_;
  int next_ = 0;
};

TEST(ControlFlow, RandomGraphsComputeWhatTheInterpreterComputes) {
  const auto seed = static_cast<unsigned>(::testing::UnitTest::GetInstance()->random_seed());
  constexpr unsigned kGraphs = bantam::testing::kSanitized ? 15 : 300;
  for (unsigned i = 0; i < kGraphs; ++i) {
    std::mt19937 random(1000 * seed + i);
    const std::string text = RandomControl(random).run();
    SCOPED_TRACE(fmt::format("graph {}, rerun with --gtest_random_seed={}\n{}", i, seed, text));
    std::vector<Inputs> rounds;
    for (int round = 0; round < 4; ++round) {
      Inputs inputs = {{"c", flag(random() % 2 == 0)}, {"d", flag(random() % 2 == 0)}, {"n", count(random() % 4)}};
      for (const char* name : {"x", "y"}) {
        std::vector<float> elements(24);
        for (float& e : elements) e = static_cast<float>(random() % 64) - 32.0F;
        inputs[name] = tensor<float>({4, 6}, elements);
      }
      rounds.push_back(std::move(inputs));
    }
    expect_as_interpreted(text, rounds);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace bantam::compiler
