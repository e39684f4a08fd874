// bantam pack: compile and plan a fleet into one .bantam file.
#include <fmt/format.h>

#include <memory>

#include "cli.h"
#include "io/file.h"

namespace bantam::cli {
namespace {

struct Options {
  ModelOptions models;
  std::string output;
  bool json = false;
};

int pack(const Options& options) {
  const auto fleet = options.models.fleet();
  if (!fleet) return report(fleet.error());
  Progress progress(options.json);
  progress.show("compiling and planning ...");
  const auto compiled = compile(fleet->spec, options.models.compile_options());
  progress.clear();
  if (!compiled) return report(compiled.error());
  if (auto written = io::write_file(options.output, compiled->package()); !written) return report(written.error());
  const Requirements& need = compiled->requirements();
  if (options.json) {
    nlohmann::json j = requirements_json(need);
    j["file"] = options.output;
    j["file_bytes"] = compiled->package().size();
    print_json(j);
  } else {
    fmt::print("{}: {} bytes, of them {} of weights; runs in an arena of {} bytes\n", options.output,
               compiled->package().size(), need.weights_bytes, need.arena_bytes);
  }
  return kExitOk;
}

}  // namespace

void add_pack(CLI::App& app, int* exit_code) {
  CLI::App* command = app.add_subcommand("pack", "write a planned fleet as one .bantam package");
  auto options = std::make_shared<Options>();
  options->models.add_to(*command, true);
  command->add_option("-o,--output", options->output, "the package to write")->required()->type_name("FILE.bantam");
  command->add_flag("--json", options->json, "print JSON");
  command->callback([=] { *exit_code = pack(*options); });
}

}  // namespace bantam::cli
