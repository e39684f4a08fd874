// Fault finding, proved by faults: whichever operator is broken, the comparison names it and no other.
#include "diagnose/compare.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <map>

#include "compiler/testing/placed_fleet.h"
#include "diagnose/tensor_walk.h"
#include "import/testing/onnx_writer.h"
#include "io/testing/temporary_folder.h"

namespace bantam::diagnose {
namespace {

using compiler::testing::place_fleet;
using compiler::testing::PlacedFleet;

ModelSpec bundled(const std::string& name) { return {.name = name, .path = "models/" + name + ".onnx"}; }

/// What one kernel shall do wrong. Kernels are plain functions: it cannot travel with them.
struct Fault {
  Status (*run)(const ops::Invocation&) = nullptr;
  int faulty_call = 0;
  int calls_per_invoke = 1;
  int calls = 0;
};
Fault fault;

/// An operator table in which one call per invoke of one kernel spoils its result.
class FaultyTable {
 public:
  FaultyTable(const StepReport& step, int call, int calls_per_invoke)
      : FaultyTable(step.op, step.variant, call, calls_per_invoke) {}

  OpTable table() const { return {table_}; }

 private:
  FaultyTable(std::string_view op, std::string_view variant, int call, int calls_per_invoke) {
    fault = {nullptr, call, calls_per_invoke, 0};
    const ops::OpDef* good = ops::find_op(op);
    variants_.assign(good->variants.begin(), good->variants.end());
    for (ops::KernelVariant& v : variants_) {
      if (v.name != variant) continue;
      fault.run = v.run;
      v.run = run_faulty;
    }
    op_ = *good;
    op_.variants = variants_;
    for (const ops::OpDef* other : ops::all_ops()) table_.push_back(other == good ? &op_ : other);
  }

  static Status run_faulty(const ops::Invocation& invocation) {
    const Status status = fault.run(invocation);
    if (fault.calls++ % fault.calls_per_invoke != fault.faulty_call) return status;
    const Walk walk = Walk::of(invocation.out());
    auto* out = invocation.output<float>();
    float largest = 0.01F;
    walk_pairs(invocation.out(), walk, walk,
               [&](std::int64_t at, std::int64_t) { largest = std::max(largest, std::abs(out[at])); });
    // Not the same for all elements: a normalisation would take that away.
    int n = 0;
    walk_pairs(invocation.out(), walk, walk,
               [&](std::int64_t at, std::int64_t) { out[at] += 0.25F * largest * static_cast<float>(++n % 3); });
    return status;
  }

  std::vector<ops::KernelVariant> variants_;
  ops::OpDef op_;
  std::vector<const ops::OpDef*> table_;
};

std::vector<io::NamedArray> random_inputs(Session& session) {
  compiler::testing::fill_inputs(session, 7);
  std::vector<io::NamedArray> inputs;
  for (std::size_t i = 0; i < session.input_count(); ++i)
    inputs.push_back({std::string(session.input_info(i).name), copy_of(session.input(i))});
  return inputs;
}

/// A session of a compiled package with another operator table.
struct FaultySession {
  Package package;
  ops::testing::GuardedMemory arena;
  Fleet* fleet = nullptr;

