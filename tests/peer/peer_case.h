// One model on the same inputs in Bantam and in ONNX Runtime, whose graph is optimised as it is by default: there
// quantised operators run in its integer kernels.
//
// Needs the library that bench/fetch_onnxruntime.sh fetches into build/onnxruntime; tests say when it is not there.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "bantam/error.h"
#include "io/npz.h"
#include "peer/onnxruntime.h"

namespace bantam::testing {

/// The library, loaded once; null when it is not there.
const peer::Library* peer_library();

inline constexpr const char* kNoPeer =
    "there is no ONNX Runtime under build/onnxruntime (bench/fetch_onnxruntime.sh): nothing is compared";

/// Does ONNX Runtime limit sums of two products of u8 and i8 to 16 bits here, as its kernels for AVX2 without VNNI do?
/// Found by a product of large numbers. Its results are then no measure for other large numbers.
bool peer_limits_sums();

inline constexpr const char* kPeerLimitsSums =
    "ONNX Runtime limits sums of two products to 16 bits on this machine: its results are not exact";

struct OutputDifference {
  std::string name;
  double largest = 0;           ///< absolute; steps for integers
  double largest_expected = 0;  ///< magnitude of the peer's numbers
  std::size_t different = 0;    ///< elements
  std::size_t elements = 0;
};

using Arrays = std::vector<io::NamedArray>;

/// All outputs of a model file, all of whose shapes are fixed, on these inputs.
Result<Arrays> run_here(const std::filesystem::path& model, const Arrays& inputs);
Result<Arrays> run_in_peer(const std::filesystem::path& model, const Arrays& inputs, bool optimize);

/// How far `found` is from `expected`, by output.
Result<std::vector<OutputDifference>> compare_outputs(const Arrays& expected, const Arrays& found);

/// Both on a serialised model and random inputs: floats in [-1, 1), 8-bit integers over their range.
Result<std::vector<OutputDifference>> compare_with_peer(const std::string& model, std::uint32_t seed);

}  // namespace bantam::testing
