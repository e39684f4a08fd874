#include "cli.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <set>
#include <utility>

#include "compiler/backends.h"
#include "compiler/memory_profiles.h"
#include "compiler/narrow_weights.h"
#include "import/import.h"
#include "io/array.h"
#include "io/file.h"
#include "package/format.h"

namespace bantam::cli {
namespace {

template <typename T>
Result<std::vector<T>> parse_numbers(const std::string& text, std::string_view separators, const char* option) {
  std::vector<T> numbers;
  std::size_t start = 0;
  while (start <= text.size()) {
    const std::size_t end = std::min(text.find_first_of(separators, start), text.size());
    T number{};
    const char* const first = text.data() + start;
    const char* const last = text.data() + end;
    const auto [parsed, code] = std::from_chars(first, last, number);
    if (code != std::errc() || parsed != last || first == last)
      return fail(StatusCode::kInvalidArgument,
                  fmt::format("{}: '{}' is not a number", option, text.substr(start, end - start)),
                  fmt::format("see `bantam --help` for the form of {}", option));
    numbers.push_back(number);
    start = end + 1;
  }
  return numbers;
}

bool begins_as_package(const std::string& file) {
  const auto head = io::MappedFile::open(file);
  return head && head->bytes().size() >= sizeof format::kMagic &&
         std::memcmp(head->bytes().data(), format::kMagic, sizeof format::kMagic) == 0;
}

/// What to do about errors whose finder knows no better.
const char* general_remedy(StatusCode code) {
  switch (code) {
    case StatusCode::kInvalidModel: return "check the model file, or export it again";
    case StatusCode::kUnsupported: return "use another value, or export the model with other operators or types";
    case StatusCode::kIo: return "check the path, the permissions and the space left on the disk";
    default: return "correct what the message names; `bantam --help` and the help of each command show examples";
  }
}

using Assignment = std::pair<std::string, std::string>;

/// Names that the models of a fleet declare. With one model every option is meant for it, and the importer tells when a
/// name is wrong; with several, an option goes to those that know its name.
class DeclaredNames {
 public:
  explicit DeclaredNames(const FleetSpec& spec) : names_(spec.models.size()), outputs_(spec.models.size()) {
    if (spec.models.size() < 2) return;
    for (std::size_t i = 0; i < names_.size(); ++i) {
      const auto source = import::open_source(spec.models[i].path);
      if (!source) continue;  // compiling reports it
      const auto declaration = import::declare_model(*source);
      if (!declaration) continue;
      for (const DeclaredPort& port : declaration->inputs) {
        names_[i].insert(port.name);
        names_[i].insert(port.dims.begin(), port.dims.end());
      }
      for (const DeclaredPort& port : declaration->outputs) outputs_[i].insert(port.name);
    }
  }

  bool concerns(std::size_t model, const std::string& name) const {
    return names_.size() < 2 || names_[model].contains(name);
  }
  bool has_output(std::size_t model, const std::string& name) const {
    return outputs_.size() < 2 || outputs_[model].contains(name);
  }

