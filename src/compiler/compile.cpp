#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "bantam/compiler.h"
#include "bantam/declaration.h"
#include "compiler/budget.h"
#include "compiler/cached_bands.h"
#include "compiler/emit.h"
#include "compiler/lanes.h"
#include "compiler/load_model.h"
#include "compiler/memories.h"
#include "compiler/narrow_weights.h"
#include "compiler/planar_images.h"
#include "compiler/planned_model.h"
#include "compiler/report.h"
#include "compiler/select.h"
#include "compiler/size_family.h"
#include "graph/graph.h"
#include "import/import.h"
#include "package/writer/package_data.h"

namespace bantam {
namespace {

std::string model_name(const ModelSpec& spec) { return spec.name.empty() ? spec.path.stem().string() : spec.name; }

std::int32_t port_index(const std::vector<graph::Port>& ports, const std::string& name) {
  const auto it = std::find_if(ports.begin(), ports.end(), [&](const graph::Port& p) { return p.name == name; });
  return it == ports.end() ? -1 : static_cast<std::int32_t>(it - ports.begin());
}

std::string port_names(const std::vector<graph::Port>& ports) {
  std::string names;
  for (const graph::Port& port : ports) names += (names.empty() ? "" : ", ") + port.name;
  return names.empty() ? "none" : names;
}

}  // namespace

/// The steps of `compile`, sharing what one compilation knows. A model that several sessions use in the same way is
/// planned once.
class FleetCompiler {
 public:
  FleetCompiler(const FleetSpec& fleet, const CompileOptions& options) : fleet_(fleet), options_(options) {}

  Result<Compiled> run() {
    for (const auto step : {&FleetCompiler::check_spec, &FleetCompiler::load_models, &FleetCompiler::resolve_links,
                            &FleetCompiler::plan_fleet, &FleetCompiler::meet_budget})
      if (auto done = (this->*step)(); !done) return fail(std::move(done.error()));
    return std::move(result_);
  }

 private:
  struct SessionPlan {
    std::string name;
    std::size_t model = 0;  ///< index into fleet_.models
    std::vector<bool> external_inputs;
    std::vector<bool> external_outputs;
    std::string lane{};
    int priority = 0;
  };
  struct PlannedEntry {
    std::string name;
    compiler::ReducedModel model;
    compiler::PlanOptions options;
    std::size_t source = 0;  ///< index into fleet_.models
  };
  struct ResolvedLink {
    std::size_t producer;
    std::int32_t output;
    std::size_t consumer;
    std::int32_t input;
  };

  Result<void> check_spec() {
    if (fleet_.models.empty())
      return fail(StatusCode::kInvalidArgument, "the fleet names no model", "add at least one [[model]]");
    if (options_.threads < 1 || options_.threads > 64)
      return fail(StatusCode::kInvalidArgument, fmt::format("thread count {} is not within 1..64", options_.threads));
    std::set<std::string> names;
    for (const ModelSpec& model : fleet_.models)
      if (!names.insert(model_name(model)).second)
        return fail(StatusCode::kInvalidArgument, fmt::format("two models are called '{}'", model_name(model)),
                    "give one of them another name");
    std::set<std::string> sessions;
    const auto add = [&](const SessionSpec& session) -> Result<void> {
      const auto& [name, model, lane, priority] = session;
      const auto it = std::find_if(fleet_.models.begin(), fleet_.models.end(),
                                   [&wanted = model](const ModelSpec& m) { return model_name(m) == wanted; });
      if (it == fleet_.models.end())
        return fail(StatusCode::kInvalidArgument,
                    fmt::format("session '{}' uses model '{}', which the fleet does not have", name, model),
                    "use one of the fleet's model names");
      if (!sessions.insert(name).second)
        return fail(StatusCode::kInvalidArgument, fmt::format("two sessions are called '{}'", name),
                    "give one of them another name");
      sessions_.push_back({name,
                           static_cast<std::size_t>(it - fleet_.models.begin()),
                           {},
                           {},
                           lane.value_or(it->lane),
                           priority.value_or(it->priority)});
      return {};
    };
    if (fleet_.sessions.empty()) {
      for (const ModelSpec& model : fleet_.models)
        if (auto added = add({model_name(model), model_name(model)}); !added) return added;
    }
    for (const SessionSpec& session : fleet_.sessions)
      if (auto added = add(session); !added) return added;
    return {};
  }

