#include "compiler/storage.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "compiler/select.h"
#include "compiler/testing/compile_text.h"

namespace bantam::compiler {
namespace {

/// A graph with its storages; values are found by name.
class Mapped {
 public:
  explicit Mapped(std::string_view text, const StorageOptions& options = {}) : graph_(testing::parse(text)) {
    const auto selected = select_kernels(graph_);
    if (!selected) {
      ADD_FAILURE() << selected.error().message;
      return;
    }
    map_ = map_storage(graph_, variants_of(*selected), options);
  }

  const Member& member(const std::string& name) const {
    const auto it = std::ranges::find(graph_.values, name, &graph::Value::name);
    EXPECT_NE(it, graph_.values.end()) << name;
    return map_.members[static_cast<std::size_t>(it - graph_.values.begin())];
  }
  const Storage& storage(const std::string& name) const {
    return map_.storages[static_cast<std::size_t>(member(name).storage)];
  }
  bool share(const std::string& a, const std::string& b) const { return member(a).storage == member(b).storage; }
  /// Of the node that makes the value.
  CopyReason copies(const std::string& name) const {
    const auto it = std::ranges::find(graph_.values, name, &graph::Value::name);
    return map_.copies[static_cast<std::size_t>(it->producer)];
  }
  std::ptrdiff_t elided() const { return std::ranges::count(map_.elided, true); }

 private:
  graph::Graph graph_;
  StorageMap map_;
};

TEST(Storage, ResultOfReshapeIsAViewOfItsOperand) {
  const Mapped m(R"(graph "g" {
    %0 "x" = input : f32[2,3]
    %1 "a" = unary(%0) {function="exp"}
    %2 "r" = reshape(%1) {shape=[3, 2]}
    %3 "y" = unary(%2) {function="exp"}
    output "y" %3
  })");
  EXPECT_TRUE(m.share("r", "a"));
  EXPECT_EQ(m.member("r").offset, 0);
  EXPECT_EQ(m.elided(), 1);
}

TEST(Storage, SliceOfRowsIsAViewAtItsOffset) {
  const Mapped m(R"(graph "g" {
    %0 "x" = input : f32[4,3]
    %1 "a" = unary(%0) {function="exp"}
    %2 "s" = slice(%1) {starts=[1, 0], steps=[1, 1], sizes=[2, 3]}
    %3 "y" = unary(%2) {function="exp"}
    output "y" %3
  })");
  EXPECT_TRUE(m.share("s", "a"));
  EXPECT_EQ(m.member("s").offset, 12);
}

TEST(Storage, ElementWiseResultIsWrittenOverAnOperandThatDies) {
  const Mapped m(R"(graph "g" {
    %0 "x" = input : f32[8]
    %1 "a" = unary(%0) {function="exp"}
    %2 "b" = unary(%1) {function="sqrt"}
    %3 "c" = unary(%2) {function="exp"}
    %4 "y" = reduce(%3) {axes=[0]}
    output "y" %4
  })");
  EXPECT_TRUE(m.share("a", "b"));
  EXPECT_TRUE(m.share("b", "c"));
}

TEST(Storage, OperandWithALaterReaderIsNotOverwritten) {
  const Mapped m(R"(graph "g" {
    %0 "x" = input : f32[8]
    %1 "a" = unary(%0) {function="exp"}
    %2 "b" = unary(%1) {function="sqrt"}
    %3 "y" = binary(%1, %2)
    output "y" %3
  })");
  EXPECT_FALSE(m.share("a", "b"));
}

TEST(Storage, ConcatOperandsAreWrittenIntoItsResult) {
  const char* text = R"(graph "g" {
    %0 "x" = input : f32[2,4]
    %1 "a" = unary(%0) {function="exp"}
    %2 "b" = unary(%0) {function="sqrt"}
    %3 "c" = concat(%1, %2) {axis=0}
    %4 "y" = unary(%3) {function="exp"}
    output "y" %4
  })";
  const Mapped m(text);
  EXPECT_TRUE(m.share("a", "c"));
  EXPECT_TRUE(m.share("b", "c"));
  EXPECT_EQ(m.member("b").offset - m.member("a").offset, 32);
  EXPECT_EQ(m.elided(), 1);
  StorageOptions copies;
  copies.concat_views = false;
  const Mapped copied(text, copies);
  EXPECT_FALSE(copied.share("a", "b"));
  EXPECT_EQ(copied.elided(), 0);
}

TEST(Storage, ConcatOperandsThatCannotBeInItAreCopied) {
  const char* text = R"(graph "g" {
    %0 "x" = input : f32[2,4]
    %1 "a" = unary(%0) {function="exp"}
    %2 "k" = const : f32[2,4] splat(1)
    %3 "c" = concat(%2, %1, %0) {axis=0}
    %4 "y" = unary(%3) {function="exp"}
    output "y" %4
  })";
  const Mapped m(text);
  EXPECT_TRUE(m.share("a", "c"));
  EXPECT_EQ(m.member("a").offset, 32);
  EXPECT_FALSE(m.share("x", "c"));
  EXPECT_EQ(m.elided(), 0);
  EXPECT_EQ(m.copies("c"), CopyReason::kConstant);
  StorageOptions otherwise;
  otherwise.other_views = {false, true};
  EXPECT_FALSE(Mapped(text, otherwise).share("a", "c"));
}

