#include "diagnose/tensor_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "bantam/open_fleet.h"
#include "diagnose/tensor_walk.h"
#include "passes/passes.h"

namespace bantam::diagnose {
namespace {

/// Records what steps read and write, and what they leave in outputs, under the names of the source model.
class Recorder {
 public:
  explicit Recorder(const ModelReport& report) : report_(report) {}

  Observer observer() { return {this, before, after}; }
  TensorSet take() { return std::move(tensors_); }

  /// An output may be a view of what a step wrote, whose shape no step knows.
  void record_outputs(const Session& session) {
    for (std::size_t i = 0; i < session.output_count(); ++i) record(report_.outputs[i], session.output(i));
  }

 private:
  static StepDecision before(void* context, const Session& session, std::size_t step) {
    static_cast<Recorder*>(context)->record(session, step, 0, session.step_inputs(step));
    return StepDecision::kRun;
  }
  static Status after(void* context, const Session& session, std::size_t step) {
    const std::size_t inputs = session.step_inputs(step);
    static_cast<Recorder*>(context)->record(session, step, inputs, inputs + session.step_outputs(step));
    return ok_status();
  }

  void record(const Session& session, std::size_t step, std::size_t first, std::size_t end) {
    for (std::size_t i = first; i < end; ++i) record(report_.steps[step].operands[i], session.step_operand(step, i));
  }

  void record(const OperandReport& operand, const Tensor& tensor) {
    // Without passes nothing is turned; a value that is has no tensor of that shape in the file.
    if (operand.tensor.empty() || !operand.layout.empty()) return;
    tensors_.add(operand.tensor, copy_of(tensor));
  }

  const ModelReport& report_;
  TensorSet tensors_;
};

/// The tensor that an entry of an archive stands for, or nothing when it belongs to another case.
std::optional<std::string> tensor_name(const std::string& entry, std::string& case_name) {
  if (!entry.starts_with("in.") && !entry.starts_with("out.")) return entry;
  const std::size_t first = entry.find('.');
  const std::size_t second = entry.find('.', first + 1);
  if (second == std::string::npos) return entry;
  const std::string entry_case = entry.substr(second + 1);
  if (case_name.empty()) case_name = entry_case;
  if (entry_case != case_name) return std::nullopt;
  return entry.substr(first + 1, second - first - 1);
}

}  // namespace

std::string sanitized(std::string_view name) {
  std::string out;
  for (const char c : name) {
    const bool keep = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
    out += keep ? c : '_';
  }
  return out;
}

void TensorSet::add(const std::string& name, const io::Array& array) {
  if (ambiguous_.contains(name)) return;
  const auto [it, fresh] = arrays_.try_emplace(name, array);
  if (fresh || (it->second.desc.type == array.desc.type && it->second.data == array.data)) return;
  arrays_.erase(it);
  ambiguous_.insert(name);
}

const io::Array* TensorSet::find(const std::string& name) const {
  auto it = arrays_.find(name);
  if (it == arrays_.end()) it = arrays_.find(sanitized(name));
  return it == arrays_.end() ? nullptr : &it->second;
}

std::vector<io::NamedArray> TensorSet::named_arrays() const {
  std::map<std::string, const io::Array*> by_name;
  for (const auto& [name, array] : arrays_) by_name.try_emplace(sanitized(name), &array);
  std::vector<io::NamedArray> result;
  for (const auto& [name, array] : by_name) result.push_back({name, *array});
  return result;
}

io::Array copy_of(const Tensor& tensor) {
  io::Array array;
  array.desc = *tensor.desc;
  array.desc.set_dense_strides();
  array.data.resize(static_cast<std::size_t>(array.desc.bytes()));
  const auto size = static_cast<std::size_t>(element_size(array.desc.type));
  walk_pairs(array.desc, Walk::of(array.desc), Walk::of(*tensor.desc), [&](std::int64_t to, std::int64_t from) {
    std::memcpy(array.data.data() + static_cast<std::size_t>(to) * size,
                static_cast<const std::byte*>(tensor.data) + static_cast<std::size_t>(from) * size, size);
  });
  return array;
}

Result<TensorSet> record_plain_run(const ModelSpec& model, const std::vector<io::NamedArray>& inputs) {
  CompileOptions options;
  options.backend = Backend::kReference;
  // The first pass only drops what nobody reads.
  options.stop_after = passes::all_passes().front().name;
  auto fleet = OpenFleet::compile({.models = {model}}, options);
  if (!fleet) return fail(std::move(fleet.error()).in("the plain reference"));
  Session& session = fleet->session(0);
  for (const io::NamedArray& input : inputs) {
    const int port = session.find_input(input.name);
    if (port < 0 || !same_shape_and_type(input.array.desc, *session.input_info(static_cast<std::size_t>(port)).desc))
      return fail(StatusCode::kInvalidArgument,
                  fmt::format("the plain reference has no input '{}' of that shape", input.name));
    if (!input.array.data.empty())
      std::memcpy(session.input(static_cast<std::size_t>(port)).data, input.array.data.data(), input.array.data.size());
  }
  Recorder recorder(fleet->compiled()->models().front());
  const Observer observer = recorder.observer();
  session.set_observer(&observer);
  if (const Status status = session.invoke(); !status.ok()) return fail(error_from(status).in("the plain reference"));
  recorder.record_outputs(session);
  TensorSet tensors = recorder.take();
  for (const io::NamedArray& input : inputs) tensors.add(input.name, input.array);
  return tensors;
}

std::map<std::string, TensorDesc> known_tensors(const Session& session, const ModelReport& report) {
  std::map<std::string, TensorDesc> known;
  for (std::size_t s = 0; s < session.step_count(); ++s)
    for (std::size_t i = 0; i < report.steps[s].operands.size(); ++i)
      if (const std::string& name = report.steps[s].operands[i].tensor; !name.empty())
        known.emplace(name, *session.step_operand(s, i).desc);
  for (std::size_t i = 0; i < session.input_count(); ++i)
    known.emplace(session.input_info(i).name, *session.input_info(i).desc);
  return known;
}

Result<TensorSet> read_tensor_set(const std::filesystem::path& archive, const std::string& case_name,
                                  const std::map<std::string, TensorDesc>& wanted) {
  auto reader = io::NpzReader::open(archive.string());
  if (!reader) return fail(std::move(reader.error()));
  std::map<std::string, TensorDesc> by_name = wanted;
  for (const auto& [name, desc] : wanted) by_name.emplace(sanitized(name), desc);
  TensorSet tensors;
  std::string chosen_case = case_name;
  for (const std::string& entry : reader->names()) {
    const auto name = tensor_name(entry, chosen_case);
    const auto known = name ? by_name.find(*name) : by_name.end();
    if (known == by_name.end()) continue;
    auto array = reader->read(entry);
    if (!array) return fail(std::move(array.error()));
    if (array->desc.type == known->second.type && array->desc.elements() == known->second.elements())
      tensors.add(*name, *array);
  }
  if (tensors.size() > 0) return tensors;
  return fail(StatusCode::kInvalidArgument,
              fmt::format("{}: no entry{} is a tensor of the model", archive.string(),
                          case_name.empty() ? "" : fmt::format(" of case '{}'", case_name)),
              "give a file with the model's tensors; `bantam compare --help` tells how its entries are called");
}

}  // namespace bantam::diagnose
