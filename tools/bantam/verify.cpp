// bantam verify: run a model on recorded inputs and compare with recorded outputs.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "cli.h"
#include "diagnose/reference.h"

namespace bantam::cli {
namespace {

struct VerifyArguments {
  ModelOptions models;
  std::string reference;
  double tolerance = -1;
  bool json = false;
};

/// What helps to judge a difference; nothing where only integers differ, which are right or wrong.
void explain(const diagnose::ReferenceReport& result) {
  const bool floats = std::ranges::any_of(result.checks, [](const diagnose::OutputCheck& c) {
    const ElementType type = element_type_from_name(c.type.data(), c.type.size());
    return !c.within && is_float(type);
  });
  if (floats)
    fmt::print(
        "`bantam compare` names the operator that is wrong. If it finds none, rounding errors have grown on the "
        "way, as they do\nwhere large terms cancel and a logarithm or a normalisation enlarges what is left; "
        "--tolerance then says what is allowed.\n");
}

int verify(const VerifyArguments& options) {
  const auto fleet = options.models.fleet();
  if (!fleet) return report(fleet.error());
  if (fleet->spec.models.size() != 1)
    return report({StatusCode::kInvalidArgument, "verify takes one model", "give one model file"});
  Progress progress(options.json);
  diagnose::ReferenceOptions check;
  check.compile = options.models.compile_options();
  if (options.tolerance >= 0) check.tolerance.floats = check.tolerance.integers = options.tolerance;
  check.progress = [&](std::int64_t done, std::int64_t total, const std::string& name) {
    progress.show(fmt::format("case {} of {}: {}", done + 1, total, name));
  };
  const auto result = diagnose::check_reference(fleet->spec.models.front(), options.reference, check);
  progress.clear();
  if (!result) return report(result.error());
  if (options.json) {
    nlohmann::json j = {{"within", result->within}, {"cases", result->cases}, {"checks", nlohmann::json::array()}};
    for (const diagnose::OutputCheck& c : result->checks)
      j["checks"].push_back({{"case", c.case_name},
                             {"output", c.output},
                             {"type", c.type},
                             {"steps", c.steps},
                             {"elements", c.elements},
                             {"mismatches", c.mismatches},
                             {"max_absolute_error", c.max_absolute_error},
                             {"max_relative_error", c.max_relative_error},
                             {"within", c.within}});
    print_json(j);
    return result->within ? kExitOk : kExitFailed;
  }
  std::vector<std::vector<std::string>> rows = {
      {"case", "steps", "output", "type", "elements", "differ", "max abs", "max rel", ""}};
  for (const diagnose::OutputCheck& c : result->checks)
    rows.push_back({printable(c.case_name), std::to_string(c.steps), printable(c.output), c.type,
                    std::to_string(c.elements), std::to_string(c.mismatches),
                    fmt::format("{:.3g}", c.max_absolute_error), fmt::format("{:.3g}", c.max_relative_error),
                    c.within ? "ok" : "WRONG"});
  fmt::print("{}", format_table(rows, {false, true, false, false, true, true, true, true}));
  fmt::print("{} cases: {}\n", result->cases, result->within ? "all within tolerance" : "NOT within tolerance");
  explain(*result);
  return result->within ? kExitOk : kExitFailed;
}

}  // namespace

void add_verify(CLI::App& app, int* exit_code) {
  CLI::App* command = app.add_subcommand("verify", "compare with recorded outputs");
  auto options = std::make_shared<VerifyArguments>();
  options->models.add_to(*command, false);
  command->add_option("--reference", options->reference, "recorded inputs and outputs")
      ->required()
      ->type_name("FILE.npz");
  command
      ->add_option(
          "--tolerance", options->tolerance,
          "largest error allowed: of float outputs relative to the tensor's largest magnitude (default 1e-4), of "
          "integer outputs in steps (default 0)")
      ->check(CLI::NonNegativeNumber);
  command->add_flag("--json", options->json, "print JSON");
  command->footer(
      "The file's entries are in.<tensor>.<case> and out.<tensor>.<case>; in names, characters outside [A-Za-z0-9_] "
      "are\n"
      "written _. Cases that end in -s0, -s1, ... are steps of a sequence, run in order on one session that was fresh "
      "at\n"
      "-s0; all other cases start fresh. Exit code 0 only if every output of every case is within tolerance.\n"
      "Examples:\n"
      "  bantam verify model.tflite --reference model.npz\n"
      "  bantam verify model.onnx --reference model.npz --tolerance 1e-3 --json");
  command->callback([=] { *exit_code = verify(*options); });
}

}  // namespace bantam::cli
