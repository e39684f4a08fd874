// Models with dimensions: at every size within the bounds a session gives, to the bit, what a compilation for that size
// gives, in the memory that was planned once.
#include "compiler/sized_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <random>
#include <string>

#include "compiler/emit.h"
#include "compiler/legalize.h"
#include "compiler/size_fit.h"
#include "compiler/testing/compile_text.h"
#include "compiler/testing/placed_fleet.h"
#include "graph/text.h"
#include "passes/passes.h"

namespace bantam::compiler {
namespace {

using TextOf = std::function<std::string(const Sizes& sizes)>;

Result<void> prepare_model(graph::Graph& graph, bool any_size) {
  if (auto passed = passes::run_passes(graph, {.any_size = any_size}); !passed) return passed;
  if (auto legal = legalize(graph); !legal) return legal;
  graph::compact(graph);
  return {};
}

Result<graph::Graph> graph_at(const TextOf& text, const Sizes& sizes) { return graph::from_text(text(sizes)); }

Result<testing::TextPackage> compile_at(const TextOf& text, const Sizes& sizes) {
  auto graph = graph_at(text, sizes);
  if (!graph) return fail(graph.error());
  if (auto prepared = prepare_model(*graph, false); !prepared) return fail(prepared.error());
  return testing::compile_graph(*graph);
}

Result<testing::TextPackage> compile_sized(const TextOf& text, const std::map<std::string, std::int64_t>& bounds) {
  auto sized = size_model(
      bounds, [&](const Sizes& sizes) { return graph_at(text, sizes); }, prepare_model);
  if (!sized) return fail(sized.error());
  PlanOptions options;
  options.dimensions = sized->dimensions;
  options.instances = sized->instances;
  return testing::compile_graph(sized->instances.front().graph, options);
}

/// Kernels that one of two sessions of the same model uses and the other does not, for messages.
std::string differing_kernels(const Session& a, const Session& b) {
  std::string text;
  for (std::size_t s = 0; s < a.step_count() && s < b.step_count(); ++s)
    if (a.step_operator(s) != b.step_operator(s) || a.step_variant(s) != b.step_variant(s))
      text += fmt::format("\nstep {}: {} {} and {} {}", s, a.step_operator(s), a.step_variant(s), b.step_operator(s),
                          b.step_variant(s));
  return text;
}

/// Runs the session at `sizes` and compares with a fresh compilation for them.
void expect_same_as_fixed(Session& session, const TextOf& text, const Sizes& sizes, std::uint32_t seed) {
  SCOPED_TRACE(fmt::format("at {}, seed {}", fmt::join(sizes, "x"), seed));
  std::vector<DimSize> wanted;
  for (std::size_t d = 0; d < sizes.size(); ++d) wanted.push_back({session.dim_name(d), sizes[d]});
  const Status set = session.set_dims(wanted);
  ASSERT_TRUE(set.ok()) << set.message << ", step " << set.index << ", found " << set.found;
  const auto fixed = compile_at(text, sizes);
  ASSERT_TRUE(fixed) << fixed.error().message;
  auto placed = testing::place_package(fixed->package.bytes());
  ASSERT_TRUE(placed);
  Session& expected = *placed->fleet->session(0);
  session.reset();
  for (std::uint32_t round = 0; round < 2; ++round) {
    const auto right = testing::run(expected, seed + round);
    const auto got = testing::run(session, seed + round);
    ASSERT_EQ(got.size(), right.size());
    for (std::size_t o = 0; o < got.size(); ++o) {
      EXPECT_TRUE(same_shape_and_type(*session.output(o).desc, *expected.output(o).desc));
      EXPECT_EQ(session.output_info(o).bytes, expected.output_info(o).bytes);
      EXPECT_TRUE(got[o] == right[o]) << "output " << o << ", round " << round << differing_kernels(session, expected);
    }
  }
}

/// Every size from the least to the bound, up and down.
void check_every_size(const TextOf& text, std::int64_t bound, std::int64_t least) {
  const auto sized = compile_sized(text, {{"T", bound}});
  ASSERT_TRUE(sized) << sized.error().message;
  auto placed = testing::place_package(sized->package.bytes());
  ASSERT_TRUE(placed);
  Session& session = *placed->fleet->session(0);
  ASSERT_EQ(session.dim_count(), 1U);
  EXPECT_EQ(session.dim("T"), bound);
  EXPECT_EQ(session.dim_least(0), least);
  for (std::int64_t size = bound; size >= std::max<std::int64_t>(least, 1); --size)
    expect_same_as_fixed(session, text, {size}, static_cast<std::uint32_t>(size));
  for (std::int64_t size = std::max<std::int64_t>(least, 1); size <= bound; size += 3)
    expect_same_as_fixed(session, text, {size}, static_cast<std::uint32_t>(size) + 100);
  EXPECT_TRUE(placed->arena.intact());
}

std::string named(const std::string& body, const std::map<std::string, std::int64_t>& numbers) {
  std::string text = "graph \"sized\" {\n" + body + "}\n";
  for (const auto& [name, number] : numbers)
    for (std::size_t at = text.find(name); at != std::string::npos; at = text.find(name, at))
      text.replace(at, name.size(), std::to_string(number));
  return text;
}

TEST(SizedModel, RunsOperatorsWithoutSizesInTheirParametersAtEverySize) {
  check_every_size(
      [](const Sizes& s) {
        return named(R"(
          %x "x" = input : f32[1,<T>,8]
          %w = const : f32[8,12] splat(0.25)
          %b = const : f32[12] {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}
          %m = matmul(%x, %w, %b) {activation="relu"}
          %k = softmax(%m)
          output "y" %k
        )",
                     {{"<T>", s[0]}});
      },
      33, 0);
}

TEST(SizedModel, FollowsSizesThroughReshapesSlicesAndConcats) {
  check_every_size(
      [](const Sizes& s) {
        return named(R"(
          %x "x" = input : f32[1,<T>,8]
          %past "past" = input : f32[1,5,8]
          %c = concat(%past, %x) {axis=1}
          %r = reshape(%c) {shape=[1,<T+5>,2,4]}
          %t = transpose(%r) {perm=[0,2,1,3]}
          %u = unary(%t) {function="tanh"}
          %last = slice(%c) {starts=[0,<T>,0], steps=[1,1,1], sizes=[1,5,8]}
          %first = slice(%u) {starts=[0,0,0,0], steps=[1,1,1,1], sizes=[1,2,<T>,4]}
          %e = unary(%last) {function="exp"}
          output "heads" %u
          output "first" %first
          output "next" %e
        )",
                     {{"<T+5>", s[0] + 5}, {"<T>", s[0]}});
      },
      20, 0);
}

