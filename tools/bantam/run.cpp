// bantam run: run a model or a fleet on files, say what each output says, and account for time and memory.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <optional>

#include "accounts.h"
#include "cli.h"
#include "diagnose/allocations/allocation_counter.h"
#include "diagnose/process_memory.h"
#include "diagnose/trace.h"
#include "feed/feeder.h"
#include "feed/recording.h"
#include "io/file.h"
#include "io/npz.h"
#include "package/tables.h"
#include "trace_view.h"

namespace bantam::cli {
namespace {

struct RunArguments {
  ModelOptions models;
  std::vector<std::string> inputs;
  std::vector<std::string> steps;
  std::vector<std::string> labels;
  std::string feed;
  std::string output;
  std::string record;
  std::int64_t rounds = 0;
  bool trace = false;
  bool json = false;
  bool quiet = false;
};

/// One session while it runs.
struct Lane {
  Session* session = nullptr;
  OutputSet outputs = OutputSet::all();
  std::optional<feed::Feeder> feeder;
  std::unique_ptr<diagnose::Trace> trace;        ///< with --trace
  std::vector<std::vector<std::string>> labels;  ///< by output
  std::vector<bool> linked_inputs;
  std::vector<std::size_t> producers;  ///< lanes that feed this one
  std::vector<std::string> last_said;  ///< by output
  std::int64_t rounds = 1;             ///< rounds in which it runs; linked lanes follow their producers
  std::int64_t invokes = 0;
  double total_us = 0;
};

using Clock = std::chrono::steady_clock;

/// Adds the time that f takes to `total_us` and gives what f gives.
template <typename F>
auto timed(double& total_us, F&& f) {
  const auto start = Clock::now();
  auto result = f();
  total_us += std::chrono::duration<double, std::micro>(Clock::now() - start).count();
  return result;
}

std::vector<Lane> make_lanes(OpenFleet& fleet) {
  std::vector<Lane> lanes(fleet.size());
  for (std::size_t i = 0; i < fleet.size(); ++i) {
    lanes[i].session = &fleet.session(i);
    lanes[i].linked_inputs.assign(lanes[i].session->input_count(), false);
    lanes[i].labels.resize(lanes[i].session->output_count());
    lanes[i].last_said.resize(lanes[i].session->output_count());
  }
  for (const format::Link* link : *fleet.package().meta()->links()) {
    lanes[link->consumer()].linked_inputs[link->input()] = true;
    lanes[link->consumer()].producers.push_back(link->producer());
  }
  return lanes;
}

/// Applies "SESSION.NAME=VALUE" or, in a fleet of one, "NAME=VALUE" to the feed it names.
template <typename F>
Result<void> apply(const std::vector<std::string>& assignments, const char* option, FleetFile& fleet, OpenFleet& open,
                   F&& set) {
  for (const std::string& text : assignments) {
    const auto assignment = split_assignment(text, option);
    if (!assignment) return fail(assignment.error());
    std::string port = assignment->first;
    std::size_t session = 0;
    for (std::size_t i = 0; i < open.size(); ++i) {
      const std::string prefix = std::string(open.session(i).name()) + ".";
      if (!port.starts_with(prefix) || open.session(0).find_input(port) >= 0) continue;
      session = i;
      port = port.substr(prefix.size());
      break;
    }
    if (auto done = set(fleet.feeds[session], port, assignment->second); !done) return done;
  }
  return {};
}

Result<void> apply_options(const RunArguments& options, FleetFile& fleet, OpenFleet& open) {
  // A package brings sessions of its own names.
  if (fleet.feeds.size() != open.size()) fleet.feeds.resize(open.size());
  auto inputs = apply(options.inputs, "--input", fleet, open,
                      [](SessionFeed& feed, const std::string& port, const std::string& value) {
                        feed.inputs[port] = value;
                        return Result<void>();
                      });
  if (!inputs) return inputs;
  auto labels = apply(options.labels, "--labels", fleet, open,
                      [](SessionFeed& feed, const std::string& port, const std::string& value) {
                        feed.labels[port] = value;
                        return Result<void>();
                      });
  if (!labels) return labels;
  return apply(options.steps, "--step", fleet, open,
               [](SessionFeed& feed, const std::string& port, const std::string& value) -> Result<void> {
                 char* end = nullptr;
                 const long long step = std::strtoll(value.c_str(), &end, 10);
                 if (end == value.c_str() || *end != '\0' || step < 1)
                   return fail(StatusCode::kInvalidArgument,
                               fmt::format("--step {}={}: a positive number of frames is expected", port, value));
                 feed.steps[port] = step;
                 return {};
               });
}

/// What feeds the inputs that neither a link nor the fleet feeds.
void feed_the_rest(Lane& lane, const std::string& spec, SessionFeed& feed) {
  for (std::size_t i = 0; i < lane.session->input_count(); ++i)
    if (!lane.linked_inputs[i]) feed.inputs.try_emplace(std::string(lane.session->input_info(i).name), spec);
}

/// The stack of one invoke on what the inputs hold; the session is as new afterwards.
void measure_stack(Lane& lane, Accounts& accounts) {
  // Whether the invoke succeeds, the first round tells.
  const auto used = diagnose::stack_high_water([&] { static_cast<void>(lane.session->invoke(lane.outputs)); });
  lane.session->reset();
  if (used) accounts.stack_bytes = std::max(*used, accounts.stack_bytes.value_or(0));
}

Result<void> prepare(Lane& lane, const SessionFeed& feed, Accounts& accounts) {
  auto feeder = timed(accounts.read_us, [&] { return feed::Feeder::create(feed, *lane.session, lane.linked_inputs); });
  if (!feeder) return fail(std::move(feeder.error()));
  lane.feeder = std::move(*feeder);
  lane.rounds = lane.feeder->rounds().value_or(1);
  // A file of the wrong shape is refused here, before anything runs.
  if (auto filled = lane.feeder->fill(*lane.session, 0); !filled)
    return fail(std::move(filled.error()).in(fmt::format("session '{}'", lane.session->name())));
  for (const std::string& input : lane.feeder->direct_inputs())
    accounts.direct_inputs.push_back(fmt::format("{}.{}", lane.session->name(), input));
  measure_stack(lane, accounts);
  for (const auto& [output, file] : feed.labels) {
    const int index = lane.session->find_output(output);
    if (index < 0)
      return fail(StatusCode::kInvalidArgument,
                  fmt::format("session '{}' has no output '{}' to label", lane.session->name(), output),
                  "see `bantam inspect` for its outputs");
    auto labels = feed::read_labels(file);
    if (!labels) return fail(std::move(labels.error()));
    lane.labels[static_cast<std::size_t>(index)] = std::move(*labels);
  }
  return {};
}

/// A lane runs in a round when its own inputs have a window for it and all lanes that feed it run.
bool runs_in(const std::vector<Lane>& lanes, std::size_t i, std::int64_t round, int depth = 0) {
  const Lane& lane = lanes[i];
  // Links cannot make a lane run more often than fleets have lanes; a cycle of links ends here.
  if (depth > static_cast<int>(lanes.size())) return true;
  if (lane.feeder->rounds() || lane.producers.empty()) return round < lane.rounds;
  return std::all_of(lane.producers.begin(), lane.producers.end(),
                     [&](std::size_t p) { return runs_in(lanes, p, round, depth + 1); });
}

/// A failed invoke, with the step's name.
Error invoke_error(const Session& session, const Status& status) {
  const bool of_step = status.index >= 0 && static_cast<std::size_t>(status.index) < session.step_count();
  if (!of_step) return error_from(status);
  const auto step = static_cast<std::size_t>(status.index);
  return error_from(status).in(
      fmt::format("step {} '{}' ({})", step, session.step_name(step), session.step_operator(step)));
}

class Runner {
 public:
  Runner(const RunArguments& options, OpenFleet& fleet, std::vector<Lane> lanes, Accounts& accounts)
      : options_(options),
        fleet_(fleet),
        accounts_(accounts),
        lanes_(std::move(lanes)),
        live_(isatty(STDOUT_FILENO) != 0) {
    if (!options_.record.empty()) recording_.emplace(lanes_.size());
  }

