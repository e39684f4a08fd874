// Decides which values share storage: views, results written in place, states updated where they lie.
//
// A *storage* is one buffer of the plan; each value that needs memory is a *member* of one storage, at a byte offset
// and with strides. Two members may share bytes when they never hold different contents at the same time: one is a view
// of the other (same contents), or the earlier one is dead when the later one is written, where "dead at the very step
// that writes" counts only if the kernel's footprint permits overwriting that operand: in its place, or, where asked
// for, so far behind the result's first byte that the kernel never writes what it has yet to read. Every merge is
// checked pair by pair against that rule, so the order in which merges are tried affects only how much is saved.
//
// An *anchored* storage has a place that the plan cannot choose freely: a model input or output (the caller may bind
// memory of its own to it) or a state. Two anchored storages never merge, except a state's next value with its present
// one, which is the update in place, and, where asked for, a window with the state that it begins with.
// For a model with dimensions every rule is checked at many sizes, the least and the bounds among them. Offsets and
// strides that follow no expression of the sizes (size_fit.h) are not used: such values get storage of their own.
// Control flow (flatten.h) adds to the rule: what a loop reads and did not make lives to the loop's end, and values of
// opposite branches never live together. Values that are the same bytes by control flow share storage before anything
// else does, and the copies between them are left out where the rule permits.
// Times: step s of the execution order is the half-open interval [s, s + 1).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/composites.h"
#include "compiler/flatten.h"
#include "compiler/sized_model.h"
#include "graph/graph.h"

namespace bantam::compiler {

enum class StorageKind : std::uint8_t {
  kActivation,
  kInput,      ///< index = input port
  kOutput,     ///< index = output port
  kState,      ///< index = state; read and written in place
  kSwapRead,   ///< index = state; what this invoke reads ...
  kSwapWrite,  ///< ... and the other copy, which it writes
};

struct Storage {
  StorageKind kind = StorageKind::kActivation;
  std::int32_t index = -1;
  std::int64_t bytes = 0;
  std::int64_t room = 0;   ///< bytes that a state may grow to; 0: its own
  std::int64_t lower = 0;  ///< alive in [lower, upper); the whole run for states
  std::int64_t upper = 0;
  std::vector<graph::ValueId> members;  ///< the first is the one the storage was made for
  /// Where results overlap operands: what is needed at which steps. Empty: all bytes from lower to upper.
  std::vector<Part> parts;
};

/// Where a value lies within its storage, at one size.
struct Extent {
  std::int64_t offset = 0;  ///< bytes
  TensorDesc desc;          ///< with the strides it has there
};

/// The same, at the bounds and, for models with dimensions, at every size.
struct Member : Extent {
  std::int32_t storage = -1;    ///< -1: a constant, or a value nobody needs
  std::vector<Extent> resized;  ///< by StorageOptions::instances, from the second on

  const Extent& at(std::size_t instance) const { return instance == 0 ? *this : resized[instance - 1]; }
  Extent& at(std::size_t instance) { return instance == 0 ? *this : resized[instance - 1]; }
};

/// Why a step moves values that might have been views.
enum class CopyReason : std::uint8_t {
  kNone,       ///< it moves nothing
  kElements,   ///< the result's rows do not lie in the operand so
  kConstant,   ///< an operand is a constant
  kTwice,      ///< an operand is needed in two places
  kAnchored,   ///< an operand or the result is an input, an output or a state, in memory of its own
  kPart,       ///< an operand is a part of another value, or has views that are dense
  kDense,      ///< the result is an output, or has views that need it dense
  kKernel,     ///< a kernel that reads or writes it does not take the strides
  kOccupied,   ///< the memory has other contents then
  kPreferred,  ///< the plan needs no more, or less, with a copy
};

/// "a kernel does not take the strides"; empty for kNone.
std::string_view describe(CopyReason reason);

struct StorageOptions {
  bool concat_views = true;         ///< let operands of a concat or pad be written straight into its result
  std::vector<bool> other_views{};  ///< by node: treated the other way than concat_views says; missing: no
  /// By node: a concat's result lies where its first operand does, a state, which gets room for it; missing: no.
  std::vector<bool> windows{};
  bool in_place = true;
  std::vector<bool> apart{};     ///< by node: its results lie over no operand; missing: no
  std::vector<bool> overlaps{};  ///< by node: its result may overlap its operand, if its kernel permits; missing: no
  std::vector<bool> preserved_inputs;  ///< by input port: the invoke must leave its contents intact
  int threads = 1;
  /// The graph at all sizes at which the sharing must hold, the graph itself first; empty: it has one size.
  std::span<const SizedGraph> instances{};
  /// By dimension: the node that gives a measured size, -1 for one that the invoke begins with; nothing for others.
  std::vector<std::optional<graph::NodeId>> measured_by{};
  const ControlFlow* flow = nullptr;  ///< of a flat graph, which has one size; null: none
};

struct StorageMap {
  std::vector<Storage> storages;
  std::vector<Member> members;  ///< by value
  std::vector<bool> elided;     ///< by node: its result is a view, no kernel runs
  /// By node: bit i set if operand i lies within the result where the kernel leaves it (ops::Footprint::within).
  std::vector<std::uint64_t> within;
  std::vector<CopyReason> copies;  ///< by node that could have been a view, and is not or not for all operands
};

/// `variants` is by node, null for nodes of control flow; a view is made only where the chosen variants of all readers
/// and writers support its strides.
StorageMap map_storage(const graph::Graph& graph, const std::vector<const ops::KernelVariant*>& variants,
                       const StorageOptions& options);

}  // namespace bantam::compiler
