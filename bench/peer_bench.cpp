// bantam_peer_bench: Bantam against ONNX Runtime, in turn, in one process; one line per model.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "contest.h"
#include "schedule/processor/instruction_sets.h"
#include "tools/bantam/cli.h"

namespace bantam::bench {
namespace {

namespace fs = std::filesystem;

const fs::path kRoot = BANTAM_SOURCE_DIR;

struct Options {
  cli::ModelOptions models;
  ContestOptions contest;
  std::string library;
  double block_ms = 20;
  double max_ratio = 0;
  bool json = false;
};

/// What the command line names; by default the models of bench/models.toml that exist.
Result<std::vector<ModelSpec>> chosen_models(const cli::ModelOptions& given) {
  const bool by_default = given.files.empty();
  std::vector<ModelSpec> models;
  for (const std::string& file : by_default ? std::vector{(kRoot / "bench/models.toml").string()} : given.files) {
    cli::ModelOptions one = given;
    one.files = {file};
    auto fleet = one.fleet();
    if (!fleet) return fail(std::move(fleet.error()).in(file));
    for (ModelSpec& model : fleet->spec.models) {
      if (by_default && !fs::exists(model.path)) continue;
      model.states.clear();  // as fleet files may have them; both sides take states as plain inputs
      models.push_back(std::move(model));
    }
  }
  return models;
}

/// Bantam's, as 10^9 operations per second, two per multiply-accumulate.
double gops(const ContestRow& row) { return 2e-3 * static_cast<double>(row.work) / row.times.first_us; }

nlohmann::json row_json(const ContestRow& row) {
  return {{"model", row.model},
          {"fixed_initializers", row.fixed_initializers},
          {"bantam_median_us", row.times.first_us},
          {"onnxruntime_median_us", row.times.second_us},
          {"ratio", row.times.ratio},
          {"ratio_quartiles", {row.times.ratio_low, row.times.ratio_high}},
          {"multiplications", row.work},
          {"gops", gops(row)},
          {"roof_share", row.roof_share},
          {"max_relative_error", row.max_relative_error},
          {"rounds", row.times.rounds},
          {"calls_per_block", row.times.calls},
          {"preemptions", row.times.preemptions}};
}

std::string row_name(const ContestRow& row) { return row.model + (row.fixed_initializers ? " (fixed)" : ""); }

void print_row(const ContestRow& row) {
  fmt::print("{:32}  {:>11.1f}  {:>14.1f}  {:>6.2f}  {:>5.2f}..{:<5.2f}  {:>6.1f}  {:>5.0f} %  {:>8.1e}  {:>9}\n",
             cli::printable(row_name(row)), row.times.first_us, row.times.second_us, row.times.ratio,
             row.times.ratio_low, row.times.ratio_high, gops(row), 100 * row.roof_share, row.max_relative_error,
             row.times.preemptions);
  std::fflush(stdout);
}

int compare(Options& options) {
  const fs::path path =
      options.library.empty() ? peer::Library::find(kRoot / "build/onnxruntime") : fs::path(options.library);
  if (path.empty())
    return cli::report({StatusCode::kNotFound, "no ONNX Runtime under build/onnxruntime",
                        "run bench/fetch_onnxruntime.sh, or name the library with --library"});
  auto library = peer::Library::open(path);
  if (!library) return cli::report(library.error());
  const auto models = chosen_models(options.models);
  if (!models) return cli::report(models.error());

  const schedule::Roof roof = options.contest.roof = schedule::measure_roof();
  double load[1] = {0};
  getloadavg(load, 1);
  nlohmann::json document = {{"onnxruntime", (*library)->version()},
                             {"threads", options.models.threads},
                             {"load_average", load[0]},
                             {"roof", {{"f32_gops", 2e-9 * roof.float_macs}, {"int8_gops", 2e-9 * roof.integer_macs}}},
                             {"models", nlohmann::json::array()},
                             {"refused", nlohmann::json::array()}};
  if (!options.json) {
    fmt::print("ONNX Runtime {}, {} thread{}, load average {:.1f}\n", (*library)->version(), options.models.threads,
               options.models.threads == 1 ? "" : "s", load[0]);
    fmt::print("roof of one thread: {:.0f} Gop/s in f32, {:.0f} in int8\n", 2e-9 * roof.float_macs,
               2e-9 * roof.integer_macs);
    fmt::print("{:32}  {:>11}  {:>14}  {:>6}  {:>12}  {:>6}  {:>7}  {:>8}  {:>9}\n", "model", "bantam us",
               "onnxruntime us", "ratio", "quartiles", "Gop/s", "of roof", "error", "preempted");
  }
  int exit_code = cli::kExitOk;
  for (const ModelSpec& model : *models) {
    auto rows = run_contest(**library, model, options.contest);
    if (!rows) {
      const std::string name = model.name.empty() ? model.path.stem().string() : model.name;
      document["refused"].push_back({{"model", name}, {"error", rows.error().message}});
      exit_code = cli::report(std::move(rows.error()).in(name));
      continue;
    }
    for (const ContestRow& row : *rows) {
      document["models"].push_back(row_json(row));
      if (!options.json) print_row(row);
      if (options.max_ratio > 0 && row.times.ratio > options.max_ratio)
        exit_code = cli::report({StatusCode::kOutOfRange,
                                 fmt::format("{}: ratio {:.2f}, at most {:.2f} is asked for", row_name(row),
                                             row.times.ratio, options.max_ratio),
                                 "`bantam bench` shows which operators take the time"});
    }
  }
  if (options.json) cli::print_json(document);
  return exit_code;
}

int run(int argc, char** argv) {
  CLI::App app{
      "Times Bantam against ONNX Runtime on the same models and inputs, in turn, in one process.\n"
      "ratio: Bantam's time over ONNX Runtime's, below 1 is faster; the median over the rounds."};
  Options options;
  options.models.add_to(app, true);
  app.get_option("model")->required(false)->description(
      "ONNX models or fleet files; default: the models of bench/models.toml that exist");
  app.add_option("--library", options.library, "libonnxruntime.so.1; default: the one fetched into build/onnxruntime");
  app.add_option("--rounds", options.contest.alternate.rounds, "pairs of blocks")->check(CLI::Range(1, 10000));
  app.add_option("--block-ms", options.block_ms, "length of a block of the slower side")
      ->check(CLI::Range(0.1, 10000.0));
  app.add_option("--seed", options.contest.seed, "of the random inputs");
  app.add_option("--tolerance", options.contest.tolerance, "largest difference of the outputs, relative");
  app.add_option("--max-ratio", options.max_ratio, "exit 1 if a ratio is larger");
  app.add_flag("--json", options.json, "print JSON");
  CLI11_PARSE(app, argc, argv);
  if (auto limited = schedule::limit_instruction_set_by_environment(); !limited) return cli::report(limited.error());
  options.contest.compile = options.models.compile_options();
  options.contest.alternate.block_seconds = options.block_ms / 1000;
  return compare(options);
}

}  // namespace
}  // namespace bantam::bench

int main(int argc, char** argv) { return bantam::bench::run(argc, argv); }
