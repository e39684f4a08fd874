// Views from graph to results: what is written straight into concats and pads, windows that lie where states do.
// Whatever is shared, results are those of a plan that shares nothing.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "base/testing/sanitizers.h"
#include "compiler/testing/compile_text.h"
#include "compiler/testing/placed_fleet.h"
#include "compiler/windows.h"
#include "package/format.h"

namespace bantam::compiler {
namespace {

using Rounds = std::vector<std::vector<std::vector<std::byte>>>;

constexpr int kRounds = 4;
constexpr unsigned kViewNets = bantam::testing::kSanitized ? 30 : 150;

/// Outputs of a few invokes; states carry over.
Rounds results(const testing::TextPackage& compiled) {
  Rounds rounds;
  auto placed = testing::place_package(compiled.package.bytes());
  if (!placed) return rounds;
  for (std::uint32_t r = 0; r < kRounds; ++r) rounds.push_back(testing::run(*placed->fleet->session(0), r));
  EXPECT_TRUE(placed->arena.intact());
  return rounds;
}

/// Plans in the usual way and with nothing shared, compares what they compute, and returns the usual plan.
PlannedModel expect_same_results(const std::string& text, const PlanOptions& options = {}) {
  const auto shared = testing::compile_text(text, options);
  PlanOptions apart = options;
  apart.choice = PlanChoice{.concat_views = false, .in_place = false};
  const auto plain = testing::compile_text(text, apart);
  if (!shared || !plain) {
    ADD_FAILURE() << (shared ? plain.error().message : shared.error().message) << "\n" << text;
    return {};
  }
  EXPECT_EQ(results(*shared), results(*plain)) << text << "\n" << shared->planned.method;
  // Other buffers may pay more for their alignment, though their bytes are no more.
  constexpr auto kPadding = static_cast<std::int64_t>(format::kBufferAlignment);
  EXPECT_LE(shared->planned.activation_bytes + shared->planned.state_bytes,
            plain->planned.activation_bytes + plain->planned.state_bytes + 2 * plain->planned.swap_bytes + kPadding);
  return shared->planned;
}

std::size_t steps_of(const PlannedModel& model, const char* op) {
  return static_cast<std::size_t>(std::ranges::count_if(
      model.steps, [&](const PlannedStep& step) { return model.graph.node(step.node).op->name == op; }));
}

/// A detector of words that keeps its last rows: what the window has is read twice before its last rows are the state.
std::string window_model(int kept, int fresh, int channels) {
  return fmt::format(R"(graph "window" {{
    %x "x" = input : f32[{1},{2}]
    %h "h" = state : f32[{0},{2}]
    %e = unary(%x) {{function="exp"}}
    %w = concat(%h, %e) {{axis=0}}
    %n = slice(%w) {{starts=[{1}, 0], steps=[1, 1], sizes=[{0}, {2}]}}
    %a = reduce(%w) {{axes=[0]}}
    %b = reduce(%w) {{function="max", axes=[0]}}
    %y = binary(%a, %b)
    output "y" %y
    next "h" %n
  }})",
                     kept, fresh, channels);
}

TEST(Views, AWindowLiesWhereItsStateDoes) {
  const PlannedModel model = expect_same_results(window_model(20, 2, 8));
  EXPECT_EQ(steps_of(model, "concat"), 0U) << model.method;
  EXPECT_EQ(steps_of(model, "slice"), 1U);
  EXPECT_EQ(model.state_bytes, 22 * 8 * 4);
  EXPECT_LT(model.activation_bytes, 20 * 8 * 4);
}

TEST(Views, WindowsOfAllShapesComputeWhatCopiesDo) {
  std::mt19937 random(::testing::UnitTest::GetInstance()->random_seed());
  const auto up_to = [&](unsigned n) { return 1 + static_cast<int>(random() % n); };
  for (unsigned i = 0; i < kViewNets / 4; ++i) expect_same_results(window_model(up_to(9), up_to(9), up_to(20)));
}

TEST(Views, AStateThatIsReadBehindItsSliceIsCopied) {
  // The window begins with a state whose next value somebody reads: no order puts the slice last.
  const std::string text = R"(graph "read" {
    %x "x" = input : f32[2,4]
    %h "h" = state : f32[6,4]
    %w = concat(%h, %x) {axis=0}
    %n = slice(%w) {starts=[2, 0], steps=[1, 1], sizes=[6, 4]}
    %a = unary(%n) {function="exp"}
    %b = reduce(%w) {axes=[0]}
    output "a" %a
    output "b" %b
    next "h" %n
  })";
  EXPECT_TRUE(find_windows(testing::parse(text)).empty());
  expect_same_results(text);
}

TEST(Views, APadIsWrittenAroundItsOperand) {
  const PlannedModel model = expect_same_results(R"(graph "pad" {
    %x "x" = input : f32[1,8,8,6]
    %a = pool2d(%x) {kernel_h=1, kernel_w=1}
    %p = pad(%a) {before=[0, 1, 1, 0], after=[0, 1, 1, 2]}
    %y = pool2d(%p) {kernel_h=3, kernel_w=3}
    output "y" %y
  })");
  EXPECT_EQ(model.moved_bytes, 0) << model.method;
  EXPECT_EQ(steps_of(model, "pad"), 1U);
}