  Result<void> run() {
    std::int64_t rounds = 1;
    for (const Lane& lane : lanes_) rounds = std::max(rounds, lane.rounds);
    if (options_.rounds > 0) rounds = options_.rounds;
    for (std::int64_t round = 0; round < rounds; ++round) {
      for (std::size_t i = 0; i < lanes_.size(); ++i) {
        // With --rounds, lanes that do not step run every time.
        const bool due = runs_in(lanes_, i, round) || (options_.rounds > 0 && !lanes_[i].feeder->rounds());
        if (!due) continue;
        if (auto done = step(i, round); !done)
          return fail(
              std::move(done.error()).in(fmt::format("session '{}', round {}", lanes_[i].session->name(), round)));
      }
    }
    if (live_ && talks()) fmt::print("\r\033[K");
    return {};
  }

  const std::vector<Lane>& lanes() const { return lanes_; }
  std::uint64_t allocations() const { return allocations_; }
  const nlohmann::json& events() const { return events_; }
  const std::vector<io::NamedArray>& outputs() const { return outputs_; }
  const std::optional<feed::Recording>& recording() const { return recording_; }

 private:
  static bool computes(const Lane& lane, std::size_t output) {
    return (lane.outputs.marks() & OutputSet().add(output).marks()) != 0;
  }