  Result<void> load_models() {
    for (const ModelSpec& spec : fleet_.models) {
      auto model = compiler::load_model(spec, options_);
      if (!model) return fail(std::move(model.error()));
      if (auto sound = compiler::check_kernel_rules(model->graph, spec.kernels); !sound)
        return fail(std::move(sound.error()).in(model_name(spec)));
      if (auto sound = compiler::check_store_rules(model->graph, spec.stores); !sound)
        return fail(std::move(sound.error()).in(model_name(spec)));
      models_.push_back(std::move(*model));
    }
    for (SessionPlan& session : sessions_) {
      session.external_inputs.assign(models_[session.model].graph.inputs.size(),
                                     fleet_.models[session.model].external_inputs);
      session.external_outputs.assign(models_[session.model].graph.outputs.size(), false);
    }
    return {};
  }

  Result<std::size_t> find_session(const std::string& name) const {
    const auto it =
        std::find_if(sessions_.begin(), sessions_.end(), [&](const SessionPlan& s) { return s.name == name; });
    if (it != sessions_.end()) return static_cast<std::size_t>(it - sessions_.begin());
    return fail(StatusCode::kInvalidArgument,
                fmt::format("a link names session '{}', which the fleet does not have", name),
                "use one of the fleet's session names");
  }

  Result<std::int32_t> find_port(const SessionPlan& session, const std::vector<graph::Port>& ports,
                                 const std::string& name, const char* kind) const {
    const std::int32_t index = port_index(ports, name);
    if (index >= 0) return index;
    return fail(
        StatusCode::kInvalidArgument,
        fmt::format("a link names {} '{}' of session '{}', which has: {}", kind, name, session.name, port_names(ports)),
        "use one of the names listed");
  }

  Result<void> resolve_links() {
    for (const LinkSpec& link : fleet_.links) {
      const auto producer = find_session(link.from_session);
      if (!producer) return fail(producer.error());
      const auto consumer = find_session(link.to_session);
      if (!consumer) return fail(consumer.error());
      SessionPlan& from = sessions_[*producer];
      SessionPlan& to = sessions_[*consumer];
      const auto output = find_port(from, models_[from.model].graph.outputs, link.output, "output");
      if (!output) return fail(output.error());
      const auto input = find_port(to, models_[to.model].graph.inputs, link.input, "input");
      if (!input) return fail(input.error());
      const std::string label =
          fmt::format("link {}.{} -> {}.{}", link.from_session, link.output, link.to_session, link.input);
      if (*producer == *consumer)
        return fail(StatusCode::kInvalidArgument, label + " joins a session with itself",
                    "declare the pair as a state of the model instead");
      const TensorDesc& a = port_desc(models_[from.model].graph, models_[from.model].graph.outputs, *output);
      const TensorDesc& b = port_desc(models_[to.model].graph, models_[to.model].graph.inputs, *input);
      if (!same_shape_and_type(a, b))
        return fail(
            StatusCode::kInvalidArgument,
            fmt::format("{}: the output is {}, the input is {}", label, graph::format_desc(a), graph::format_desc(b)),
            "link ports of the same type and shape");
      const bool linked = std::ranges::any_of(
          links_, [&](const ResolvedLink& other) { return other.consumer == *consumer && other.input == *input; });
      if (linked)
        return fail(StatusCode::kInvalidArgument, label + ": the input has a link already",
                    "remove one of the two links");
      to.external_inputs[static_cast<std::size_t>(*input)] = true;
      from.external_outputs[static_cast<std::size_t>(*output)] = true;
      links_.push_back({*producer, *output, *consumer, *input});
    }
    return {};
  }

