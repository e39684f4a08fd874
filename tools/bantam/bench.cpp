// bantam bench: how long an invoke takes, and which operators take it.
#include <fmt/format.h>

#include <chrono>
#include <memory>

#include "cli.h"
#include "diagnose/allocations/allocation_counter.h"
#include "diagnose/benchmark.h"
#include "feed/feeder.h"
#include "ops/op.h"
#include "schedule/processor/instruction_sets.h"
#include "schedule/processor/roof.h"

namespace bantam::cli {
namespace {

struct BenchArguments {
  ModelOptions models;
  diagnose::BenchmarkOptions bench;
  bool kernels = false;
  bool layers = false;
  bool json = false;
};

constexpr int kCheckedInvokes = 3;  ///< in which allocations are counted

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

using diagnose::OperatorTime;

/// Work as 10^9 operations, two per multiply-accumulate, per second.
double gops(std::int64_t work, double microseconds) {
  return microseconds > 0 ? 2e-3 * static_cast<double>(work) / microseconds : 0;
}

std::int64_t total_work(const std::vector<OperatorTime>& times) {
  std::int64_t work = 0;
  for (const OperatorTime& t : times) work += t.work;
  return work;
}

nlohmann::json time_json(const OperatorTime& t, const schedule::Roof& roof) {
  nlohmann::json j = {{"operator", t.op},
                      {"kernel", t.variant},
                      {"calls", t.calls},
                      {"us", t.microseconds},
                      {"multiplications", t.work},
                      {"gops", gops(t.work, t.microseconds)},
                      {"roof_share", diagnose::share_of_roof(roof, {&t, 1}, t.microseconds)}};
  if (!t.layer.empty()) j["layer"] = t.layer;
  return j;
}

void print_times(const std::vector<OperatorTime>& times, const schedule::Roof& roof) {
  const bool layers = !times.empty() && !times.front().layer.empty();
  std::vector<std::vector<std::string>> rows = {
      {"operator", "kernel", layers ? "layer" : "calls", "us", "share", "Gop/s", "of roof"}};
  double total = 0;
  for (const OperatorTime& t : times) total += t.microseconds;
  for (const OperatorTime& t : times) {
    const bool multiplies = t.work > 0;
    rows.push_back({t.op, t.variant, layers ? printable(t.layer) : std::to_string(t.calls),
                    fmt::format("{:.1f}", t.microseconds),
                    fmt::format("{:.1f} %", 100 * t.microseconds / std::max(total, 1e-9)),
                    multiplies ? fmt::format("{:.1f}", gops(t.work, t.microseconds)) : "",
                    multiplies && roof.float_macs > 0
                        ? fmt::format("{:.0f} %", 100 * diagnose::share_of_roof(roof, {&t, 1}, t.microseconds))
                        : ""});
  }
  fmt::print("{}", format_table(rows, {false, false, !layers, true, true, true, true}));
}

/// New inputs and states: activations of an earlier invoke, of any session, may lie in their place, and what is left
/// there may be numbers with which kernels are slower, or faster.
Result<void> start_anew(Session& session) {
  session.reset();
  return feed::fill_random(session);
}

/// The allocations of three invokes.
Result<std::uint64_t> count_allocations(Session& session, OutputSet outputs) {
  std::uint64_t allocations = 0;
  for (int n = 0; n < kCheckedInvokes; ++n) {
    if (auto ready = start_anew(session); !ready) return fail(ready.error());
    const std::uint64_t before = diagnose::allocation_count();
    if (const Status s = session.invoke(outputs); !s.ok()) return fail(error_from(s));
    allocations += diagnose::allocation_count() - before;
  }
  return allocations;
}

/// Measures one session and prints it, or returns it as JSON.
Result<nlohmann::json> bench_session(Session& session, OutputSet outputs, const BenchArguments& options,
                                     const schedule::Roof& roof) {
  if (auto ready = start_anew(session); !ready) return fail(ready.error());
  const auto start = std::chrono::steady_clock::now();
  if (const Status first = session.invoke(outputs); !first.ok()) return fail(error_from(first));
  const double first_us = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
  const auto allocations = count_allocations(session, outputs);
  if (!allocations) return fail(allocations.error());
  diagnose::BenchmarkOptions bench_options = options.bench;
  bench_options.outputs = outputs;
  if (auto ready = start_anew(session); !ready) return fail(ready.error());
  const auto result = diagnose::benchmark(session, bench_options);
  if (!result) return fail(result.error());
  const int threads = options.models.threads;
  // All threads have a roof each.
  const double roof_share =
      diagnose::share_of_roof(roof, result->layers, result->median_us) / static_cast<double>(std::max(threads, 1));
  const double speed = gops(total_work(result->layers), result->median_us);
  nlohmann::json j = {{"name", session.name()},
                      {"median_us", result->median_us},
                      {"first_us", first_us},
                      {"min_us", result->min_us},
                      {"p99_us", result->p99_us},
                      {"runs", result->runs},
                      {"threads", threads},
                      {"allocations", *allocations},
                      {"gops", speed},
                      {"roof_share", roof_share},
                      {"operators", nlohmann::json::array()}};
  for (const OperatorTime& t : result->operators) j["operators"].push_back(time_json(t, roof));
  if (options.layers)
    for (const OperatorTime& t : result->layers) j["layers"].push_back(time_json(t, roof));
  if (options.json) return j;
  fmt::print(
      "{}: median {:.1f} us, min {:.1f}, p99 {:.1f}, first {:.1f}, {} runs, {} thread{}, {} allocations in {} "
      "invokes{}\n",
      printable(session.name()), result->median_us, result->min_us, result->p99_us, first_us, result->runs, threads,
      threads == 1 ? "" : "s", *allocations, kCheckedInvokes,
      diagnose::counts_allocations() ? "" : " (not counted in this build)");
  if (roof.float_macs > 0) fmt::print("{:.1f} Gop/s, {:.0f} % of the roof\n", speed, 100 * roof_share);
  print_times(options.layers ? result->layers : result->operators, roof);
  return j;
}

int bench(const BenchArguments& options) {
  const auto spec = options.models.is_package() ? Result<FleetFile>(FleetFile{}) : options.models.fleet();
  if (!spec) return report(spec.error());
  auto fleet = options.models.open(*spec);
  if (!fleet) return report(fleet.error());
  const auto output_sets = options.models.output_sets(*fleet);
  if (!output_sets) return report(output_sets.error());
  const OpenFleet::Times opening = fleet->times();
  const schedule::Roof roof = schedule::measure_roof();
  nlohmann::json document = {{"sessions", nlohmann::json::array()},
                             {"threads", options.models.threads},
                             {"open_us", opening.open_us},
                             {"place_us", opening.place_us},
                             {"roof",
                              {{"f32_gops", 2e-9 * roof.float_macs},
                               {"f16_gops", 2e-9 * roof.half_macs},
                               {"int8_gops", 2e-9 * roof.integer_macs}}}};
  if (!options.json)
    fmt::print("{} in {:.2f} ms, placed in {:.2f} ms\n", options.models.is_package() ? "mapped" : "compiled",
               opening.open_us / 1000, opening.place_us / 1000);
  if (!options.json && roof.float_macs > 0)
    fmt::print("roof of one thread: {:.0f} Gop/s in f32, {}{:.0f} in int8\n", 2e-9 * roof.float_macs,
               roof.half_macs > 0 ? fmt::format("{:.0f} in f16, ", 2e-9 * roof.half_macs) : "",
               2e-9 * roof.integer_macs);
  for (std::size_t i = 0; i < fleet->size(); ++i) {
    const auto session = bench_session(fleet->session(i), (*output_sets)[i], options, roof);
    if (!session) return report(session.error());
    if (fleet->size() == 1) document.update(*session);
    document["sessions"].push_back(*session);
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
  command->add_flag("--layers", options->layers, "times layer by layer, in the order of the plan");
  command
      ->add_option("--runs", options->bench.runs,
                   "counted invokes at most (default: 50, and more while they take under a quarter second)")
      ->check(CLI::Range(1, 1000000));
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
