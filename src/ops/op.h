// The contract of a core operator: one OpDef per folder src/ops/<family>/<op>/, one row in ops.inc.
//
// An operator answers questions, each a plain function: which shapes come out (`infer`), whether a result is merely a
// view (`output_view`, `input_view`), how much it computes (`work`), and, per kernel variant, whether the variant
// applies (`supports`), what it needs besides its operands (`footprint`), how its constant operands are laid out
// (`packed_bytes`, `pack`) and what it computes (`run`). The compiler asks on the host; the runtime asks again when it
// verifies a package, so an answer must depend on nothing but the arguments.
//
// Everything here is freestanding: no allocation, no exceptions, no static constructors. All functions are re-entrant.
// Phases: `infer` and `supports` validate with messages; `run` checks only what depends on data (indices, divisors),
// because a step that was verified once has the shapes that `infer` accepted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "bantam/status.h"
#include "bantam/tensor.h"
#include "bantam/threads.h"

namespace bantam::ops {

inline constexpr int kMaxInputs = 64;
inline constexpr int kMaxOutputs = 8;

/// Alignment that kernels may assume for constants and scratch, in bytes. Values in the arena are aligned for their
/// element type only: they may be views, and a small arena has no room for padding.
inline constexpr std::size_t kAlignment = 64;

/// An element type as a parameter member: four bytes, so that parameter structs have no padding.
struct ElementType32 {
  std::int32_t value = 0;

  constexpr ElementType32() = default;
  constexpr ElementType32(ElementType type) : value(static_cast<std::int32_t>(type)) {}  // NOLINT: a plain conversion
  constexpr operator ElementType() const noexcept {                                      // NOLINT
    return value >= 0 && value < static_cast<std::int32_t>(ElementType::kCount) ? static_cast<ElementType>(value)
                                                                                : ElementType::kNone;
  }
};

/// A short list of integers inside operator parameters (axes, permutations, starts ...). Unused entries are zero.
struct IntList {
  std::int32_t size = 0;
  std::int32_t v[kMaxRank] = {};

  constexpr std::int32_t operator[](int i) const noexcept { return v[i]; }
};

/// Describes one member of a parameter struct, so that parameters can be printed, parsed, compared and checked without
/// knowing the operator. Parameter structs are trivially copyable, contain only 4-byte members and IntLists (hence no
/// padding), default to the operator's defaults, and are stored verbatim in packages.
struct ParamField {
  enum class Kind : std::uint8_t { kI32, kF32, kBool, kEnum, kIntList, kElementType };

  std::string_view name;
  Kind kind = Kind::kI32;
  std::uint32_t offset = 0;                         ///< offsetof the member, which is an i32 for kBool and kEnum
  std::uint32_t count = 1;                          ///< C array length; 1 except for fixed arrays such as pads[4]
  std::span<const std::string_view> enumerators{};  ///< kEnum: the name of each value, from 0
};

/// One application of an operator, as its compile-time functions see it. `inputs[i].data` is set only when operand i is
/// a constant; an absent optional operand has desc->type kNone. `outputs[i].data` is null; its desc is what `infer`
/// produced. Strides may be those of a view; shapes are what matters except for `supports`.
struct OpCall {
  const void* params = nullptr;
  std::span<const Tensor> inputs;
  std::span<const Tensor> outputs;

  template <typename P>
  const P& as() const noexcept {
    return *static_cast<const P*>(params);
  }
  const TensorDesc& in(int i) const noexcept { return *inputs[static_cast<std::size_t>(i)].desc; }
  const TensorDesc& out(int i = 0) const noexcept { return *outputs[static_cast<std::size_t>(i)].desc; }
  bool has(int i) const noexcept {
    return i < static_cast<int>(inputs.size()) && inputs[static_cast<std::size_t>(i)].desc->present();
  }
};

/// What a kernel variant needs besides its operands, and what it permits.
struct Footprint {
  /// kAlignment-aligned, uninitialised, alive only while the step runs. Smaller sizes must not ask for more: a session
  /// has what bounds ask for, and refuses a size that needs more.
  std::int64_t scratch_bytes = 0;
  /// With so much scratch the kernel runs fastest (0: with scratch_bytes). The plan gives it what is free at that step
  /// anyway. Results do not depend on it.
  std::int64_t useful_scratch_bytes = 0;
  /// Bit i set: output o may occupy exactly the storage of input i (same first byte; the output is not larger). The
  /// input is then destroyed. Element-wise kernels set it for operands of the output's shape and element size.
  std::uint64_t overwrites[kMaxOutputs] = {};
  /// Output 0 may overlap input 0 if it begins at least so many bytes before it (negative: it may begin so far behind
  /// it). The input is then destroyed. For kernels that consume their input from front to back; both dense.
  std::int64_t lead_bytes = kNoOverlap;

  /// Bit i set: input i may lie in its place within output 0, where `OpDef::input_view` says; the kernel leaves it
  /// there and writes the rest of the output around it.
  std::uint64_t within = 0;

  static constexpr std::int64_t kNoOverlap = INT64_MAX;
};

using bantam::Threads;

/// The arguments of a kernel while it runs. Operand memory does not overlap except where the footprint allowed it.
/// Absent operands have null data and a desc of type kNone.
struct Invocation {
  const void* params = nullptr;
  std::span<const Tensor> inputs;
  std::span<const Tensor> outputs;
  std::byte* scratch = nullptr;
  const Threads* threads = nullptr;  ///< never null
  std::int64_t scratch_bytes = 0;    ///< at least `Footprint::scratch_bytes`

