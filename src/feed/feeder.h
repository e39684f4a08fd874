// Feeds the inputs of a session from files and generators, and reads what its outputs say. Host only.
//
// A feed is prepared once (files read and decoded) and then gives one window per round; inputs with a step move their
// window by that many frames each round. Objects belong to one thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "bantam/error.h"
#include "bantam/runtime.h"
#include "compiler/fleet_file.h"
#include "io/direct_picture.h"
#include "io/input_spec.h"
#include "io/preprocess.h"

namespace bantam::feed {

/// The inputs of one session that files or generators fill.
class Feeder {
 public:
  /// `linked`: by input port, those that another session fills. Every other input must have an entry in feed.inputs;
  /// the Error lists those that have none, and names that the model does not have.
  static Result<Feeder> create(const SessionFeed& feed, const Session& session, const std::vector<bool>& linked);

  /// Writes the inputs of round `round` (from 0) into the session.
  Result<void> fill(Session& session, std::int64_t round) const;

  /// Inputs into whose memory a picture's decoder writes, without a picture in between.
  std::vector<std::string> direct_inputs() const;

  /// Rounds until the shortest stepping input is used up; nothing when no input steps.
  std::optional<std::int64_t> rounds() const noexcept { return rounds_; }

 private:
  struct Input {
    std::size_t port = 0;
    io::InputSpec spec;
    io::InputTarget target;
    std::optional<io::Source> source;  ///< absent for generators
    std::int64_t step = 0;
    std::optional<io::DirectPicture> direct;  ///< then there is no source
  };
  std::vector<Input> inputs_;
  std::optional<std::int64_t> rounds_;
};

/// Fills all inputs with seeded random values, each with its own: for measuring, where all-zero data would flatter
/// kernels that meet denormals or early exits.
Result<void> fill_random(Session& session);

/// Class names, one a line; empty lines at the end are dropped.
Result<std::vector<std::string>> read_labels(const std::filesystem::path& path);

/// One thing that an output says: its most likely class, or its value.
struct Reading {
  std::string text;  ///< the label, or the number
  double value = 0;  ///< the score, dequantised, or the number
  bool labelled = false;
};

/// Reads an output tensor. With labels: one reading per row of labels.size() elements (the largest element); a single
/// element is a probability: with two labels the second at 0.5 or more, with one label that or its absence; a map
/// [1,labels,H,W] is class heat: its local maxima are counted. Without labels: the value itself for one element,
/// otherwise the range of the tensor.
std::vector<Reading> read_output(const Session& session, std::size_t output, const std::vector<std::string>& labels);

/// Elements of a tensor as real numbers, dequantised where `quantization` says how.
std::vector<double> real_elements(const Tensor& tensor, const Quantization& quantization);

}  // namespace bantam::feed
