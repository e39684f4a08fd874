#include "support/conformance_case.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "bantam/compiler.h"
#include "bantam/declaration.h"
#include "compiler/testing/placed_fleet.h"
#include "import/import.h"
#include "import/onnx/constant.h"
#include "import/onnx/model.h"
#include "io/array.h"

namespace bantam::testing {
namespace {

using compiler::testing::PlacedFleet;

struct NamedArray {
  std::string name;
  io::Array array;
};

struct DataSet {
  std::vector<NamedArray> inputs;
  std::vector<NamedArray> outputs;
};

/// The tensor of a .pb file. Where a port is bf16, some files call its bits uint16.
Result<io::Array> read_tensor_file(const std::filesystem::path& path, ElementType port_type) {
  const auto source = import::open_source(path);
  if (!source) return fail(source.error());
  const auto proto = import::onnx::read_tensor(source->bytes);
  if (!proto) return fail(proto.error());
  const auto constant = import::onnx::ConstantReader(*source).read(*proto);
  if (!constant) return fail(constant.error());
  io::Array array{constant->desc, {constant->data.bytes.begin(), constant->data.bytes.end()}};
  if (port_type == ElementType::kBF16 && array.desc.type == ElementType::kU16) array.desc.type = ElementType::kBF16;
  return array;
}

Result<std::vector<NamedArray>> read_ports(const std::filesystem::path& folder, const char* kind,
                                           const std::vector<DeclaredPort>& ports) {
  std::vector<NamedArray> tensors;
  for (std::size_t i = 0; i < ports.size(); ++i) {
    auto array = read_tensor_file(folder / fmt::format("{}_{}.pb", kind, i), ports[i].type);
    if (!array) return fail(Error(array.error()).in(fmt::format("{} {}", kind, i)));
    tensors.push_back({ports[i].name, std::move(*array)});
  }
  return tensors;
}

/// Elements as double; the 64-bit integers of the tests are small.
std::vector<double> numbers_of(const io::Array& array) {
  std::vector<double> numbers;
  io::with_element_type(array.desc.type, [&]<typename T>(std::type_identity<T>) {
    for (const T element : io::elements_of<T>(array)) numbers.push_back(static_cast<double>(io::number_of(element)));
  });
  return numbers;
}

/// ONNX's own tolerance for floats; integers must be equal.
bool close(ElementType type, double expected, double found) {
  if (std::isnan(expected) || std::isnan(found)) return std::isnan(expected) && std::isnan(found);
  if (expected == found) return true;
  return is_float(type) && std::abs(expected - found) <= 1e-6 + 1e-3 * std::abs(expected);
}

std::string compare(const io::Array& expected, const Tensor& found) {
  if (!same_shape_and_type(expected.desc, *found.desc))
    return fmt::format("is {}, expected {}", io::describe(*found.desc), io::describe(expected.desc));
  io::Array copy{*found.desc, std::vector<std::byte>(static_cast<std::size_t>(found.desc->bytes()))};
  if (!copy.data.empty()) std::memcpy(copy.data.data(), found.data, copy.data.size());
  const auto a = numbers_of(expected);
  const auto b = numbers_of(copy);
  for (std::size_t i = 0; i < a.size(); ++i)
    if (!close(expected.desc.type, a[i], b[i]))
      return fmt::format("element {} of {} is {}, expected {}", i, io::describe(*found.desc), b[i], a[i]);
  return {};
}

class ConformanceCase {
 public:
  explicit ConformanceCase(std::filesystem::path folder) : folder_(std::move(folder)) {}

  CaseOutcome run() {
    CaseOutcome outcome;
    outcome.problem = read();
    if (!outcome.problem.empty()) return outcome;
    outcome.inputs = sets_.front().inputs.size();
    outcome.problem = choose_fixed_inputs();
    if (!outcome.problem.empty()) return outcome;
    outcome.fixed = fixed_.size();
    for (const Backend backend : {Backend::kFast, Backend::kReference})
      for (const DataSet& set : sets_) {
        outcome.problem = check(set, backend);
        if (outcome.problem.empty()) continue;
        outcome.problem += backend == Backend::kReference ? " (plain kernels)" : "";
        return outcome;
      }
    return outcome;
  }

  Result<graph::Graph> import() {
    if (auto problem = read(); !problem.empty()) return fail(StatusCode::kInvalidModel, problem);
    if (auto problem = choose_fixed_inputs(); !problem.empty()) return fail(StatusCode::kUnsupported, problem);
    return import_with(fixed_);
  }

