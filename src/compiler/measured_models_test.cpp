// ONNX models whose shapes depend on data, from the file to the outputs of a session.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <numeric>
#include <string>

#include "bantam/compiler.h"
#include "compiler/testing/placed_fleet.h"
#include "import/testing/onnx_writer.h"

namespace bantam::compiler {
namespace {

using import::testing::attr;
using import::testing::GraphWriter;
using import::testing::tensor;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Bounds = std::map<std::string, std::int64_t>;

std::filesystem::path write_model(const std::string& bytes) {
  const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
  const std::filesystem::path path = ::testing::TempDir() + "measured_" + test->name() + ".onnx";
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

Result<Compiled> compile_model(const std::string& bytes, const Bounds& bounds) {
  FleetSpec fleet;
  fleet.models.push_back({.name = "model", .path = write_model(bytes)});
  fleet.models.back().bounds = bounds;
  auto compiled = compile(fleet);
  std::filesystem::remove(fleet.models.back().path);
  return compiled;
}

/// A model that was compiled and placed.
class Model {
 public:
  explicit Model(const std::string& bytes, const Bounds& bounds = {}) {
    auto compiled = compile_model(bytes, bounds);
    EXPECT_TRUE(compiled) << (compiled ? "" : compiled.error().message);
    if (!compiled) return;
    compiled_ = std::move(*compiled);
    placed_ = testing::place_package(compiled_.package());
  }
  bool works() const { return placed_.has_value(); }
  Session& session() { return *placed_->fleet->session(0); }

  template <typename T>
  void set(const char* name, const std::vector<T>& values) {
    const Tensor input = session().input(static_cast<std::size_t>(session().find_input(name)));
    ASSERT_EQ(static_cast<std::size_t>(input.desc->bytes()), values.size() * sizeof(T));
    std::memcpy(input.data, values.data(), values.size() * sizeof(T));
  }
  void invoke() {
    const Status status = session().invoke();
    ASSERT_TRUE(status.ok()) << status.message << ": found " << status.found << ", expected " << status.expected
                             << ", step " << status.index;
  }
  template <typename T>
  std::vector<T> get(const char* name) {
    const Tensor output = tensor_of(name);
    return {output.as<T>(), output.as<T>() + output.desc->elements()};
  }
  std::vector<std::int32_t> shape(const char* name) {
    const TensorDesc& desc = *tensor_of(name).desc;
    return {desc.dims, desc.dims + desc.rank};
  }

 private:
  Tensor tensor_of(const char* name) { return session().output(static_cast<std::size_t>(session().find_output(name))); }

  Compiled compiled_;
  std::optional<testing::PlacedFleet> placed_;
};

/// Boxes and their best class behind a suppression, as detectors have it.
std::string detector() {
  return GraphWriter()
      .input("boxes", {1, 6, 4})
      .input("scores", {1, 2, 6})
      .initializer(tensor<std::int64_t>("most", {1}, {3}))
      .initializer(tensor<float>("iou", {1}, {0.5F}))
      .initializer(tensor<float>("score", {1}, {0.2F}))
      .initializer(tensor<std::int64_t>("two", {1}, {2}))
      .initializer(tensor<std::int64_t>("zero", {1}, {0}))
      .node("NonMaxSuppression", {"boxes", "scores", "most", "iou", "score"}, {"selected"})
      .node("Gather", {"selected", "two"}, {"column"}, {attr("axis", 1)})
      .node("Squeeze", {"column"}, {"indices"}, {attr("axes", std::vector<std::int64_t>{1})})
      .node("Squeeze", {"boxes"}, {"all"}, {attr("axes", std::vector<std::int64_t>{0})})
      .node("Gather", {"all", "indices"}, {"kept"}, {attr("axis", 0)})
      .node("Relu", {"kept"}, {"y"})
      .output("selected", ElementType::kI64)
      .output("y")
      .model(12);
}

TEST(MeasuredModels, BoxesThatAreLeftGoOnAtTheirNumber) {
  Model model(detector());
  ASSERT_TRUE(model.works());
  EXPECT_TRUE(model.session().dim_is_measured(0));
  EXPECT_EQ(model.session().dim_name(0), "selected.count");
  EXPECT_EQ(model.session().dim_bound(0), 6);  // three of each class
  model.set<float>("boxes",
                   {0, 0, 1, 1, 0, 0.1F, 1, 1.1F, 0, -0.1F, 1, 0.9F, 0, 10, 1, 11, 0, 10.1F, 1, 11.1F, 0, 100, 1, 101});
  model.set<float>("scores", {0.9F, 0.75F, 0.6F, 0.95F, 0.5F, 0.3F, 0, 0, 0.7F, 0, 0, 0});
  model.invoke();
  EXPECT_THAT(model.get<std::int64_t>("selected"), ElementsAre(0, 0, 3, 0, 0, 0, 0, 0, 5, 0, 1, 2));
  EXPECT_THAT(model.get<float>("y"), ElementsAre(0, 10, 1, 11, 0, 0, 1, 1, 0, 100, 1, 101, 0, 0, 1, 0.9F));
  model.set<float>("scores", std::vector<float>(12, 0.1F));
  model.invoke();
  EXPECT_THAT(model.shape("selected"), ElementsAre(0, 3));
  EXPECT_THAT(model.shape("y"), ElementsAre(0, 4));
  model.set<float>("scores", {0, 0, 0, 0, 0, 0.3F, 0, 0, 0, 0, 0, 0});
  model.invoke();
  EXPECT_THAT(model.get<float>("y"), ElementsAre(0, 100, 1, 101));
}

TEST(MeasuredModels, SmallerBoundsSaveMemoryAndFailWhereTheyAreExceeded) {
  Model model(detector(), {{"selected.count", 1}});
  ASSERT_TRUE(model.works());
  EXPECT_EQ(model.session().dim_bound(0), 1);
  model.set<float>("boxes", {0, 0, 1, 1, 2, 0, 3, 1, 0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1});
  model.set<float>("scores", {0.9F, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0});
  model.invoke();
  EXPECT_THAT(model.get<float>("y"), ElementsAre(0, 0, 1, 1));
  model.set<float>("scores", {0.9F, 0.8F, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0});
  const Status status = model.session().invoke();
  EXPECT_EQ(status.code, StatusCode::kOutOfRange);
  ASSERT_GE(status.index, 0);
  EXPECT_EQ(model.session().step_operator(static_cast<std::size_t>(status.index)), "non_max_suppression");
}

/// x[x > 0] and (2 x)[x > 0], each with a mask of its own, side by side.
std::string masks() {
  return GraphWriter()
      .input("x", {8})
      .initializer(tensor<float>("zero", {}, {0}))
      .initializer(tensor<float>("two", {}, {2}))
      .initializer(tensor<std::int64_t>("column", {2}, {-1, 1}))
      .node("Mul", {"x", "two"}, {"doubled"})
      .node("Greater", {"x", "zero"}, {"mask"})
      .node("NonZero", {"mask"}, {"where"})
      .node("Transpose", {"where"}, {"rows"})
      .node("GatherND", {"x", "rows"}, {"a"})
      .node("Greater", {"x", "zero"}, {"mask2"})
      .node("Compress", {"doubled", "mask2"}, {"b"}, {attr("axis", 0)})
      .node("Reshape", {"a", "column"}, {"left"})
      .node("Reshape", {"b", "column"}, {"right"})
      .node("Concat", {"left", "right"}, {"y"}, {attr("axis", 1)})
      .node("ReduceSum", {"b"}, {"sum"}, {attr("keepdims", 0)})
      .node("Shape", {"a"}, {"count"})
      .output("where", ElementType::kI64)
      .output("y")
      .output("sum")
      .output("count", ElementType::kI64)
      .model(13);
}

TEST(MeasuredModels, EqualMasksSelectEqualNumbers) {
  Model model(masks());
  ASSERT_TRUE(model.works());
  EXPECT_EQ(model.session().dim_count(), 1U);
  model.set<float>("x", {1, -1, 2, 3, -4, 0, 5, -6});
  model.invoke();
  EXPECT_THAT(model.shape("where"), ElementsAre(1, 4));
  EXPECT_THAT(model.get<std::int64_t>("where"), ElementsAre(0, 2, 3, 6));
  EXPECT_THAT(model.get<float>("y"), ElementsAre(1, 2, 2, 4, 3, 6, 5, 10));
  EXPECT_THAT(model.get<float>("sum"), ElementsAre(22));
  model.set<float>("x", std::vector<float>(8, -1.0F));
  model.invoke();
  EXPECT_THAT(model.shape("y"), ElementsAre(0, 2));
  EXPECT_THAT(model.get<float>("sum"), ElementsAre(0));
  model.set<float>("x", std::vector<float>(8, 1.0F));
  model.invoke();
  EXPECT_THAT(model.shape("y"), ElementsAre(8, 2));
  EXPECT_THAT(model.get<float>("sum"), ElementsAre(16));
}

/// What models do with an integer that is known at run time.
std::string sizes() {
  return GraphWriter()
      .input("x", {2, 6})
      .input("n", {}, ElementType::kI64)
      .initializer(tensor<std::int64_t>("zero", {}, {0}))
      .initializer(tensor<std::int64_t>("one", {}, {1}))
      .initializer(tensor<std::int64_t>("axis0", {1}, {0}))
      .initializer(tensor<std::int64_t>("axis1", {1}, {1}))
      .initializer(tensor<float>("half", {}, {0.5F}))
      .node("Range", {"zero", "n", "one"}, {"range"})
      .node("Unsqueeze", {"n", "axis0"}, {"n1"})
      .node("Slice", {"x", "axis0", "n1", "axis1"}, {"head"})
      .node("TopK", {"x", "n1"}, {"best", "places"})
      .node("Sub", {"head", "best"}, {"difference"})
      .node("Expand", {"half", "n1"}, {"halves"})
      .node("ConstantOfShape", {"n1"}, {"zeros"})
      .node("Cast", {"range"}, {"numbers"}, {attr("to", 1)})
      .node("Add", {"numbers", "halves"}, {"sum"})
      .node("Add", {"sum", "zeros"}, {"total"})
      .output("range", ElementType::kI64)
      .output("head")
      .output("best")
      .output("difference")
      .output("total")
      .model(13);
}

TEST(MeasuredModels, IntegersBecomeSizesWithinTheBoundOfTheUser) {
  Model model(sizes(), {{"n.size", 6}});
  ASSERT_TRUE(model.works());
  ASSERT_EQ(model.session().dim_count(), 1U);
  const std::vector<float> x = {3, 1, 4, 1.5F, 9, 2.5F, 6, 5, 3.5F, 5.5F, 8, 9};
  for (const std::int64_t n : {2, 6, 0, 1, 3}) {
    model.set("x", x);
    model.set<std::int64_t>("n", {n});
    model.invoke();
    const auto size = static_cast<std::size_t>(n);
    std::vector<std::int64_t> range(size);
    std::iota(range.begin(), range.end(), 0);
    EXPECT_EQ(model.get<std::int64_t>("range"), range);
    std::vector<float> head;
    std::vector<float> best;
    std::vector<float> total;
    for (std::size_t row = 0; row < 2; ++row) {
      std::vector<float> line(x.begin() + static_cast<std::ptrdiff_t>(6 * row),
                              x.begin() + static_cast<std::ptrdiff_t>(6 * row + 6));
      head.insert(head.end(), line.begin(), line.begin() + n);
      std::ranges::sort(line, std::greater<>());
      best.insert(best.end(), line.begin(), line.begin() + n);
    }
    for (std::int64_t i = 0; i < n; ++i) total.push_back(static_cast<float>(i) + 0.5F);
    EXPECT_EQ(model.get<float>("head"), head) << n;
    EXPECT_EQ(model.get<float>("best"), best) << n;
    EXPECT_EQ(model.get<float>("total"), total) << n;
  }
  model.set<std::int64_t>("n", {-1});
  EXPECT_EQ(model.session().invoke().code, StatusCode::kOutOfRange);
  model.set<std::int64_t>("n", {7});
  EXPECT_EQ(model.session().invoke().code, StatusCode::kOutOfRange);
}

TEST(MeasuredModels, WithoutABoundTheMessageSaysHowToGiveOne) {
  const auto refused = compile_model(sizes(), {});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("--bound n.size=N"));
  const auto unknown = compile_model(detector(), {{"chosen.count", 3}});
  ASSERT_FALSE(unknown);
  EXPECT_THAT(unknown.error().message, HasSubstr("--bound chosen.count"));
}

/// Slices by Python's rules, with ends that are inputs.
std::string slices() {
  return GraphWriter()
      .input("x", {7})
      .input("from", {1}, ElementType::kI64)
      .input("to", {1}, ElementType::kI64)
      .initializer(tensor<std::int64_t>("two", {1}, {2}))
      .initializer(tensor<std::int64_t>("end", {1}, {INT64_MAX}))
      .node("Slice", {"x", "two", "to"}, {"a"})
      .node("Slice", {"x", "from", "end"}, {"b"})
      .node("Slice", {"x", "from", "to"}, {"c"})
      .node("Relu", {"a"}, {"ra"})
      .output("ra")
      .output("b")
      .output("c")
      .model(13);
}

TEST(MeasuredModels, SlicesClampAndCountFromTheEnd) {
  Model model(slices());
  ASSERT_TRUE(model.works());
  const std::vector<float> x = {0, 1, 2, 3, 4, 5, 6};
  const auto part = [&](std::int64_t from, std::int64_t to) {
    const auto position = [](std::int64_t p) { return std::clamp<std::int64_t>(p < 0 ? p + 7 : p, 0, 7); };
    std::vector<float> result;
    for (std::int64_t i = position(from); i < position(to); ++i) result.push_back(x[static_cast<std::size_t>(i)]);
    return result;
  };
  for (const std::int64_t from : {0, 3, -2, 7, 9, -9})
    for (const std::int64_t to : {7, 4, -1, 0, 100, -100}) {
      model.set("x", x);
      model.set<std::int64_t>("from", {from});
      model.set<std::int64_t>("to", {to});
      model.invoke();
      EXPECT_EQ(model.get<float>("ra"), part(2, to)) << from << " " << to;
      EXPECT_EQ(model.get<float>("b"), part(from, 7)) << from << " " << to;
      EXPECT_EQ(model.get<float>("c"), part(from, to)) << from << " " << to;
    }
}

TEST(MeasuredModels, UniqueGivesAllItsResults) {
  Model model(GraphWriter()
                  .input("x", {7})
                  .node("Unique", {"x"}, {"y", "first", "inverse", "counts"})
                  .output("y")
                  .output("first", ElementType::kI64)
                  .output("inverse", ElementType::kI64)
                  .output("counts", ElementType::kI64)
                  .model(13));
  ASSERT_TRUE(model.works());
  model.set<float>("x", {2, 1, 1, 3, 4, 3, 2});
  model.invoke();
  EXPECT_THAT(model.get<float>("y"), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(model.get<std::int64_t>("first"), ElementsAre(1, 0, 3, 4));
  EXPECT_THAT(model.get<std::int64_t>("inverse"), ElementsAre(1, 0, 0, 2, 3, 2, 1));
  EXPECT_THAT(model.get<std::int64_t>("counts"), ElementsAre(2, 2, 2, 1));
  model.set<float>("x", std::vector<float>(7, 5.0F));
  model.invoke();
  EXPECT_THAT(model.get<float>("y"), ElementsAre(5));
}

}  // namespace
}  // namespace bantam::compiler
