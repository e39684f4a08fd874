#include "contest.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <span>

#include "bantam/open_fleet.h"
#include "diagnose/benchmark.h"
#include "feed/feeder.h"
#include "io/array.h"
#include "io/file.h"
#include "io/input_spec.h"
#include "io/preprocess.h"
#include "peer/onnx_rewrite.h"

namespace bantam::bench {
namespace {

/// Memory of one tensor, aligned for vectors on both sides.
class Buffer {
 public:
  explicit Buffer(std::size_t bytes) : lines_(bytes / sizeof(Line) + 1) {}
  std::byte* data() { return lines_.front().bytes; }

 private:
  struct alignas(64) Line {
    std::byte bytes[64] = {};
  };
  std::vector<Line> lines_;
};

/// Tensors with memory of their own.
struct Tensors {
  std::vector<Buffer> memory;
  std::vector<peer::BoundTensor> tensors;

  peer::BoundTensor& add(std::string name, const TensorDesc& desc) {
    memory.emplace_back(static_cast<std::size_t>(desc.bytes()));
    return tensors.emplace_back(peer::BoundTensor{std::move(name), desc, memory.back().data()});
  }
};

/// Largest difference relative to the largest magnitude of `b`; infinite where only one side is a number. Differences
/// up to four units in the last place of 1 are rounding and count as none: a tensor of sigmoids or softmaxes near zero
/// has no meaningful relative error.
double relative_difference(const peer::BoundTensor& a, const peer::BoundTensor& b) {
  const std::vector<double> left = feed::real_elements({a.data, &a.desc}, {});
  const std::vector<double> right = feed::real_elements({b.data, &b.desc}, {});
  double error = 0;
  double largest = 0;
  for (std::size_t i = 0; i < right.size(); ++i) {
    if (std::isfinite(right[i])) largest = std::max(largest, std::abs(right[i]));
    if (left[i] == right[i] || (std::isnan(left[i]) && std::isnan(right[i]))) continue;
    const double difference = std::abs(left[i] - right[i]);
    error = std::isnan(difference) ? std::numeric_limits<double>::infinity() : std::max(error, difference);
  }
  return error <= 4 * 0x1p-23 ? 0 : error / std::max(largest, std::numeric_limits<double>::min());
}

Result<TensorDesc> dense_desc(const peer::DeclaredInput& input, std::span<const std::int64_t> dims) {
  TensorDesc desc;
  desc.type = input.type;
  if (dims.size() > kMaxRank || std::any_of(dims.begin(), dims.end(), [](std::int64_t d) { return d < 0; }))
    return fail(StatusCode::kInvalidArgument, "input '" + input.name + "' has a dynamic dimension",
                "give its shape with --shape");
  desc.rank = static_cast<std::uint8_t>(dims.size());
  for (std::size_t i = 0; i < dims.size(); ++i) desc.dims[i] = static_cast<std::int32_t>(dims[i]);
  desc.set_dense_strides();
  return desc;
}

class Contest {
 public:
  Contest(const peer::Library& library, const ModelSpec& model, const ContestOptions& options)
      : library_(library), model_(model), options_(options) {}

  Result<std::vector<ContestRow>> run() {
    FleetSpec fleet;
    fleet.models.push_back(model_);
    auto opened = OpenFleet::compile(fleet, options_.compile);
    if (!opened) return fail(std::move(opened.error()));
    fleet_.emplace(std::move(*opened));
    if (auto ok = bind_session(); !ok) return fail(ok.error());

    std::vector<ContestRow> rows;
    auto peer = load_peer({});
    if (!peer) return fail(std::move(peer.error()));
    auto row = compete(*peer, false);
    if (!row) return fail(std::move(row.error()));
    rows.push_back(*row);
    if (peer->overridable_initializers() == 0) return rows;

    auto cleaned = cleaned_copy();
    if (!cleaned) return fail(std::move(cleaned.error()));
    auto fixed = load_peer(*cleaned);
    if (!fixed) return fail(std::move(fixed.error()).in("with fixed initializers"));
    auto fixed_row = compete(*fixed, true);
    if (!fixed_row) return fail(std::move(fixed_row.error()).in("with fixed initializers"));
    rows.push_back(*fixed_row);
    return rows;
  }

 private:
  Session& session() { return fleet_->session(0); }

  /// Gives the session's ports memory, of which the peer reads the same inputs, and makes up what the inputs will hold.
  Result<void> bind_session() {
    for (std::size_t i = 0; i < session().input_count(); ++i) {
      const PortInfo port = session().input_info(i);
      const peer::BoundTensor& tensor = inputs_.add(std::string(port.name), *port.desc);
      io::InputSpec random;
      random.kind = io::SourceKind::kRandom;
      random.seed = options_.seed + i;
      auto values = io::generate(random, {tensor.name, tensor.desc, port.quantization});
      if (!values) return fail(values.error());
      random_.push_back(std::move(*values));
      if (const Status s = session().bind_input(i, tensor.data, port.bytes); !s.ok()) return fail(error_from(s));
    }
    for (std::size_t i = 0; i < session().output_count(); ++i) {
      const PortInfo port = session().output_info(i);
      peer_outputs_.add(std::string(port.name), *port.desc);
      const peer::BoundTensor& tensor = outputs_.add(std::string(port.name), *port.desc);
      if (const Status s = session().bind_output(i, tensor.data, port.bytes); !s.ok()) return fail(error_from(s));
    }
    return {};
  }

  void fill_inputs() {
    for (std::size_t i = 0; i < random_.size(); ++i)
      std::memcpy(inputs_.tensors[i].data, random_[i].data.data(), random_[i].data.size());
  }