 private:
  std::filesystem::path model() const { return folder_ / "model.onnx"; }

  std::string read() {
    const auto declared = declare(model());
    if (!declared) return declared.error().message;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      if (!entry.is_directory()) continue;
      auto inputs = read_ports(entry.path(), "input", declared->inputs);
      if (!inputs) return inputs.error().message;
      auto outputs = read_ports(entry.path(), "output", declared->outputs);
      if (!outputs) return outputs.error().message;
      sets_.push_back({std::move(*inputs), std::move(*outputs)});
    }
    return sets_.empty() ? "the folder has no data sets" : "";
  }

  /// The model with these inputs as constants.
  Result<graph::Graph> import_with(const std::set<std::string>& fixed) const {
    const auto source = import::open_source(model());
    if (!source) return fail(source.error());
    const ModelSpec spec = model_spec(sets_.front(), fixed);
    const import::Options options{spec.dims, spec.shapes, spec.values, spec.counts, spec.states};
    return import::import_model(*source, options);
  }

  /// As few inputs as possible become constants: none; else integers behind the first input; else all behind it; else
  /// all; and of those, only the ones that the importer does not do without.
  std::string choose_fixed_inputs() {
    const std::vector<NamedArray>& inputs = sets_.front().inputs;
    std::array<std::set<std::string>, 4> choices;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const ElementType type = inputs[i].array.desc.type;
      choices[3].insert(inputs[i].name);
      if (i == 0) continue;
      choices[2].insert(inputs[i].name);
      if (type == ElementType::kI64 || type == ElementType::kI32) choices[1].insert(inputs[i].name);
    }
    std::string first_problem;
    for (const std::set<std::string>& choice : choices) {
      const auto graph = import_with(choice);
      if (first_problem.empty() && !graph) first_problem = graph.error().message;
      if (!graph) continue;
      fixed_ = choice;
      for (const std::string& name : choice) {
        std::set<std::string> fewer = fixed_;
        fewer.erase(name);
        if (import_with(fewer)) fixed_ = fewer;
      }
      return {};
    }
    return first_problem;
  }

  ModelSpec model_spec(const DataSet& set, const std::set<std::string>& fixed) const {
    ModelSpec spec{.name = "model", .path = model()};
    for (const auto& [name, array] : set.inputs) {
      spec.shapes[name].assign(array.desc.dims, array.desc.dims + array.desc.rank);
      if (fixed.contains(name)) spec.values[name] = numbers_of(array);
    }
    return spec;
  }

  std::string check(const DataSet& set, Backend backend) const {
    FleetSpec fleet;
    fleet.models.push_back(model_spec(set, fixed_));
    const auto compiled = compile(fleet, {.backend = backend});
    if (!compiled) return compiled.error().message;
    auto placed = compiler::testing::place_package(compiled->package());
    if (!placed) return "the runtime refuses the package";
    Session& session = *placed->fleet->session(0);
    if (auto problem = fill(session, set); !problem.empty()) return problem;
    if (const Status status = session.invoke(); !status.ok()) return error_from(status).message;
    for (const auto& [name, expected] : set.outputs) {
      const int port = session.find_output(name);
      if (port < 0) return "there is no output " + name;
      if (auto difference = compare(expected, session.output(static_cast<std::size_t>(port))); !difference.empty())
        return fmt::format("output {} {}", name, difference);
    }
    return {};
  }

  static std::string fill(Session& session, const DataSet& set) {
    for (const auto& [name, array] : set.inputs) {
      const int port = session.find_input(name);
      if (port < 0) continue;  // a constant
      const Tensor input = session.input(static_cast<std::size_t>(port));
      if (!same_shape_and_type(array.desc, *input.desc))
        return fmt::format("input {} is {}, the data are {}", name, io::describe(*input.desc),
                           io::describe(array.desc));
      if (!array.data.empty()) std::memcpy(input.data, array.data.data(), array.data.size());
    }
    return {};
  }

  std::filesystem::path folder_;
  std::vector<DataSet> sets_;
  std::set<std::string> fixed_;
};

}  // namespace

CaseOutcome run_conformance_case(const std::filesystem::path& folder) { return ConformanceCase(folder).run(); }

Result<graph::Graph> import_conformance_case(const std::filesystem::path& folder) {
  return ConformanceCase(folder).import();
}

}  // namespace bantam::testing
