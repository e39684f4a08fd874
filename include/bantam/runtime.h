// The device half of Bantam: open a package, place its fleet in memory that the caller gives, run.
//
//   bantam::Package package;
//   Status s = bantam::Package::open(bytes, &package);          // bytes stay where they are: mmap, flash, RAM
//   bantam::Requirements need = package.requirements();         // before any memory exists
//   bantam::Fleet* fleet = nullptr;
//   s = bantam::Fleet::place(package, arena, &fleet);           // arena: need.arena_bytes, aligned to need.alignment
//   bantam::Session* kws = fleet->find("kws");
//   std::memcpy(kws->input(0).data, features, kws->input_bytes(0));
//   s = kws->invoke();
//   const auto* scores = kws->output(0).as<std::int8_t>();
//
// Memory: everything lies in the arena (the runtime's own structures too) and in the package; nothing is allocated,
// ever, on any path. The package and the arena must outlive the fleet; to close a fleet, stop using the arena. A fleet
// that was planned for several memories (tiers) takes an arena in each, or one block for all.
// Threads: a Package may be shared. The sessions of one lane and one priority share activation memory: at most one of
// them runs at a time, an input must be filled right before the invoke that reads it, and outputs stay valid until
// another of these sessions runs. A session of a higher priority may run between two steps of one of its lane (from an
// Observer, say), and sessions of different lanes in different threads at once; who reads from a link that comes from
// another lane sees to it that its producer is not running. Outputs that are linked or bound by the caller keep their
// contents. An invoke may use the memory of its inputs, bound ones too, for results once they are read: write them anew
// each time. Linked inputs are left intact.
// Errors: Status values (bantam/status.h); after a failed invoke the session's state is unspecified until reset().
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "bantam/status.h"
#include "bantam/tensor.h"
#include "bantam/threads.h"

namespace bantam {

namespace ops {
struct OpDef;
}  // namespace ops

namespace format {
struct Package;
struct Model;
}  // namespace format

/// Operators a runtime can execute. The default is every operator of the build; a firmware passes a smaller table so
/// that the linker drops the rest.
struct OpTable {
  std::span<const ops::OpDef* const> ops;
};
OpTable default_ops() noexcept;

/// Bytes by kind. All but weights_bytes lie in the arena; arena_bytes counts them with their alignment gaps.
struct Requirements {
  std::uint64_t arena_bytes = 0;
  std::uint64_t alignment = 0;    ///< of the arena's first byte
  std::uint64_t table_bytes = 0;  ///< the runtime's structures
  std::uint64_t state_bytes = 0;  ///< values that survive from invoke to invoke
  std::uint64_t link_bytes = 0;   ///< values that flow from one session to another
  /// Values and scratch of invokes: of each lane and priority the largest session, added up.
  std::uint64_t activation_bytes = 0;
  std::uint64_t weights_bytes = 0;  ///< in the package, used where they lie
};

/// A new size for a dimension of a session.
struct DimSize {
  std::string_view name;
  std::int64_t size = 0;
};

/// A model input or output at the session's present sizes.
struct PortInfo {
  std::string_view name;
  const TensorDesc* desc = nullptr;
  std::uint64_t bytes = 0;
  Quantization quantization;
};

class Session;

/// A verified view of package bytes. Copyable; owns nothing.
class Package {
 public:
  struct Options {
    bool verify_weights = true;  ///< hash all weights; a device that trusts its flash may skip it
    OpTable ops = default_ops();
  };

  /// Verifies everything that running relies on: header, hashes, structure, shapes, offsets, and each step against its
  /// operator's own rules. `bytes` must be 64-byte aligned. Whatever the bytes are, this neither crashes nor reads
  /// outside them.
  static Status open(std::span<const std::byte> bytes, const Options& options, Package* out) noexcept;
  static Status open(std::span<const std::byte> bytes, Package* out) noexcept { return open(bytes, Options{}, out); }

  std::size_t model_count() const noexcept;
  std::string_view model_name(std::size_t model) const noexcept;
  /// What the model file said under this metadata key; empty when it said nothing. The text is not trusted.
  std::string_view model_metadata(std::size_t model, std::string_view key) const noexcept;
  /// Ports of a model before anything is placed. Require valid indices.
  std::size_t model_input_count(std::size_t model) const noexcept;
  std::size_t model_output_count(std::size_t model) const noexcept;
  PortInfo model_input(std::size_t model, std::size_t i) const noexcept;
  PortInfo model_output(std::size_t model, std::size_t i) const noexcept;
  std::size_t session_count() const noexcept;
  std::string_view session_name(std::size_t session) const noexcept;
  std::size_t session_model(std::size_t session) const noexcept;
  /// The lane the session runs in, empty for a fleet without lanes, and its priority there: a higher one preempts.
  std::string_view session_lane(std::size_t session) const noexcept;
  int session_priority(std::size_t session) const noexcept;