TEST(SizedModel, AttendsOverASequenceOfAnyLength) {
  check_every_size(
      [](const Sizes& s) {
        return named(R"(
          %x "x" = input : f32[1,<T>,8]
          %w = const : f32[8,24] splat(0.125)
          %p = matmul(%x, %w)
          %q = slice(%p) {starts=[0,0,0], steps=[1,1,1], sizes=[1,<T>,8]}
          %k = slice(%p) {starts=[0,0,8], steps=[1,1,1], sizes=[1,<T>,8]}
          %v = slice(%p) {starts=[0,0,16], steps=[1,1,1], sizes=[1,<T>,8]}
          %qh = reshape(%q) {shape=[<T>,2,4]}
          %kh = reshape(%k) {shape=[<T>,2,4]}
          %vh = reshape(%v) {shape=[<T>,2,4]}
          %qt = transpose(%qh) {perm=[1,0,2]}
          %kt = transpose(%kh) {perm=[1,2,0]}
          %vt = transpose(%vh) {perm=[1,0,2]}
          %s = matmul(%qt, %kt)
          %a = softmax(%s)
          %o = matmul(%a, %vt)
          %ot = transpose(%o) {perm=[1,0,2]}
          %y = reshape(%ot) {shape=[1,<T>,8]}
          %z = binary(%y, %x)
          output "y" %z
        )",
                     {{"<T>", s[0]}});
      },
      24, 0);
}