  static const TensorDesc& port_desc(const graph::Graph& graph, const std::vector<graph::Port>& ports, std::int32_t i) {
    return graph.value(ports[static_cast<std::size_t>(i)].value).desc;
  }

  /// Which sessions exclude each other; how much memory they need is not known yet.
  std::vector<compiler::LaneSession> lanes() const {
    std::vector<compiler::LaneSession> result;
    for (const SessionPlan& session : sessions_) result.push_back({session.lane, session.priority, {}});
    return result;
  }

  /// Plans everything, with activations reduced to at most `target` bytes where they can be.
  Result<void> plan_with_target(std::optional<std::int64_t> target) {
    activation_target_ = target;
    package_ = {};
    plans_.clear();
    result_ = {};
    if (auto done = plan_sessions(); !done) return done;
    return finish();
  }

  static bool is_too_small(const Result<void>& planned) {
    return !planned && planned.error().code == StatusCode::kArenaTooSmall;
  }

  /// With a budget models are also reduced where the memories are too small for them as they are. How much less they
  /// have to need is not known: it depends on what lies in which memory.
  Result<void> plan_fleet() {
    auto planned = plan_with_target({});
    if (!fleet_.budget || !is_too_small(planned)) return planned;
    std::uint64_t room = 0;
    for (const MemorySpec& memory : fleet_.memories)
      room += std::min(memory.bytes, *fleet_.budget - std::min(room, *fleet_.budget));
    for (std::uint64_t target = room; is_too_small(planned); target = target > room / 4 ? target * 3 / 4 : 0) {
      planned = plan_with_target(static_cast<std::int64_t>(target));
      if (target == 0) break;
    }
    return planned;
  }

  /// Reduces activations to what the budget leaves for them; where that fails, as far as it goes, which is the smallest
  /// plan whatever the budget.
  Result<void> meet_budget() {
    if (!fleet_.budget) return {};
    const std::uint64_t budget = *fleet_.budget;
    const Requirements& need = result_.requirements_;
    const std::uint64_t others = need.arena_bytes - need.activation_bytes;
    const auto reached = static_cast<std::uint64_t>(activation_target_.value_or(INT64_MAX));
    const std::uint64_t left = budget > others ? budget - others : 0;
    Result<void> planned;
    for (const std::uint64_t target : {std::min(reached, left), std::uint64_t{0}}) {
      if (planned && result_.requirements_.arena_bytes <= budget) break;
      planned = plan_with_target(static_cast<std::int64_t>(target));
      if (!planned && !is_too_small(planned)) return planned;
    }
    if (!planned) return planned;
    if (result_.requirements_.arena_bytes > budget && !options_.best_effort) return fail(over_budget());
    return {};
  }

  Result<void> plan_sessions() {
    std::vector<const SessionPlan*> planned;  // one per package model
    for (const SessionPlan& session : sessions_) {
      const auto same = std::find_if(planned.begin(), planned.end(), [&](const SessionPlan* other) {
        // Where memories are shared out, every lane and priority has plans of its own.
        const bool same_room =
            fleet_.memories.empty() || (other->lane == session.lane && other->priority == session.priority);
        return other->model == session.model && other->external_inputs == session.external_inputs &&
               other->external_outputs == session.external_outputs && same_room;
      });
      if (same == planned.end()) {
        if (auto done = plan_session(session); !done) return done;
        planned.push_back(&session);
        package_.fleet.emplace_back(session.name, static_cast<std::uint16_t>(planned.size() - 1));
      } else {
        package_.fleet.emplace_back(session.name, static_cast<std::uint16_t>(same - planned.begin()));
      }
    }
    place_links();
    if (auto placed = place_in_memories(); !placed) return placed;
    for (PlannedEntry& entry : plans_) {
      const auto weights = compiler::emit_model(entry.model.planned, entry.name, package_);
      if (!weights) return fail(Error(weights.error()).in(entry.name));
      result_.models_.push_back(compiler::report_model(entry.model.planned, entry.name, *weights, options_.target));
      result_.models_.back().reductions = std::move(entry.model.reductions);
      result_.models_.back().tried = std::move(entry.model.tried);
    }
    place_groups();
    return {};
  }