  FaultySession(const Compiled& compiled, OpTable table) {
    Package::Options options;
    options.ops = table;
    EXPECT_TRUE(Package::open(compiled.package(), options, &package).ok());
    const Requirements need = package.requirements();
    arena = ops::testing::GuardedMemory(static_cast<std::size_t>(need.arena_bytes),
                                        static_cast<std::size_t>(need.alignment));
    EXPECT_TRUE(Fleet::place(package, arena.bytes(), &fleet).ok());
  }
};

class FaultyKernel : public ::testing::TestWithParam<const char*> {};

TEST_P(FaultyKernel, IsFoundWhicheverStepItServes) {
  const ModelSpec model = bundled(GetParam());
  auto good = place_fleet({.models = {model}});
  ASSERT_TRUE(good);
  Session& session = *good->fleet->session(0);
  const ModelReport& report = good->compiled->models().front();
  const auto inputs = random_inputs(session);
  const auto reference = record_plain_run(model, inputs);
  ASSERT_TRUE(reference) << reference.error().message;
  const auto clean = compare_steps(session, report, *reference, inputs, {});
  ASSERT_TRUE(clean) << clean.error().message;
  ASSERT_FALSE(clean->first_fault) << clean->checks[*clean->first_fault].tensor;
  using Kernel = std::pair<std::string, std::string>;
  std::map<Kernel, int> calls_per_invoke;
  for (const StepReport& step : report.steps) ++calls_per_invoke[{step.op, step.variant}];
  std::map<Kernel, int> calls;  // so far, in the order of the steps
  std::size_t found = 0;
  for (std::size_t s = 0; s < report.steps.size(); ++s) {
    const StepReport& step = report.steps[s];
    const Kernel kernel{step.op, step.variant};
    const int call = calls[kernel]++;
    if (session.step_operand(s, session.step_inputs(s)).desc->type != ElementType::kF32) continue;
    SCOPED_TRACE("fault in step " + std::to_string(s) + ", " + step.op + " " + step.variant);
    const FaultyTable table(step, call, calls_per_invoke[kernel]);
    FaultySession faulty(*good->compiled, table.table());
    const auto comparison = compare_steps(*faulty.fleet->session(0), report, *reference, inputs, {});
    ASSERT_TRUE(comparison) << comparison.error().message;
    ASSERT_TRUE(comparison->first_fault);
    const TensorCheck& first = comparison->checks[*comparison->first_fault];
    EXPECT_NE(std::ranges::find(first.suspects, s), first.suspects.end()) << "blamed was step " << first.step;
    for (const TensorCheck& check : comparison->checks) {
      if (std::ranges::find(check.suspects, s) == check.suspects.end()) {
        EXPECT_TRUE(check.within) << "step " << check.step;
      }
    }
    ++found;
  }
  EXPECT_GT(found, 5U);
}

INSTANTIATE_TEST_SUITE_P(Models, FaultyKernel, ::testing::Values("shape-detector", "scene-backbone", "keyword"),
                         [](const auto& model) {
                           std::string name = model.param;
                           std::erase(name, '-');
                           return name;
                         });

// Space to depth is a transpose between two reshapes: as imported, no step knows the shape of the output.
TEST(Compare, FindsAnOutputThatIsAView) {
  const io::testing::TemporaryFolder folder;
  const std::string path = folder.file("view.onnx");
  std::ofstream(path, std::ios::binary) << import::testing::GraphWriter()
                                               .input("x", {1, 2, 4, 6})
                                               .node("SpaceToDepth", {"x"}, {"y"},
                                                     {import::testing::attr("blocksize", 2)})
                                               .output("y")
                                               .model();
  const ModelSpec model{.name = "view", .path = path};
  auto placed = place_fleet({.models = {model}});
  ASSERT_TRUE(placed);
  Session& session = *placed->fleet->session(0);
  const auto inputs = random_inputs(session);
  const auto reference = record_plain_run(model, inputs);
  ASSERT_TRUE(reference) << reference.error().message;
  const auto comparison = compare_steps(session, placed->compiled->models().front(), *reference, inputs, {});
  ASSERT_TRUE(comparison) << comparison.error().message;
  ASSERT_FALSE(comparison->checks.empty());
  EXPECT_EQ(comparison->checks.back().tensor, "y");
}

TEST(Compare, TensorsOfOneNameThatDifferAreNotTakenForRight) {
  TensorSet set;
  const std::int64_t dims[] = {2};
  auto a = io::make_array(ElementType::kF32, dims);
  auto b = io::make_array(ElementType::kF32, dims);
  ASSERT_TRUE(a && b);
  set.add("x", *a);
  set.add("x", *b);
  EXPECT_NE(set.find("x"), nullptr) << "equal tensors are one";
  io::elements_of<float>(*b)[1] = 1;
  set.add("x", *b);
  EXPECT_EQ(set.find("x"), nullptr);
  set.add("x", *a);
  EXPECT_EQ(set.find("x"), nullptr);
}

TEST(Compare, NamesMayBeSanitized) {
  TensorSet set;
  const std::int64_t dims[] = {2};
  auto a = io::make_array(ElementType::kF32, dims);
  ASSERT_TRUE(a);
  set.add(sanitized("body/conv.1:0"), *a);
  EXPECT_NE(set.find("body/conv.1:0"), nullptr);
  EXPECT_EQ(set.find("body/conv.2:0"), nullptr);
}

TEST(Compare, MissingInputIsAnError) {
  const ModelSpec model = bundled("scene-head");
  auto placed = place_fleet({.models = {model}});
  ASSERT_TRUE(placed);
  const auto comparison = compare_steps(*placed->fleet->session(0), placed->compiled->models().front(), {}, {}, {});
  ASSERT_FALSE(comparison);
  EXPECT_NE(comparison.error().message.find("'features'"), std::string::npos) << comparison.error().message;
}

TEST(Difference, CountsAndMeasures) {
  float actual[] = {1, 2, 3, NAN};
  float expected[] = {1, 2.5F, -5, NAN};
  TensorDesc desc;
  desc.type = ElementType::kF32;
  desc.rank = 1;
  desc.dims[0] = 4;
  desc.set_dense_strides();
  const Difference d = difference({actual, &desc}, {expected, &desc});
  EXPECT_EQ(d.elements, 4);
  EXPECT_EQ(d.mismatches, 2);
  EXPECT_EQ(d.absolute, 8);
  EXPECT_EQ(d.relative, 8.0 / 5);
  EXPECT_FALSE(Tolerance{}.allows(d, ElementType::kF32));
  actual[0] = INFINITY;
  EXPECT_TRUE(std::isinf(difference({actual, &desc}, {expected, &desc}).absolute));
}

}  // namespace
}  // namespace bantam::diagnose
