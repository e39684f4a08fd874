// The sizes of a model that the application may change while it runs: which numbers of a package's tables depend on
// them, and how. Called by the verifier (once, when a package is opened), by Session::set_dim and by
// invokes that compute sizes. Freestanding, pure
// functions on the caller's tables. Patches are untrusted: whatever they make of the tables is verified before use
// (package/verify.h), so they can at worst describe sizes that are refused.
#pragma once

#include <cstdint>

#include "bantam/status.h"
#include "package/tables.h"

namespace bantam::format {

/// What SizePatch::field means.
enum SizeField : std::uint8_t {
  kDimField = 0,                ///< .. kMaxRank - 1: that dimension of the value's desc
  kStrideField = kMaxRank,      ///< .. 2 * kMaxRank - 1: that stride
  kOffsetField = 2 * kMaxRank,  ///< bytes from the slot's base
  kDenseField,                  ///< no number: sets the strides of a dense tensor of the value's dimensions
  kParamField,                  ///< a word of the parameters
  kSizeFieldCount,
};

/// A patch names at most two dimensions, in four bits each.
inline constexpr std::uint32_t kMaxDimensions = 15;

/// The first and second dimension that a patch reads, counted from 1; 0 for none.
inline std::uint32_t first_dimension(const SizePatch& patch) { return patch.dims() & 15U; }
inline std::uint32_t second_dimension(const SizePatch& patch) { return static_cast<std::uint32_t>(patch.dims()) >> 4U; }

/// Verifies dimensions and patches: bounds, indices, and that nothing but values outside the weights is patched.
/// Requires aligned values.
Status verify_patches(const Model& model) noexcept;

/// Applies all patches for these sizes, one per dimension, in their order to copies of the model's tables, and sets the
/// bytes of every patched value to the span of its desc. Values without elements become dense, and lie at offset 0.
/// Fails when a number leaves its type; the tables are then unspecified. Requires patches that verify_patches accepted.
Status apply_patches(const Model& model, const std::int32_t* sizes, Value* values, std::uint32_t* params) noexcept;

}  // namespace bantam::format