  /// Blocks that shall be moved have to be whole; those of one memory need not.
  Result<void> plan_whole_blocks() {
    for (PlannedEntry& entry : plans_) {
      entry.options.whole_blocks = true;
      if (auto planned = plan_entry(entry); !planned) return planned;
    }
    return {};
  }

  /// What is to be placed: the models of `plans`.
  compiler::MemoryNeeds memory_needs(std::vector<PlannedEntry>& plans) const {
    const compiler::Grouping grouping = compiler::group_sessions(lanes(), 0);
    compiler::MemoryNeeds needs{{}, package_.link_bytes, options_.target.pointer_bytes};
    const auto holder = std::ranges::find(fleet_.memories, fleet_.weights, &MemorySpec::name);
    if (holder != fleet_.memories.end()) needs.weights_cost = holder->cost;
    needs.resident = fleet_.resident;
    needs.budget = fleet_.budget;
    for (PlannedEntry& entry : plans) needs.users.push_back({&entry.model.planned, entry.name, 0, 0, entry.options});
    for (std::size_t i = 0; i < sessions_.size(); ++i) {
      compiler::MemoryUser& user = needs.users[package_.fleet[i].model];
      user.group = grouping.of_session[i];
      ++user.sessions;
    }
    return needs;
  }

  /// Models keep their plans where the cheapest memory has room for them, unless whole blocks, among which weights can
  /// be streamed, cost less.
  Result<compiler::MemoryChoice> choose_places(const std::vector<MemorySpec>& memories) {
    const compiler::MemoryNeeds needs = memory_needs(plans_);
    const bool fits = compiler::fits_cheapest(needs, memories);
    if (fits && !compiler::may_stream(needs, memories)) return compiler::place_in_memories(needs, memories);
    std::vector<PlannedEntry> as_planned = plans_;
    if (auto whole = plan_whole_blocks(); !whole) return fail(std::move(whole.error()));
    auto choice = compiler::place_in_memories(memory_needs(plans_), memories);
    if (!fits) return choice;
    auto first = compiler::place_in_memories(memory_needs(as_planned), memories);
    if (choice && first && choice->cost < first->cost) return choice;
    plans_ = std::move(as_planned);
    return first;
  }

  Result<void> place_in_memories() {
    if (fleet_.memories.empty() && fleet_.weights.empty() && !fleet_.resident) return {};
    const auto memories = compiler::arena_memories(fleet_);
    if (!memories) return fail(memories.error());
    const auto choice = choose_places(*memories);
    if (!choice) return fail(choice.error());
    for (format::SessionData& session : package_.fleet) session.state_tier = choice->state_tiers[session.model];
    package_.link_tier = choice->link_tier;
    for (std::size_t t = 0; t < memories->size(); ++t) {
      const MemorySpec& memory = (*memories)[t];
      package_.tiers.push_back({memory.name, memory.bytes, static_cast<float>(memory.cost)});
      result_.memories_.push_back({memory, {}, choice->accessed_bytes[t]});
    }
    result_.access_cost_ = access_cost(*memories, *choice);
    return {};
  }

