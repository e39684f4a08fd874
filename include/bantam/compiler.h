// The host half of Bantam: model files in, one planned package out.
//
//   bantam::FleetSpec fleet;
//   fleet.models.push_back({.name = "kws", .path = "kws.onnx"});
//   auto compiled = bantam::compile(fleet);
//   if (!compiled) { std::cerr << compiled.error().message; return 1; }
//   // compiled->package() goes to a file, to flash, or straight to bantam::Package::open.
//
// Errors name file, node and tensor, what was found and what was expected, and what to do. Nothing throws. Functions
// are re-entrant; a Compiled belongs to one thread at a time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bantam/error.h"
#include "bantam/runtime.h"
#include "bantam/target.h"
#include "bantam/tensor.h"

namespace bantam {

/// Who computes. An operator that a backend has no kernel for falls back to the next one that has; the plan says why.
enum class Backend : std::uint8_t {
  kFast,       ///< the fastest kernel of this machine's processor that supports each call
  kReference,  ///< plain kernels, for finding faults
};

/// Gives part of a model another backend. `pattern` is the name of an output, meaning what only that output needs, or a
/// node's name in which * and ? stand for anything.
struct BackendRule {
  std::string pattern;
  Backend backend = Backend::kFast;
};

/// Gives the nodes whose names fit `pattern` (as above) a kernel, by the name that `bantam bench --kernels` lists,
/// where it supports them. What `bantam tune` finds is of this form.
struct KernelRule {
  std::string pattern;
  std::string kernel;
};

/// Says in which type a package stores the f32 weights of the nodes whose names fit `pattern` (as above), where their
/// kernels can: f32, f16, bf16, i8 (a scale per output channel) or i4 (a scale per 32 weights of one). Results are
/// those of the weights so rounded; activations stay f32. Nodes that no rule fits have f16 or bf16 where that changes
/// no weight of theirs, as in models that were exported so.
struct StoreRule {
  std::string pattern;
  ElementType type = ElementType::kF32;
  /// With f16: convolutions and products of matrices also compute in 16 bits, on processors that can (Arm's FEAT_FP16,
  /// AVX512-FP16), where that is predicted to be faster. Up to 96 products are summed so, these sums in f32; rows of
  /// activations are scaled, so that none overflows. What it does to results and times: README.md, docs/performance.md.
  bool half_arithmetic = false;
};

/// A model file and what the user fixes about it.
struct ModelSpec {
  std::string name{};  ///< empty: the file's stem
  std::filesystem::path path{};
  std::map<std::string, std::int64_t> dims{};  ///< symbolic dimension -> value
  /// symbolic dimension -> largest size. The plan is made for the largest; Session::set_dim chooses any size up to it.
  /// Sizes that the model computes from data are dimensions too (what a NonZero finds: "<its output>.count"; an integer
  /// that a shape is made from: "<its name>.size"). Every invoke sets them itself. Where nothing else limits them, they
  /// need a bound here; where the operands do, a smaller one saves memory.
  std::map<std::string, std::int64_t> bounds{};
  /// symbolic dimension -> formula of sizes in `dims` and `bounds`, such as "(T - 3) / 4 + 64": a dimension that is not
  /// free once the others are chosen, like the length of a mask over a cache and what a chunk of T frames becomes
  std::map<std::string, std::string> formulas{};
  std::map<std::string, std::vector<std::int64_t>> shapes{};  ///< input -> whole shape
  std::map<std::string, std::vector<double>> values{};        ///< input -> constant elements
  /// input -> the most that its elements count, a number or a symbolic dimension: where the model computes a size from
  /// them (a Range up to the longest length, say), that size is the largest one. Results must not depend on what lies
  /// beyond the real counts: models mask it.
  std::map<std::string, std::string> counts{};
  /// input -> output: the output of one invoke is the input of the next, kept as state.
  std::vector<std::pair<std::string, std::string>> states{};
  /// node (a Loop, a WHILE) -> the most iterations of one run, where the model itself sets no limit. An invoke that
  /// would run more fails.
  std::map<std::string, std::int64_t> iterations{};
  /// Outputs or intermediate tensors that are wanted, in this order; what only others need is left out of the plan,
  /// inputs and states included. Empty: all outputs.
  std::vector<std::string> outputs{};
  /// Intermediate tensors that become outputs too, so that their memory is not used for anything else.
  std::vector<std::string> keep{};
  std::optional<Backend> backend{};     ///< absent: CompileOptions::backend
  std::vector<BackendRule> backends{};  ///< for parts of the model; of several that fit, the longest pattern counts
  std::vector<KernelRule>
      kernels{};  ///< of equal patterns, the last counts; they come before backends, and after what a budget demands
  std::vector<StoreRule> stores{};  ///< of several that fit a node, the longest pattern counts
  /// symbolic dimension -> sizes: the model is planned once for each of them (each combination, for several
  /// dimensions), and every plan is a model of its own, "name@T:160", whose sessions need no more than that size does.
  /// The package has the weights once.
  std::map<std::string, std::vector<std::int64_t>> sizes{};
  std::string lane{};  ///< of its sessions, unless they say otherwise
  int priority = 0;    ///< likewise
  /// The application gives every input memory of its own (Session::bind): none is among the activations, and none is
  /// written to.
  bool external_inputs = false;
};

/// A placed instance of a model. Several sessions of one model share its weights.
///
/// A lane is one thread of execution. Its sessions of one priority run one after another and share activations; one of
/// a higher priority may run between two steps of a lower one, and sessions of different lanes may run at the same
/// time: the activations of all these are disjoint. States, tables and links are never shared.
struct SessionSpec {
  std::string name;
  std::string model;
  std::optional<std::string> lane{};  ///< absent: the model's
  std::optional<int> priority{};      ///< absent: the model's; a higher one preempts
};

/// "Output of one session is the input of another": one buffer, no copy.
struct LinkSpec {
  std::string from_session;
  std::string output;
  std::string to_session;
  std::string input;
};

/// A memory of the device: a tier.
struct MemorySpec {
  std::string name;
  std::uint64_t bytes = 0;  ///< that the fleet's arena there may have; 0: no arena, it only holds the package
  double cost = 1;          ///< of reading or writing a byte, relative to the other memories
};

struct FleetSpec {
  std::vector<ModelSpec> models{};
  std::vector<SessionSpec> sessions{};  ///< empty: one session per model, of its name
  std::vector<LinkSpec> links{};
  /// Bytes of arena that the plan must not exceed: the compiler goes on reducing it until it fits (ReductionReport).
  std::optional<std::uint64_t> budget{};
  /// Memories to plan for; what is accessed most lies in the cheapest that has room. Empty: one arena.
  std::vector<MemorySpec> memories{};
  std::string weights{};  ///< the memory that holds the package: StreamReport; empty: its accesses are not counted
  /// Placing a session copies weights from there into what is left of the memory that has its state, those first that
  /// are read most; no invoke copies these. For devices whose fast memory is larger than what the sessions need.
  bool resident = false;
};

struct CompileOptions {
  Backend backend = Backend::kFast;
  int threads = 1;  ///< largest thread count an invoke will use
  /// Processors that OpenFleet's threads are bound to, one each, in turn; the calling thread has the first and stays
  /// there. Empty: wherever the system puts them.
  std::vector<int> cpus{};
  Target target{};           ///< the machine that will run the package
  std::string stop_after{};  ///< name of the last pass to run; empty: all
  /// Layers whose values are larger than the caches are computed in bands of rows where that is predicted to be faster.
  bool bands = true;
  bool best_effort = false;  ///< a budget that nothing meets gives the smallest plan found, not an Error
  /// Seconds that planning one model may go on for while its plan is not known to be the smallest. 0: the default mode,
  /// which counts steps instead and gives the same plan on every machine.
  double plan_seconds = 0;
  /// Called now and then, from the caller's thread, with one line about what planning does.
  std::function<void(const std::string&)> progress{};
};

/// One buffer of a model's activations, for reports and maps.
struct PlanBlock {
  enum class Kind : std::uint8_t { kInput, kOutput, kActivation, kScratch, kWeights };
  std::string name;
  Kind kind = Kind::kActivation;
  std::string detail;       ///< operators and shapes
  std::int64_t lower = 0;   ///< first step alive
  std::int64_t upper = 0;   ///< first step no longer alive
  std::int64_t offset = 0;  ///< within the activations of its tier
  std::int64_t bytes = 0;
  std::uint32_t tier = 0;           ///< index into Compiled::memories
  std::int64_t accessed_bytes = 0;  ///< read or written there in one invoke; counted when planning for memories
};

/// What an operand of a step, or an output, is in the source model.
struct OperandReport {
  std::string tensor{};  ///< its name there; empty for constants, and for values that the compiler made
  /// operand = transpose(tensor, layout), where -1 is an axis of one element that the tensor may lack; empty: the same
  /// axes.
  std::vector<int> layout{};
  std::vector<std::size_t> steps{};  ///< indices of the steps whose results it is, or is a view of
};

struct StepReport {
  std::string name;      ///< the model's node
  std::string origin;    ///< the model's operator(s)
  std::string op;        ///< core operator
  std::string variant;   ///< kernel
  std::string fallback;  ///< why the kernel is not of the backend that was asked for; empty when it is
  std::string copies;    ///< why it moves values, some at least, where a view might have done; empty when it does not
  std::vector<std::string> alternatives;  ///< other fast kernels that support the call
  std::int64_t index = 0;                 ///< position in the plan's time
  std::string output;                     ///< "f32[1,8,8,32]"
  std::int64_t output_bytes = 0;
  std::int64_t weights_bytes = 0;
  ElementType stored_as = ElementType::kNone;  ///< what its f32 weights were narrowed to (StoreRule); kNone: nothing
  std::int64_t narrowed_bytes = 0;             ///< of these weights in f32, less what they take now
  float narrowing_error = 0.0F;                ///< the largest change of one of them, relative to the largest of them
  std::int64_t scratch_bytes = 0;
  std::int64_t alive_bytes = 0;  ///< everything alive at this step
  std::int64_t work = 0;         ///< multiply-accumulates
  double predicted_us = 0;       ///< one run by one thread of the target; see bantam::Machine
  /// Inputs, then outputs, as Session::step_operand counts them; none for a step that jumps.
  std::vector<OperandReport> operands;
};

/// A dimension whose size may change (ModelSpec::bounds).
struct DimensionReport {
  std::string name;
  std::int64_t least = 0;
  std::int64_t bound = 0;
  bool measured = false;  ///< the model computes the size; else the application sets it
  std::string set_by;     ///< the model's node that computes it; empty: the size is among the inputs
};

/// One way of planning that was looked at: an order with a sharing, or a reduction that a budget asked for.
struct PlanTrial {
  std::string name;
  std::int64_t activation_bytes = 0;
  std::int64_t lower_bound_bytes = 0;  ///< of these buffers in this order
  std::int64_t work = 0;               ///< multiply-accumulates
  bool kept = false;                   ///< it became the plan
};

/// One step that made a plan smaller at the price of time.
struct ReductionReport {
  std::string what;
  std::string layer;              ///< that was in the way
  std::int64_t before_bytes = 0;  ///< activations
  std::int64_t after_bytes = 0;
  std::int64_t work_added = 0;    ///< multiply-accumulates per invoke
  std::int64_t bytes_copied = 0;  ///< more than before, per invoke
  /// Written to memory and fetched from there before, in the caches now, per invoke: what it was done for. 0: it was
  /// done for the budget.
  std::int64_t bytes_spared = 0;
};

/// Weights that are copied into a memory of the arena: by every invoke, right before the layer that reads them, or, if
/// they are resident, when the session is placed.
struct StreamReport {
  std::string layer;
  std::int64_t bytes = 0;
  std::int64_t reads = 0;   ///< of each byte, by the layer
  std::uint32_t tier = 0;   ///< index into Compiled::memories; of residents, the one that has the session's state
  std::int64_t offset = 0;  ///< within the model's activations there, or within its state
};

struct ModelReport {
  std::string name;
  std::int64_t activation_bytes = 0;
  std::int64_t lower_bound_bytes = 0;  ///< of the activations, in this order and with this sharing
  std::int64_t scratch_bytes = 0;      ///< largest of one step, within the activations
  /// Part of activation_bytes that no buffer needs, for scratch that makes kernels faster: of what bands save.
  std::int64_t added_scratch_bytes = 0;
  std::int64_t state_bytes = 0;    ///< both copies of alternating states included
  std::int64_t copied_bytes = 0;   ///< by the copies between memories that the plan added
  std::int64_t weights_bytes = 0;  ///< that this model uses; may be shared with others
  std::int64_t peak_step = 0;
  /// No order has a lower_bound_bytes below this: where the two are equal, the order is optimal.
  std::int64_t order_bound_bytes = 0;
  std::string method;
  std::vector<PlanTrial> trials;  ///< in the order in which they were made
  std::vector<StepReport> steps;
  std::vector<OperandReport> outputs;  ///< by output port
  std::vector<PlanBlock> blocks;
  std::vector<DimensionReport> dimensions;
  std::vector<StreamReport> streams;        ///< in the order of their layers
  std::vector<StreamReport> residents;      ///< part of state_bytes
  std::vector<ReductionReport> reductions;  ///< in order; none without a budget that asked for them
  std::vector<std::string> tried;           ///< reductions that gained nothing
  /// Predicted for the layers that multiply bytes, and for the same in f32: where the first is more, int8 saves memory
  /// on this target, not time.
  double integer_us = 0;
  double float_us = 0;
};

/// A session in the plan of its fleet.
struct SessionReport {
  std::string name;
  std::size_t model = 0;  ///< index into Compiled::models
  std::string lane;
  int priority = 0;
  std::uint64_t activation_offset = 0;  ///< of its area within the activations
  std::uint64_t activation_bytes = 0;   ///< that it uses of it
};

/// A memory that the fleet was planned for.
struct MemoryReport {
  MemorySpec memory;
  Requirements need{};               ///< of the fleet's arena there
  std::uint64_t accessed_bytes = 0;  ///< in one invoke of every session: operands of steps, scratch, states, links
};

/// Bytes accessed in one invoke of every session, each times the cost of the memory where it lies. Where the fleet
/// names the weights' memory, they count as often as kernels read them: once per tile of rows or step in time.
struct AccessCost {
  double planned = 0;
  double all_fastest = 0;  ///< were everything in the cheapest memory, the weights too
  double all_slowest = 0;  ///< and in the dearest that may hold an arena, the weights where they lie
  double weights = 0;      ///< the package's part of `planned`
  double unstreamed = 0;   ///< what `planned` would be if no weights were copied, neither streamed nor resident
};

/// A compiled fleet: the package image and what the plan decided.
class Compiled {
 public:
  /// 64-byte aligned; ready for Package::open or for a .bantam file.
  std::span<const std::byte> package() const noexcept;
  /// On the target that the fleet was compiled for.
  const Requirements& requirements() const noexcept { return requirements_; }
  /// What the sessions would need each on its own, added up.
  std::uint64_t separate_bytes() const noexcept { return separate_bytes_; }
  const std::vector<ModelReport>& models() const noexcept { return models_; }
  const std::vector<SessionReport>& sessions() const noexcept { return sessions_; }
  /// By tier: those of FleetSpec::memories that have an arena, the cheapest first. Empty without memories.
  const std::vector<MemoryReport>& memories() const noexcept { return memories_; }
  const AccessCost& access_cost() const noexcept { return access_cost_; }
  /// Sum over all models of nothing but lower bounds: see ModelReport. The arena's own bound: state, tables, links and
  /// of each lane and priority the largest lower bound of a session.
  std::uint64_t lower_bound_bytes() const noexcept { return lower_bound_bytes_; }

 private:
  friend class FleetCompiler;
  std::shared_ptr<const void> owner_;
  std::span<const std::byte> package_;
  Requirements requirements_;
  std::uint64_t separate_bytes_ = 0;
  std::uint64_t lower_bound_bytes_ = 0;
  std::vector<ModelReport> models_;
  std::vector<SessionReport> sessions_;
  std::vector<MemoryReport> memories_;
  AccessCost access_cost_;
};

/// Imports, optimises, plans and packs. With a budget that is too small the Error says the smallest arena that works
/// and which model and layer need it.
Result<Compiled> compile(const FleetSpec& fleet, const CompileOptions& options = {});

}  // namespace bantam
