// A model with everything decided: order, kernels, and a place for every byte. The writer turns it into a package; the
// reports read it. Host only; values.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "bantam/compiler.h"
#include "compiler/narrow_weights.h"
#include "compiler/select.h"
#include "compiler/storage.h"
#include "graph/graph.h"
#include "package/format.h"
#include "plan/solve.h"

namespace bantam::compiler {

/// How one plan of a graph differs from another.
struct PlanChoice {
  bool by_memory = false;  ///< nodes in an order that needs little memory, not in the model's
  bool concat_views = true;
  bool in_place = true;
  bool strips = false;  ///< storages that fill or empty row by row are placed so (strips.h)
};

/// Nodes of a graph in bands (patch_rows.h) whose placement is searched; more are placed greedily.
inline constexpr std::size_t kMaxSearched = 1000;

struct PlanOptions {
  Backend backend = Backend::kFast;
  std::vector<BackendRule> backends{};  ///< for parts of the model
  std::vector<KernelRule> kernels{};    ///< for some nodes
  StoreTypes stores{};                  ///< in which type weights are stored
  std::set<std::string> sparing{};      ///< nodes that get the kernel with the least scratch (KernelPolicy)
  int threads = 1;
  Target target{};
  /// Ports whose memory somebody else provides (a fleet link): not part of the activations, inputs left intact.
  std::vector<bool> external_inputs{};  ///< by port; missing entries are false
  std::vector<bool> external_outputs{};
  /// The graph at all sizes at which the plan must hold, the graph itself first; empty: it has one size.
  std::vector<SizedGraph> instances{};
  std::vector<Dimension> dimensions{};
  bool whole_blocks = false;           ///< one block per buffer, for those who move blocks (block_accesses.h)
  std::optional<PlanChoice> choice{};  ///< absent: several are tried, the smallest plan counts
  /// Windows may lie where their states do (windows.h): not where others use the activations too, and not the states.
  bool windows = true;
  bool quick = false;       ///< greedy placement only: for a plan that is compared with many others
  std::int64_t enough = 0;  ///< bytes of activations: no plan smaller than that is looked for
  /// Bytes of activations: ways that need as many are not followed up, and say their lower bound only.
  std::int64_t hopeless = std::numeric_limits<std::int64_t>::max();
  std::int64_t search_steps = plan::kDefaultSearchSteps;  ///< for a placement that meets the lower bound
  std::optional<double> seconds{};                        ///< to search for; absent: steps are counted instead
  std::function<void(const std::string&)> progress{};     ///< see CompileOptions
};

/// How kernels are chosen for a graph of one size.
KernelPolicy kernel_policy(const PlanOptions& options);

/// Are all sizes known, and one each?
inline bool has_one_size(const graph::Graph& graph, const PlanOptions& options) {
  return options.instances.empty() && options.dimensions.empty() && graph.measured.empty();
}

/// Where a value lies: a slot of the package format and an offset within it. Constants are placed by the writer.
struct ValuePlace {
  std::uint32_t slot = 0;
  std::int64_t offset = 0;
  TensorDesc desc;  ///< with the strides it has there
};

/// The model at one size: its graph, and where its values lie.
struct PlannedInstance {
  SizedGraph sized;
  std::vector<ValuePlace> places;  ///< by value
};

struct PlannedStep {
  graph::NodeId node = graph::kNone;
  const ops::KernelVariant* variant = nullptr;  ///< null for a step that jumps
  std::uint64_t outputs = 0;                    ///< that need it, see output_marks
  std::string fallback;                         ///< see Selection
  CopyReason copies = CopyReason::kNone;
  std::int64_t scratch_offset = 0;
  std::int64_t scratch_bytes = 0;
  std::uint32_t scratch_tier = 0;
  std::int32_t scratch_block = -1;  ///< index into PlannedModel::blocks
  /// Index into PlannedModel::streams of what the step copies for its node, whose own step follows; -1: it runs the
  /// node.
  std::int32_t stream = -1;
};

/// A constant operand that is copied into the arena (weight_streams.h): into the activations, right before the step
/// that reads it, or behind the state, when the session is placed.
struct PlannedStream {
  graph::NodeId node = graph::kNone;
  std::int32_t input = 0;
  std::int64_t bytes = 0;   ///< as the kernel wants them
  bool packed = false;      ///< they differ from the graph's
  std::int64_t reads = 0;   ///< of each byte, by the step
  std::int32_t block = -1;  ///< index into PlannedModel::blocks; -1: resident
  std::int64_t offset = 0;  ///< of a resident one, within the state memory
};

struct PlannedPort {
  std::string name;
  graph::ValueId value = graph::kNone;
  bool external = false;
  std::int64_t default_offset = 0;  ///< within the activations, unless external
  std::int64_t bytes = 0;
  std::uint32_t tier = 0;
  std::int32_t block = -1;  ///< index into PlannedModel::blocks, unless external
};

/// A dimension whose size the model computes.
struct PlannedMeasure {
  std::size_t dimension = 0;
  graph::ValueId value = graph::kNone;  ///< that holds it
  graph::NodeId by = graph::kNone;      ///< the node that writes it; kNone: known when the invoke begins
};

struct PlannedModel {
  graph::Graph graph;  ///< flat (compiler/flatten.h), nodes in execution order
  ControlFlow flow;
  std::vector<PlannedStep> steps;
  std::vector<ValuePlace> places;  ///< by value
  std::vector<Dimension> dimensions;
  std::vector<PlannedInstance> instances;  ///< for a model with dimensions; the first is at the bounds
  std::vector<PlannedMeasure> measures;    ///< in the order of their nodes
  std::vector<PlannedPort> inputs;
  std::vector<PlannedPort> outputs;
  std::vector<std::int64_t> state_offsets;  ///< by state, within the state or swap memory
  std::vector<bool> state_swapped;          ///< by state
  std::int64_t state_bytes = 0;
  std::int64_t swap_bytes = 0;
  std::uint32_t state_tier = 0;          ///< until compiler/memories.h has chosen, the first
  std::int64_t activation_bytes = 0;     ///< in the first tier
  std::vector<std::int64_t> tier_bytes;  ///< in the tiers behind it; none until compiler/memories.h has chosen
  std::int64_t lower_bound_bytes = 0;    ///< no placement of these buffers in this order can be smaller
  std::int64_t peak_step = 0;            ///< a step at which lower_bound_bytes are alive
  std::int64_t copied_bytes = 0;         ///< by copies between tiers that compiler/memories.h added
  std::int64_t moved_bytes = 0;          ///< by steps that might have been views (StorageMap::copies)
  std::int64_t scratch_bytes = 0;        ///< the largest scratch of a step; part of activation_bytes
  std::int64_t added_scratch_bytes = 0;  ///< of activation_bytes, beyond what buffers need, see compiler/scratch.h
  bool has_strips = false;               ///< some storages were placed strip by strip
  int threads = 1;
  std::string method;                  ///< which planner, order and sharing won
  std::int64_t order_bound_bytes = 0;  ///< no order has a smaller lower bound
  std::vector<PlanTrial> trials;       ///< that led to this plan
  std::vector<PlanBlock> blocks;
  std::vector<PlannedStream> streams;        ///< in the order of their steps
  std::vector<PlannedStream> residents;      ///< weights that placing the session copies
  std::vector<std::int64_t> useful_scratch;  ///< by step: what makes its kernel fastest, see compiler/scratch.h
  std::vector<std::int32_t> value_blocks;    ///< by value: index into blocks, or -1
};

/// The package's slot of a model's activations in a tier (package/tables.h: tier_slot).
inline std::uint32_t activation_slot(const PlannedModel& model, std::uint32_t tier) {
  const auto ports = static_cast<std::uint32_t>(model.inputs.size() + model.outputs.size());
  return tier == 0 ? std::uint32_t{format::kActivations} : format::kFirstPort + ports + tier - 1;
}

/// Plans a verified graph. Tries several orders and sharings and keeps the smallest.
Result<PlannedModel> plan_model(graph::Graph graph, const PlanOptions& options);

/// The model's graph whose nodes have the kernels that the model runs. What is planned from a changed copy of it
/// computes the same to the bit: other kernels might round otherwise.
graph::Graph with_kernels(const PlannedModel& model);

}  // namespace bantam::compiler