 private:
  std::vector<std::set<std::string>> names_;  ///< of inputs and dimensions
  std::vector<std::set<std::string>> outputs_;
};

/// Adds each PATTERN=BACKEND to the one model that there is.
Result<void> add_backend_rules(const std::vector<std::string>& rules, FleetSpec& spec) {
  if (!rules.empty() && spec.models.size() != 1)
    return fail(StatusCode::kInvalidArgument, "--backend-of: several models are given",
                "among several models use the key 'backends' of the fleet file");
  for (const std::string& text : rules) {
    const auto rule = split_assignment(text, "--backend-of");
    if (!rule) return fail(rule.error());
    const auto id = compiler::backend_from_name(rule->second);
    if (!id)
      return fail(StatusCode::kInvalidArgument,
                  fmt::format("--backend-of {}: there is no backend '{}'", text, rule->second),
                  "use one of: " + compiler::backend_names());
    spec.models.front().backends.push_back({rule->first, *id});
  }
  return {};
}

/// Adds each TYPE, for all nodes of all models, or PATTERN=TYPE, for the one model that there is.
Result<void> add_store_rules(const std::vector<std::string>& rules, FleetSpec& spec) {
  for (const std::string& text : rules) {
    // Names of nodes may hold an equals sign, types do not.
    const std::size_t equals = text.rfind('=');
    const bool for_all = equals == std::string::npos;
    if (!for_all && spec.models.size() != 1)
      return fail(StatusCode::kInvalidArgument, "--store: several models are given",
                  "among several models use the key 'store' of the fleet file, or a type for all");
    const auto rule =
        compiler::store_rule(for_all ? "*" : text.substr(0, equals), text.substr(for_all ? 0 : equals + 1));
    if (!rule) return fail(Error(rule.error()).in("--store " + text));
    for (ModelSpec& model : spec.models) model.stores.push_back(*rule);
  }
  return {};
}

/// Adds each NODE=N to the one model that there is.
Result<void> add_iterations(const std::vector<std::string>& texts, FleetSpec& spec) {
  if (!texts.empty() && spec.models.size() != 1)
    return fail(StatusCode::kInvalidArgument, "--iterations: several models are given",
                "among several models use the key 'iterations' of the fleet file");
  for (const std::string& text : texts) {
    // Names of nodes may hold an equals sign, numbers do not.
    const std::size_t equals = text.rfind('=');
    const auto number = equals == std::string::npos
                            ? Result<std::vector<std::int64_t>>()
                            : parse_numbers<std::int64_t>(text.substr(equals + 1), ",", "--iterations");
    if (!number || number->size() != 1 || equals == 0)
      return fail(StatusCode::kInvalidArgument, fmt::format("--iterations {}: NODE=N is expected", text),
                  "put the loop's name, an equals sign and the most iterations");
    spec.models.front().iterations[text.substr(0, equals)] = number->front();
  }
  return {};
}

/// Adds each tensor name to a list of every model that it concerns.
Result<void> add_tensor_names(const std::vector<std::string>& tensors, const char* option, const DeclaredNames& names,
                              FleetSpec& spec, std::vector<std::string> ModelSpec::*list) {
  for (const std::string& tensor : tensors) {
    bool used = false;
    for (std::size_t i = 0; i < spec.models.size(); ++i) {
      if (!names.has_output(i, tensor)) continue;
      used = true;
      (spec.models[i].*list).push_back(tensor);
    }
    if (!used)
      return fail(StatusCode::kInvalidArgument, fmt::format("{} {}: no model has such an output", option, tensor),
                  "among several models only outputs can be named so; for other tensors use the fleet file");
  }
  return {};
}

/// Calls set(model, assignment) for every NAME=VALUE and every model that it concerns.
template <typename F>
Result<void> for_each_assignment(const std::vector<std::string>& texts, const char* option, const DeclaredNames& names,
                                 FleetSpec& spec, F&& set) {
  for (const std::string& text : texts) {
    const auto assignment = split_assignment(text, option);
    if (!assignment) return fail(assignment.error());
    bool used = false;
    for (std::size_t i = 0; i < spec.models.size(); ++i) {
      if (!names.concerns(i, assignment->first)) continue;
      used = true;
      if (auto done = set(spec.models[i], *assignment); !done) return done;
    }
    if (!used)
      return fail(StatusCode::kInvalidArgument,
                  fmt::format("{} {}: no model has '{}'", option, text, assignment->first),
                  "`bantam inspect MODEL` lists a model's inputs and dimensions");
  }
  return {};
}

}  // namespace

int report(const Error& error) {
  fmt::print(stderr, "bantam: {}\n", printable(error.message));
  fmt::print(stderr, "  to mend it: {}\n", error.remedy.empty() ? general_remedy(error.code) : printable(error.remedy));
  return error.code == StatusCode::kArenaTooSmall ? kExitOverBudget : kExitFailed;
}

Result<std::pair<std::string, std::string>> split_assignment(const std::string& text, const char* option) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0)
    return fail(StatusCode::kInvalidArgument, fmt::format("{} {}: NAME=VALUE is expected", option, text),
                "put a name, an equals sign and a value");
  return std::pair(text.substr(0, equals), text.substr(equals + 1));
}

