// bantam tune: measures every layer with every kernel that it may have, and packs the models with the fastest.
#include "diagnose/tune.h"

#include <fmt/format.h>

#include <memory>

#include "cli.h"
#include "feed/feeder.h"
#include "io/file.h"

namespace bantam::cli {
namespace {

struct TuneArguments {
  ModelOptions models;
  diagnose::TuneOptions tune;
  std::string output;
  bool json = false;
};

nlohmann::json tuning_json(const diagnose::Tuning& tuning) {
  nlohmann::json document = {{"compared", tuning.compared},
                             {"before_us", tuning.before_us},
                             {"after_us", tuning.after_us},
                             {"layers", nlohmann::json::array()}};
  for (const diagnose::TunedLayer& l : tuning.layers)
    document["layers"].push_back({{"model", l.model},
                                  {"layer", l.layer},
                                  {"operator", l.op},
                                  {"kernel_before", l.before},
                                  {"kernel", l.after},
                                  {"before_us", l.before_us},
                                  {"after_us", l.after_us}});
  return document;
}

void print_tuning(const diagnose::Tuning& tuning) {
  fmt::print("{} layers have a choice of kernels, {} got another one: {:.1f} us -> {:.1f} us\n", tuning.compared,
             tuning.layers.size(), tuning.before_us, tuning.after_us);
  if (tuning.layers.empty()) return;
  std::vector<std::vector<std::string>> rows = {{"model", "layer", "operator", "kernel", "us", "tuned", "us"}};
  for (const diagnose::TunedLayer& l : tuning.layers)
    rows.push_back({printable(l.model), printable(l.layer), l.op, l.before, fmt::format("{:.1f}", l.before_us), l.after,
                    fmt::format("{:.1f}", l.after_us)});
  fmt::print("{}", format_table(rows, {false, false, false, false, true, false, true}));
}

/// Lines for a fleet file that make later compilations choose alike.
void print_rules(const FleetSpec& fleet) {
  for (const ModelSpec& model : fleet.models) {
    if (model.kernels.empty()) continue;
    fmt::print("\n# model '{}'\nkernels = {{", printable(model.name));
    const char* separator = " ";
    for (const KernelRule& rule : model.kernels) {
      // TOML's basic strings are written as JSON's.
      fmt::print("{}{} = \"{}\"", separator, nlohmann::json(rule.pattern).dump(), rule.kernel);
      separator = ", ";
    }
    fmt::print(" }}\n");
  }
}

int tune(const TuneArguments& options) {
  const auto fleet = options.models.fleet();
  if (!fleet) return report(fleet.error());
  const CompileOptions compile_options = options.models.compile_options();
  Progress progress(options.json);
  diagnose::TuneOptions tune_options = options.tune;
  tune_options.fill = feed::fill_random;
  tune_options.progress = [&](const std::string& what) { progress.show(what); };
  const auto tuning = diagnose::tune(fleet->spec, compile_options, tune_options);
  progress.clear();
  if (!tuning) return report(tuning.error());
  nlohmann::json document = tuning_json(*tuning);
  if (!options.json) print_tuning(*tuning);
  if (!options.output.empty()) {
    const auto compiled = compile(tuning->fleet, compile_options);
    if (!compiled) return report(compiled.error());
    if (auto written = io::write_file(options.output, compiled->package()); !written) return report(written.error());
    document["file"] = options.output;
    if (!options.json) fmt::print("{}: {} bytes\n", options.output, compiled->package().size());
  }
  if (options.json) {
    print_json(document);
  } else if (!tuning->layers.empty()) {
    print_rules(tuning->fleet);
  }
  return kExitOk;
}

}  // namespace

void add_tune(CLI::App& app, int* exit_code) {
  CLI::App* command = app.add_subcommand("tune", "measure which kernels are fastest here, and pack with them");
  auto options = std::make_shared<TuneArguments>();
  options->models.add_to(*command, true);
  command->add_option("-o,--output", options->output, "write the tuned models as a package")->type_name("FILE.bantam");
  command->add_option("--rounds", options->tune.rounds, "rounds in which all kernels take turns")
      ->check(CLI::Range(1, 1000));
  command->add_option("--seconds", options->tune.seconds, "of one kernel in one round")->check(CLI::Range(0.0, 3600.0));
  command->add_flag("--json", options->json, "print JSON");
  command->footer(
      "Kernels are measured in the model, on this machine, with --threads. Without -o, only the finding is printed;\n"
      "the lines `kernels = ...` go under [[model]] of a fleet file, so that later compilations choose alike.\n"
      "Examples:\n"
      "  bantam tune models/demo.toml -o demo.bantam\n"
      "  bantam tune model.onnx --rounds 20");
  command->callback([=] { *exit_code = tune(*options); });
}

}  // namespace bantam::cli