  template <typename P>
  const P& as() const noexcept {
    return *static_cast<const P*>(params);
  }
  const TensorDesc& in(int i) const noexcept { return *inputs[static_cast<std::size_t>(i)].desc; }
  const TensorDesc& out(int i = 0) const noexcept { return *outputs[static_cast<std::size_t>(i)].desc; }
  bool has(int i) const noexcept {
    return i < static_cast<int>(inputs.size()) && inputs[static_cast<std::size_t>(i)].data != nullptr;
  }
  template <typename T>
  const T* input(int i) const noexcept {
    return static_cast<const T*>(inputs[static_cast<std::size_t>(i)].data);
  }
  template <typename T>
  T* output(int i = 0) const noexcept {
    return static_cast<T*>(outputs[static_cast<std::size_t>(i)].data);
  }
};

/// How close a variant is to the operator's exact definition. Tests and docs read it.
struct Accuracy {
  enum class Kind : std::uint8_t {
    kExact,     ///< bit for bit the same as the reference, on every target
    kRelative,  ///< |error| <= bound * largest magnitude of the output tensor
  };
  Kind kind = Kind::kExact;
  float bound = 0.0F;
};

/// One implementation of an operator. Rows are listed fastest first in OpDef::variants; the last row is the reference
/// (named "ref..."), which supports every call that `infer` accepts for its element types.
struct KernelVariant {
  /// "<what>__<isa>", unique within the operator, stable across releases: packages refer to it. E.g. "f32_gemm__simd".
  std::string_view name;
  /// Null: supports every call. Must check types, strides (see TensorDesc::is_dense) and which operands are constant.
  bool (*supports)(const OpCall& call) = nullptr;
  /// Null: no scratch, nothing may be overwritten. `threads` >= 1 is the largest thread count the step will see.
  Footprint (*footprint)(const OpCall& call, int threads) = nullptr;
  /// Bytes of constant operand `input` in this variant's layout, 0 to keep the operand as it is. Null: all as they are.
  /// The desc of a packed operand keeps the logical shape; only its bytes differ.
  std::int64_t (*packed_bytes)(const OpCall& call, int input) = nullptr;
  /// Writes the packed form of constant operand `input`; `destination` has packed_bytes() bytes, kAlignment-aligned.
  void (*pack)(const OpCall& call, int input, std::byte* destination) = nullptr;
  /// Computes all outputs. Returns a failure only for data-dependent faults; outputs are then unspecified.
  Status (*run)(const Invocation& invocation) = nullptr;
  Accuracy accuracy{};
};

/// An operator. `name` is stable: graphs in text form and packages refer to it.
struct OpDef {
  std::string_view name;
  std::uint32_t params_bytes = 0;
  const void* default_params = nullptr;  ///< params_bytes bytes; null when params_bytes is 0
  std::span<const ParamField> fields{};
  std::int32_t min_inputs = 1;
  std::int32_t max_inputs = 1;
  std::int32_t outputs = 1;
  /// Validates parameters and operands and fills the outputs' descs, dense. Operands may have any values whatever.
  Status (*infer)(const void* params, std::span<const Tensor> inputs, std::span<TensorDesc> outputs) = nullptr;
  /// Optional. True when output 0 is a view of input 0: sets its strides in `view` and the element offset.
  /// input 0 may itself be strided.
  bool (*output_view)(const OpCall& call, TensorDesc* view, std::int64_t* offset) = nullptr;
  /// Optional. True when input `i` can be produced in place inside output 0: sets the strides of the input within the
  /// output, which may itself be strided, and the element offset. The places of different inputs do not overlap. When
  /// inputs in their places have as many elements as the output the step needs no kernel.
  bool (*input_view)(const OpCall& call, int i, TensorDesc* view, std::int64_t* offset) = nullptr;
  /// Optional. Multiply-accumulate operations of one run; for reports and cost models.
  std::int64_t (*work)(const OpCall& call) = nullptr;
  std::span<const KernelVariant> variants{};
};

/// All operators of this build, in the order of ops.inc.
std::span<const OpDef* const> all_ops() noexcept;

/// The operator of that name, or null.
const OpDef* find_op(std::string_view name) noexcept;

/// The variant of that name, or null.
const KernelVariant* find_variant(const OpDef& op, std::string_view name) noexcept;

/// The last variant: the plain definition of the operator.
inline const KernelVariant& reference_variant(const OpDef& op) noexcept { return op.variants.back(); }

/// Checks operand counts and the presence of mandatory operands, then calls op.infer.
Status infer(const OpDef& op, const void* params, std::span<const Tensor> inputs, std::span<TensorDesc> outputs);

inline Footprint footprint(const KernelVariant& variant, const OpCall& call, int threads) {
  return variant.footprint != nullptr ? variant.footprint(call, threads) : Footprint{};
}

inline std::int64_t packed_bytes(const KernelVariant& variant, const OpCall& call, int input) {
  return variant.packed_bytes != nullptr ? variant.packed_bytes(call, input) : 0;
}

inline bool supports(const KernelVariant& variant, const OpCall& call) {
  return variant.supports == nullptr || variant.supports(call);
}

}  // namespace bantam::ops