TEST(SizedModel, DividesSizesWhereConvolutionsStride) {
  check_every_size(
      [](const Sizes& s) {
        return named(R"(
          %x "x" = input : f32[1,<T>,1,4]
          %w = const : f32[6,3,1,4] splat(0.5)
          %c = conv2d(%x, %w) {stride_h=2}
          %r = reshape(%c) {shape=[<H>,6]}
          %s = softmax(%r)
          output "y" %s
        )",
                     {{"<H>", (s[0] - 3) / 2 + 1}, {"<T>", s[0]}});
      },
      30, 3);
}

/// A random chain of operators over [1, time, 8] whose times all follow T.
class RandomChain {
 public:
  explicit RandomChain(std::uint32_t seed) : seed_(seed) {}

  std::string operator()(const Sizes& sizes) const {
    std::mt19937 random(seed_);
    std::string body;
    const auto line = [&](const std::string& text) { body += "  " + text + "\n"; };
    line(fmt::format("%v0 \"x\" = input : f32[1,{},8]", sizes[0]));
    line("%past \"past\" = input : f32[1,3,8]");
    line("%w = const : f32[8,8] splat(0.0625)");
    std::int64_t time = sizes[0];
    int last = 0;
    for (int step = 0; step < 7; ++step) {
      const auto next = [&](const std::string& text) { line(fmt::format("%v{} = {}", ++last, text)); };
      switch (random() % 8) {
        case 0: next(fmt::format("unary(%v{}) {{function=\"tanh\"}}", last)); break;
        case 1: next(fmt::format("softmax(%v{}) {{axis=1}}", last)); break;
        case 2: next(fmt::format("matmul(%v{}, %w) {{activation=\"relu\"}}", last)); break;
        case 3:
          next(fmt::format("concat(%past, %v{}) {{axis=1}}", last));
          time += 3;
          break;
        case 4:  // its latest frames
          time -= 2;
          next(fmt::format("slice(%v{}) {{starts=[0,2,0], steps=[1,1,1], sizes=[1,{},8]}}", last, time));
          break;
        case 5:  // every other frame
          time = (time + 1) / 2;
          next(fmt::format("slice(%v{}) {{starts=[0,0,0], steps=[1,2,1], sizes=[1,{},8]}}", last, time));
          break;
        case 6:
          next(fmt::format("reshape(%v{}) {{shape=[{},2,4]}}", last, time));
          next(fmt::format("transpose(%v{}) {{perm=[1,0,2]}}", last));
          next(fmt::format("softmax(%v{})", last));
          next(fmt::format("transpose(%v{}) {{perm=[1,0,2]}}", last));
          next(fmt::format("reshape(%v{}) {{shape=[1,{},8]}}", last, time));
          break;
        default:
          next(fmt::format("transpose(%v{}) {{perm=[0,2,1]}}", last));
          next(fmt::format("matmul(%v{}, %v{})", last - 1, last));
          next(fmt::format("softmax(%v{})", last));
          next(fmt::format("matmul(%v{}, %v{})", last, last - 3));
          break;
      }
    }
    return fmt::format("graph \"chain\" {{\n{}  output \"y\" %v{}\n}}\n", body, last);
  }

 private:
  std::uint32_t seed_;
};

TEST(SizedModel, RunsRandomChainsAtEverySize) {
  constexpr std::int64_t kBound = 41;
  int compiled = 0;
  for (std::uint32_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const RandomChain chain(seed);
    if (!graph_at(chain, {kBound})) continue;  // it ran out of frames
    const auto sized = compile_sized(chain, {{"T", kBound}});
    if (!sized) {
      // What cannot be expressed is refused, by name.
      EXPECT_EQ(sized.error().code, StatusCode::kUnsupported) << sized.error().message;
      continue;
    }
    ++compiled;
    auto placed = testing::place_package(sized->package.bytes());
    ASSERT_TRUE(placed);
    Session& session = *placed->fleet->session(0);
    for (std::int64_t size = kBound; size >= std::max<std::int64_t>(session.dim_least(0), 1); size -= 3)
      expect_same_as_fixed(session, chain, {size}, seed);
    for (std::int64_t size = std::max<std::int64_t>(session.dim_least(0), 1); size <= kBound; size += 5)
      expect_same_as_fixed(session, chain, {size}, seed);
    EXPECT_TRUE(placed->arena.intact());
  }
  EXPECT_GT(compiled, 30);
}

}  // namespace
}  // namespace bantam::compiler
