// bantam compare: names the first operator whose own error is too large.
#include "diagnose/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>

#include "cli.h"
#include "diagnose/tensor_set.h"
#include "feed/feeder.h"
#include "peer/record.h"

namespace bantam::cli {
namespace {

constexpr const char* kPlain = "reference";
constexpr const char* kPeer = "onnxruntime";
/// Rows of the table unless --all is given.
constexpr std::size_t kRowsShown = 12;

struct CompareArguments {
  ModelOptions models;
  std::string against = kPlain;
  std::vector<std::string> inputs;
  std::optional<double> fill;
  std::uint32_t seed = 1;
  std::string case_name;
  std::string library;
  std::string record;
  double tolerance = -1;
  bool all = false;
  bool json = false;
};

/// Fills the session as the options say and gives copies of what it holds.
Result<std::vector<io::NamedArray>> make_inputs(const CompareArguments& options, const SessionFeed& given,
                                                Session& session) {
  SessionFeed feed = given;
  feed.steps.clear();
  for (const std::string& text : options.inputs) {
    const auto assignment = split_assignment(text, "--input");
    if (!assignment) return fail(assignment.error());
    feed.inputs[assignment->first] = assignment->second;
  }
  for (std::size_t i = 0; i < session.input_count(); ++i)
    feed.inputs.try_emplace(std::string(session.input_info(i).name), options.fill
                                                                         ? fmt::format("fill:{}", *options.fill)
                                                                         : fmt::format("random:{}", options.seed + i));
  auto feeder = feed::Feeder::create(feed, session, {});
  if (!feeder) return fail(std::move(feeder.error()));
  if (auto filled = feeder->fill(session, 0); !filled) return fail(std::move(filled.error()));
  std::vector<io::NamedArray> inputs;
  for (std::size_t i = 0; i < session.input_count(); ++i)
    inputs.push_back({std::string(session.input_info(i).name), diagnose::copy_of(session.input(i))});
  return inputs;
}

Result<std::unique_ptr<peer::Library>> open_peer(const CompareArguments& options) {
  std::filesystem::path path = options.library;
  if (path.empty()) path = peer::Library::find("build/onnxruntime");
  if (path.empty())
    return fail(StatusCode::kNotFound, "no ONNX Runtime under build/onnxruntime",
                "run bench/fetch_onnxruntime.sh, or name its libonnxruntime.so.1 with --library");
  return peer::Library::open(path);
}

Result<diagnose::TensorSet> record_peer(const CompareArguments& options, const ModelSpec& model,
                                        const std::vector<io::NamedArray>& inputs) {
  const auto library = open_peer(options);
  if (!library) return fail(library.error());
  const auto tensors = peer::record_all_tensors(**library, model.path, inputs, model.values, model.dims);
  if (!tensors) return fail(tensors.error());
  diagnose::TensorSet set;
  for (const io::NamedArray& input : inputs) set.add(input.name, input.array);
  for (const io::NamedArray& tensor : *tensors) set.add(tensor.name, tensor.array);
  return set;
}

/// What --against names; recorded inputs replace those that the options made.
Result<diagnose::TensorSet> make_reference(const CompareArguments& options, const ModelSpec& model,
                                           const Session& session, const ModelReport& report,
                                           std::vector<io::NamedArray>& inputs) {
  if (options.against == kPlain) return diagnose::record_plain_run(model, inputs);
  if (options.against == kPeer) return record_peer(options, model, inputs);
  auto set = diagnose::read_tensor_set(options.against, options.case_name, diagnose::known_tensors(session, report));
  if (!set) return set;
  for (io::NamedArray& input : inputs) {
    const io::Array* recorded = set->find(input.name);
    if (recorded != nullptr && same_shape_and_type(recorded->desc, input.array.desc)) input.array = *recorded;
  }
  return set;
}

std::string step_text(const ModelReport& report, std::size_t step) {
  const StepReport& s = report.steps[step];
  return fmt::format("step {}: {} by {}, from '{}' ({})", step, s.op, s.variant, printable(s.name),
                     printable(s.origin));
}

/// All checks, or the worst and the first fault, in the order of execution.
std::vector<const diagnose::TensorCheck*> rows_to_show(const diagnose::Comparison& comparison, bool all) {
  std::vector<const diagnose::TensorCheck*> rows;
  for (const diagnose::TensorCheck& check : comparison.checks) rows.push_back(&check);
  if (all || rows.size() <= kRowsShown) return rows;
  std::ranges::stable_sort(rows, [](const auto* a, const auto* b) { return a->own.relative > b->own.relative; });
  rows.resize(kRowsShown);
  if (comparison.first_fault) {
    const auto* first = &comparison.checks[*comparison.first_fault];
    if (std::ranges::find(rows, first) == rows.end()) rows.back() = first;
  }
  std::ranges::sort(rows, {}, [](const auto* check) { return check; });
  return rows;
}

void print_comparison(const CompareArguments& options, const ModelReport& report,
                      const diagnose::Comparison& comparison) {
  std::vector<std::vector<std::string>> table = {
      {"step", "operator", "kernel", "own abs", "own rel", "accumulated rel", "", "tensor"}};
  const auto rows = rows_to_show(comparison, options.all);
  for (const diagnose::TensorCheck* check : rows)
    table.push_back({std::to_string(check->step), report.steps[check->step].op, report.steps[check->step].variant,
                     fmt::format("{:.3g}", check->own.absolute), fmt::format("{:.3g}", check->own.relative),
                     fmt::format("{:.3g}", check->accumulated.relative), check->within ? "" : "WRONG",
                     printable(check->tensor)});
  fmt::print("{}", format_table(table, {true, false, false, true, true, true}));
  if (rows.size() < comparison.checks.size())
    fmt::print("(the {} largest own errors of {}; --all shows every one)\n", rows.size(), comparison.checks.size());
  fmt::print("{} steps; {} tensors compared; {} steps without a counterpart of their own\n", report.steps.size(),
             comparison.checks.size(), comparison.unmatched);
  if (!comparison.first_fault) {
    fmt::print("no operator's own error is too large\n");
    return;
  }
  const diagnose::TensorCheck& first = comparison.checks[*comparison.first_fault];
  fmt::print("first fault: tensor '{}': on right inputs its error is {:.3g}, {:.3g} of the largest magnitude\n",
             printable(first.tensor), first.own.absolute, first.own.relative);
  for (const std::size_t step : first.suspects)
    fmt::print("  {} {}\n", first.suspects.size() > 1 ? "computed by" : "by", step_text(report, step));
}

/// JSON has no infinity.
nlohmann::json number(double value) { return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json("inf"); }

nlohmann::json comparison_json(const CompareArguments& options, const ModelReport& report,
                               const diagnose::Comparison& comparison) {
  nlohmann::json j = {{"model", report.name},
                      {"against", options.against},
                      {"steps", report.steps.size()},
                      {"compared", comparison.checks.size()},
                      {"unmatched_steps", comparison.unmatched},
                      {"within", !comparison.first_fault.has_value()},
                      {"first_fault", nullptr},
                      {"checks", nlohmann::json::array()}};
  for (const diagnose::TensorCheck& check : comparison.checks) {
    const StepReport& step = report.steps[check.step];
    j["checks"].push_back({{"step", check.step},
                           {"operator", step.op},
                           {"kernel", step.variant},
                           {"node", step.name},
                           {"source", step.origin},
                           {"tensor", check.tensor},
                           {"elements", check.own.elements},
                           {"own_absolute", number(check.own.absolute)},
                           {"own_relative", number(check.own.relative)},
                           {"accumulated_absolute", number(check.accumulated.absolute)},
                           {"accumulated_relative", number(check.accumulated.relative)},
                           {"within", check.within},
                           {"suspects", check.suspects}});
  }
  if (comparison.first_fault) j["first_fault"] = j["checks"][*comparison.first_fault];
  return j;
}

int compare(const CompareArguments& options) {
  const auto spec = options.models.fleet();
  if (!spec) return report(spec.error());
  if (spec->spec.models.size() != 1)
    return report({StatusCode::kInvalidArgument, "compare takes one model", "give one model file"});
  CompileOptions compile_options = options.models.compile_options();
  compile_options.bands = false;  // what a layer gives in bands is no tensor of the model, and could not be compared
  auto fleet = OpenFleet::compile({.models = {spec->spec.models.front()}}, compile_options);
  if (!fleet) return report(fleet.error());
  Session& session = fleet->session(0);
  const ModelReport& model_report = fleet->compiled()->models().front();
  auto inputs = make_inputs(options, spec->feeds.empty() ? SessionFeed{} : spec->feeds.front(), session);
  if (!inputs) return report(inputs.error());
  const auto reference = make_reference(options, spec->spec.models.front(), session, model_report, *inputs);
  if (!reference) return report(reference.error());
  if (!options.record.empty())
    if (auto written = io::write_npz(options.record, reference->named_arrays()); !written)
      return report(written.error());
  diagnose::Tolerance tolerance;
  if (options.tolerance >= 0) tolerance.floats = tolerance.integers = options.tolerance;
  const auto comparison = diagnose::compare_steps(session, model_report, *reference, *inputs, tolerance);
  if (!comparison) return report(comparison.error());
  if (comparison->checks.empty())
    return report({StatusCode::kInvalidArgument,
                   fmt::format("{} knows no tensor that the model computes", options.against),
                   "give the recording of this model, or compare against 'reference'"});
  if (options.json) {
    print_json(comparison_json(options, model_report, *comparison));
  } else {
    print_comparison(options, model_report, *comparison);
  }
  return comparison->first_fault ? kExitFailed : kExitOk;
}

}  // namespace

void add_compare(CLI::App& app, int* exit_code) {
  CLI::App* command = app.add_subcommand("compare", "find the first operator that computes something wrong");
  auto options = std::make_shared<CompareArguments>();
  options->models.add_to(*command, false);
  command
      ->add_option("--against", options->against,
                   "what is right: 'reference' (plain kernels, graph as imported), 'onnxruntime', or recorded tensors")
      ->type_name("reference|onnxruntime|FILE.npz")
      ->capture_default_str();
  command->add_option("--input", options->inputs, "what feeds an input; see `bantam run --help`")
      ->type_name("NAME=SPEC");
  command->add_option("--fill", options->fill, "fill all other inputs with this value, e.g. 0.46875, exact in fp16");
  command->add_option("--seed", options->seed, "random numbers of all other inputs")->capture_default_str();
  command->add_option("--case", options->case_name, "of FILE.npz: which case (default: its first)")->type_name("NAME");
  command->add_option("--library", options->library, "libonnxruntime.so.1; default: the one in build/onnxruntime")
      ->type_name("FILE");
  command->add_option("--record", options->record, "write the tensors compared with")->type_name("FILE.npz");
  command
      ->add_option("--tolerance", options->tolerance,
                   "largest own error: floats relative to the tensor's largest magnitude (default 1e-4), integers in "
                   "steps (default 0)")
      ->check(CLI::NonNegativeNumber);
  command->add_flag("--all", options->all, "show every result, not only the worst");
  command->add_flag("--json", options->json, "print JSON");
  command->footer(
      "The model runs twice, as planned and packed: once as it is (accumulated error), once with every operand "
      "replaced\n"
      "by the right one (each operator's own error). Fused operators are compared where their last result has a name "
      "in\n"
      "the model. FILE.npz has entries called as tensors are, characters outside [A-Za-z0-9_] written _, or\n"
      "in.<tensor>.<case> and out.<tensor>.<case>. Exit code 0 only if no own error is too large.\n"
      "Examples:\n"
      "  bantam compare model.onnx --against onnxruntime --fill 0.46875\n"
      "  bantam compare model.tflite --against reference --input image=a.png --all\n"
      "  bantam compare model.onnx --record right.npz; bantam compare other.onnx --against right.npz");
  command->callback([=] { *exit_code = compare(*options); });
}

}  // namespace bantam::cli