  /// Memories that the fleet was planned for, the fastest first; one, without a name, unless it was planned for
  /// several.
  std::size_t tier_count() const noexcept;
  std::string_view tier_name(std::size_t tier) const noexcept;

  /// Needs of the whole fleet on a target with pointers of `pointer_bytes` (this machine's by default); with several
  /// tiers, of one arena that holds them all.
  Requirements requirements(std::size_t pointer_bytes = sizeof(void*)) const noexcept;
  /// The part of it that lies in one tier. Requires tier < tier_count().
  Requirements tier_requirements(std::size_t tier, std::size_t pointer_bytes = sizeof(void*)) const noexcept;
  /// Needs of one session alone, as if it were the only one of its fleet.
  Requirements session_requirements(std::size_t session, std::size_t pointer_bytes = sizeof(void*)) const noexcept;

  // For the runtime and for reports.
  const format::Package* meta() const noexcept { return meta_; }
  const std::byte* weights() const noexcept { return weights_; }
  std::uint64_t weights_bytes() const noexcept { return weights_bytes_; }
  OpTable ops() const noexcept { return ops_; }

 private:
  const format::Package* meta_ = nullptr;
  const std::byte* weights_ = nullptr;
  std::uint64_t weights_bytes_ = 0;
  OpTable ops_{};
};

/// What an observer wants done with a step.
enum class StepDecision : std::uint8_t {
  kRun,
  kSkip,  ///< the kernel does not run: its results keep what their memory holds, or what the observer wrote there
};

/// Watches every step of a session that is about to run, for profiling and fault finding; either function may be null.
/// Operator, name, work and operands of a step are the session's step_... functions. Operands may be read and written
/// through them: before, the step's inputs are alive; after, its inputs (unless the kernel worked in place) and
/// results. Must not allocate if the caller relies on the session not allocating.
struct Observer {
  void* context = nullptr;
  StepDecision (*before)(void* context, const Session& session, std::size_t step) = nullptr;
  /// Also called for skipped steps. Anything but success interrupts: the invoke returns it, attributed to the step.
  Status (*after)(void* context, const Session& session, std::size_t step) = nullptr;
};

/// Outputs that an invoke shall compute. Outputs from the 64th on share one mark: one of them brings all.
class OutputSet {
 public:
  static constexpr OutputSet all() noexcept { return OutputSet(~std::uint64_t{0}); }
  constexpr OutputSet() noexcept = default;
  constexpr OutputSet& add(std::size_t output) noexcept {
    marks_ |= std::uint64_t{1} << (output < 63 ? output : 63);
    return *this;
  }
  constexpr std::uint64_t marks() const noexcept { return marks_; }

 private:
  constexpr explicit OutputSet(std::uint64_t marks) noexcept : marks_(marks) {}

  std::uint64_t marks_ = 0;
};

/// One model placed in an arena. Created by Fleet::place; lives in the arena. Not copyable.
class Session {
 public:
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  std::string_view name() const noexcept;
  std::size_t input_count() const noexcept { return input_count_; }
  std::size_t output_count() const noexcept { return output_count_; }
  /// Require i < input_count() / output_count().
  PortInfo input_info(std::size_t i) const noexcept;
  PortInfo output_info(std::size_t i) const noexcept;
  /// Index of the port of that name, or -1.
  int find_input(std::string_view name) const noexcept;
  int find_output(std::string_view name) const noexcept;

  /// Where the next invoke reads input i and where the last one left output i.
  Tensor input(std::size_t i) const noexcept;
  Tensor output(std::size_t i) const noexcept;

  /// Dimensions whose size may change, within limits that were fixed when the model was compiled (see
  /// ModelSpec::bounds): between invokes, or within each invoke when the model itself computes the size (how many boxes
  /// are left, say). Each starts at its bound. Require i < dim_count().
  std::size_t dim_count() const noexcept;
  std::string_view dim_name(std::size_t i) const noexcept;
  std::int64_t dim_least(std::size_t i) const noexcept;
  std::int64_t dim_bound(std::size_t i) const noexcept;
  /// True for a size that the model computes. An invoke that finds one outside its limits fails at the step that
  /// computed it; after an invoke, the sizes and the shapes of the outputs are what it found.
  bool dim_is_measured(std::size_t i) const noexcept;
  /// The present size of the dimension of that name, or -1.
  std::int64_t dim(std::string_view name) const noexcept;
  /// Runs at another size from now on: shapes and bytes of the ports change, their addresses do not. Nothing is
  /// allocated and no memory is moved; contents of inputs and outputs are lost, states are kept. Every step is verified
  /// at the new size as it was when the package was opened. After an error the session is as it was before.
  Status set_dim(std::string_view name, std::int64_t size) noexcept;
  /// Several at once, for sizes that only together make sense.
  Status set_dims(std::span<const DimSize> sizes) noexcept;

