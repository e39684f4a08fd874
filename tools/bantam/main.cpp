// The command `bantam`: a thin client of the library.
#include <fmt/format.h>

#include "cli.h"
#include "schedule/processor/instruction_sets.h"

int main(int argc, char** argv) {
  CLI::App app("Bantam runs many neural networks on one small device, in memory fixed in advance.", "bantam");
  app.require_subcommand(1);
  app.set_version_flag("--version", BANTAM_VERSION);
  app.footer(
      "Examples:\n"
      "  bantam inspect model.onnx                       what is in a model, and which dimensions are open\n"
      "  bantam plan model.onnx --dim batch=1 --map m.html   where every byte goes, as a picture\n"
      "  bantam plan fleet.toml --budget 256KiB          does the fleet fit?\n"
      "  bantam pack fleet.toml -o fleet.bantam          everything planned, in one file\n"
      "  bantam run fleet.toml                           run it on the inputs that the fleet file names\n"
      "  bantam verify model.tflite --reference ref.npz  same results as recorded?\n"
      "  bantam compare model.onnx                       which operator is wrong first?\n"
      "  bantam bench model.onnx                         how long an invoke takes, by operator\n"
      "  bantam tune model.onnx -o model.bantam          the fastest kernel of every layer, by measuring\n"
      "  bantam partition check srmodels.bin             would a speech box read its model partition?\n"
      "  bantam transcribe talk.wav                      streaming speech recognition\n"
      "  bantam listen front-end.toml talk.wav           a speech front end on a recording\n"
      "BANTAM_CPU limits the instruction set of kernels; `bantam bench --kernels` lists those that there are.\n"
      "Exit codes: 0 success, 1 failure, 2 bad command line, 3 does not fit the budget.");
  int exit_code = bantam::cli::kExitOk;
  bantam::cli::add_inspect(app, &exit_code);
  bantam::cli::add_plan(app, &exit_code);
  bantam::cli::add_pack(app, &exit_code);
  bantam::cli::add_run(app, &exit_code);
  bantam::cli::add_verify(app, &exit_code);
  bantam::cli::add_compare(app, &exit_code);
  bantam::cli::add_bench(app, &exit_code);
  bantam::cli::add_tune(app, &exit_code);
  bantam::cli::add_partition(app, &exit_code);
  bantam::cli::add_transcribe(app, &exit_code);
  bantam::cli::add_listen(app, &exit_code);
  bantam::cli::add_completion(app, &exit_code);
  // CLI11 would only say that a command is missing.
  if (argc > 1 && argv[1][0] != '-' &&
      app.get_subcommands([&](const CLI::App* command) { return command->get_name() == argv[1]; }).empty()) {
    fmt::print(stderr, "There is no command '{}'\nRun with --help for more information.\n",
               bantam::cli::printable(argv[1]));
    return bantam::cli::kExitUsage;
  }
  if (auto limited = bantam::schedule::limit_instruction_set_by_environment(); !limited)
    return bantam::cli::report(limited.error());
  // CLI11 reports usage errors, --help and --version by exception.
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? bantam::cli::kExitOk : bantam::cli::kExitUsage;
  }
  return exit_code;
}
