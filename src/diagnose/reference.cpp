#include "diagnose/reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <map>
#include <optional>
#include <utility>

#include "bantam/open_fleet.h"
#include "diagnose/tensor_set.h"
#include "import/import.h"
#include "io/array.h"
#include "io/npz.h"

namespace bantam::diagnose {
namespace {

using io::Array;

/// One invoke: entries of the archive by port.
struct Step {
  std::map<std::string, std::string> inputs;  ///< sanitized port -> entry
  std::map<std::string, std::string> outputs;
};

struct Case {
  std::string name;
  std::map<std::int64_t, Step> steps;  ///< by number; a plain case has step 0 only
};

/// "speech-s12" -> ("speech", 12); "rand0" -> ("rand0", 0).
std::pair<std::string, std::int64_t> split_case(const std::string& name) {
  const std::size_t mark = name.rfind("-s");
  if (mark == std::string::npos) return {name, 0};
  std::int64_t step = 0;
  const char* const first = name.data() + mark + 2;
  const char* const last = name.data() + name.size();
  const auto [end, code] = std::from_chars(first, last, step);
  if (first == last || code != std::errc() || end != last) return {name, 0};
  return {name.substr(0, mark), step};
}

std::vector<Case> group_cases(const std::vector<std::string>& entries) {
  std::vector<Case> cases;
  std::map<std::string, std::size_t> index;
  for (const std::string& entry : entries) {
    const bool input = entry.starts_with("in.");
    const std::size_t first = entry.find('.');
    const std::size_t second = entry.find('.', first + 1);
    if ((!input && !entry.starts_with("out.")) || second == std::string::npos) continue;
    const std::string port = entry.substr(first + 1, second - first - 1);
    const auto [name, number] = split_case(entry.substr(second + 1));
    const auto [it, fresh] = index.try_emplace(name, cases.size());
    if (fresh) cases.push_back({name, {}});
    Step& step = cases[it->second].steps[number];
    (input ? step.inputs : step.outputs)[port] = entry;
  }
  return cases;
}

/// Adds the differences between an output and its reference to a check.
void add_difference(const Array& expected, const Tensor& actual, const Tolerance& tolerance, OutputCheck& check) {
  // Nothing is written through the reference.
  const Tensor reference{const_cast<std::byte*>(expected.data.data()), &expected.desc};
  const Difference found = difference(actual, reference);
  check.elements += found.elements;
  check.mismatches += found.mismatches;
  check.max_absolute_error = std::max(check.max_absolute_error, found.absolute);
  check.max_relative_error = std::max(check.max_relative_error, found.relative);
  check.within = check.within && tolerance.allows(found, actual.desc->type);
}

class ReferenceChecker {
 public:
  ReferenceChecker(const ModelSpec& model, const ReferenceOptions& options) : model_(model), options_(options) {}

  Result<ReferenceReport> run(const std::filesystem::path& path) {
    auto archive = io::NpzReader::open(path.string());
    if (!archive) return fail(std::move(archive.error()));
    archive_ = &*archive;
    const std::vector<Case> cases = group_cases(archive->names());
    if (cases.empty())
      return fail(StatusCode::kInvalidArgument,
                  path.string() + ": no entry is named in.<tensor>.<case> or out.<tensor>.<case>",
                  "give a reference file; `bantam verify --help` tells its form");
    auto names = read_port_names();
    if (!names) return fail(std::move(names.error()));
    ReferenceReport report;
    report.within = true;
    for (const Case& c : cases) {
      if (options_.progress) options_.progress(report.cases, static_cast<std::int64_t>(cases.size()), c.name);
      auto checked = check_case(c, report);
      if (!checked) return fail(std::move(checked.error()).in(fmt::format("case '{}'", c.name)));
      ++report.cases;
    }
    report.within = !report.checks.empty() && std::all_of(report.checks.begin(), report.checks.end(),
                                                          [](const OutputCheck& check) { return check.within; });
    return report;
  }

 private:
  /// Sanitized name -> declared name of every input, for the shapes given to the compiler.
  Result<void> read_port_names() {
    auto source = import::open_source(model_.path);
    if (!source) return fail(std::move(source.error()));
    auto declaration = import::declare_model(*source);
    if (!declaration) return fail(std::move(declaration.error()));
    for (const DeclaredPort& port : declaration->inputs) {
      input_names_[sanitized(port.name)] = port.name;
      input_dims_[sanitized(port.name)] = port.dims;
    }
    return {};
  }

  Result<void> check_case(const Case& c, ReferenceReport& report) {
    std::map<std::string, OutputCheck> checks;
    OpenFleet* fleet = nullptr;
    for (const auto& [number, step] : c.steps) {
      std::map<std::string, Array> inputs;
      for (const auto& [port, entry] : step.inputs) {
        auto array = archive_->read(entry);
        if (!array) return fail(std::move(array.error()));
        inputs.emplace(port, std::move(*array));
      }
      auto opened = open(inputs);
      if (!opened) return fail(std::move(opened.error()));
      if (*opened != fleet) {
        if (fleet != nullptr)
          return fail(StatusCode::kUnsupported, "the shapes of a sequence change between its steps");
        fleet = *opened;
        fleet->session(0).reset();
      }
      if (auto sized = set_sizes(fleet->session(0), inputs); !sized) return sized;
      if (auto done = check_step(fleet->session(0), step, inputs, checks); !done)
        return fail(std::move(done.error()).in(fmt::format("step {}", number)));
    }
    for (auto& [name, check] : checks) {
      check.case_name = c.name;
      report.checks.push_back(std::move(check));
    }
    return {};
  }