  /// Uses the caller's memory for a port from now on, aligned for its element type: at least the bytes the port has
  /// when every dimension is at its bound. It must not overlap the arena or another port's memory.
  Status bind_input(std::size_t i, void* memory, std::size_t bytes) noexcept;
  Status bind_output(std::size_t i, void* memory, std::size_t bytes) noexcept;

  /// Runs the model once.
  Status invoke() noexcept { return invoke(OutputSet::all()); }
  /// Runs only the steps that these outputs need; what is in the memory of the others is unspecified. States always
  /// advance, by the steps that they need: which outputs an invoke computes never changes what a later one gives.
  Status invoke(OutputSet outputs) noexcept;
  /// State as it was when the session was placed.
  void reset() noexcept;

  /// Threads for the kernels of this session; the count must not exceed what the package was planned for. `threads`
  /// must outlive the session. Null: the calling thread alone.
  Status set_threads(const Threads* threads) noexcept;
  /// Null removes it. Must outlive the session.
  void set_observer(const Observer* observer) noexcept { observer_ = observer; }

  /// For reports: step and operand access in terms of the package's tables.
  const format::Model& model() const noexcept { return *model_; }
  /// True for a step of control flow (If, Loop ...): it calls no kernel and observers do not see it. The steps that it
  /// skips or repeats are seen as often as they run.
  bool step_jumps(std::size_t step) const noexcept;
  std::string_view step_operator(std::size_t step) const noexcept;
  std::string_view step_variant(std::size_t step) const noexcept;
  std::string_view step_name(std::size_t step) const noexcept;
  /// Multiply-accumulate operations, 0 for operators without a measure.
  std::uint64_t step_work(std::size_t step) const noexcept;
  /// True when an invoke for these outputs runs the step.
  bool step_needed(std::size_t step, OutputSet outputs) const noexcept;
  std::size_t step_count() const noexcept { return step_count_; }
  std::size_t step_inputs(std::size_t step) const noexcept;
  std::size_t step_outputs(std::size_t step) const noexcept;
  /// Operand `i` of a step (inputs first, then outputs) as the kernel sees it: data is null for an absent one, and
  /// constants may be packed for the kernel. Requires a valid index.
  Tensor step_operand(std::size_t step, std::size_t i) const noexcept;
  bool step_operand_is_constant(std::size_t step, std::size_t i) const noexcept;

 private:
  friend class Fleet;
  friend struct SessionLayout;
  struct Kernel;
  struct Iterations;

  Session() = default;
  Tensor tensor(std::uint32_t value) const noexcept;
  /// Sets the sizes that become known where `step` steps are done.
  Status take_sizes(std::uint32_t step) noexcept;
  /// `operands`: room for those of any step. `resizable`: the model has dimensions, so that results may be empty.
  Status run_step(std::uint32_t s, Tensor* operands, bool resizable) const noexcept;
  /// Sets `s` to where the control step `*s` goes.
  Status follow(std::uint32_t* s, Iterations* iterations) const noexcept;
  Status bind(std::size_t port, void* memory, std::size_t bytes) noexcept;

  // Pointer-sized members only, then 32-bit ones: SessionLayout computes the size for other targets.
  const format::Model* model_ = nullptr;
  const format::Package* package_ = nullptr;
  const char* name_ = nullptr;
  std::byte** bases_ = nullptr;
  const Kernel* kernels_ = nullptr;
  const Threads* threads_ = nullptr;
  const Observer* observer_ = nullptr;
  const void* steps_ = nullptr;
  const void* values_ = nullptr;
  const std::uint32_t* operands_ = nullptr;
  const std::uint32_t* params_ = nullptr;
  const std::byte* weights_ = nullptr;
  std::uint32_t step_count_ = 0;
  std::uint32_t input_count_ = 0;
  std::uint32_t output_count_ = 0;
  std::uint32_t name_length_ = 0;
};

/// The sessions of a package, placed.
class Fleet {
 public:
  Fleet(const Fleet&) = delete;
  Fleet& operator=(const Fleet&) = delete;

  /// Lays out all sessions of `package` in `arena` and resets them. Fails with kArenaTooSmall (expected: the bytes
  /// needed) or kMisaligned before anything is written. Uses exactly package.requirements().arena_bytes.
  static Status place(const Package& package, std::span<std::byte> arena, Fleet** out) noexcept;
  /// The same with an arena per tier, of at least tier_requirements() each; a Status names the tier by its index.
  static Status place(const Package& package, std::span<const std::span<std::byte>> arenas, Fleet** out) noexcept;

  std::size_t size() const noexcept { return count_; }
  Session* session(std::size_t i) noexcept { return sessions_[i]; }
  /// The session of that name, or null.
  Session* find(std::string_view name) noexcept;

 private:
  Fleet() = default;
  static Status place_at(const Package& package, std::byte* const* tiers, Fleet** out) noexcept;

  Session** sessions_ = nullptr;
  std::size_t count_ = 0;
};

}  // namespace bantam
