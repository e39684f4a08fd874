// From model file to graph: the one entry for every format.
//
// The format is recognised by content, never by file name. Importers lower the format's operators to core operators
// (src/ops) with graph::Builder, so shapes are known and constants folded on the way. They report everything a model
// needs and Bantam lacks in one Error, one line per finding: node, operator, attribute, what was found, what is
// supported. Model bytes are untrusted. Weights are referred to where they lie (a mapped file), never copied.
// Thread rule: functions are re-entrant.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bantam/declaration.h"
#include "bantam/error.h"
#include "graph/graph.h"

namespace bantam::import {

/// Bytes of a model and where they came from.
struct Source {
  std::string name;                   ///< for messages: usually the path
  std::span<const std::byte> bytes;   ///< kept alive by `owner`
  std::shared_ptr<const void> owner;  ///< constants of the graph share it
  std::filesystem::path directory;    ///< where external data files are looked for; empty: refuse external data
};

/// What the user fixes before the shapes of a model are known.
struct Options {
  std::map<std::string, std::int64_t> dims;                 ///< symbolic dimension -> value
  std::map<std::string, std::vector<std::int64_t>> shapes;  ///< input -> its whole shape; wins over `dims`
  /// input -> constant elements (or one for all); it stops being an input. For ONNX the name may also be that of a
  /// value inside the graph: what a model computes from data to decide a shape (a Range up to the longest length, say)
  /// is fixed so, while the data stay inputs.
  std::map<std::string, std::vector<double>> values;
  /// input -> the most that its elements count: a number, or a symbolic dimension of an input, whose value it is. Sizes
  /// that a graph computes from such an input are those of the largest counts (import/onnx/counts.h). TensorFlow Lite
  /// models refuse it.
  std::map<std::string, std::string> counts;
  /// input -> output that carries its next value. The pair becomes a graph::State and leaves the model's ports.
  std::vector<std::pair<std::string, std::string>> states;
  /// symbolic dimension -> the largest value that `dims` will give it. A dimension may also be a size that the graph
  /// computes from data (graph::MeasuredSize): `dims` then says which one to make shapes with, absent the largest.
  std::map<std::string, std::int64_t> bounds{};
  /// node (a Loop, a WHILE) -> the most iterations that it may run, where the model itself sets no limit.
  std::map<std::string, std::int64_t> iterations{};
};

/// Imports a model of any supported format. The graph passes graph::verify and is sorted topologically.
Result<graph::Graph> import_model(const Source& source, const Options& options);

/// Reads ports, dimensions and operator counts only; works for models that import_model refuses.
Result<Declaration> declare_model(const Source& source);

/// Maps the file and fills a Source (with its directory for external data).
Result<Source> open_source(const std::filesystem::path& path);

// One pair per format; `bytes` were recognised already.
Result<graph::Graph> import_onnx(const Source& source, const Options& options);
Result<Declaration> declare_onnx(const Source& source);
Result<graph::Graph> import_tflite(const Source& source, const Options& options);
Result<Declaration> declare_tflite(const Source& source);

}  // namespace bantam::import