  Result<std::string> cleaned_copy() const {
    const auto file = io::MappedFile::open(model_.path.string());
    if (!file) return fail(file.error());
    return peer::with_fixed_initializers(file->bytes());
  }

  Result<peer::Model> load_peer(const peer::Model::Options& options, const std::string& bytes) const {
    return bytes.empty() ? peer::Model::load(library_, model_.path, options)
                         : peer::Model::load(library_, std::as_bytes(std::span(bytes)), options);
  }

  /// Loads the file, or `bytes` unless empty. The peer, too, is told the values of dynamic dimensions: it is loaded
  /// once to learn their names and again with the sizes that Bantam's plan has.
  Result<peer::Model> load_peer(const std::string& bytes) {
    peer::Model::Options options{options_.compile.threads, model_.dims};
    auto peer = load_peer(options, bytes);
    if (!peer) return peer;
    const std::size_t known = options.dims.size();
    for (const peer::DeclaredInput& input : peer->inputs())
      if (const peer::BoundTensor* tensor = find_input(input.name))
        for (std::size_t d = 0; d < input.dims.size() && d < tensor->desc.rank; ++d)
          if (input.dims[d] < 0 && !input.symbols[d].empty())
            options.dims.try_emplace(input.symbols[d], tensor->desc.dims[d]);
    return options.dims.size() == known ? std::move(peer) : load_peer(options, bytes);
  }

  const peer::BoundTensor* find_input(const std::string& name) const {
    const auto found = std::find_if(inputs_.tensors.begin(), inputs_.tensors.end(),
                                    [&](const peer::BoundTensor& t) { return t.name == name; });
    return found == inputs_.tensors.end() ? nullptr : &*found;
  }

  /// Inputs that the plan has as constants stay inputs for the peer.
  Result<void> add_constant_inputs(const peer::Model& peer) {
    for (const peer::DeclaredInput& input : peer.inputs()) {
      const auto values = model_.values.find(input.name);
      if (find_input(input.name) != nullptr || values == model_.values.end()) continue;
      const auto shape = model_.shapes.find(input.name);
      const auto desc = dense_desc(input, shape != model_.shapes.end() ? shape->second : input.dims);
      if (!desc) return fail(desc.error());
      const auto elements = static_cast<std::size_t>(desc->elements());
      if (values->second.size() != 1 && values->second.size() != elements)
        return fail(StatusCode::kInvalidArgument, fmt::format("input '{}' has {} elements, {} values are set",
                                                              input.name, elements, values->second.size()));
      const peer::BoundTensor& tensor = inputs_.add(input.name, *desc);
      io::with_element_type(desc->type, [&]<typename T>(std::type_identity<T>) {
        for (std::size_t i = 0; i < elements; ++i)
          static_cast<T*>(tensor.data)[i] = io::element_from<T>(values->second[values->second.size() == 1 ? 0 : i]);
      });
    }
    return {};
  }

  Result<ContestRow> compete(peer::Model& peer, bool fixed_initializers) {
    if (auto ok = add_constant_inputs(peer); !ok) return fail(ok.error());
    if (auto ok = peer.bind(inputs_.tensors, peer_outputs_.tensors); !ok) return fail(ok.error());
    // An invoke may overwrite its inputs, as working memory; applications write them anew each time, so both sides
    // get inputs that were just written.
    const auto fill = [this] { fill_inputs(); };
    const Side ours{fill, [this]() -> Result<void> {
                      const Status status = session().invoke();
                      if (!status.ok()) return fail(error_from(status));
                      return {};
                    }};
    const Side theirs{fill, [&peer] { return peer.run(); }};

    ContestRow row{model_.name, fixed_initializers, 0, 0, 0, {}};
    session().reset();
    for (const Side* side : {&ours, &theirs}) {
      side->prepare();
      if (auto ok = side->run(); !ok) return fail(ok.error());
    }
    std::string worst;
    for (std::size_t i = 0; i < outputs_.tensors.size(); ++i) {
      const double difference = relative_difference(outputs_.tensors[i], peer_outputs_.tensors[i]);
      if (worst.empty() || difference > row.max_relative_error) worst = outputs_.tensors[i].name;
      row.max_relative_error = std::max(row.max_relative_error, difference);
    }
    if (row.max_relative_error > options_.tolerance)
      return fail(StatusCode::kInvalidModel,
                  fmt::format("not timed: output '{}' differs by {:.2g} of its largest magnitude, at most {:.2g} is "
                              "allowed",
                              worst, row.max_relative_error, options_.tolerance),
                  "find the fault with `bantam verify`, or allow more with --tolerance");
    auto times = alternate(ours, theirs, options_.alternate);
    if (!times) return fail(std::move(times.error()));
    row.times = *times;
    const auto layers = diagnose::layers_of(session(), OutputSet::all());
    for (const diagnose::OperatorTime& layer : layers) row.work += layer.work;
    row.roof_share =
        diagnose::share_of_roof(options_.roof, layers, row.times.first_us) / std::max(options_.compile.threads, 1);
    return row;
  }

  const peer::Library& library_;
  const ModelSpec& model_;
  const ContestOptions& options_;
  std::optional<OpenFleet> fleet_;
  Tensors inputs_, outputs_, peer_outputs_;
  std::vector<io::Array> random_;  ///< by input port of the session
};

}  // namespace

Result<std::vector<ContestRow>> run_contest(const peer::Library& library, const ModelSpec& model,
                                            const ContestOptions& options) {
  return Contest(library, model, options).run();
}

}  // namespace bantam::bench
