// Predicts how long kernels take on a target: what decides between kernels that compute the same in different ways, and
// the times that `plan --layers` and `inspect` show. A step takes the time of its multiply-accumulates, of the bytes
// that it moves between caches, of the weights that it fetches, of the integer sums that it rescales and of the
// exponentials of its activation, one after the other. The constants were fitted to 230 convolutions of 4x4 to 112x112
// pixels with 16 to 512 channels, and to 206 of int8, on x86-64 with AVX2 and AVX-512, where predictions are off by 15
// % in the mean; those of SSE4.2 to 18 networks; how fast values move with AVX2, and those of elements, depthwise
// windows, few outputs and groups, to 247 networks, most of them small, and their int8 forms on Zen 4, and those of
// Winograd's way of bytes to 105 layers of these; those of f32 on Zen 5 to 17 convolutions by three kernels. Pure
// functions; host only.
#pragma once

#include <span>

#include "bantam/target.h"
#include "ops/op.h"

namespace bantam::compiler {

inline constexpr double kMiB = 1 << 20;
inline constexpr Machine kSse4Machine = {24, 36, 42, 0.9, 1.5, 30, 30, 30, 0.4, 8 * kMiB, 16};
inline constexpr Machine kAvx2Machine = {60, 82, 90, 0.1, 1.5, 60, 32, 30, 0.2, 8 * kMiB, 16};
inline constexpr Machine kAvx2VnniMachine = {60, 248, 90, 0.29, 1.5, 30, 32, 30, 0.2, 8 * kMiB, 16};
inline constexpr Machine kAvx512Machine = {120, 480, 230, 0.12, 1.5, 40, 32, 30, 0.1, 2 * kMiB, 48};
inline constexpr Machine kAvx512AmxMachine = {120, 2500, 230, 0.12, 1.5, 40, 32, 30, 0.1, 2 * kMiB, 48};
/// Of AMD's that compute with whole vectors of 64 bytes.
inline constexpr Machine kAvx512AmdMachine = {150, 600, 290, 0.08, 2, 80, 36, 30, 0.06, 8 * kMiB, 48, 0, 60};
/// Of processors that compute with vectors of 64 bytes in two halves (schedule::halves_wide_vectors).
inline constexpr Machine kAvx512HalvesMachine = {60, 240, 118, 0.06, 1.5, 70, 44, 30, 0.05, 8 * kMiB, 24};
inline constexpr Machine kNeonMachine = {17, 70, 10, 0.5, 1.5, 20, 8, 80, 0, 4 * kMiB, 8};

/// The target's machine; the host's is that of the instruction set in use.
Machine machine_of(const Target& target);
/// The same for a model with so many bytes of weights.
Machine machine_of(const Target& target, std::int64_t weight_bytes);

/// One run of the step by one thread.
double predicted_ns(const ops::OpDef& op, const ops::KernelVariant& variant, const ops::OpCall& call,
                    const Machine& machine);

/// What that takes longer with so many bytes of scratch than with as many as are useful: where a block of Winograd's
/// tiles gets small, the next one fetches the weights again.
double short_scratch_ns(const ops::OpDef& op, const ops::KernelVariant& variant, const ops::OpCall& call,
                        std::int64_t scratch_bytes, const Machine& machine);

/// What integer arithmetic saves, or costs.
struct IntegerTimes {
  double integer_ns = 0;  ///< predicted for steps on bytes
  /// For the same with operands, weights and results in f32, by the fastest kernel; 0 for steps that there would not
  /// be.
  double float_ns = 0;
};

/// Zeros where the step is not about bytes, or only carries them.
IntegerTimes integer_times(const ops::OpDef& op, const ops::KernelVariant& variant, const ops::OpCall& call,
                           const Machine& machine);

/// Where a kernel would run.
struct Setting {
  Machine machine{};
  std::int64_t room_bytes = 0;  ///< operands and results of the model's largest step: about what its plan needs
};

/// Bytes of operands and results that are computed, not constant.
std::int64_t value_bytes(const ops::OpCall& call);

/// Of the kernels, which all support the calls (one per size that they must serve) and are listed as their operator
/// lists them: the first, unless it is one whose worth depends on sizes and another such is faster. Memory weighs too:
/// a kernel that packs weights into more bytes than another must be faster by a fifth, unless these are a small part of
/// operands and results, and one whose scratch would make the plan larger (more than operands and results, and more
/// than the room that they leave) is taken only where none serves that would do so less. Scratch counts as for one
/// thread, so that every number of threads gets the same kernels, and results. `kernels` is not empty.
const ops::KernelVariant* cheapest(const ops::OpDef& op, std::span<const ops::KernelVariant* const> kernels,
                                   std::span<const ops::OpCall> calls, const Setting& setting);

}  // namespace bantam::compiler