  /// Sessions that can be alive together get areas of their own.
  void place_groups() {
    std::vector<compiler::LaneSession> needs = lanes();
    for (std::size_t i = 0; i < needs.size(); ++i) {
      const format::ModelData& model = package_.models[package_.fleet[i].model];
      needs[i].bytes = {model.activation_bytes};
      needs[i].bytes.insert(needs[i].bytes.end(), model.tier_bytes.begin(), model.tier_bytes.end());
    }
    const std::size_t tiers = std::max<std::size_t>(1, package_.tiers.size());
    compiler::Grouping grouping = compiler::group_sessions(needs, tiers);
    std::vector<std::int64_t> bounds(grouping.groups.size(), 0);
    for (std::size_t i = 0; i < sessions_.size(); ++i) {
      const std::uint16_t group = grouping.of_session[i];
      const std::size_t model = package_.fleet[i].model;
      result_.sessions_.push_back({sessions_[i].name, model, sessions_[i].lane, sessions_[i].priority,
                                   grouping.areas[group * tiers].offset(), needs[i].bytes.front()});
      bounds[group] = std::max(bounds[group], result_.models_[model].lower_bound_bytes);
      if (!grouping.is_plain()) package_.fleet[i].group = group;
    }
    activation_bound_ = std::accumulate(bounds.begin(), bounds.end(), std::int64_t{0});
    if (grouping.is_plain()) return;
    package_.lanes = std::move(grouping.lanes);
    package_.groups = std::move(grouping.groups);
    package_.areas = std::move(grouping.areas);
  }

  Result<void> plan_session(const SessionPlan& session) {
    const std::string name = model_name(fleet_.models[session.model]);
    compiler::PlanOptions options;
    options.backend = fleet_.models[session.model].backend.value_or(options_.backend);
    options.backends = fleet_.models[session.model].backends;
    options.kernels = fleet_.models[session.model].kernels;
    options.stores = fleet_.models[session.model].stores;
    options.threads = options_.threads;
    options.target = options_.target;
    if (options_.plan_seconds > 0) options.seconds = options_.plan_seconds;
    // Kept with the plan, which may be made anew for several memories.
    if (options_.progress)
      options.progress = [this, name](const std::string& what) { options_.progress(name + ": " + what); };
    options.windows = sessions_.size() == 1;
    options.external_inputs = session.external_inputs;
    options.external_outputs = session.external_outputs;
    options.dimensions = models_[session.model].dimensions;
    options.instances = models_[session.model].instances;
    plans_.push_back({name, {}, std::move(options), session.model});
    return plan_entry(plans_.back());
  }

  bool fits(const compiler::PlannedModel& planned) const {
    return !activation_target_ || planned.activation_bytes <= *activation_target_;
  }

  /// Plans a model, with images as they lie and in bands where that is faster, unless what memories cost decides;
  /// reduces what it needs where a target says so.
  Result<void> plan_entry(PlannedEntry& entry) const {
    const graph::Graph& graph = models_[entry.source].graph;
    auto planned = compiler::plan_model(graph, entry.options);
    if (!planned) return fail(std::move(planned.error()).in(entry.name));
    entry.model = {std::move(*planned), {}, {}};
    auto faster = fleet_.memories.empty() ? plan_faster(graph, entry)
                                          : Result<std::optional<compiler::ReducedModel>>(std::nullopt);
    if (!faster) return fail(std::move(faster.error()).in(entry.name));
    if (!fits(*faster ? (*faster)->planned : entry.model.planned)) {
      auto smaller = compiler::reduce_activations(graph, entry.options, std::move(entry.model.planned),
                                                  *activation_target_, options_.progress);
      if (!smaller) return fail(std::move(smaller.error()).in(entry.name));
      entry.model = std::move(*smaller);
      if (!*faster || entry.model.planned.activation_bytes <= (*faster)->planned.activation_bytes) return {};
    }
    if (*faster) entry.model = std::move(**faster);
    return {};
  }

