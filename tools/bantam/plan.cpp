// bantam plan: memory by kind, by layer and per fleet; as text, JSON and a picture. Also solves bare planning problems.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <tuple>

#include "cli.h"
#include "compiler/plan_map.h"
#include "frontier.h"
#include "io/file.h"
#include "plan/problem_csv.h"
#include "plan/report.h"
#include "plan/solve.h"

namespace bantam::cli {
namespace {

/// How long a bare problem is searched unless the user says otherwise.
constexpr double kProblemSeconds = 60;

struct PlanArguments {
  ModelOptions models;
  std::string map;
  bool layers = false;
  bool json = false;
  bool frontier = false;
  bool measure = false;
  std::string problem;
  std::string capacity;
  std::optional<double> time_limit;
  std::string solution;
};

std::int64_t bytes_of(const std::vector<StreamReport>& streams) {
  std::int64_t bytes = 0;
  for (const StreamReport& s : streams) bytes += s.bytes;
  return bytes;
}

nlohmann::json streams_json(const std::vector<StreamReport>& streams) {
  nlohmann::json j = nlohmann::json::array();
  for (const StreamReport& s : streams)
    j.push_back({{"layer", s.layer}, {"bytes", s.bytes}, {"reads", s.reads}, {"tier", s.tier}, {"offset", s.offset}});
  return j;
}

nlohmann::json model_json(const ModelReport& model) {
  nlohmann::json j = {
      {"name", model.name},
      {"activation_bytes", model.activation_bytes},
      {"lower_bound_bytes", model.lower_bound_bytes},
      {"scratch_bytes", model.scratch_bytes},
      {"added_scratch_bytes", model.added_scratch_bytes},
      {"integer_us", model.integer_us},
      {"float_us", model.float_us},
      {"state_bytes", model.state_bytes},
      {"copied_bytes", model.copied_bytes},
      {"weights_bytes", model.weights_bytes},
      {"peak_step", model.peak_step},
      {"order_bound_bytes", model.order_bound_bytes},
      {"order_is_optimal", model.order_bound_bytes > 0 && model.lower_bound_bytes <= model.order_bound_bytes},
      {"method", model.method}};
  j["steps"] = j["buffers"] = j["dimensions"] = j["trials"] = j["reductions"] = nlohmann::json::array();
  j["streamed"] = streams_json(model.streams);
  j["streamed_bytes"] = bytes_of(model.streams);
  j["resident"] = streams_json(model.residents);
  j["resident_bytes"] = bytes_of(model.residents);
  for (const PlanTrial& t : model.trials)
    j["trials"].push_back({{"name", t.name},
                           {"activation_bytes", t.activation_bytes},
                           {"lower_bound_bytes", t.lower_bound_bytes},
                           {"multiply_accumulates", t.work},
                           {"kept", t.kept}});
  for (const ReductionReport& r : model.reductions)
    j["reductions"].push_back({{"what", r.what},
                               {"layer", r.layer},
                               {"before_bytes", r.before_bytes},
                               {"after_bytes", r.after_bytes},
                               {"multiply_accumulates_added", r.work_added},
                               {"bytes_copied", r.bytes_copied},
                               {"bytes_spared", r.bytes_spared}});
  j["tried"] = model.tried;
  for (const StepReport& s : model.steps)
    j["steps"].push_back({{"index", s.index},
                          {"name", s.name},
                          {"operator", s.op},
                          {"source", s.origin},
                          {"kernel", s.variant},
                          {"alternatives", s.alternatives},
                          {"fallback", s.fallback},
                          {"copies", s.copies},
                          {"output", s.output},
                          {"output_bytes", s.output_bytes},
                          {"weights_bytes", s.weights_bytes},
                          {"stored_as", s.stored_as == ElementType::kNone ? "" : element_type_name(s.stored_as)},
                          {"narrowed_bytes", s.narrowed_bytes},
                          {"narrowing_error", s.narrowing_error},
                          {"scratch_bytes", s.scratch_bytes},
                          {"alive_bytes", s.alive_bytes},
                          {"multiply_accumulates", s.work},
                          {"predicted_us", s.predicted_us}});
  for (const DimensionReport& d : model.dimensions)
    j["dimensions"].push_back({{"name", d.name},
                               {"least", d.least},
                               {"bound", d.bound},
                               {"set_by", d.measured ? "model" : "application"},
                               {"node", d.set_by}});
  for (const PlanBlock& b : model.blocks)
    j["buffers"].push_back({{"name", b.name},
                            {"kind", compiler::kind_name(b.kind)},
                            {"lower", b.lower},
                            {"upper", b.upper},
                            {"offset", b.offset},
                            {"bytes", b.bytes},
                            {"tier", b.tier},
                            {"accessed_bytes", b.accessed_bytes},
                            {"detail", b.detail}});
  return j;
}

nlohmann::json plan_json(const Compiled& compiled) {
  nlohmann::json j = requirements_json(compiled.requirements());
  j["lower_bound_bytes"] = compiled.lower_bound_bytes();
  j["separate_bytes"] = compiled.separate_bytes();
  std::int64_t scratch = 0;
  j["models"] = nlohmann::json::array();
  for (const ModelReport& model : compiled.models()) {
    scratch = std::max(scratch, model.scratch_bytes);
    j["models"].push_back(model_json(model));
  }
  j["scratch_bytes"] = scratch;
  j["sessions"] = nlohmann::json::array();
  for (const SessionReport& s : compiled.sessions())
    j["sessions"].push_back({{"name", s.name},
                             {"model", compiled.models()[s.model].name},
                             {"lane", s.lane},
                             {"priority", s.priority},
                             {"activation_offset", s.activation_offset},
                             {"activation_bytes", s.activation_bytes}});
  if (compiled.memories().empty()) return j;
  for (const MemoryReport& m : compiled.memories()) {
    nlohmann::json memory = requirements_json(m.need);
    memory["name"] = m.memory.name;
    memory["size_bytes"] = m.memory.bytes;
    memory["cost"] = m.memory.cost;
    memory["accessed_bytes"] = m.accessed_bytes;
    j["memories"].push_back(std::move(memory));
  }
  const AccessCost& cost = compiled.access_cost();
  j["access_cost"] = {{"planned", cost.planned},
                      {"all_fastest", cost.all_fastest},
                      {"all_slowest", cost.all_slowest},
                      {"weights", cost.weights},
                      {"unstreamed", cost.unstreamed}};
  return j;
}

/// "T 0..100 set by the application", one line per dimension.
void print_dimensions(const ModelReport& model) {
  for (const DimensionReport& d : model.dimensions) {
    const std::string by = !d.measured        ? "the application"
                           : d.set_by.empty() ? "an input"
                                              : "layer " + printable(d.set_by);
    fmt::print("{}: dimension {}, {} to {}, set by {}\n", printable(model.name), printable(d.name), d.least, d.bound,
               by);
  }
}

bool has_lanes(const Compiled& compiled) {
  const auto& sessions = compiled.sessions();
  return std::ranges::any_of(sessions, [](const SessionReport& s) { return !s.lane.empty() || s.priority != 0; });
}

/// Who shares activations with whom: sessions with the same offset exclude each other.
void print_lanes(const Compiled& compiled) {
  std::vector<std::vector<std::string>> rows = {{"lane", "priority", "session", "activations at", "bytes"}};
  for (const SessionReport& s : compiled.sessions())
    rows.push_back({printable(s.lane), std::to_string(s.priority), printable(s.name),
                    std::to_string(s.activation_offset), std::to_string(s.activation_bytes)});
  std::ranges::stable_sort(rows.begin() + 1, rows.end(), {}, [](const auto& row) { return std::tie(row[0], row[1]); });
  fmt::print("\n{}", format_table(rows, {false, true, false, true, true}));
}

void print_streams(const Compiled& compiled, const ModelReport& model, const std::vector<StreamReport>& streams,
                   const char* when) {
  if (streams.empty()) return;
  std::vector<std::vector<std::string>> rows = {{"weights of", "copied to", "bytes", "read"}};
  for (const StreamReport& s : streams)
    rows.push_back({printable(s.layer), printable(compiled.memories()[s.tier].memory.name), std::to_string(s.bytes),
                    fmt::format("{} x", s.reads)});
  fmt::print("\n{}: {} bytes of weights are {}\n{}", printable(model.name), bytes_of(streams), when,
             format_table(rows, {false, false, true, true}));
}

void print_access_cost(const Compiled& compiled) {
  const AccessCost& cost = compiled.access_cost();
  const auto share = [&](double of) { return of > 0 ? cost.planned / of : 1.0; };
  fmt::print("access cost  {:>12.0f}  {:.2f} x all in '{}', {:.2f} x all in '{}'{}\n", cost.planned,
             share(cost.all_fastest), printable(compiled.memories().front().memory.name), share(cost.all_slowest),
             printable(compiled.memories().back().memory.name),
             cost.weights > 0 ? fmt::format("; of it weights in their memory {:.0f}", cost.weights) : "");
  if (cost.unstreamed > cost.planned)
    fmt::print("             {:>12.0f}  if no weights were copied\n", cost.unstreamed);
}

/// What lies in which memory, and what an invoke of every session pays for it.
void print_memories(const Compiled& compiled) {
  std::vector<std::vector<std::string>> rows = {
      {"memory", "size", "cost", "used", "activations", "state", "links", "tables", "accessed"}};
  for (const MemoryReport& m : compiled.memories())
    rows.push_back({printable(m.memory.name), std::to_string(m.memory.bytes), fmt::format("{:g}", m.memory.cost),
                    std::to_string(m.need.arena_bytes), std::to_string(m.need.activation_bytes),
                    std::to_string(m.need.state_bytes), std::to_string(m.need.link_bytes),
                    std::to_string(m.need.table_bytes), std::to_string(m.accessed_bytes)});
  fmt::print("\n{}", format_table(rows, {false, true, true, true, true, true, true, true, true}));
  for (const ModelReport& m : compiled.models())
    if (m.copied_bytes != 0)
      fmt::print("{}: {} bytes are copied between memories, where values rest\n", printable(m.name), m.copied_bytes);
  for (const ModelReport& m : compiled.models()) {
    print_streams(compiled, m, m.streams, "copied per invoke, each before the layer that reads them");
    print_streams(compiled, m, m.residents, "copied when a session is placed, and stay beside its state");
  }
  print_access_cost(compiled);
}

/// What stages in bands gain, or what each step towards the budget saved and cost.
void print_reductions(const ModelReport& model) {
  if (model.reductions.empty()) return;
  const bool for_speed = model.reductions.front().bytes_spared > 0;
  std::vector<std::vector<std::string>> rows = {{for_speed ? "stage" : "reduction", "activations", "before",
                                                 for_speed ? "less from memory" : "more work", "more copied"}};
  for (const ReductionReport& r : model.reductions)
    rows.push_back({printable(r.what), std::to_string(r.after_bytes), std::to_string(r.before_bytes),
                    for_speed ? fmt::format("{} B", r.bytes_spared) : fmt::format("{:+}", r.work_added),
                    fmt::format("{:+} B", r.bytes_copied)});
  fmt::print("\n{}, {}\n{}", printable(model.name),
             for_speed ? "in bands of rows, whose values stay in the caches" : "reduced to meet the budget",
             format_table(rows, {false, true, true, true, true}));
}

/// Steps that might have been views.
void print_copies(const ModelReport& model) {
  std::map<std::string, int> reasons;
  for (const StepReport& s : model.steps)
    if (!s.copies.empty()) ++reasons[s.copies];
  if (reasons.empty()) return;
  fmt::print("{}:\n", printable(model.name));
  for (const auto& [reason, steps] : reasons)
    fmt::print("  {} {} where a view might have done: {}\n", steps, steps == 1 ? "step copies" : "steps copy", reason);
}

/// By type: how many layers have weights so, the bytes that it saves, and where it changes a weight most.
void print_narrowing(const ModelReport& model) {
  struct Narrowed {
    int layers = 0;
    std::int64_t bytes = 0;
    const StepReport* worst = nullptr;
  };
  std::map<ElementType, Narrowed> types;
  for (const StepReport& s : model.steps) {
    if (s.stored_as == ElementType::kNone) continue;
    Narrowed& type = types[s.stored_as];
    ++type.layers;
    type.bytes += s.narrowed_bytes;
    if (type.worst == nullptr || s.narrowing_error > type.worst->narrowing_error) type.worst = &s;
  }
  for (const auto& [type, narrowed] : types) {
    const std::string lost = narrowed.worst->narrowing_error == 0.0F
                                 ? "nothing lost"
                                 : fmt::format("a weight differs by up to {:.2g} of the largest ({})",
                                               narrowed.worst->narrowing_error, printable(narrowed.worst->name));
    fmt::print("{}: weights of {} {} stored as {}: {} less, {}\n", printable(model.name), narrowed.layers,
               narrowed.layers == 1 ? "layer" : "layers", element_type_name(type),
               format_bytes(static_cast<std::uint64_t>(std::max<std::int64_t>(narrowed.bytes, 0))), lost);
  }
}

/// Where int8 is slower than f32, or may be as far as predictions are right.
void print_integer_times(const ModelReport& m) {
  constexpr double kDoubt = 1.2;
  if (m.float_us == 0 || m.integer_us * kDoubt <= m.float_us) return;
  fmt::print("{}: its int8 layers are predicted to take {:.1f} us here, {:.1f} us in f32: {}\n", printable(m.name),
             m.integer_us, m.float_us,
             m.integer_us > m.float_us ? "int8 saves memory, not time" : "int8 may save memory only");
}

void print_plan(const Compiled& compiled, bool layers) {
  std::vector<std::vector<std::string>> rows = {
      {"model", "weights", "state", "activations", "of it scratch", "lower bound", "placed by"}};
  const auto bytes = [](std::int64_t n) { return format_bytes(static_cast<std::uint64_t>(n)); };
  for (const ModelReport& m : compiled.models())
    rows.push_back({printable(m.name), bytes(m.weights_bytes), bytes(m.state_bytes), bytes(m.activation_bytes),
                    bytes(m.scratch_bytes), bytes(m.lower_bound_bytes), m.method});
  fmt::print("{}", format_table(rows, {false, true, true, true, true, true, false}));
  for (const ModelReport& m : compiled.models())
    fmt::print("{}: {}\n", printable(m.name), compiler::describe_bounds(m));
  for (const ModelReport& m : compiled.models()) print_dimensions(m);
  for (const ModelReport& m : compiled.models()) print_narrowing(m);
  for (const ModelReport& m : compiled.models()) {
    std::map<std::string, std::int64_t> reasons;
    for (const StepReport& s : m.steps)
      if (!s.fallback.empty()) ++reasons[s.fallback];
    if (!reasons.empty()) fmt::print("{}:\n{}", printable(m.name), describe_fallbacks(reasons));
    print_copies(m);
    print_integer_times(m);
  }
  if (has_lanes(compiled)) print_lanes(compiled);
  if (!compiled.memories().empty()) print_memories(compiled);
  const Requirements& need = compiled.requirements();
  fmt::print("\narena        {:>12} bytes, aligned to {}\n", need.arena_bytes, need.alignment);
  fmt::print("  activations {:>11}  shared by {}, scratch included\n", need.activation_bytes,
             has_lanes(compiled) ? "sessions of one lane and priority" : "all sessions");
  fmt::print("  state       {:>11}\n  links       {:>11}\n  tables      {:>11}\n", need.state_bytes, need.link_bytes,
             need.table_bytes);
  fmt::print("lower bound  {:>12} bytes for these buffers in this order{}\n", compiled.lower_bound_bytes(),
             compiled.lower_bound_bytes() == need.arena_bytes ? ": met" : "");
  fmt::print("weights      {:>12} bytes, in the package, used in place\n", need.weights_bytes);
  if (compiled.models().size() > 1)
    fmt::print("separately   {:>12} bytes, if every session had an arena of its own\n", compiled.separate_bytes());
  for (const ModelReport& m : compiled.models()) print_reductions(m);
  if (!layers) return;
  for (const ModelReport& m : compiled.models()) {
    fmt::print("\n{}, by layer\n", printable(m.name));
    std::vector<std::vector<std::string>> table = {
        {"step", "alive", "output", "weights", "scratch", "predicted us", "operator", "kernel", "layer"}};
    for (const StepReport& s : m.steps)
      table.push_back({fmt::format("{}{}", s.index, s.index == m.peak_step ? "*" : ""), std::to_string(s.alive_bytes),
                       s.output, std::to_string(s.weights_bytes), std::to_string(s.scratch_bytes),
                       fmt::format("{:.1f}", s.predicted_us), s.op, s.variant, printable(s.name)});
    fmt::print("{}* the peak\n", format_table(table, {true, true, false, true, true, true}));
  }
}

int solve_problem(const PlanArguments& options) {
  auto problem = plan::read_problem_csv(options.problem);
  if (!problem) return report(problem.error());
  if (!options.capacity.empty()) {
    const auto capacity = parse_bytes(options.capacity);
    if (!capacity) return report(Error(capacity.error()).in("--capacity"));
    problem->capacity = static_cast<std::int64_t>(*capacity);
  }
  Progress progress(options.json);
  plan::SolveOptions solve_options;
  solve_options.step_budget = plan::kUnlimitedSearchSteps;
  solve_options.deadline =
      std::chrono::steady_clock::now() +
      std::chrono::milliseconds(static_cast<std::int64_t>(options.time_limit.value_or(kProblemSeconds) * 1000));
  solve_options.progress = [&](const plan::SolveProgress& p) {
    progress.show(fmt::format("searching: best {} bytes, proven bound {}", p.peak, p.bound));
  };
  const auto result = plan::solve(*problem, solve_options);
  progress.clear();
  if (!result) return report(result.error());
  if (!options.solution.empty())
    if (auto written = io::write_file(options.solution, plan::format_solution_csv(*problem, result->solution));
        !written)
      return report(written.error());
  if (!options.map.empty()) {
    const plan::MapView view =
        plan::make_map_view(options.problem, *problem, result->solution, result->lower_bound.bytes);
    const std::string page =
        options.map.ends_with(".svg") ? plan::render_svg(view) : plan::render_html(options.problem, {&view, 1});
    if (auto written = io::write_file(options.map, page); !written) return report(written.error());
  }
  const bool fits = !problem->capacity || result->solution.peak <= *problem->capacity;
  if (options.json) {
    nlohmann::json j = {{"peak_bytes", result->solution.peak},        {"lower_bound_bytes", result->lower_bound.bytes},
                        {"proven_bound_bytes", result->proven_bound}, {"method", result->solution.method},
                        {"buffers", problem->buffers.size()},         {"fits", fits},
                        {"offsets", result->solution.offsets}};
    if (problem->capacity) j["capacity_bytes"] = *problem->capacity;
    print_json(j);
  } else {
    fmt::print("{} buffers: {} bytes by {}; lower bound {}{}\n", problem->buffers.size(), result->solution.peak,
               result->solution.method, result->lower_bound.bytes, result->meets_lower_bound() ? ", met" : "");
  }
  if (fits) return kExitOk;
  return report({StatusCode::kArenaTooSmall,
                 fmt::format("the capacity of {} bytes is not reached: the smallest placement found needs {} bytes{}",
                             *problem->capacity, result->solution.peak,
                             result->proven_bound > *problem->capacity
                                 ? fmt::format("; proven: none needs less than {}", result->proven_bound)
                                 : ""),
                 "raise the capacity, or give the search more time with --time-limit"});
}

int plan_models(const PlanArguments& options) {
  const auto fleet = options.models.fleet();
  if (!fleet) return report(fleet.error());
  Progress progress(options.json);
  progress.show("compiling and planning ...");
  CompileOptions compile_options = options.models.compile_options();
  compile_options.plan_seconds = options.time_limit.value_or(0);
  compile_options.progress = [&](const std::string& line) { progress.show(line); };
  const auto compiled = compile(fleet->spec, compile_options);
  progress.clear();
  if (!compiled) return report(compiled.error());
  if (!options.map.empty()) {
    const bool svg = options.map.ends_with(".svg");
    if (svg && (compiled->models().size() != 1 || compiled->memories().size() > 1))
      return report({StatusCode::kInvalidArgument,
                     "an SVG holds one model's map of one memory, the fleet has several of them",
                     "write an .html file"});
    const std::string page = svg ? plan::render_svg(compiler::map_of_model(compiled->models().front()))
                                 : plan::render_html("Memory plan", compiler::maps_of(*compiled));
    if (auto written = io::write_file(options.map, page); !written) return report(written.error());
  }
  if (options.json) {
    print_json(plan_json(*compiled));
  } else {
    print_plan(*compiled, options.layers);
  }
  return kExitOk;
}

}  // namespace

void add_plan(CLI::App& app, int* exit_code) {
  CLI::App* command = app.add_subcommand("plan", "what memory a model or fleet needs, to the byte");
  auto options = std::make_shared<PlanArguments>();
  options->models.add_to(*command, true);
  options->models.add_target(*command);
  command->get_option("model")->required(false);
  command->add_flag("--layers", options->layers, "list every step");
  command->add_option("--map", options->map, "write a memory map, .html or .svg")->type_name("FILE");
  command->add_flag("--frontier", options->frontier,
                    "what less memory costs: a table of plans, drawn with --map, from the fastest to the smallest");
  command->add_flag("--measure", options->measure, "with --frontier: run every plan and give its time");
  command->add_flag("--json", options->json, "print JSON");
  command->add_option("--problem", options->problem, "solve a bare problem: CSV with id,lower,upper,size")
      ->type_name("FILE.csv");
  command->add_option("--capacity", options->capacity, "with --problem: bytes to stay within")->type_name("N");
  command
      ->add_option("--time-limit", options->time_limit,
                   "seconds to search at most, for each model while its plan is not known to be the smallest "
                   "(default: below a second; a --problem: 60)")
      ->type_name("S")
      ->check(CLI::Range(0.001, 1e6));
  command->add_option("--solution", options->solution, "with --problem: write the offsets as CSV")
      ->type_name("FILE.csv");
  command->footer(
      "Examples:\n"
      "  bantam plan model.onnx --dim batch=1 --layers --map map.html\n"
      "  bantam plan fleet.toml --budget 256KiB --json\n"
      "  bantam plan model.tflite --frontier --measure --map curve.svg\n"
      "  bantam plan --problem buffers.csv --capacity 1MiB --solution offsets.csv\n"
      "A fleet file:\n"
      "  budget = \"512 KiB\"\n"
      "  [[model]]\n"
      "  path = \"denoise.onnx\"\n"
      "  states = { hidden_in = \"hidden_out\" }\n"
      "  inputs = { frame = \"mixture.wav\" }\n"
      "  step = { frame = 256 }\n"
      "  [[model]]\n"
      "  path = \"voice.onnx\"\n"
      "  labels = { speech = \"voice.txt\" }\n"
      "  [[link]]\n"
      "  from = \"denoise.enhanced\"\n"
      "  to = \"voice.frame\"");
  command->callback([=] {
    if (options->problem.empty() == options->models.files.empty())
      *exit_code = report({StatusCode::kInvalidArgument, "plan takes either model files or --problem",
                           "give one of the two; see `bantam plan --help`"});
    else if (!options->problem.empty())
      *exit_code = solve_problem(*options);
    else
      *exit_code = options->frontier ? plan_frontier({options->models, options->map, options->measure, options->json})
                                     : plan_models(*options);
  });
}

}  // namespace bantam::cli