TEST(Views, ASmallResultDoesNotKeepTheMemoryOfALargeOne) {
  // Written in place, the slice would keep all of what it is a part of while the pad is at the peak. No way with
  // everything in place needs less than one with nothing there.
  const PlannedModel model = expect_same_results(R"(graph "small" {
    %v0 "x" = input : f32[1,5,6,4]
    %v1 = pool2d(%v0) {kernel_h=3, kernel_w=3, pad_top=1, pad_left=1, pad_bottom=1, pad_right=1}
    %v2 = pool2d(%v0) {kernel_h=3, kernel_w=3, pad_top=1, pad_left=1, pad_bottom=1, pad_right=1}
    %v3 = slice(%v1) {starts=[0, 0, 0, 2], steps=[1, 1, 1, 1], sizes=[1, 5, 6, 2]}
    %v4 = pool2d(%v0) {kernel_h=3, kernel_w=3, pad_top=1, pad_left=1, pad_bottom=1, pad_right=1}
    %v5 = unary(%v3) {function="tanh"}
    %v6 = concat(%v3, %v0) {axis=3}
    %v7 = slice(%v5) {starts=[0, 0, 0, 1], steps=[1, 1, 1, 1], sizes=[1, 5, 6, 1]}
    %v8 = unary(%v7) {function="tanh"}
    %v9 = pad(%v6) {mode="edge", before=[0, 1, 1, 0], after=[0, 1, 0, 1]}
    %v10 = slice(%v9) {starts=[0, 0, 0, 3], steps=[1, 1, 1, 1], sizes=[1, 7, 7, 4]}
    %v11 = concat(%v7, %v7) {axis=3}
    %v12 = pool2d(%v11) {kernel_h=3, kernel_w=3, pad_top=1, pad_left=1, pad_bottom=1, pad_right=1}
    output "y" %v12
  })");
  EXPECT_NE(model.method.find("not in place"), std::string::npos) << model.method;
}

TEST(Views, AConcatOfConcatsIsWrittenByItsInnermostOperands) {
  const PlannedModel model = expect_same_results(R"(graph "nested" {
    %x "x" = input : f32[1,4,4,8]
    %a = pool2d(%x)
    %b = pool2d(%x) {kernel_h=3, kernel_w=3, pad_top=1, pad_left=1, pad_bottom=1, pad_right=1}
    %c = pool2d(%x) {kind="average"}
    %ab = concat(%a, %b) {axis=3}
    %abc = concat(%ab, %c) {axis=3}
    %y = pool2d(%abc) {kernel_h=4, kernel_w=4}
    output "y" %y
  })");
  EXPECT_EQ(steps_of(model, "concat"), 0U) << model.method;
}

TEST(Views, AConcatCopiesOnlyWhatLiesElsewhere) {
  const PlannedModel model = expect_same_results(R"(graph "partial" {
    %x "x" = input : f32[4,16]
    %a = softmax(%x)
    %c = concat(%x, %a) {axis=0}
    %y = softmax(%c)
    output "y" %y
  })");
  EXPECT_EQ(steps_of(model, "concat"), 1U);
  EXPECT_EQ(model.moved_bytes, 4 * 16 * 4) << model.method;
}

/// Element-wise operators, pools, pads, slices and concats along any axis over images of one height.
std::string random_net(std::mt19937& random) {
  struct Image {
    int h, w, c;
  };
  std::string text = "graph \"net\" {\n  %v0 \"x\" = input : f32[1,5,6,4]\n";
  std::vector<Image> images = {{5, 6, 4}};
  const auto up_to = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  const auto add = [&](const std::string& node, Image image) {
    text += fmt::format("  %v{} = {}\n", images.size(), node);
    images.push_back(image);
  };
  for (int i = 0; i < 12; ++i) {
    const std::size_t from = images.size() - 1 - up_to(std::min<std::size_t>(images.size(), 4));
    const Image x = images[from];
    switch (up_to(6)) {
      case 0: add(fmt::format("unary(%v{}) {{function=\"tanh\"}}", from), x); break;
      case 1:
        add(fmt::format("pool2d(%v{}) {{kernel_h=3, kernel_w=3, pad_top=1, pad_left=1, pad_bottom=1, pad_right=1}}",
                        from),
            x);
        break;
      case 2: {
        const int t = static_cast<int>(up_to(2));
        const int c = static_cast<int>(up_to(3));
        const char* mode = up_to(2) == 0 ? "constant" : "edge";
        add(fmt::format("pad(%v{}) {{mode=\"{}\", before=[0, {}, 1, {}], after=[0, 1, 0, {}]}}", from, mode, t, c, t),
            {x.h + t + 1, x.w + 1, x.c + c + t});
        break;
      }
      case 3:
        if (x.c < 2) break;
        add(fmt::format("slice(%v{}) {{starts=[0, 0, 0, {}], steps=[1, 1, 1, 1], sizes=[1, {}, {}, {}]}}", from,
                        x.c / 2, x.h, x.w, x.c - x.c / 2),
            {x.h, x.w, x.c - x.c / 2});
        break;
      default: {
        const std::size_t other = up_to(images.size());
        const Image z = images[other];
        if (z.h == x.h && z.w == x.w && x.c + z.c < 24) {
          add(fmt::format("concat(%v{}, %v{}) {{axis=3}}", from, other), {x.h, x.w, x.c + z.c});
        } else if (z.w == x.w && z.c == x.c && x.h + z.h < 24) {
          add(fmt::format("concat(%v{}, %v{}) {{axis=1}}", from, other), {x.h + z.h, x.w, x.c});
        }
      }
    }
  }
  return text + fmt::format("  output \"y\" %v{}\n}}", images.size() - 1);
}

TEST(Views, ChangeNoResult) {
  const unsigned first = 1000 * static_cast<unsigned>(::testing::UnitTest::GetInstance()->random_seed());
  std::size_t partial = 0;
  for (unsigned seed = first; seed < first + kViewNets; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    std::mt19937 random(seed);
    const PlannedModel model = expect_same_results(random_net(random));
    for (const PlannedStep& step : model.steps) partial += step.copies != CopyReason::kNone ? 1 : 0;
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(partial, 0U);
}

}  // namespace
}  // namespace bantam::compiler