TEST(Storage, PadLeavesItsOperandInTheMiddle) {
  const Mapped m(R"(graph "g" {
    %0 "x" = input : f32[3,4]
    %1 "a" = softmax(%0)
    %2 "p" = pad(%1) {before=[1, 0], after=[1, 0]}
    %3 "y" = unary(%2) {function="exp"}
    output "y" %3
  })");
  EXPECT_TRUE(m.share("a", "p"));
  EXPECT_EQ(m.member("a").offset, 16);
  EXPECT_EQ(m.elided(), 0);
}

TEST(Storage, ConcatOfOneValueTwiceIsACopy) {
  const Mapped m(R"(graph "g" {
    %0 "x" = input : f32[2,4]
    %1 "a" = unary(%0) {function="exp"}
    %2 "c" = concat(%1, %1) {axis=0}
    output "y" %2
  })");
  EXPECT_FALSE(m.share("a", "c"));
  EXPECT_EQ(m.elided(), 0);
}

TEST(Storage, InPlaceCanBeSwitchedOff) {
  StorageOptions options;
  options.in_place = false;
  const Mapped m(R"(graph "g" {
    %0 "x" = input : f32[8]
    %1 "a" = unary(%0) {function="exp"}
    %2 "b" = unary(%1) {function="sqrt"}
    %3 "y" = unary(%2) {function="exp"}
    output "y" %3
  })",
                 options);
  EXPECT_FALSE(m.share("a", "b"));
}

TEST(Storage, PartsOfAConcatInterleaveUnlessOneIsComputedFromTheOther) {
  const auto text = [](const char* operand) {
    return std::string(R"(graph "g" {
      %0 "x" = input : f32[1,4,4,2]
      %1 "a" = pool2d(%0)
      %2 "b" = pool2d()") +
           operand + R"() {kernel_h=3, kernel_w=3, pad_top=1, pad_left=1, pad_bottom=1, pad_right=1}
      %3 "c" = concat(%1, %2) {axis=3}
      %4 "y" = pool2d(%3)
      output "y" %4
    })";
  };
  const Mapped apart(text("%0"));
  EXPECT_TRUE(apart.share("a", "c") && apart.share("b", "c"));
  const Mapped chained(text("%1"));
  EXPECT_FALSE(chained.share("a", "b"));
  // The same parts behind one another do not overlap.
  const Mapped rows(R"(graph "g" {
    %0 "x" = input : f32[4,8]
    %1 "a" = softmax(%0)
    %2 "b" = reduce(%1) {axes=[0]}
    %3 "c" = concat(%1, %2)
    %4 "y" = softmax(%3)
    output "y" %4
  })");
  EXPECT_TRUE(rows.share("a", "b"));
}

TEST(Storage, InputAndOutputNeverShare) {
  const Mapped m(R"(graph "g" {
    %0 "x" = input : f32[8]
    %1 "y" = unary(%0) {function="exp"}
    output "y" %1
  })");
  EXPECT_FALSE(m.share("x", "y"));
  EXPECT_EQ(m.storage("x").kind, StorageKind::kInput);
  EXPECT_EQ(m.storage("y").kind, StorageKind::kOutput);
}

TEST(Storage, InputIsOverwrittenUnlessPreserved) {
  const char* text = R"(graph "g" {
    %0 "x" = input : f32[8]
    %1 "a" = unary(%0) {function="exp"}
    %2 "y" = reduce(%1) {axes=[0]}
    output "y" %2
  })";
  EXPECT_TRUE(Mapped(text).share("x", "a"));
  StorageOptions options;
  options.preserved_inputs = {true};
  EXPECT_FALSE(Mapped(text, options).share("x", "a"));
}

TEST(Storage, NothingWithLargerElementsIsWrittenIntoAPort) {
  // Two i16 become one u32 in their place; a caller may bind memory that is aligned for i16 only.
  const Mapped m(R"(graph "g" {
    %0 "x" = input : i16[14]
    %1 "energy" = spectrum_energy(%0) {begin=1, end=6}
    %2 "y" = cast(%1) {to="f32"}
    output "y" %2
  })");
  EXPECT_FALSE(m.share("x", "energy"));
}

TEST(Storage, StateIsUpdatedInPlaceWhenItsReadersCameBefore) {
  const Mapped m(R"(graph "g" {
    %0 "x" = input : f32[8]
    %1 "h" = state : f32[8]
    %2 "y" = unary(%1) {function="exp"}
    %3 "n" = binary(%1, %0)
    output "y" %2
    next "h" %3
  })");
  EXPECT_TRUE(m.share("h", "n"));
  EXPECT_EQ(m.storage("h").kind, StorageKind::kState);
}

TEST(Storage, StateReadAfterItsUpdateAlternates) {
  const Mapped m(R"(graph "g" {
    %0 "x" = input : f32[8]
    %1 "h" = state : f32[8]
    %2 "n" = binary(%1, %0)
    %3 "m" = unary(%2) {function="exp"}
    %4 "y" = binary(%1, %3)
    output "y" %4
    next "h" %2
  })");
  EXPECT_FALSE(m.share("h", "n"));
  EXPECT_EQ(m.storage("h").kind, StorageKind::kSwapRead);
  EXPECT_EQ(m.storage("n").kind, StorageKind::kSwapWrite);
}

}  // namespace
}  // namespace bantam::compiler
