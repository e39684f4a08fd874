// What the subcommands share: exit codes, messages, model options, sizes as people write them.
//
// Errors go to stderr, one line of cause (or one per finding) and one of remedy. Results go to stdout. With --json,
// stdout carries one JSON document and nothing else.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bantam/compiler.h"
#include "bantam/open_fleet.h"
#include "compiler/fleet_file.h"

namespace bantam::cli {

inline constexpr int kExitOk = 0;
inline constexpr int kExitFailed = 1;      ///< the input is bad, or a check did not pass
inline constexpr int kExitUsage = 2;       ///< the command line is bad
inline constexpr int kExitOverBudget = 3;  ///< the plan does not fit the memory given

/// Each adds its subcommand; when it is chosen, its result goes to *exit_code.
void add_inspect(CLI::App& app, int* exit_code);
void add_plan(CLI::App& app, int* exit_code);
void add_pack(CLI::App& app, int* exit_code);
void add_run(CLI::App& app, int* exit_code);
void add_verify(CLI::App& app, int* exit_code);
void add_compare(CLI::App& app, int* exit_code);
void add_bench(CLI::App& app, int* exit_code);
void add_tune(CLI::App& app, int* exit_code);
void add_partition(CLI::App& app, int* exit_code);
void add_transcribe(CLI::App& app, int* exit_code);
void add_listen(CLI::App& app, int* exit_code);
void add_completion(CLI::App& app, int* exit_code);

/// Prints the error and returns the exit code that fits it.
int report(const Error& error);

/// Options that describe what to compile: model files or a fleet file, dimensions, states, kernels.
struct ModelOptions {
  std::vector<std::string> files;  ///< model files, one fleet file, or one package
  std::vector<std::string> dims;
  std::vector<std::string> bounds;
  std::vector<std::string> sizes;
  std::vector<std::string> formulas;
  std::vector<std::string> shapes;
  std::vector<std::string> values;
  std::vector<std::string> counts;
  std::vector<std::string> iterations;
  std::vector<std::string> states;
  std::vector<std::string> outputs;  ///< for a package: which of its outputs each invoke computes
  std::vector<std::string> keep;
  std::string budget;
  std::vector<std::string> memories;
  std::string weights;
  bool resident = false;
  std::string profile;
  bool external_inputs = false;
  std::string backend = "fast";
  std::string target = "host";
  std::vector<std::string> backend_rules;
  std::vector<std::string> store_rules;
  int threads = 1;
  bool no_bands = false;
  std::vector<int> cpus;

  /// `many`: more than one model file may be given.
  void add_to(CLI::App& command, bool many);
  /// For commands that do not run what they compile.
  void add_target(CLI::App& command);
  /// The fleet that the options describe; for model files, one session each. Fails for packages.
  Result<FleetFile> fleet() const;
  CompileOptions compile_options() const;
  /// Puts --profile, --memory and --weights into the fleet, in place of what its file says.
  Result<void> apply_memories(FleetSpec& spec) const;
  /// Puts the options into the models that they concern.
  Result<void> apply(FleetSpec& spec) const;
  bool is_package() const;
  /// Compiles, or maps when the file is a package (then `fleet` is not looked at).
  Result<OpenFleet> open(const FleetFile& fleet) const;
  /// By session: what an invoke shall compute. All outputs unless a package is run with --outputs; models are cut down
  /// to what --outputs names when they are compiled.
  Result<std::vector<OutputSet>> output_sets(OpenFleet& fleet) const;
};

/// Splits "NAME=VALUE"; an Error tells which option was meant.
Result<std::pair<std::string, std::string>> split_assignment(const std::string& text, const char* option);

/// "13.2 MiB (13840384)" for people.
std::string format_bytes(std::uint64_t bytes);

/// Pads columns with spaces; the first row is the heading; columns listed in `right` are aligned right.
std::string format_table(const std::vector<std::vector<std::string>>& rows, const std::vector<bool>& right);

/// "f32[1,3,320,320]"
std::string describe_tensor(const TensorDesc& desc);

/// One line per operator that did not get the backend that was asked for: why, and how often.
std::string describe_fallbacks(const std::map<std::string, std::int64_t>& reasons);

/// Text from untrusted files, with control characters (terminal escapes) replaced.
std::string printable(std::string_view text);

/// Prints a JSON document to stdout. Strings that are not UTF-8 are repaired.
void print_json(const nlohmann::json& document);

/// Requirements with the stable keys that every --json output uses.
nlohmann::json requirements_json(const Requirements& need);

/// A line on a terminal that is overwritten by the next; nothing when stderr is no terminal.
class Progress {
 public:
  explicit Progress(bool quiet);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void show(const std::string& text);
  void clear();

 private:
  bool active_;
  bool shown_ = false;
};

}  // namespace bantam::cli