  /// What is faster than the entry's plan and needs no more: bands, and images of few channels read as they lie.
  Result<std::optional<compiler::ReducedModel>> plan_faster(const graph::Graph& graph,
                                                            const PlannedEntry& entry) const {
    const compiler::PlannedModel& whole = entry.model.planned;
    auto banded = plan_in_bands(graph, entry.options, whole);
    if (!banded) return banded;
    const auto planes = compiler::read_planes(graph, entry.options);
    if (!planes) return fail(planes.error());
    if (!*planes) return banded;
    auto planned = compiler::plan_model(**planes, entry.options);
    if (!planned) return fail(std::move(planned.error()));
    compiler::ReducedModel planar{std::move(*planned), {}, {}};
    auto planar_bands = plan_in_bands(**planes, entry.options, planar.planned);
    if (!planar_bands) return planar_bands;
    if (*planar_bands) planar = std::move(**planar_bands);
    const std::int64_t most = *banded ? (*banded)->planned.activation_bytes : whole.activation_bytes;
    if (planar.planned.activation_bytes > most) return banded;
    return planar;
  }

  /// Nothing where it would not be faster.
  Result<std::optional<compiler::ReducedModel>> plan_in_bands(const graph::Graph& graph,
                                                              const compiler::PlanOptions& options,
                                                              const compiler::PlannedModel& whole) const {
    if (!options_.bands) return std::nullopt;
    return compiler::plan_in_bands(graph, options, whole, activation_target_.value_or(INT64_MAX));
  }

  /// One buffer per producing port, however many sessions read it.
  void place_links() {
    std::map<std::pair<std::size_t, std::int32_t>, std::uint64_t> offsets;
    for (const ResolvedLink& link : links_) {
      const auto [it, fresh] = offsets.try_emplace({link.producer, link.output}, package_.link_bytes);
      if (fresh) {
        const graph::Graph& graph = models_[sessions_[link.producer].model].graph;
        const auto bytes = static_cast<std::uint64_t>(port_desc(graph, graph.outputs, link.output).bytes());
        package_.link_bytes +=
            (bytes + format::kBufferAlignment - 1) / format::kBufferAlignment * format::kBufferAlignment;
      }
      package_.links.emplace_back(static_cast<std::uint16_t>(link.producer), static_cast<std::uint16_t>(link.output),
                                  static_cast<std::uint16_t>(link.consumer), static_cast<std::uint16_t>(link.input),
                                  it->second);
    }
    // The reader wants links in the order of their places.
    std::ranges::stable_sort(package_.links, {}, &format::Link::offset);
  }

  Result<void> finish() {
    auto bytes = std::make_shared<format::PackageBytes>(format::write_package(package_));
    if (bytes->data() == nullptr) return fail(StatusCode::kUnsupported, "the host has no memory left for the package");
    result_.package_ = bytes->bytes();
    result_.owner_ = std::move(bytes);
    Package package;
    const Status opened = Package::open(result_.package_, &package);
    // The writer's output must satisfy the reader: anything else is a defect of the compiler, never of the model.
    if (!opened.ok())
      return fail(error_from(opened, "report this model: the compiler made an invalid package").in("package"));
    result_.requirements_ = package.requirements(options_.target.pointer_bytes);
    if (auto within = report_memories(package); !within) return fail(std::move(within.error()));
    result_.lower_bound_bytes_ = result_.requirements_.arena_bytes - result_.requirements_.activation_bytes +
                                 static_cast<std::uint64_t>(activation_bound_);
    for (std::size_t i = 0; i < package.session_count(); ++i)
      result_.separate_bytes_ += package.session_requirements(i, options_.target.pointer_bytes).arena_bytes;
    return {};
  }

  /// Are inputs a large part of what is alive at the peak?
  static bool inputs_weigh(const ModelReport& model) {
    std::int64_t inputs = 0;
    for (const PlanBlock& block : model.blocks)
      if (block.kind == PlanBlock::Kind::kInput && block.lower <= model.peak_step && model.peak_step < block.upper)
        inputs += block.bytes;
    return 4 * inputs >= model.activation_bytes;
  }