void ModelOptions::add_to(CLI::App& command, bool many) {
  auto* files_option =
      command
          .add_option("model", files,
                      many ? "model files (ONNX, TFLite), one fleet file (TOML), or one .bantam package"
                           : "a model file (ONNX or TFLite), a fleet file (TOML) or a .bantam package")
          ->required()
          ->type_name("FILE");
  if (!many) files_option->expected(1);
  command.add_option("--dim", dims, "value of a symbolic dimension, for all models")->type_name("NAME=N");
  command
      .add_option("--bound", bounds, "largest size of a symbolic dimension, which may then change at run time up to it")
      ->type_name("NAME=N");
  command
      .add_option("--sizes", sizes,
                  "sizes of a symbolic dimension: a plan for each, in one package with the weights once")
      ->type_name("NAME=N,...")
      ->allow_extra_args(false);
  command.add_option("--formula", formulas, "a symbolic dimension that follows others, e.g. \"MASK=(T - 3) / 4 + 64\"")
      ->type_name("NAME=FORMULA");
  command.add_option("--shape", shapes, "whole shape of an input")->type_name("INPUT=1x3x320x320");
  command.add_option("--set", values, "fix an input to a constant; it stops being an input")->type_name("INPUT=X,...");
  command.add_option("--count", counts, "the most that an input counts, a number or a symbolic dimension, for sizes")
      ->type_name("INPUT=N|DIM");
  command.add_option("--iterations", iterations, "the most iterations of a loop that sets no limit itself")
      ->type_name("NODE=N");
  command.add_option("--state", states, "carry an output over to an input of the next invoke")
      ->type_name("INPUT=OUTPUT");
  command.add_option("--outputs", outputs, "compute only these outputs, or other tensors, and what they need")
      ->type_name("NAME,...")
      ->delimiter(',')
      ->allow_extra_args(false);
  command.add_option("--keep", keep, "intermediate tensors that become outputs too")
      ->type_name("NAME,...")
      ->delimiter(',')
      ->allow_extra_args(false);
  command.add_option("--budget", budget, "bytes of arena not to exceed, e.g. 512KiB")->type_name("N");
  command
      .add_option("--memory", memories,
                  "a memory of the device, its size and what an access costs; several may be given")
      ->type_name("NAME=SIZE:COST")
      ->allow_extra_args(false);
  command
      .add_option("--weights", weights,
                  "the memory that holds the package; what is often read there is streamed to a faster one")
      ->type_name("NAME");
  command.add_flag("--resident", resident,
                   "keep weights in what the memories have left, those first that are read most");
  std::set<std::string> profiles;
  std::string profile_summaries = "memories of a device:";
  for (const compiler::MemoryProfile& known : compiler::memory_profiles()) {
    profile_summaries += fmt::format("{} {} ({})", profiles.empty() ? "" : ";", known.name, known.summary);
    profiles.emplace(known.name);
  }
  command.add_option("--profile", profile, profile_summaries)->check(CLI::IsMember(profiles));
  command.add_flag("--external-inputs", external_inputs,
                   "inputs stay in memory of the application, outside the arena, and are not written to");
  std::string summaries = "who computes, unless the fleet file says so:";
  std::set<std::string> names;
  for (const compiler::BackendDef& def : compiler::all_backends()) {
    names.emplace(def.name);
    summaries += fmt::format("{} {} ({})", names.size() == 1 ? "" : ";", def.name, def.summary);
  }
  command.add_option("--backend", backend, summaries)->check(CLI::IsMember(names));
  command.add_option("--backend-of", backend_rules, "another backend for an output's branch, or nodes by pattern")
      ->type_name("OUTPUT|PATTERN=BACKEND")
      ->allow_extra_args(false);
  command
      .add_option(
          "--store", store_rules,
          "type in which the package stores f32 weights, of all nodes or by pattern: " + compiler::store_type_names())
      ->type_name("TYPE|PATTERN=TYPE")
      ->allow_extra_args(false);
  command.add_flag("--no-bands", no_bands, "compute no layers in bands of rows just because that is faster");
  command.add_option("--threads", threads, "threads per invoke")->check(CLI::Range(1, 64));
  command.add_option("--cpus", cpus, "processors that the threads are bound to, one each in turn, such as 2,3")
      ->delimiter(',')
      ->check(CLI::Range(0, 1023))
      ->allow_extra_args(false);
}

void ModelOptions::add_target(CLI::App& command) {
  std::vector<std::string> names;
  for (const Target& known : all_targets()) names.emplace_back(known.name);
  command.add_option("--target", target, "the machine that will run the package")->check(CLI::IsMember(names));
}

bool ModelOptions::is_package() const { return files.size() == 1 && begins_as_package(files.front()); }

