// bantam pack: compile and plan a fleet into one .bantam file.
#include <fmt/format.h>

#include <memory>

#include "cli.h"
#include "compiler/kernel_list.h"
#include "io/file.h"

namespace bantam::cli {
namespace {

struct PackArguments {
  ModelOptions models;
  std::string output;
  std::string kernels;
  bool json = false;
};

Result<void> write_kernels(const PackArguments& options, const Compiled& compiled) {
  Package package;
  const Status opened = Package::open(compiled.package(), &package);
  if (!opened.ok()) return fail(error_from(opened));
  return io::write_file(options.kernels, compiler::kernel_list(package));
}

int pack(const PackArguments& options) {
  const auto fleet = options.models.fleet();
  if (!fleet) return report(fleet.error());
  Progress progress(options.json);
  progress.show("compiling and planning ...");
  const auto compiled = compile(fleet->spec, options.models.compile_options());
  progress.clear();
  if (!compiled) return report(compiled.error());
  if (auto written = io::write_file(options.output, compiled->package()); !written) return report(written.error());
  if (!options.kernels.empty())
    if (auto written = write_kernels(options, *compiled); !written) return report(written.error());
  const Requirements& need = compiled->requirements();
  if (options.json) {
    nlohmann::json j = requirements_json(need);
    j["file"] = options.output;
    j["file_bytes"] = compiled->package().size();
    j["target"] = options.models.target;
    print_json(j);
  } else {
    fmt::print("{}: {} bytes, of them {} of weights; runs in an arena of {} bytes{}\n", options.output,
               compiled->package().size(), need.weights_bytes, need.arena_bytes,
               options.models.target == "host" ? "" : " on " + options.models.target);
  }
  return kExitOk;
}

}  // namespace

void add_pack(CLI::App& app, int* exit_code) {
  CLI::App* command = app.add_subcommand("pack", "write a planned fleet as one .bantam package");
  auto options = std::make_shared<PackArguments>();
  options->models.add_to(*command, true);
  options->models.add_target(*command);
  command->add_option("-o,--output", options->output, "the package to write")->required()->type_name("FILE.bantam");
  command->add_option("--kernels", options->kernels, "also list the kernels that the package calls, for a firmware")
      ->type_name("FILE.inc");
  command->add_flag("--json", options->json, "print JSON");
  command->footer(
      "Examples:\n"
      "  bantam pack models/demo.toml -o demo.bantam\n"
      "  bantam pack fleet.toml --target cortex-m4 -o fleet.bantam --kernels kernels.inc");
  command->callback([=] { *exit_code = pack(*options); });
}

}  // namespace bantam::cli
