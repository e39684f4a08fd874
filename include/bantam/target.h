// The machines that packages are planned for. The compiler asks a target which kernels exist there and how large its
// pointers are; nothing else of the engine knows what a target is.
//
//   auto target = bantam::find_target("cortex-m4");
//   auto compiled = bantam::compile(fleet, {.target = *target});   // requirements() are those of the Cortex-M4
//
// Plain values with static lifetime; nothing here allocates but the text of an Error. Host only.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "bantam/error.h"

namespace bantam {

/// How fast one core is: what compiling weighs kernels by and predicts times from. Nominal figures of a typical device,
/// not measurements of the one at hand; `bantam tune` measures.
struct Machine {
  double f32_macs = 0;      ///< multiply-accumulates of f32 in registers, per ns
  double i8_macs = 0;       ///< of bytes
  double i16_macs = 0;      ///< of 16-bit integers
  double i8_result_ns = 0;  ///< to bring a sum of products of bytes to a result: rescaled, rounded, activated
  double plain_macs = 0;    ///< by kernels in plain C++
  double moved_bytes = 0;   ///< read or written by vector kernels, from and to the caches, per ns
  double weight_bytes = 0;  ///< of weights, from where they lie between two invokes, per ns
  double step_ns = 0;       ///< of a step that computes nothing
  double fixed_ns = 0;      ///< to round twice, as TensorFlow Lite rescales a sum, over i8_result_ns
  /// What of the caches one core may count on: larger values are written to memory and fetched from there. 0: there are
  /// no caches.
  double cache_bytes = 0;
  double fetched_bytes = 0;  ///< written to memory or fetched from there, per ns
  double f16_macs = 0;       ///< of 16-bit floats, per ns; 0: there is no such arithmetic
  /// Bytes of weights per ns where all those of a model stay within cache_bytes; 0: no more than of others.
  double near_weight_bytes = 0;
};

struct Target {
  std::string_view name = "host";
  std::string_view description = "this machine";
  std::size_t pointer_bytes = sizeof(void*);
  /// Instruction sets whose kernels exist there: what follows the last "__" in a kernel variant's name. Empty: whatever
  /// this build has.
  std::span<const std::string_view> instruction_sets{};
  Machine machine{};  ///< of the host: nothing; it follows from the instruction set in use

  /// True when the target has the kernel variant of that name.
  bool has_kernel(std::string_view variant) const noexcept;
};

/// All targets, the host first.
std::span<const Target> all_targets() noexcept;

/// The target of that name; the Error lists those that there are.
Result<Target> find_target(std::string_view name);

}  // namespace bantam