Result<FleetFile> ModelOptions::fleet() const {
  FleetFile result;
  for (const std::string& file : files)
    if (begins_as_package(file))
      return fail(StatusCode::kInvalidArgument,
                  fmt::format("{}: a package is planned already; models are wanted", file),
                  "give the models it was packed from, or the package alone to `bantam run` or `bantam bench`");
  if (files.size() == 1 && files.front().ends_with(".toml")) {
    auto read = read_fleet_file(files.front());
    if (!read) return read;
    result = std::move(*read);
  } else {
    for (const std::string& file : files) {
      ModelSpec model;
      model.path = file;
      model.name = model.path.stem().string();
      result.feeds.push_back({model.name, {}, {}, {}});
      result.spec.models.push_back(std::move(model));
    }
  }
  if (auto applied = apply(result.spec); !applied) return fail(std::move(applied.error()));
  if (external_inputs)
    for (ModelSpec& model : result.spec.models) model.external_inputs = true;
  if (!budget.empty()) {
    const auto bytes = parse_bytes(budget);
    if (!bytes) return fail(Error(bytes.error()).in("--budget"));
    result.spec.budget = *bytes;
  }
  if (auto applied = apply_memories(result.spec); !applied) return fail(std::move(applied.error()));
  return expand_families(std::move(result));
}

Result<void> ModelOptions::apply_memories(FleetSpec& spec) const {
  if (!profile.empty()) {
    auto found = compiler::find_memory_profile(profile);
    if (!found) return fail(std::move(found.error()));
    spec.memories = std::move(found->memories);
    spec.weights = std::move(found->weights);
  } else if (!memories.empty()) {
    spec.memories.clear();
    spec.weights.clear();
  }
  for (const std::string& text : memories) {
    auto memory = compiler::parse_memory(text);
    if (!memory) return fail(std::move(memory.error()).in("--memory"));
    spec.memories.push_back(std::move(*memory));
  }
  if (!weights.empty()) spec.weights = weights;
  spec.resident = spec.resident || resident;
  return {};
}

Result<void> ModelOptions::apply(FleetSpec& spec) const {
  DeclaredNames names(spec);
  const auto set_size = [&](const std::vector<std::string>& texts, const char* option,
                            std::map<std::string, std::int64_t> ModelSpec::*field) {
    return for_each_assignment(texts, option, names, spec, [&](ModelSpec& model, const Assignment& a) -> Result<void> {
      const auto number = parse_numbers<std::int64_t>(a.second, ",", option);
      if (!number || number->size() != 1)
        return fail(StatusCode::kInvalidArgument,
                    fmt::format("{} {}={}: one integer is expected", option, a.first, a.second),
                    fmt::format("write it like {} batch=1", option));
      (model.*field)[a.first] = number->front();
      return {};
    });
  };
  auto done = set_size(dims, "--dim", &ModelSpec::dims);
  if (!done) return done;
  done = set_size(bounds, "--bound", &ModelSpec::bounds);
  if (!done) return done;
  done = for_each_assignment(sizes, "--sizes", names, spec, [](ModelSpec& model, const Assignment& a) -> Result<void> {
    auto numbers = parse_numbers<std::int64_t>(a.second, ",", "--sizes");
    if (!numbers) return fail(std::move(numbers.error()));
    model.sizes[a.first] = std::move(*numbers);
    return {};
  });
  if (!done) return done;
  done = for_each_assignment(formulas, "--formula", names, spec, [](ModelSpec& model, const Assignment& a) {
    model.formulas[a.first] = a.second;
    return Result<void>();
  });
  if (!done) return done;
  done = for_each_assignment(shapes, "--shape", names, spec, [](ModelSpec& model, const Assignment& a) -> Result<void> {
    std::vector<std::int64_t>& shape = model.shapes[a.first];
    if (a.second.empty()) return {};
    auto numbers = parse_numbers<std::int64_t>(a.second, "x,", "--shape");
    if (!numbers) return fail(std::move(numbers.error()));
    shape = std::move(*numbers);
    return {};
  });
  if (!done) return done;
  done = for_each_assignment(values, "--set", names, spec, [](ModelSpec& model, const Assignment& a) -> Result<void> {
    auto numbers = parse_numbers<double>(a.second, ",", "--set");
    if (!numbers) return fail(std::move(numbers.error()));
    model.values[a.first] = std::move(*numbers);
    return {};
  });
  if (!done) return done;
  done = for_each_assignment(counts, "--count", names, spec, [](ModelSpec& model, const Assignment& a) -> Result<void> {
    model.counts[a.first] = a.second;
    return {};
  });
  if (!done) return done;
  done = for_each_assignment(states, "--state", names, spec, [](ModelSpec& model, const Assignment& a) -> Result<void> {
    model.states.push_back(a);
    return {};
  });
  if (!done) return done;
  done = add_backend_rules(backend_rules, spec);
  if (!done) return done;
  done = add_store_rules(store_rules, spec);
  if (!done) return done;
  done = add_iterations(iterations, spec);
  if (!done) return done;
  done = add_tensor_names(outputs, "--outputs", names, spec, &ModelSpec::outputs);
  if (!done) return done;
  return add_tensor_names(keep, "--keep", names, spec, &ModelSpec::keep);
}