  Result<void> report_memories(const Package& package) {
    for (std::size_t t = 0; t < result_.memories_.size(); ++t) {
      MemoryReport& m = result_.memories_[t];
      m.need = package.tier_requirements(t, options_.target.pointer_bytes);
      if (m.need.arena_bytes > m.memory.bytes)
        return fail(StatusCode::kArenaTooSmall,
                    fmt::format("memory '{}' of {} bytes is too small: the plan needs {} bytes there", m.memory.name,
                                m.memory.bytes, m.need.arena_bytes),
                    fmt::format("give '{}' {} bytes", m.memory.name, m.need.arena_bytes));
    }
    return {};
  }

  AccessCost access_cost(const std::vector<MemorySpec>& memories, const compiler::MemoryChoice& choice) const {
    const auto holder = std::ranges::find(fleet_.memories, fleet_.weights, &MemorySpec::name);
    const double package = holder != fleet_.memories.end() ? holder->cost : 0;
    const double reads = package > 0 ? static_cast<double>(choice.weight_reads) : 0;
    // Copies access the arenas too, but only because the weights lie elsewhere.
    double accessed = -static_cast<double>(choice.copy_accesses);
    for (const std::uint64_t bytes : choice.accessed_bytes) accessed += static_cast<double>(bytes);
    return {choice.cost, (accessed + reads) * memories.front().cost, accessed * memories.back().cost + reads * package,
            static_cast<double>(choice.weight_bytes) * package, choice.unstreamed};
  }

  Error over_budget() const {
    const auto largest =
        std::max_element(result_.models_.begin(), result_.models_.end(),
                         [](const auto& a, const auto& b) { return a.activation_bytes < b.activation_bytes; });
    const Requirements& need = result_.requirements_;
    std::string where;
    for (const StepReport& step : largest->steps)
      if (step.index == largest->peak_step)
        where = fmt::format(", set by layer '{}' ({}, result {})", step.name, step.origin, step.output);
    std::string tried;
    for (const ReductionReport& r : largest->reductions)
      tried += fmt::format("\n{}: {} bytes of activations less", r.what, r.before_bytes - r.after_bytes);
    for (const std::string& nothing : largest->tried) tried += "\ntried " + nothing;
    return {
        StatusCode::kArenaTooSmall,
        fmt::format("the budget of {} bytes is too small: the smallest arena that works is {} bytes\n"
                    "activations {} (model '{}'{}), state {}, links {}, tables {}{}",
                    *fleet_.budget, need.arena_bytes, need.activation_bytes, largest->name, where, need.state_bytes,
                    need.link_bytes, need.table_bytes, tried),
        fmt::format("raise the budget to {} bytes{}, or use a smaller model in place of '{}'", need.arena_bytes,
                    inputs_weigh(*largest) ? ", keep the inputs in memory of the application (--external-inputs)" : "",
                    largest->name)};
  }

  const FleetSpec& fleet_;
  const CompileOptions& options_;
  std::vector<SessionPlan> sessions_;
  std::vector<compiler::LoadedModel> models_;  ///< by fleet_.models
  std::vector<ResolvedLink> links_;
  std::vector<PlannedEntry> plans_;                ///< by the package's model
  std::optional<std::int64_t> activation_target_;  ///< bytes that no model's activations should exceed
  format::PackageData package_;
  std::int64_t activation_bound_ = 0;  ///< no placement of the fleet's activations is smaller
  Compiled result_;
};

std::span<const std::byte> Compiled::package() const noexcept { return package_; }

Result<Declaration> declare(const std::filesystem::path& model) {
  auto source = import::open_source(model);
  if (!source) return fail(std::move(source.error()));
  return import::declare_model(*source);
}

Result<Compiled> compile(const FleetSpec& fleet, const CompileOptions& options) {
  const auto expanded = compiler::expand_sizes(fleet);
  if (!expanded) return fail(expanded.error());
  return FleetCompiler(expanded->spec, options).run();
}

}  // namespace bantam