  bool talks() const { return !options_.json && !options_.quiet; }

  Result<void> step(std::size_t index, std::int64_t round) {
    Lane& lane = lanes_[index];
    if (auto filled = timed(accounts_.preprocess_us, [&] { return lane.feeder->fill(*lane.session, round); }); !filled)
      return filled;
    if (recording_) recording_->add_inputs(index, *lane.session, lane.linked_inputs);
    const std::uint64_t before = diagnose::allocation_count();
    const Status status = timed(lane.total_us, [&] { return lane.session->invoke(lane.outputs); });
    allocations_ += diagnose::allocation_count() - before;
    if (!status.ok()) return fail(invoke_error(*lane.session, status));
    ++lane.invokes;
    timed(accounts_.postprocess_us, [&] {
      for (std::size_t o = 0; o < lane.session->output_count(); ++o)
        if (computes(lane, o)) say(lane, o, round);
      keep_outputs(lane);
      return true;
    });
    if (recording_) recording_->add_outputs(index, *lane.session);
    return {};
  }

  /// Prints an output when what it says has changed; labelled outputs, or all of a run without labels.
  void say(Lane& lane, std::size_t output, std::int64_t round) {
    const bool any_labels = std::any_of(lanes_.begin(), lanes_.end(), [](const Lane& l) {
      return std::any_of(l.labels.begin(), l.labels.end(), [](const auto& labels) { return !labels.empty(); });
    });
    if (lane.labels[output].empty() && any_labels) return;
    std::string said;
    std::string scores;
    for (const feed::Reading& r : feed::read_output(*lane.session, output, lane.labels[output])) {
      said += (said.empty() ? "" : " ") + r.text;
      if (r.labelled) scores += fmt::format("{}{:.2f}", scores.empty() ? "" : " ", r.value);
    }
    const bool changed = lane.last_said[output] != said;
    lane.last_said[output] = said;
    const std::string name = fmt::format("{}.{}", lane.session->name(), lane.session->output_info(output).name);
    if (options_.json && changed)
      events_.push_back({{"round", round}, {"output", name}, {"says", said}, {"scores", scores}});
    if (!talks()) return;
    const std::string line =
        printable(fmt::format("round {:4}  {:32} {}{}", round, name, said, scores.empty() ? "" : "  (" + scores + ")"));
    if (live_) fmt::print("\r\033[K{}", line.substr(0, 118));
    if (live_ && changed) fmt::print("\n");
    if (!live_ && changed) fmt::print("{}\n", line);
    std::fflush(stdout);
  }

  /// The outputs of the last invoke of every session; later sessions may overwrite them in the arena.
  void keep_outputs(const Lane& lane) {
    if (options_.output.empty()) return;
    for (std::size_t o = 0; o < lane.session->output_count(); ++o) {
      if (!computes(lane, o)) continue;
      const Tensor t = lane.session->output(o);
      std::string name(lane.session->output_info(o).name);
      if (fleet_.size() > 1) name = fmt::format("{}.{}", lane.session->name(), name);
      const auto* bytes = static_cast<const std::byte*>(t.data);
      io::Array array{*t.desc, {bytes, bytes + t.desc->bytes()}};
      const auto it =
          std::find_if(outputs_.begin(), outputs_.end(), [&](const io::NamedArray& a) { return a.name == name; });
      if (it != outputs_.end()) {
        it->array = std::move(array);
      } else {
        outputs_.push_back({name, std::move(array)});
      }
    }
  }

