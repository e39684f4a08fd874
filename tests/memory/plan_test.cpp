// Plans against their bounds, on every model there is: the arena equals the lower bound of its order, or the report
// says which bound is missed and by how much.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "bantam/compiler.h"
#include "base/testing/sanitizers.h"
#include "support/models.h"

namespace bantam::testing {
namespace {

/// All models as they are used, also those whose outputs no reference of the test lists fits.
std::vector<ModelSpec> every_model() {
  std::vector<ModelSpec> specs;
  for (const TestModel& model : sampled(all_models())) specs.push_back(model.spec());
  // Planning them all takes minutes where every access is watched.
  if (!have_shared_models() || kSanitized) return specs;
  const auto add = [&](const char* file, std::map<std::string, std::int64_t> dims) {
    specs.push_back({.name = file, .path = shared_folder() / file, .dims = std::move(dims)});
  };
  add("basic-pitch.onnx", {{"unk__749", 1}});
  add("dnsmos-p808.onnx", {{"N", 1}});
  add("yunet-n-320-qdq-int8.onnx", {});
  add("silero-vad-op18-ifless.onnx", {{"batch", 1}, {"sequence", 512}});
  return specs;
}

class PlanTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!have_shared_models()) fmt::print("{}\n", kNoSharedModels);
  }
};

TEST_F(PlanTest, ArenasMeetTheirLowerBounds) {
  std::int64_t planned = 0;
  std::int64_t bounds = 0;
  for (const ModelSpec& spec : every_model()) {
    SCOPED_TRACE(spec.name);
    const auto compiled = compile({.models = {spec}});
    ASSERT_TRUE(compiled) << compiled.error().message;
    const ModelReport& model = compiled->models().front();
    EXPECT_GE(model.activation_bytes, model.lower_bound_bytes);
    EXPECT_GE(model.lower_bound_bytes, model.order_bound_bytes);
    const auto kept = std::ranges::count(model.trials, true, &PlanTrial::kept);
    EXPECT_EQ(kept, 1);
    for (const PlanTrial& trial : model.trials) EXPECT_GE(trial.activation_bytes, model.activation_bytes);
    if (model.activation_bytes > model.lower_bound_bytes)
      fmt::print("{}: {} bytes, {} above the lower bound of its order\n", spec.name, model.activation_bytes,
                 model.activation_bytes - model.lower_bound_bytes);
    planned += model.activation_bytes;
    bounds += model.lower_bound_bytes;
  }
  fmt::print("activations of all models: {} bytes, lower bounds: {} bytes, {:.4f} x\n", planned, bounds,
             static_cast<double>(planned) / static_cast<double>(bounds));
  EXPECT_LE(static_cast<double>(planned), 1.01 * static_cast<double>(bounds));
}

TEST_F(PlanTest, FleetOfAllModelsNeedsItsStatesTablesAndTheLargestPlan) {
  FleetSpec fleet;
  fleet.models = every_model();
  const auto compiled = compile(fleet);
  ASSERT_TRUE(compiled) << compiled.error().message;
  const Requirements& need = compiled->requirements();
  std::int64_t largest = 0;
  for (const ModelReport& model : compiled->models()) largest = std::max(largest, model.activation_bytes);
  const std::uint64_t parts =
      need.state_bytes + need.table_bytes + need.link_bytes + static_cast<std::uint64_t>(largest);
  const double ratio = static_cast<double>(need.arena_bytes) / static_cast<double>(parts);
  fmt::print("fleet of {} models: {} bytes, states, tables and the largest plan: {} bytes, {:.4f} x; separately {}\n",
             fleet.models.size(), need.arena_bytes, parts, ratio, compiled->separate_bytes());
  EXPECT_LE(ratio, 1.02);
}

}  // namespace
}  // namespace bantam::testing
