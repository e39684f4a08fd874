#include "speech/recognizer/graphs.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <string>

#include "bantam/declaration.h"

namespace bantam::speech {
namespace {

namespace fs = std::filesystem;

constexpr int kFeatureBins = 80;
constexpr double kMostSeconds = 3600.0;

/// One of the graphs: its file, and what that declares.
struct GraphFile {
  fs::path path;
  Declaration declaration;

  std::string port_text(const DeclaredPort& port) const {
    std::string dims;
    for (const std::string& dim : port.dims) dims += (dims.empty() ? "" : ",") + dim;
    return fmt::format("{}[{}]", element_type_name(port.type), dims);
  }
};

Result<GraphFile> open_graph(const fs::path& folder, const char* file) {
  GraphFile graph{folder / file, {}};
  auto declaration = declare(graph.path);
  if (!declaration) return fail(std::move(declaration.error()));
  graph.declaration = std::move(*declaration);
  return graph;
}

std::optional<std::int64_t> to_integer(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  return code == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

/// Sizes that the encoder's metadata and the options agree on.
struct Sizes {
  std::int64_t chunk = 0;  ///< <= 0: the whole utterance
  std::int64_t left = 0;
  std::int64_t subsampling = 0;
  std::int64_t context = 0;
  std::int64_t bins = kFeatureBins;
  std::int64_t width = 0;
  std::int64_t max_features = 0;  ///< feature frames of the longest utterance

  bool whole() const { return chunk <= 0; }
  std::int64_t window() const { return whole() ? max_features : (chunk - 1) * subsampling + context + 1; }
  std::int64_t frames() const { return (window() - context - 1) / subsampling + 1; }
  std::int64_t cache() const { return chunk * left; }
  /// Encoder frames that the decoder takes.
  std::int64_t utterance() const { return whole() ? frames() : max_features / subsampling + chunk; }
  /// Tokens of a hypothesis: three for every four frames is faster than anybody speaks. A stream goes on as long as the
  /// next chunk might give a token for each of its frames.
  std::int64_t tokens() const { return std::min(utterance() * 3 / 4 + std::max<std::int64_t>(chunk, 1), utterance()); }
};

class SizeReader {
 public:
  SizeReader(const GraphFile& encoder, const RecognizerSpec& spec) : encoder_(encoder), spec_(spec) {}

  Result<Sizes> run() {
    Sizes s;
    s.subsampling = need({"subsampling_rate", "subsampling_factor"}, 1, 64);
    s.context = need({"right_context"}, s.subsampling - 1, 1024);
    s.width = need({"output_size"}, 1, 1 << 16);
    s.chunk = agreed("chunk_size", "--chunk-size", spec_.chunk_size, 1 << 12);
    s.left = s.chunk <= 0 ? 0 : agreed("left_chunks", "--left-chunks", spec_.left_chunks, 1 << 12);
    s.bins = find({"feature_size"}).value_or(kFeatureBins);
    if (!error_.message.empty()) return fail(std::move(error_));
    if (!(spec_.max_seconds > 0.0 && spec_.max_seconds <= kMostSeconds))
      return fail(
          StatusCode::kInvalidArgument,
          fmt::format("the longest utterance of {} s is not within 0 and {} s", spec_.max_seconds, kMostSeconds),
          "give a number of seconds such as 20");
    s.max_features =
        std::max<std::int64_t>(static_cast<std::int64_t>(std::ceil(spec_.max_seconds * 100.0)), s.context + 1);
    if (!s.whole() && s.left <= 0)
      return fail(StatusCode::kUnsupported,
                  fmt::format("{}: chunk_size {} with left_chunks {} cannot be streamed in bounded memory or has no "
                              "attention mask",
                              encoder_.path.string(), s.chunk, s.left),
                  "export the encoder with left_chunks > 0, or with chunk_size -1 for whole utterances");
    return s;
  }

 private:
  std::optional<std::int64_t> find(std::initializer_list<const char*> keys) const {
    for (const char* key : keys)
      if (const auto text = encoder_.declaration.metadata_value(key))
        if (const auto value = to_integer(*text)) return value;
    return std::nullopt;
  }

  void add(const std::string& line, std::string remedy) {
    error_.code = StatusCode::kInvalidModel;
    error_.message += (error_.message.empty() ? "" : "\n") + line;
    if (error_.remedy.empty()) error_.remedy = std::move(remedy);
  }

  std::int64_t need(std::initializer_list<const char*> keys, std::int64_t least, std::int64_t most) {
    const auto value = find(keys);
    if (value && *value >= least && *value <= most) return *value;
    const auto text = encoder_.declaration.metadata_value(*keys.begin());
    add(fmt::format("{}: metadata '{}' is {}, expected an integer from {} to {}", encoder_.path.string(), *keys.begin(),
                    text ? fmt::format("'{}'", *text) : "missing", least, most),
        "export the model again with its metadata (WeNet's export_onnx_cpu writes them)");
    return 1;
  }

  /// From the metadata, which fixed the graph; an option may only repeat it, or stand in where they say nothing.
  std::int64_t agreed(const char* key, const char* option, std::optional<int> given, std::int64_t most) {
    const auto value = find({key});
    if (value && given && *value != *given) {
      add(fmt::format("{} {}: {} was exported with {} = {}, and its graph works with no other", option, *given,
                      encoder_.path.string(), key, *value),
          fmt::format("leave {} out, or export the model again with that value", option));
    } else if (!value && !given) {
      add(fmt::format("{}: metadata '{}' is missing", encoder_.path.string(), key),
          fmt::format("give the value it was exported with: {} N", option));
    } else if (const std::int64_t chosen = value ? *value : *given; chosen <= most) {
      return chosen;
    } else {
      add(fmt::format("{}: {} = {} is larger than {}", encoder_.path.string(), key, chosen, most),
          "export the model with a smaller value");
    }
    return 1;
  }

  const GraphFile& encoder_;
  const RecognizerSpec& spec_;
  Error error_;
};

/// The declared dimensions, with those of `sizes` (by position) where the file names no number.
Result<std::vector<std::int64_t>> shape_of(const GraphFile& graph, const DeclaredPort& port,
                                           const std::map<std::size_t, std::int64_t>& sizes) {
  std::vector<std::int64_t> shape;
  for (std::size_t i = 0; i < port.dims.size(); ++i) {
    const auto fixed = to_integer(port.dims[i]);
    const auto size = sizes.find(i);
    if (!fixed && size == sizes.end())
      return fail(StatusCode::kInvalidModel,
                  fmt::format("{}: input '{}' {}: dimension {} is open, only others may be", graph.path.string(),
                              port.name, graph.port_text(port), i),
                  "export the model again as WeNet does");
    if (fixed && size != sizes.end() && *fixed != size->second)
      return fail(StatusCode::kInvalidModel,
                  fmt::format("{}: input '{}' is {}, but the metadata ask for {} in dimension {}", graph.path.string(),
                              port.name, graph.port_text(port), size->second, i),
                  "export the model again; graph and metadata do not belong together");
    shape.push_back(fixed ? *fixed : size->second);
  }
  return shape;
}

/// Lets an open dimension of a port have any size up to `bound`, and sets the port's other open ones to `others`.
Result<void> bound_axis(const GraphFile& graph, const DeclaredPort& port, std::size_t axis, std::int64_t bound,
                        const std::map<std::size_t, std::int64_t>& others, ModelSpec& model) {
  for (std::size_t i = 0; i < port.dims.size(); ++i) {
    const std::string& dim = port.dims[i];
    const auto other = others.find(i);
    if (to_integer(dim)) {
      if (i == axis || (other != others.end() && *to_integer(dim) != other->second))
        return fail(StatusCode::kInvalidModel,
                    fmt::format("{}: input '{}' is {}: dimension {} should be {}", graph.path.string(), port.name,
                                graph.port_text(port), i, i == axis ? "open" : std::to_string(other->second)),
                    "export the model again as WeNet does");
      continue;
    }
    if (dim == "?" || dim == "..." || (i != axis && other == others.end()))
      return fail(StatusCode::kInvalidModel,
                  fmt::format("{}: input '{}' is {}: dimension {} has no name or is not expected to be open",
                              graph.path.string(), port.name, graph.port_text(port), i),
                  "export the model again as WeNet does, with named dynamic axes");
    if (i == axis) {
      model.bounds[dim] = bound;
    } else {
      model.dims[dim] = other->second;
    }
  }
  if (axis < port.dims.size()) return {};
  return fail(StatusCode::kInvalidModel,
              fmt::format("{}: input '{}' is {}, which has no dimension {}", graph.path.string(), port.name,
                          graph.port_text(port), axis),
              "give a model with WeNet's interface");
}

tl::unexpected<Error> unknown_input(const GraphFile& graph, const DeclaredPort& port, const char* known) {
  return fail(
      StatusCode::kUnsupported,
      fmt::format("{}: input '{}' is not one that a recogniser has ({})", graph.path.string(), port.name, known),
      "give a model with WeNet's interface");
}

Result<std::string> output_name(const GraphFile& graph, std::size_t position, const char* what) {
  if (position < graph.declaration.outputs.size()) return graph.declaration.outputs[position].name;
  return fail(StatusCode::kInvalidModel,
              fmt::format("{}: there is no output {} for {}, only {}", graph.path.string(), position, what,
                          graph.declaration.outputs.size()),
              "give a model with WeNet's interface");
}

/// A cache is a state of a streaming encoder, whose next value is the output at `position`; an encoder of whole
/// utterances gets an empty one, or zeros where its size is fixed.
Result<void> add_cache(const GraphFile& graph, const DeclaredPort& port, const Sizes& sizes, std::size_t open_axis,
                       std::size_t position, ModelSpec& model) {
  auto shape = shape_of(graph, port, {{open_axis, sizes.cache()}});
  if (!shape) return fail(std::move(shape.error()));
  model.shapes[port.name] = *shape;
  if (sizes.whole()) {
    const bool empty = std::ranges::find(*shape, 0) != shape->end();
    model.values[port.name] = empty ? std::vector<double>() : std::vector<double>{0.0};
    return {};
  }
  auto output = output_name(graph, position, "the next value of a cache");
  if (!output) return fail(std::move(output.error()));
  model.states.emplace_back(port.name, *output);
  return {};
}

constexpr std::size_t kNoOpenAxis = 99;

Result<ModelSpec> describe_encoder(const GraphFile& graph, const Sizes& sizes) {
  ModelSpec model{.name = "encoder", .path = graph.path};
  for (const DeclaredPort& port : graph.declaration.inputs) {
    if (port.name == "chunk" && sizes.whole()) {
      auto bounded = bound_axis(graph, port, 1, sizes.window(), {{0, 1}, {2, sizes.bins}}, model);
      if (!bounded) return fail(std::move(bounded.error()));
    } else if (port.name == "chunk") {
      auto shape = shape_of(graph, port, {{0, 1}, {1, sizes.window()}, {2, sizes.bins}});
      if (!shape) return fail(std::move(shape.error()));
      model.shapes[port.name] = std::move(*shape);
    } else if (port.name == "offset") {
      if (sizes.whole()) model.values[port.name] = {0.0};
    } else if (port.name == "required_cache_size") {
      model.values[port.name] = {static_cast<double>(sizes.cache())};
    } else if (port.name == "att_cache") {
      if (auto added = add_cache(graph, port, sizes, 2, 1, model); !added) return fail(std::move(added.error()));
    } else if (port.name == "cnn_cache") {
      if (auto added = add_cache(graph, port, sizes, kNoOpenAxis, 2, model); !added)
        return fail(std::move(added.error()));
    } else if (port.name == "att_mask" && !sizes.whole()) {
      auto shape = shape_of(graph, port, {{2, sizes.cache() + sizes.chunk}});
      if (!shape) return fail(std::move(shape.error()));
      model.shapes[port.name] = std::move(*shape);
    } else {
      return unknown_input(graph, port, "chunk, offset, required_cache_size, att_cache, cnn_cache, att_mask");
    }
  }
  return model;
}

Result<ModelSpec> describe_ctc(const GraphFile& graph, const Sizes& sizes) {
  ModelSpec model{.name = "ctc", .path = graph.path};
  for (const DeclaredPort& port : graph.declaration.inputs) {
    if (sizes.whole()) {
      auto bounded = bound_axis(graph, port, 1, sizes.frames(), {{0, 1}, {2, sizes.width}}, model);
      if (!bounded) return fail(std::move(bounded.error()));
    } else {
      auto shape = shape_of(graph, port, {{0, 1}, {1, sizes.frames()}, {2, sizes.width}});
      if (!shape) return fail(std::move(shape.error()));
      model.shapes[port.name] = std::move(*shape);
    }
  }
  return model;
}

Result<ModelSpec> describe_decoder(const GraphFile& graph, const Sizes& sizes, int max_tokens) {
  ModelSpec model{.name = "decoder", .path = graph.path};
  const std::int64_t tokens = max_tokens > 0 ? max_tokens : sizes.tokens();
  for (const DeclaredPort& port : graph.declaration.inputs) {
    Result<void> bounded;
    if (port.name == "hyps") {
      bounded = bound_axis(graph, port, 1, tokens + 1, {{0, 1}}, model);
      // The graph computes sizes from the longest length, which is that of the only hypothesis.
      if (bounded) model.counts["hyps_lens"] = port.dims[1];
    } else if (port.name == "hyps_lens") {
      auto shape = shape_of(graph, port, {{0, 1}});
      if (!shape) return fail(std::move(shape.error()));
      model.shapes[port.name] = std::move(*shape);
    } else if (port.name == "encoder_out") {
      bounded = bound_axis(graph, port, 1, sizes.utterance(), {{0, 1}, {2, sizes.width}}, model);
    } else {
      return unknown_input(graph, port, "hyps, hyps_lens, encoder_out");
    }
    if (!bounded) return fail(std::move(bounded.error()));
  }
  return model;
}

}  // namespace

Result<int> likely_tokens(const RecognizerSpec& spec) {
  const auto encoder = open_graph(spec.model, "encoder.onnx");
  if (!encoder) return fail(encoder.error());
  const auto sizes = SizeReader(*encoder, spec).run();
  if (!sizes) return fail(sizes.error());
  return static_cast<int>(sizes->tokens());
}

Result<std::vector<ModelSpec>> describe_graphs(const RecognizerSpec& spec) {
  const auto encoder = open_graph(spec.model, "encoder.onnx");
  if (!encoder) return fail(encoder.error());
  const auto ctc = open_graph(spec.model, "ctc.onnx");
  if (!ctc) return fail(ctc.error());
  const auto sizes = SizeReader(*encoder, spec).run();
  if (!sizes) return fail(sizes.error());
  std::vector<ModelSpec> models;
  const auto add = [&](Result<ModelSpec> model) -> Result<void> {
    if (!model) return fail(std::move(model.error()));
    models.push_back(std::move(*model));
    return {};
  };
  if (auto added = add(describe_encoder(*encoder, *sizes)); !added) return fail(std::move(added.error()));
  if (auto added = add(describe_ctc(*ctc, *sizes)); !added) return fail(std::move(added.error()));
  if (!spec.rescoring) return models;
  const auto decoder = open_graph(spec.model, "decoder.onnx");
  if (!decoder) return fail(decoder.error());
  if (auto added = add(describe_decoder(*decoder, *sizes, spec.max_tokens)); !added)
    return fail(std::move(added.error()));
  return models;
}

}  // namespace bantam::speech