  const RunArguments& options_;
  OpenFleet& fleet_;
  Accounts& accounts_;
  std::vector<Lane> lanes_;
  bool live_;
  std::uint64_t allocations_ = 0;
  nlohmann::json events_ = nlohmann::json::array();
  std::vector<io::NamedArray> outputs_;
  std::optional<feed::Recording> recording_;
};

void print_summary(OpenFleet& fleet, const Runner& runner) {
  std::vector<std::vector<std::string>> rows = {
      {"session", "invokes", "us/invoke", "weights", "state", "activations", "scratch", "tables", "alone"}};
  for (std::size_t i = 0; i < fleet.size(); ++i) {
    const Lane& lane = runner.lanes()[i];
    const Requirements alone = fleet.package().session_requirements(i);
    const Compiled* compiled = fleet.compiled();
    const std::size_t model = fleet.package().session_model(i);
    rows.push_back(
        {printable(lane.session->name()), std::to_string(lane.invokes),
         lane.invokes > 0 ? fmt::format("{:.1f}", lane.total_us / static_cast<double>(lane.invokes)) : "-",
         compiled != nullptr ? format_bytes(static_cast<std::uint64_t>(compiled->models()[model].weights_bytes)) : "-",
         format_bytes(alone.state_bytes), format_bytes(alone.activation_bytes),
         compiled != nullptr ? format_bytes(static_cast<std::uint64_t>(compiled->models()[model].scratch_bytes)) : "-",
         format_bytes(alone.table_bytes), format_bytes(alone.arena_bytes)});
  }
  fmt::print("\n{}", format_table(rows, {false, true, true, true, true, true, true, true, true}));
  for (std::size_t i = 0; i < fleet.size(); ++i) {
    const Session& session = fleet.session(i);
    for (std::size_t d = 0; d < session.dim_count(); ++d)
      fmt::print("{}: dimension {} is {}, of {} to {}, set by the {}\n", printable(session.name()),
                 printable(session.dim_name(d)), session.dim(session.dim_name(d)), session.dim_least(d),
                 session.dim_bound(d), session.dim_is_measured(d) ? "model" : "application");
  }
  std::uint64_t separate = 0;
  for (std::size_t i = 0; i < fleet.size(); ++i) separate += fleet.package().session_requirements(i).arena_bytes;
  const Requirements need = fleet.requirements();
  fmt::print("one arena for all: {} bytes (activations {} shared, state {}, links {}, tables {})\n", need.arena_bytes,
             need.activation_bytes, need.state_bytes, need.link_bytes, need.table_bytes);
  fmt::print("each on its own:   {} bytes\n", separate);
  if (diagnose::counts_allocations())
    fmt::print("allocations after start: {}\n", runner.allocations());
  else
    fmt::print("allocations after start: not counted in this build\n");
}

/// The compiler's report on the model of session `i`; null for a package.
const ModelReport* model_report(const OpenFleet& fleet, std::size_t i) {
  return fleet.compiled() != nullptr ? &fleet.compiled()->models()[fleet.package().session_model(i)] : nullptr;
}

nlohmann::json summary_json(OpenFleet& fleet, const Runner& runner) {
  nlohmann::json j = requirements_json(fleet.requirements());
  j["allocations"] = runner.allocations();
  j["events"] = runner.events();
  j["sessions"] = nlohmann::json::array();
  for (std::size_t i = 0; i < fleet.size(); ++i) {
    const Lane& lane = runner.lanes()[i];
    nlohmann::json s = {{"name", lane.session->name()}, {"invokes", lane.invokes}, {"total_us", lane.total_us}};
    for (std::size_t d = 0; d < lane.session->dim_count(); ++d)
      s["dimensions"].push_back({{"name", lane.session->dim_name(d)},
                                 {"size", lane.session->dim(lane.session->dim_name(d))},
                                 {"least", lane.session->dim_least(d)},
                                 {"bound", lane.session->dim_bound(d)},
                                 {"set_by", lane.session->dim_is_measured(d) ? "model" : "application"}});
    s["alone"] = requirements_json(fleet.package().session_requirements(i));
    if (lane.trace) s["trace"] = trace_json(*lane.session, model_report(fleet, i), *lane.trace);
    j["sessions"].push_back(s);
  }
  return j;
}

int run(const RunArguments& options) {
  Accounts accounts;
  accounts.at_start = diagnose::process_memory();
  auto spec = options.models.is_package() ? Result<FleetFile>(FleetFile{}) : options.models.fleet();
  if (!spec) return report(spec.error());
  auto fleet = options.models.open(*spec);
  if (!fleet) return report(fleet.error());
  accounts.open_us = fleet->times().open_us;
  accounts.place_us = fleet->times().place_us;
  accounts.opened = diagnose::process_memory();
  if (auto applied = apply_options(options, *spec, *fleet); !applied) return report(applied.error());
  std::vector<Lane> lanes = make_lanes(*fleet);
  if (!options.feed.empty())
    for (std::size_t i = 0; i < lanes.size(); ++i) feed_the_rest(lanes[i], options.feed, spec->feeds[i]);
  const auto outputs = options.models.output_sets(*fleet);
  if (!outputs) return report(outputs.error());
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    lanes[i].outputs = (*outputs)[i];
    if (auto prepared = prepare(lanes[i], spec->feeds[i], accounts); !prepared) return report(prepared.error());
    if (!options.trace) continue;
    lanes[i].trace = std::make_unique<diagnose::Trace>(*lanes[i].session);
    lanes[i].session->set_observer(lanes[i].trace->observer());
  }
  // Said before anything runs: the memory is a promise.
  if (!options.json && !options.quiet)
    fmt::print("arena: {} bytes for {} session{}\n", fleet->requirements().arena_bytes, fleet->size(),
               fleet->size() == 1 ? "" : "s");
  Runner runner(options, *fleet, std::move(lanes), accounts);
  if (auto done = runner.run(); !done) return report(done.error());
  for (const Lane& lane : runner.lanes()) accounts.run_us += lane.total_us;
  accounts.ran = diagnose::process_memory();
  if (!options.output.empty())
    if (auto written = io::write_npz(options.output, runner.outputs()); !written) return report(written.error());
  if (runner.recording())
    if (auto written = io::write_file(options.record, runner.recording()->bytes()); !written)
      return report(written.error());
  if (options.json) {
    nlohmann::json summary = summary_json(*fleet, runner);
    summary.update(accounts_json(accounts, *fleet));
    print_json(summary);
  } else if (!options.quiet) {
    for (std::size_t i = 0; i < fleet->size() && options.trace; ++i)
      print_trace(fleet->session(i), model_report(*fleet, i), *runner.lanes()[i].trace);
    print_accounts(accounts, *fleet);
    print_summary(*fleet, runner);
  }
  return kExitOk;
}

}  // namespace

