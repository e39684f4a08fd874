// bantam bench: how long an invoke takes, and which operators take it.
#include <fmt/format.h>

#include <memory>

#include "cli.h"
#include "diagnose/allocations/allocation_counter.h"
#include "diagnose/benchmark.h"
#include "feed/feeder.h"
#include "ops/op.h"
#include "schedule/processor/instruction_sets.h"

namespace bantam::cli {
namespace {

struct BenchArguments {
  ModelOptions models;
  diagnose::BenchmarkOptions bench;
  bool kernels = false;
  bool json = false;
};

/// Fills inputs with seeded random values: all-zero data would flatter kernels that meet denormals or early exits.
Result<void> fill_random(Session& session) {
  SessionFeed feed;
  for (std::size_t i = 0; i < session.input_count(); ++i)
    feed.inputs[std::string(session.input_info(i).name)] = fmt::format("random:{}", i + 1);
  auto feeder = feed::Feeder::create(feed, session, {});
  if (!feeder) return fail(std::move(feeder.error()));
  return feeder->fill(session, 0);
}

/// The instruction sets of this build and the kernels of all operators, fastest first.
int list_kernels(bool json) {
  nlohmann::json document = {{"instruction_sets", nlohmann::json::array()}, {"operators", nlohmann::json::array()}};
  std::vector<std::vector<std::string>> sets = {{"instruction set", "", "processor has it", "used"}};
  for (const schedule::InstructionSet& set : schedule::instruction_sets()) {
    document["instruction_sets"].push_back(
        {{"name", set.name}, {"meaning", set.meaning}, {"available", set.available}, {"used", set.used}});
    sets.push_back(
        {std::string(set.name), std::string(set.meaning), set.available ? "yes" : "no", set.used ? "*" : ""});
  }
  std::vector<std::vector<std::string>> rows = {{"operator", "kernels, fastest first"}};
  for (const ops::OpDef* op : ops::all_ops()) {
    std::vector<std::string_view> names;
    for (const ops::KernelVariant& variant : op->variants) names.push_back(variant.name);
    document["operators"].push_back({{"operator", op->name}, {"kernels", names}});
    rows.push_back({std::string(op->name), fmt::format("{}", fmt::join(names, ", "))});
  }
  if (json) {
    print_json(document);
  } else {
    fmt::print("{}\n{}\nKernels called __simd are compiled for every instruction set above.\n",
               format_table(sets, {false, false, false, false}), format_table(rows, {false, false}));
  }
  return kExitOk;
}

int bench(const BenchArguments& options) {
  const auto spec = options.models.is_package() ? Result<FleetFile>(FleetFile{}) : options.models.fleet();
  if (!spec) return report(spec.error());
  auto fleet = options.models.open(*spec);
  if (!fleet) return report(fleet.error());
  const auto output_sets = options.models.output_sets(*fleet);
  if (!output_sets) return report(output_sets.error());
  nlohmann::json document = {{"sessions", nlohmann::json::array()}, {"threads", options.models.threads}};
  for (std::size_t i = 0; i < fleet->size(); ++i) {
    Session& session = fleet->session(i);
    // A session that lost its inputs to another one's activations would still be timed right; these are its own values.
    if (auto filled = fill_random(session); !filled) return report(filled.error());
    session.reset();
    const OutputSet outputs = (*output_sets)[i];
    if (const Status first = session.invoke(outputs); !first.ok()) return report(error_from(first));
    const std::uint64_t before = diagnose::allocation_count();
    constexpr int kCheckedInvokes = 3;
    for (int n = 0; n < kCheckedInvokes; ++n)
      if (const Status s = session.invoke(outputs); !s.ok()) return report(error_from(s));
    const std::uint64_t allocations = diagnose::allocation_count() - before;
    diagnose::BenchmarkOptions bench_options = options.bench;
    bench_options.outputs = outputs;
    const auto result = diagnose::benchmark(session, bench_options);
    if (!result) return report(result.error());
    nlohmann::json j = {{"name", session.name()},     {"median_us", result->median_us},
                        {"min_us", result->min_us},   {"p99_us", result->p99_us},
                        {"runs", result->runs},       {"threads", options.models.threads},
                        {"allocations", allocations}, {"operators", nlohmann::json::array()}};
    for (const diagnose::OperatorTime& t : result->operators)
      j["operators"].push_back({{"operator", t.op}, {"kernel", t.variant}, {"calls", t.calls}, {"us", t.microseconds}});
    if (fleet->size() == 1) document.update(j);
    document["sessions"].push_back(j);
    if (options.json) continue;
    fmt::print("{}: median {:.1f} us, min {:.1f}, p99 {:.1f}, {} runs, {} thread{}, {} allocations in {} invokes{}\n",
               printable(session.name()), result->median_us, result->min_us, result->p99_us, result->runs,
               options.models.threads, options.models.threads == 1 ? "" : "s", allocations, kCheckedInvokes,
               diagnose::counts_allocations() ? "" : " (not counted in this build)");
    std::vector<std::vector<std::string>> rows = {{"operator", "kernel", "calls", "us", "share"}};
    double total = 0;
    for (const diagnose::OperatorTime& t : result->operators) total += t.microseconds;
    for (const diagnose::OperatorTime& t : result->operators)
      rows.push_back({t.op, t.variant, std::to_string(t.calls), fmt::format("{:.1f}", t.microseconds),
                      fmt::format("{:.1f} %", 100 * t.microseconds / std::max(total, 1e-9))});
    fmt::print("{}", format_table(rows, {false, false, true, true, true}));
  }
  if (options.json) print_json(document);
  return kExitOk;
}

}  // namespace

void add_bench(CLI::App& app, int* exit_code) {
  CLI::App* command = app.add_subcommand("bench", "time per invoke (median, min, p99) and by operator");
  auto options = std::make_shared<BenchArguments>();
  options->models.add_to(*command, true);
  CLI::Option* model = command->get_option("model")->required(false);
  command->add_flag("--kernels", options->kernels, "list the kernels and instruction sets of this build")
      ->excludes(model);
  command->add_option("--runs", options->bench.runs, "counted invokes at most")->check(CLI::Range(1, 1000000));
  command->add_option("--warmup", options->bench.warmup, "invokes before counting")->check(CLI::Range(0, 100000));
  command->add_option("--seconds", options->bench.seconds, "stop counting after about this long")
      ->check(CLI::Range(0.0, 3600.0));
  command->add_flag("--json", options->json, "print JSON");
  command->callback([=] {
    if (!options->kernels && model->count() == 0) throw CLI::RequiredError("model");
    *exit_code = options->kernels ? list_kernels(options->json) : bench(*options);
  });
}

}  // namespace bantam::cli
