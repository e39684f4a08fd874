#include "diagnose/reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "bantam/open_fleet.h"
#include "import/import.h"
#include "io/array.h"
#include "io/npz.h"

namespace bantam::diagnose {
namespace {

using io::Array;

std::string sanitized(std::string_view name) {
  std::string out;
  for (const char c : name) {
    const bool keep = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
    out += keep ? c : '_';
  }
  return out;
}

/// Absolute error that float outputs always may have: the sigmoid and softmax of the engines that record references
/// are this far from exact for results near zero, so that a tensor of such results has no meaningful relative error.
constexpr double kFloatFloor = 4 * 0x1p-23;

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
template <typename T>
void compare(const Array& expected, const Tensor& actual, double tolerance, OutputCheck& check) {
  const auto reference = io::elements_of<T>(expected);
  const T* values = actual.as<T>();
  double largest = 0;
  double error = 0;
  for (std::size_t i = 0; i < reference.size(); ++i) {
    const auto e = static_cast<double>(io::number_of(reference[i]));
    const auto a = static_cast<double>(io::number_of(values[i]));
    const bool same = e == a || (std::isnan(e) && std::isnan(a));
    if (same) {
      largest = std::isfinite(e) ? std::max(largest, std::abs(e)) : largest;
      continue;
    }
    ++check.mismatches;
    const double difference = std::abs(e - a);
    // A NaN or infinity where the reference has a number is never within tolerance.
    error = std::isnan(difference) ? std::numeric_limits<double>::infinity() : std::max(error, difference);
    largest = std::isfinite(e) ? std::max(largest, std::abs(e)) : largest;
  }
  check.elements += static_cast<std::int64_t>(reference.size());
  check.max_absolute_error = std::max(check.max_absolute_error, error);
  const double relative = error == 0 ? 0 : error / std::max(largest, 1e-30);
  check.max_relative_error = std::max(check.max_relative_error, relative);
  const bool within = is_float(expected.desc.type) ? relative <= tolerance || error <= kFloatFloor : error <= tolerance;
  check.within = check.within && within;
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
    for (const DeclaredPort& port : declaration->inputs) input_names_[sanitized(port.name)] = port.name;
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
    const double tolerance = is_float(info.desc->type) ? options_.float_tolerance : options_.integer_tolerance;
    io::with_element_type(info.desc->type, [&]<typename T>(std::type_identity<T>) {
      compare<T>(*expected, session.output(*index), tolerance, check);
    });
    return {};
  }

  const ModelSpec& model_;
  const ReferenceOptions& options_;
  const io::NpzReader* archive_ = nullptr;
  std::map<std::string, std::string> input_names_;
  std::map<std::string, OpenFleet> fleets_;
};

}  // namespace

Result<ReferenceReport> check_reference(const ModelSpec& model, const std::filesystem::path& reference,
                                        const ReferenceOptions& options) {
  return ReferenceChecker(model, options).run(reference);
}

}  // namespace bantam::diagnose