void add_run(CLI::App& app, int* exit_code) {
  CLI::App* command = app.add_subcommand("run", "run a model or fleet on files");
  auto options = std::make_shared<RunArguments>();
  options->models.add_to(*command, true);
  command->add_option("--input", options->inputs, "what feeds an input: FILE or generator with options, see below")
      ->type_name("[SESSION.]NAME=SPEC");
  command->add_option("--feed", options->feed, "what feeds all inputs that nothing else feeds, e.g. random:1")
      ->type_name("SPEC");
  command->add_option("--step", options->steps, "frames by which an input's window moves each round")
      ->type_name("[SESSION.]NAME=N");
  command->add_option("--labels", options->labels, "class names of an output, one a line")
      ->type_name("[SESSION.]NAME=FILE");
  command
      ->add_option("--rounds", options->rounds, "invokes per session (default: until the shortest stepping input ends)")
      ->check(CLI::Range(1, 100000000));
  command->add_option("-o,--output", options->output, "write the outputs of the last round")->type_name("FILE.npz");
  command->add_option("--record", options->record, "write what went into and came out of every invoke, for replay")
      ->type_name("FILE");
  command->add_flag("--trace", options->trace, "show the time, range, NaN and Inf of every step's results");
  command->add_flag("--quiet", options->quiet, "print nothing but errors");
  command->add_flag("--json", options->json, "print JSON");
  command->footer(
      "SPEC is FILE[,key=value...], ARCHIVE.npz:ENTRY, zeros, fill:X or random:SEED.\n"
      "  pictures  color=rgb|bgr|gray resize=WxH fit=stretch|crop|pad layout=nhwc|nchw\n"
      "  sounds    offset=N samples=N pad=zero|error type=f32|i16\n"
      "  all       mean=X or X/Y/Z, scale=X or X/Y/Z: y = (x - mean) * scale; quantize=yes|no\n"
      "Examples:\n"
      "  bantam run sign.onnx --input image=stop.png,scale=0.0039216,layout=nchw --labels probabilities=sign.txt\n"
      "  bantam run vad.onnx --state state_in=state_out --input frame=talk.wav --step frame=256\n"
      "  bantam run heads.onnx --outputs boxes --keep backbone/conv3 --input image=a.png --trace");
  command->callback([=] { *exit_code = run(*options); });
}

}  // namespace bantam::cli