CompileOptions ModelOptions::compile_options() const {
  CompileOptions options;
  options.backend = compiler::backend_from_name(backend).value_or(Backend::kFast);
  options.threads = threads;
  options.cpus = cpus;
  options.bands = !no_bands;
  if (const auto known = find_target(target)) options.target = *known;  // the command line takes no other names
  return options;
}

Result<OpenFleet> ModelOptions::open(const FleetFile& fleet) const {
  return is_package() ? OpenFleet::load(files.front(), threads, cpus)
                      : OpenFleet::compile(fleet.spec, compile_options());
}

Result<std::vector<OutputSet>> ModelOptions::output_sets(OpenFleet& fleet) const {
  std::vector<OutputSet> sets(fleet.size(), OutputSet::all());
  if (!is_package()) return sets;
  if (!keep.empty())
    return fail(StatusCode::kInvalidArgument, "--keep: a package is planned already", "pack it again with --keep");
  std::set<std::string> unknown(outputs.begin(), outputs.end());
  for (std::size_t i = 0; i < fleet.size(); ++i) {
    OutputSet chosen;
    for (const std::string& name : outputs) {
      const int output = fleet.session(i).find_output(name);
      if (output < 0) continue;
      chosen.add(static_cast<std::size_t>(output));
      unknown.erase(name);
    }
    if (chosen.marks() != 0) sets[i] = chosen;
  }
  if (unknown.empty()) return sets;
  return fail(StatusCode::kInvalidArgument,
              fmt::format("--outputs {}: no session of the package has such an output", *unknown.begin()),
              "run the package without --outputs to see its outputs, or pack it again with --keep");
}

std::string format_bytes(std::uint64_t bytes) {
  if (bytes < 10240) return fmt::format("{} B", bytes);
  if (bytes < (10U << 20)) return fmt::format("{:.1f} KiB", static_cast<double>(bytes) / 1024);
  return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20));
}

std::string format_table(const std::vector<std::vector<std::string>>& rows, const std::vector<bool>& right) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows)
    for (std::size_t c = 0; c < row.size(); ++c) {
      if (c == widths.size()) widths.push_back(0);
      widths[c] = std::max(widths[c], row[c].size());
    }
  std::string out;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t c = 0; c < row.size(); ++c) {
      const bool to_right = c < right.size() && right[c];
      line += fmt::format("{}{:{}}{}", c == 0 ? "" : "  ", to_right ? "" : row[c],
                          to_right ? widths[c] - row[c].size() : widths[c], to_right ? row[c] : "");
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

std::string describe_tensor(const TensorDesc& desc) { return io::describe(desc); }

std::string describe_fallbacks(const std::map<std::string, std::int64_t>& reasons) {
  std::string lines;
  for (const auto& [reason, steps] : reasons)
    lines += fmt::format("  fallback of {} step{}: {}\n", steps, steps == 1 ? "" : "s", reason);
  return lines;
}

std::string printable(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if ((static_cast<unsigned char>(c) < 0x20 && c != '\n') || c == 0x7f) c = '?';
  return out;
}

void print_json(const nlohmann::json& document) {
  fmt::print("{}\n", document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

nlohmann::json requirements_json(const Requirements& need) {
  return {{"arena_bytes", need.arena_bytes},    {"alignment", need.alignment},
          {"table_bytes", need.table_bytes},    {"state_bytes", need.state_bytes},
          {"link_bytes", need.link_bytes},      {"activation_bytes", need.activation_bytes},
          {"weights_bytes", need.weights_bytes}};
}

Progress::Progress(bool quiet) : active_(!quiet && isatty(STDERR_FILENO) != 0) {}

Progress::~Progress() { clear(); }

void Progress::show(const std::string& text) {
  if (!active_) return;
  fmt::print(stderr, "\r\033[K{}", printable(text));
  std::fflush(stderr);
  shown_ = true;
}

void Progress::clear() {
  if (shown_) fmt::print(stderr, "\r\033[K");
  std::fflush(stderr);
  shown_ = false;
}

}  // namespace bantam::cli