  /// The session for these input shapes, compiled on first use.
  Result<OpenFleet*> open(const std::map<std::string, Array>& inputs) {
    std::string key;
    ModelSpec spec = model_;
    for (const auto& [port, array] : inputs) {
      const auto name = input_names_.find(port);
      if (name == input_names_.end())
        return fail(StatusCode::kInvalidArgument,
                    fmt::format("the reference feeds '{}', which is no input of the model", port),
                    "give the reference file of this model");
      if (spec.values.contains(name->second)) continue;
      if (follows_sizes(port)) continue;
      key += fmt::format("{} {};", port, io::describe(array.desc));
      spec.shapes[name->second].assign(array.desc.dims, array.desc.dims + array.desc.rank);
    }
    if (auto found = find_or_compile(key, spec)) return *found;
    // Integer scalars may select branches and set shapes (a sample rate, an offset): then they are constants per case.
    for (const auto& [port, array] : inputs) {
      if (array.desc.rank != 0 || array.desc.type != ElementType::kI64) continue;
      const std::int64_t value = io::elements_of<std::int64_t>(array).front();
      spec.values[input_names_[port]] = {static_cast<double>(value)};
      spec.shapes.erase(input_names_[port]);
      key += fmt::format("{} = {};", port, value);
    }
    return find_or_compile(key, spec);
  }

  /// Has the input a dimension that is not fixed when the model is compiled?
  bool follows_sizes(const std::string& port) const {
    const auto dims = input_dims_.find(port);
    return dims != input_dims_.end() && std::ranges::any_of(dims->second, [&](const std::string& dim) {
             return model_.bounds.contains(dim) || model_.formulas.contains(dim);
           });
  }

  /// Brings the session to the sizes of these inputs.
  Result<void> set_sizes(Session& session, const std::map<std::string, Array>& inputs) const {
    std::vector<DimSize> sizes;
    for (const auto& [port, array] : inputs) {
      const auto dims = input_dims_.find(port);
      for (std::size_t d = 0; dims != input_dims_.end() && d < dims->second.size(); ++d)
        if (d < array.desc.rank && model_.bounds.contains(dims->second[d]))
          sizes.push_back({dims->second[d], array.desc.dims[d]});
    }
    if (const Status set = session.set_dims(sizes); !set.ok())
      return fail(error_from(set, "give each dimension a bound that no case exceeds"));
    return {};
  }

  Result<OpenFleet*> find_or_compile(const std::string& key, const ModelSpec& spec) {
    if (const auto it = fleets_.find(key); it != fleets_.end()) return &it->second;
    auto fleet = OpenFleet::compile({{spec}, {}, {}, {}}, options_.compile);
    if (!fleet) return fail(std::move(fleet.error()));
    return &fleets_.emplace(key, std::move(*fleet)).first->second;
  }

  Result<void> check_step(Session& session, const Step& step, const std::map<std::string, Array>& inputs,
                          std::map<std::string, OutputCheck>& checks) {
    for (std::size_t i = 0; i < session.input_count(); ++i) {
      const PortInfo info = session.input_info(i);
      const auto array = inputs.find(sanitized(info.name));
      if (array == inputs.end())
        return fail(StatusCode::kInvalidArgument, fmt::format("the reference has nothing for input '{}'", info.name),
                    "give the reference file of this model");
      if (!same_shape_and_type(array->second.desc, *info.desc))
        return fail(StatusCode::kInvalidArgument,
                    fmt::format("input '{}' is {}, the reference has {}", info.name, io::describe(*info.desc),
                                io::describe(array->second.desc)),
                    "give the reference file of this model");
      if (!array->second.data.empty())
        std::memcpy(session.input(i).data, array->second.data.data(), array->second.data.size());
    }
    if (const Status s = session.invoke(); !s.ok()) return fail(error_from(s));
    for (const auto& [port, entry] : step.outputs) {
      auto done = check_output(session, port, entry, checks);
      if (!done) return done;
    }
    return {};
  }

  Result<void> check_output(Session& session, const std::string& port, const std::string& entry,
                            std::map<std::string, OutputCheck>& checks) {
    std::optional<std::size_t> index;
    for (std::size_t i = 0; i < session.output_count(); ++i)
      if (sanitized(session.output_info(i).name) == port) index = i;
    if (!index)
      return fail(StatusCode::kInvalidArgument, fmt::format("the model has no output '{}'", port),
                  "give the reference file of this model");
    const PortInfo info = session.output_info(*index);
    auto expected = archive_->read(entry);
    if (!expected) return fail(std::move(expected.error()));
    if (!same_shape_and_type(expected->desc, *info.desc))
      return fail(StatusCode::kInvalidModel,
                  fmt::format("output '{}' is {}, the reference has {}", info.name, io::describe(*info.desc),
                              io::describe(expected->desc)),
                  "give the reference file of this model");
    const auto [it, fresh] = checks.try_emplace(port);
    OutputCheck& check = it->second;
    if (fresh) {
      check.output = info.name;
      check.type = element_type_name(info.desc->type);
      check.steps = 0;
      check.within = true;
    }
    ++check.steps;
    add_difference(*expected, session.output(*index), options_.tolerance, check);
    return {};
  }

  const ModelSpec& model_;
  const ReferenceOptions& options_;
  const io::NpzReader* archive_ = nullptr;
  std::map<std::string, std::string> input_names_;
  std::map<std::string, std::vector<std::string>> input_dims_;  ///< as declared
  std::map<std::string, OpenFleet> fleets_;
};

}  // namespace

Result<ReferenceReport> check_reference(const ModelSpec& model, const std::filesystem::path& reference,
                                        const ReferenceOptions& options) {
  return ReferenceChecker(model, options).run(reference);
}

}  // namespace bantam::diagnose
