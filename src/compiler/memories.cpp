#include "compiler/memories.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "compiler/block_accesses.h"
#include "compiler/spills.h"
#include "compiler/stream_choice.h"
#include "compiler/weight_streams.h"
#include "ops/data/copy/copy.h"
#include "package/control_flow.h"
#include "package/layout.h"
#include "plan/tiers.h"

namespace bantam::compiler {
namespace {

/// Parts into which the cheapest memory is cut to share it out among lanes and priorities.
constexpr std::size_t kShares = 16;
/// States and links that are tried in a slower memory although they would fit the fastest.
constexpr int kMostMoves = 8;
/// Values of a model that are given a rest, and candidates that are tried for each: every try is a plan of the model.
constexpr int kMostSpills = 8;
constexpr int kSpillTries = 6;
constexpr std::size_t kMostSpillNodes = 1000;
constexpr std::int64_t kSpillSearchSteps = plan::kDefaultSearchSteps / 100;

std::int64_t aligned(std::int64_t bytes) { return align_up(bytes, static_cast<std::int64_t>(format::kArenaAlignment)); }

/// Something that always lives: a state of every session of a model, or the links.
struct Permanent {
  std::int64_t bytes = 0;
  std::int64_t accessed = 0;
  std::size_t tier = 0;
};

class MemoryPlanner {
 public:
  MemoryPlanner(const MemoryNeeds& needs, std::span<const MemorySpec> memories) : needs_(needs), memories_(memories) {
    for (const MemoryUser& user : needs.users) accesses_.push_back(count_accesses(*user.model));
    for (const MemoryUser& user : needs.users) groups_ = std::max<std::size_t>(groups_, std::size_t{user.group} + 1);
  }

  bool fits_cheapest() {
    add_permanents();
    return permanent_bytes(0) + sum_of(group_needs()) <= capacity(0);
  }

  Result<MemoryChoice> run() {
    if (table_bound() > capacity(0))
      return fail(StatusCode::kArenaTooSmall,
                  fmt::format("memory '{}' has {} bytes, the runtime's tables alone may need {}", memories_[0].name,
                              memories_[0].bytes, table_bound()),
                  "give the memory more bytes, or put a larger one of the same cost in its place");
    add_permanents();
    if (!push_down()) return fail(too_small(memories_.size() - 1, permanent_bytes(memories_.size() - 1), ""));
    auto best = place_activations();
    if (!best) return fail(std::move(best.error()));
    if (auto improved = improve(*best); !improved) return fail(std::move(improved.error()));
    if (!best->fits) {
      // Bytes first: the fastest memory takes what the others have no room for, however seldom it is used.
      by_size_ = true;
      best = place_activations();
      if (!best) return fail(std::move(best.error()));
      if (!best->fits) return fail(over(*best));
    } else if (auto spilled = spill(*best); !spilled) {
      return fail(std::move(spilled.error()));
    }
    const double unstreamed = best->cost + permanent_cost() + weights_cost();
    if (best->fits && needs_.weights_cost > 0)
      if (auto copied = copy_weights(*best); !copied) return fail(std::move(copied.error()));
    MemoryChoice choice = apply(*best);
    choice.unstreamed = unstreamed;
    return choice;
  }

 private:
  /// The activations of all models in all tiers.
  struct Activations {
    std::vector<plan::TierPlan> plans;                  ///< by user
    std::vector<std::vector<std::int64_t>> capacities;  ///< by user, then by tier
    bool fits = true;
    double cost = 0;
  };

  std::int64_t capacity(std::size_t tier) const {
    constexpr std::uint64_t kMost = std::uint64_t{1} << 50;
    return static_cast<std::int64_t>(std::min(memories_[tier].bytes, kMost));
  }

  /// The most that the runtime's structures can need: models are packed later.
  std::int64_t table_bound() const {
    std::set<const ops::KernelVariant*> kernels;
    for (const MemoryUser& user : needs_.users)
      for (const PlannedStep& step : user.model->steps)
        if (step.variant != nullptr) kernels.insert(step.variant);
    if (needs_.weights_cost > 0) kernels.insert(&ops::reference_variant(ops::kCopy));
    const auto pointer = static_cast<std::int64_t>(needs_.pointer_bytes);
    std::int64_t bytes = static_cast<std::int64_t>(SessionLayout::fleet_bytes(needs_.pointer_bytes)) +
                         static_cast<std::int64_t>(kernels.size()) * pointer;
    for (const MemoryUser& user : needs_.users) {
      const PlannedModel& m = *user.model;
      const auto slots =
          static_cast<std::int64_t>(format::kFirstPort + m.inputs.size() + m.outputs.size() + memories_.size() - 1);
      std::int64_t session = static_cast<std::int64_t>(SessionLayout::session_bytes(needs_.pointer_bytes)) +
                             (slots + 1) * pointer + pointer;
      if (!m.dimensions.empty()) session += size_table_bound(m, static_cast<std::int64_t>(kernels.size()), pointer);
      bytes += user.sessions * session;
    }
    return aligned(bytes);
  }

  static std::int64_t size_table_bound(const PlannedModel& m, std::int64_t kernels, std::int64_t pointer) {
    std::int64_t values = static_cast<std::int64_t>(m.graph.values.size());
    std::int64_t params = 0;
    for (const PlannedStep& step : m.steps) {
      const graph::Node& node = m.graph.node(step.node);
      values += static_cast<std::int64_t>(node.inputs.size());
      params += static_cast<std::int64_t>(node.params.size()) + 4 * static_cast<std::int64_t>(format::kControlWords);
    }
    return values * static_cast<std::int64_t>(sizeof(format::Value)) + (3 + 2 * kernels) * pointer + params +
           4 * static_cast<std::int64_t>(m.dimensions.size()) + static_cast<std::int64_t>(alignof(format::Value));
  }

  void add_permanents() {
    std::int64_t link_accesses = 0;
    for (std::size_t u = 0; u < needs_.users.size(); ++u) {
      const MemoryUser& user = needs_.users[u];
      permanents_.push_back({state_bytes(user, user.model->state_bytes), user.sessions * accesses_[u].state, 0});
      link_accesses += user.sessions * accesses_[u].links;
    }
    permanents_.push_back({aligned(static_cast<std::int64_t>(needs_.link_bytes)), link_accesses, 0});
  }

  std::int64_t permanent_bytes(std::size_t tier) const {
    std::int64_t bytes = tier == 0 ? table_bound() : 0;
    for (const Permanent& p : permanents_)
      if (p.tier == tier) bytes += p.bytes;
    return bytes;
  }

  static double density(const Permanent& p) {
    return static_cast<double>(p.accessed) / std::max(1.0, static_cast<double>(p.bytes));
  }

  /// The one of a tier that is accessed least per byte; none when it has none.
  Permanent* coldest(std::size_t tier, const std::set<const Permanent*>& except = {}) {
    Permanent* found = nullptr;
    for (Permanent& p : permanents_) {
      if (p.tier != tier || p.bytes == 0 || except.contains(&p)) continue;
      if (found == nullptr || density(p) < density(*found)) found = &p;
    }
    return found;
  }

  /// Moves what has no room to slower memories. False when the slowest has none either.
  bool push_down() {
    for (std::size_t t = 0; t < memories_.size(); ++t)
      while (permanent_bytes(t) > capacity(t)) {
        Permanent* p = coldest(t);
        if (p == nullptr || t + 1 == memories_.size()) return false;
        p->tier = t + 1;
      }
    return true;
  }

  double permanent_cost() const {
    double cost = 0;
    for (const Permanent& p : permanents_) cost += static_cast<double>(p.accessed) * memories_[p.tier].cost;
    return cost;
  }

  /// Cold states make room for hot activations.
  Result<void> improve(Activations& best) {
    std::set<const Permanent*> tried;
    for (int move = 0; move < kMostMoves && memories_.size() > 1; ++move) {
      Permanent* p = coldest(0, tried);
      if (p == nullptr) return {};
      tried.insert(p);
      if (permanent_bytes(1) + p->bytes > capacity(1)) continue;
      const double before = best.cost + permanent_cost();
      p->tier = 1;
      auto retried = place_activations();
      if (!retried) return fail(std::move(retried.error()));
      if (retried->fits >= best.fits && (retried->fits > best.fits || retried->cost + permanent_cost() < before)) {
        best = std::move(*retried);
      } else {
        p->tier = 0;
      }
    }
    return {};
  }

  plan::Problem problem_of(const PlannedModel& model) const {
    plan::Problem problem;
    for (const PlanBlock& b : model.blocks) {
      const bool big = b.kind == PlanBlock::Kind::kScratch || b.kind == PlanBlock::Kind::kWeights ||
                       b.bytes >= static_cast<std::int64_t>(format::kBigBufferBytes);
      problem.buffers.push_back(
          {b.name,
           b.lower,
           b.upper,
           b.bytes,
           static_cast<std::int64_t>(big ? format::kBigBufferAlignment : format::kBufferAlignment),
           {}});
    }
    return problem;
  }

  Result<plan::TierPlan> plan_user(std::size_t u, const std::vector<std::int64_t>& capacities) const {
    return plan_blocks(*needs_.users[u].model, accesses_[u].blocks, needs_.users[u], capacities);
  }

  Result<plan::TierPlan> plan_blocks(const PlannedModel& model, const std::vector<std::int64_t>& accessed,
                                     const MemoryUser& user, const std::vector<std::int64_t>& capacities) const {
    std::vector<plan::Tier> tiers;
    for (std::size_t t = 0; t < memories_.size(); ++t)
      tiers.push_back({std::max<std::int64_t>(0, capacities[t]), memories_[t].cost});
    if (model.activation_bytes <= tiers.front().capacity && model.streams.empty())
      return as_planned(model, accessed, user);
    std::vector<std::int64_t> worth = accessed;
    if (by_size_)
      for (std::size_t b = 0; b < worth.size(); ++b)
        worth[b] = model.blocks[b].bytes * (model.blocks[b].upper - model.blocks[b].lower);
    auto planned = plan::plan_tiers(problem_of(model), worth, tiers);
    if (!planned) return fail(std::move(planned.error()).in(user.name));
    planned->cost = 0;
    for (std::size_t b = 0; b < worth.size(); ++b)
      planned->cost += static_cast<double>(accessed[b] * user.sessions) * memories_[planned->tiers[b]].cost;
    return planned;
  }

  /// All of a model in the cheapest memory, where it lies without the others.
  plan::TierPlan as_planned(const PlannedModel& model, const std::vector<std::int64_t>& accessed,
                            const MemoryUser& user) const {
    plan::TierPlan plan;
    plan.tiers.assign(model.blocks.size(), 0);
    for (const PlanBlock& block : model.blocks) plan.offsets.push_back(block.offset);
    plan.peaks.assign(memories_.size(), 0);
    plan.peaks.front() = model.activation_bytes;
    plan.fits = true;
    const std::int64_t bytes = std::accumulate(accessed.begin(), accessed.end(), std::int64_t{0});
    plan.cost = static_cast<double>(bytes * user.sessions) * memories_.front().cost;
    return plan;
  }

  /// Lets values rest in slower memories where the copies cost less than what they make room for.
  Result<void> spill(Activations& best) {
    const std::vector<Accesses> accesses = accesses_;
    const Activations before = best;
    std::vector<PlannedModel> models;
    for (std::size_t u = 0; u < needs_.users.size(); ++u) {
      models.push_back(*needs_.users[u].model);
      if (lies_in_cheapest(best.plans[u]) || models.back().graph.nodes.size() > kMostSpillNodes) continue;
      for (int n = 0; n < kMostSpills; ++n) {
        const auto spilled = spill_one(u, best);
        if (!spilled) return fail(spilled.error());
        if (!*spilled) break;
      }
    }
    if (within_room(best)) return {};
    // Copies of one lane took the room that another one had been given.
    for (std::size_t u = 0; u < models.size(); ++u) *needs_.users[u].model = std::move(models[u]);
    accesses_ = accesses;
    best = before;
    return {};
  }

  /// True when a value was spilled.
  Result<bool> spill_one(std::size_t u, Activations& best) {
    const MemoryUser& user = needs_.users[u];
    std::vector<Spill> spills = find_spills(*user.model);
    if (spills.size() > kSpillTries) spills.resize(kSpillTries);
    PlanOptions options = user.options;
    options.choice = PlanChoice{};
    options.search_steps = kSpillSearchSteps;
    for (const Spill& candidate : spills) {
      auto model = plan_model(with_copies(with_kernels(*user.model), candidate), options);
      if (!model) return fail(std::move(model.error()).in(user.name));
      Accesses accesses = count_accesses(*model);
      auto planned = plan_blocks(*model, accesses.blocks, user, best.capacities[u]);
      if (!planned) return fail(std::move(planned.error()));
      if (!planned->fits || planned->cost >= best.plans[u].cost) continue;
      const std::int64_t copies = (candidate.copy_out ? 1 : 0) + (candidate.copy_in ? 1 : 0);
      model->copied_bytes = user.model->copied_bytes + copies * user.model->graph.value(candidate.value).desc.bytes();
      best.cost += planned->cost - best.plans[u].cost;
      best.plans[u] = std::move(*planned);
      accesses_[u] = std::move(accesses);
      *user.model = std::move(*model);
      return true;
    }
    return false;
  }

  /// What an invoke of every session pays for reading the package.
  double weights_cost() const {
    if (needs_.weights_cost <= 0) return 0;
    double cost = 0;
    for (const MemoryUser& user : needs_.users) cost += package_cost(user, *user.model);
    return cost;
  }

  /// All that copying weights changes.
  struct Copied {
    Activations activations;
    std::vector<PlannedModel> models;  ///< by user
    std::vector<Accesses> accesses;
    std::vector<Permanent> permanents;
    double cost = std::numeric_limits<double>::infinity();
  };

  Copied snapshot(const Activations& activations) const {
    Copied now{activations, {}, accesses_, permanents_, activations.cost + permanent_cost() + weights_cost()};
    for (const MemoryUser& user : needs_.users) now.models.push_back(*user.model);
    return now;
  }

  void restore(const Copied& then, Activations& activations) {
    for (std::size_t u = 0; u < needs_.users.size(); ++u) *needs_.users[u].model = then.models[u];
    accesses_ = then.accesses;
    permanents_ = then.permanents;
    activations = then.activations;
  }

  /// Streams weights, and keeps others resident where that is wanted: with all that is left for streams first, and with
  /// parts of it for residents only.
  Result<void> copy_weights(Activations& best) {
    const Copied start = snapshot(best);
    const std::int64_t most = used(best) + spare(best);
    if (auto copied = copy_in_shares(start, best); !copied) return copied;
    // Several memories may each have taken what the budget has left for all.
    if (used(best) > most) restore(start, best);
    return {};
  }

  Result<void> copy_in_shares(const Copied& start, Activations& best) {
    if (!needs_.resident) return stream(best);
    Copied cheapest = start;
    for (int quarters = 0; quarters <= 4; quarters += 2) {
      restore(start, best);
      reserved_ = left(best);
      for (std::int64_t& bytes : reserved_) bytes = bytes / 4 * quarters;
      if (auto streamed = stream(best); !streamed) return streamed;
      keep_weights(best);
      Copied tried = snapshot(best);
      if (tried.cost < cheapest.cost) cheapest = std::move(tried);
    }
    restore(cheapest, best);
    return {};
  }

  /// Bytes of all arenas.
  std::int64_t used(const Activations& chosen) const {
    std::int64_t bytes = 0;
    for (std::size_t t = 0; t < memories_.size(); ++t) bytes += permanent_bytes(t) + sum_of(group_peaks(chosen, t));
    return bytes;
  }

  /// Bytes that copies may add to the arenas.
  std::int64_t spare(const Activations& chosen) const {
    constexpr std::uint64_t kMost = std::uint64_t{1} << 50;
    const auto budget = static_cast<std::int64_t>(std::min(needs_.budget.value_or(kMost), kMost));
    return std::max<std::int64_t>(0, budget - used(chosen));
  }

  /// By tier: bytes that nothing uses.
  std::vector<std::int64_t> left(const Activations& chosen) const {
    std::vector<std::int64_t> bytes;
    for (std::size_t t = 0; t < memories_.size(); ++t)
      bytes.push_back(capacity(t) - permanent_bytes(t) - sum_of(group_peaks(chosen, t)));
    return bytes;
  }

  /// Copies weights to where reading them costs less, one model after the other, in what room the others leave.
  Result<void> stream(Activations& best) {
    for (std::size_t u = 0; u < needs_.users.size(); ++u)
      if (needs_.users[u].options.whole_blocks)
        if (auto done = stream_user(u, best); !done) return done;
    return {};
  }

  Result<void> stream_user(std::size_t u, Activations& best) {
    const MemoryUser& user = needs_.users[u];
    const std::vector<std::int64_t> room = room_for(u, best);
    StreamSetting setting{user.name, &user.options, user.sessions, needs_.weights_cost, memories_, {}};
    setting.place = [&](const PlannedModel& model, const std::vector<std::int64_t>& accessed) {
      return plan_blocks(model, accessed, user, room);
    };
    const double before = best.plans[u].cost;
    auto chosen =
        stream_weights(*user.model, setting, {best.plans[u], accesses_[u], before + package_cost(user, *user.model)});
    if (!chosen) return fail(std::move(chosen.error()));
    best.cost += chosen->plan.cost - before;
    best.plans[u] = std::move(chosen->plan);
    accesses_[u] = std::move(chosen->accesses);
    return {};
  }

  /// Weights of a user that could stay where its sessions' states are, and what that saves per byte.
  struct Resident {
    std::size_t user = 0;
    PlannedStream weights;
    double worth = 0;
  };

  std::vector<Resident> resident_candidates(const Activations& chosen) const {
    std::vector<Resident> found;
    for (std::size_t u = 0; u < needs_.users.size(); ++u) {
      const PlannedModel& model = *needs_.users[u].model;
      const double cost = memories_[permanents_[u].tier].cost;
      for (const PlannedStream& weights : copyable_weights(model)) {
        const auto reads = static_cast<double>(weights.reads);
        double now = reads * needs_.weights_cost;
        for (const PlannedStream& s : model.streams)
          if (same_operand(s, weights))
            now = needs_.weights_cost + (1 + reads) * memories_[tier_of(chosen.plans[u], s)].cost;
        if (now > reads * cost) found.push_back({u, weights, now - reads * cost});
      }
    }
    std::ranges::stable_sort(found, std::greater<>(), &Resident::worth);
    return found;
  }

  /// Fills with weights what is left of the memories where states lie, with those first that save most per byte.
  void keep_weights(Activations& best) {
    std::vector<std::int64_t> room = left(best);
    std::int64_t allowed = spare(best);
    for (const Resident& candidate : resident_candidates(best)) {
      const MemoryUser& user = needs_.users[candidate.user];
      Permanent& state = permanents_[candidate.user];
      const std::int64_t bytes =
          state_bytes(user, resident_offset(*user.model) + candidate.weights.bytes) - state.bytes;
      if (bytes > std::min(room[state.tier], allowed)) continue;
      drop_stream(candidate, best);
      keep_resident(*user.model, candidate.weights);
      room[state.tier] -= bytes;
      allowed -= bytes;
      state.bytes += bytes;
      state.accessed += user.sessions * candidate.weights.reads * candidate.weights.bytes;
    }
  }

  /// Takes the block of a stream out of the user's plan, if the model has one for these weights.
  void drop_stream(const Resident& resident, Activations& best) {
    const MemoryUser& user = needs_.users[resident.user];
    const auto stream = std::ranges::find_if(user.model->streams,
                                             [&](const PlannedStream& s) { return same_operand(s, resident.weights); });
    if (stream == user.model->streams.end()) return;
    plan::TierPlan& plan = best.plans[resident.user];
    std::vector<std::int64_t>& accessed = accesses_[resident.user].blocks;
    const double cost = static_cast<double>(user.sessions * accessed[static_cast<std::size_t>(stream->block)]) *
                        memories_[tier_of(plan, *stream)].cost;
    plan.cost -= cost;
    best.cost -= cost;
    plan.tiers.erase(plan.tiers.begin() + stream->block);
    plan.offsets.erase(plan.offsets.begin() + stream->block);
    accessed.erase(accessed.begin() + stream->block);
  }

  /// Of all sessions of a user, both copies of alternating states included, when its state has so many bytes.
  static std::int64_t state_bytes(const MemoryUser& user, std::int64_t state) {
    const std::int64_t swap = user.model->swap_bytes;
    return user.sessions * ((state == 0 ? 0 : aligned(state)) + 2 * (swap == 0 ? 0 : aligned(swap)));
  }

  double package_cost(const MemoryUser& user, const PlannedModel& model) const {
    return static_cast<double>(user.sessions * weight_bytes_read(model)) * needs_.weights_cost;
  }

  /// By tier: the most that a model of each group needs.
  std::vector<std::int64_t> group_peaks(const Activations& chosen, std::size_t tier) const {
    std::vector<std::int64_t> most(groups_, 0);
    for (std::size_t u = 0; u < needs_.users.size(); ++u)
      most[needs_.users[u].group] = std::max(most[needs_.users[u].group], aligned(chosen.plans[u].peaks[tier]));
    return most;
  }

  /// By tier: what a model may need while the plans of other groups stay as they are.
  std::vector<std::int64_t> room_for(std::size_t u, const Activations& chosen) const {
    std::vector<std::int64_t> room;
    for (std::size_t t = 0; t < memories_.size(); ++t) {
      std::vector<std::int64_t> most = group_peaks(chosen, t);
      std::int64_t& own = most[needs_.users[u].group];
      const std::int64_t allowed = own + spare(chosen);
      own = 0;
      const std::int64_t bytes =
          capacity(t) - permanent_bytes(t) - sum_of(most) - (reserved_.empty() ? 0 : reserved_[t]);
      room.push_back(std::min(bytes, allowed) / static_cast<std::int64_t>(format::kArenaAlignment) *
                     static_cast<std::int64_t>(format::kArenaAlignment));
    }
    return room;
  }

  bool within_room(const Activations& chosen) const {
    for (std::size_t t = 0; t < memories_.size(); ++t)
      if (permanent_bytes(t) + sum_of(group_peaks(chosen, t)) > capacity(t)) return false;
    return true;
  }

  Result<Activations> place_activations() {
    std::vector<std::int64_t> room;
    for (std::size_t t = 0; t < memories_.size(); ++t) room.push_back(capacity(t) - permanent_bytes(t));
    auto shares = share_out(room);
    if (!shares) return fail(std::move(shares.error()));
    Activations result;
    result.plans.resize(needs_.users.size());
    result.capacities.resize(needs_.users.size());
    for (std::size_t g = 0; g < groups_; ++g) {
      std::vector<std::int64_t> capacities = room;
      capacities[0] = (*shares)[g];
      std::vector<std::int64_t> most(room.size(), 0);
      for (std::size_t u = 0; u < needs_.users.size(); ++u) {
        if (needs_.users[u].group != g) continue;
        auto planned = plan_user(u, capacities);
        if (!planned) return fail(std::move(planned.error()));
        result.fits = result.fits && planned->fits;
        result.cost += planned->cost;
        for (std::size_t t = 0; t < most.size(); ++t) most[t] = std::max(most[t], planned->peaks[t]);
        result.plans[u] = std::move(*planned);
        result.capacities[u] = capacities;
      }
      for (std::size_t t = 1; t < room.size(); ++t) room[t] -= aligned(most[t]);
    }
    return result;
  }

  /// What each group needs when all of it lies in one memory.
  std::vector<std::int64_t> group_needs() const {
    std::vector<std::int64_t> most(groups_, 0);
    for (const MemoryUser& user : needs_.users)
      most[user.group] = std::max(most[user.group], aligned(user.model->activation_bytes));
    return most;
  }

  static std::int64_t sum_of(const std::vector<std::int64_t>& bytes) {
    return std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0});
  }

  /// Bytes of the cheapest memory for each group: the cheapest distribution in steps of a sixteenth.
  Result<std::vector<std::int64_t>> share_out(const std::vector<std::int64_t>& room) const {
    if (groups_ == 1 || memories_.size() == 1) return std::vector<std::int64_t>(groups_, room[0]);
    if (std::vector<std::int64_t> all = group_needs(); sum_of(all) <= room[0]) return all;
    std::vector<std::vector<double>> costs;  // by group, by share
    for (std::size_t g = 0; g < groups_; ++g) {
      auto of_group = group_costs(g, room);
      if (!of_group) return fail(std::move(of_group.error()));
      costs.push_back(std::move(*of_group));
    }
    // least[g][s]: the groups before g within s shares; taken[g][s]: how many of them group g has then.
    std::vector<std::vector<double>> least(groups_ + 1, std::vector<double>(kShares + 1, 0));
    std::vector<std::vector<std::size_t>> taken(groups_, std::vector<std::size_t>(kShares + 1, 0));
    for (std::size_t g = 0; g < groups_; ++g)
      for (std::size_t s = 0; s <= kShares; ++s) {
        least[g + 1][s] = std::numeric_limits<double>::infinity();
        for (std::size_t own = 0; own <= s; ++own) {
          const double cost = least[g][s - own] + costs[g][own];
          if (cost >= least[g + 1][s]) continue;
          least[g + 1][s] = cost;
          taken[g][s] = own;
        }
      }
    std::vector<std::int64_t> shares(groups_, 0);
    std::size_t left = kShares;
    for (std::size_t g = groups_; g-- > 0;) {
      shares[g] = share_bytes(room[0], taken[g][left]);
      left -= taken[g][left];
    }
    return shares;
  }

  static std::int64_t share_bytes(std::int64_t room, std::size_t shares) {
    const std::int64_t bytes =
        std::max<std::int64_t>(0, room) / static_cast<std::int64_t>(kShares) * static_cast<std::int64_t>(shares);
    return bytes / static_cast<std::int64_t>(format::kArenaAlignment) *
           static_cast<std::int64_t>(format::kArenaAlignment);
  }

  Result<std::vector<double>> group_costs(std::size_t group, const std::vector<std::int64_t>& room) const {
    std::vector<double> costs(kShares + 1, 0);
    for (std::size_t s = 0; s <= kShares; ++s) {
      std::vector<std::int64_t> capacities = room;
      capacities[0] = share_bytes(room[0], s);
      for (std::size_t u = 0; u < needs_.users.size(); ++u) {
        if (needs_.users[u].group != group) continue;
        auto planned = plan_user(u, capacities);
        if (!planned) return fail(std::move(planned.error()));
        costs[s] += planned->cost;
      }
    }
    return costs;
  }

  MemoryChoice apply(const Activations& chosen) const {
    MemoryChoice choice;
    choice.cost = chosen.cost + permanent_cost() + weights_cost();
    choice.accessed_bytes.assign(memories_.size(), 0);
    for (std::size_t u = 0; u < needs_.users.size(); ++u) {
      choice.state_tiers.push_back(static_cast<std::uint8_t>(permanents_[u].tier));
      PlannedModel& model = *needs_.users[u].model;
      model.state_tier = static_cast<std::uint32_t>(permanents_[u].tier);
      const auto sessions = static_cast<std::uint64_t>(needs_.users[u].sessions);
      choice.weight_bytes += sessions * static_cast<std::uint64_t>(weight_bytes_read(model));
      for (const PlannedStream& read : weight_reads(model))
        choice.weight_reads += sessions * static_cast<std::uint64_t>(read.reads * read.bytes);
      for (const PlannedStream& stream : model.streams)
        choice.copy_accesses += sessions * static_cast<std::uint64_t>((1 + stream.reads) * stream.bytes);
      for (const PlannedStream& resident : model.residents)
        choice.copy_accesses += sessions * static_cast<std::uint64_t>(resident.reads * resident.bytes);
      move_blocks(model, chosen.plans[u]);
      insert_copies(model);
      for (std::size_t b = 0; b < model.blocks.size(); ++b) {
        model.blocks[b].accessed_bytes = accesses_[u].blocks[b];
        choice.accessed_bytes[model.blocks[b].tier] +=
            static_cast<std::uint64_t>(needs_.users[u].sessions * accesses_[u].blocks[b]);
      }
    }
    choice.link_tier = static_cast<std::uint8_t>(permanents_.back().tier);
    for (const Permanent& p : permanents_) choice.accessed_bytes[p.tier] += static_cast<std::uint64_t>(p.accessed);
    return choice;
  }

  Error over(const Activations& chosen) const {
    // The tier that lacks bytes is the slowest: the others hold what they have room for.
    const std::size_t last = memories_.size() - 1;
    std::int64_t needed = permanent_bytes(last);
    std::size_t largest = 0;
    for (std::size_t g = 0; g < groups_; ++g) {
      std::int64_t most = 0;
      for (std::size_t u = 0; u < needs_.users.size(); ++u) {
        if (needs_.users[u].group != g) continue;
        most = std::max(most, chosen.plans[u].peaks[last]);
        if (chosen.plans[u].peaks[last] > chosen.plans[largest].peaks[last]) largest = u;
      }
      needed += aligned(most);
    }
    const std::string layer = crowded_layer(*needs_.users[largest].model, chosen.plans[largest], last);
    return too_small(last, needed, fmt::format("\nset by model '{}'{}", needs_.users[largest].name, layer));
  }

  Error too_small(std::size_t tier, std::int64_t needed, const std::string& where) const {
    std::string others;
    for (std::size_t t = 0; t < tier; ++t)
      others +=
          fmt::format("{}'{}' of {} bytes", t == 0 ? ", besides " : " and ", memories_[t].name, memories_[t].bytes);
    return {StatusCode::kArenaTooSmall,
            fmt::format("memory '{}' of {} bytes is too small: the least that was reached is {} bytes{}{}",
                        memories_[tier].name, memories_[tier].bytes, needed, others, where),
            fmt::format("give '{}' {} bytes, or a faster memory more", memories_[tier].name, needed)};
  }

  /// The layer at which most of a tier is in use.
  static std::string crowded_layer(const PlannedModel& model, const plan::TierPlan& plan, std::size_t tier) {
    const PlannedStep* crowded = nullptr;
    std::int64_t most = -1;
    for (const PlannedStep& step : model.steps) {
      std::int64_t alive = 0;
      for (std::size_t b = 0; b < model.blocks.size(); ++b)
        if (plan.tiers[b] == tier && model.blocks[b].lower <= step.node && step.node < model.blocks[b].upper)
          alive += model.blocks[b].bytes;
      if (alive <= most) continue;
      most = alive;
      crowded = &step;
    }
    if (crowded == nullptr) return "";
    const graph::Node& node = model.graph.node(crowded->node);
    return fmt::format(", layer '{}' ({})", node.name, node.origin);
  }

  const MemoryNeeds& needs_;
  std::span<const MemorySpec> memories_;
  std::vector<Accesses> accesses_;      ///< by user
  std::vector<Permanent> permanents_;   ///< states by user, then the links
  std::vector<std::int64_t> reserved_;  ///< by tier: room that streams leave to resident weights; empty: none
  std::size_t groups_ = 0;
  bool by_size_ = false;
};

}  // namespace

Result<std::vector<MemorySpec>> arena_memories(const FleetSpec& fleet) {
  const auto bad = [](const std::string& what, const char* remedy) {
    return fail(StatusCode::kInvalidArgument, what, remedy);
  };
  std::vector<MemorySpec> memories;
  std::set<std::string> names;
  for (const MemorySpec& memory : fleet.memories) {
    if (memory.name.empty()) return bad("a memory has no name", "name every memory");
    if (!names.insert(memory.name).second)
      return bad(fmt::format("two memories are called '{}'", memory.name), "give one of them another name");
    if (!(memory.cost > 0 && memory.cost <= 1e6))
      return bad(fmt::format("memory '{}' has a cost of {}", memory.name, memory.cost),
                 "give what an access costs relative to the other memories, more than 0 and at most 1e6");
    if (memory.bytes > 0) {
      memories.push_back(memory);
    } else if (memory.name != fleet.weights) {
      return bad(fmt::format("memory '{}' has no size and does not hold the weights", memory.name),
                 "give it a size, or name it as the weights' memory");
    }
  }
  if (!fleet.weights.empty() && !names.contains(fleet.weights))
    return bad(fmt::format("the weights lie in memory '{}', which the fleet does not have", fleet.weights),
               "use one of the memories' names");
  if (fleet.resident && fleet.weights.empty())
    return bad("weights shall be resident, but no memory is said to hold the package",
               "name it as the weights' memory");
  if (!fleet.memories.empty() && memories.empty())
    return bad("no memory has room for an arena", "give at least one of them a size");
  if (memories.size() > format::kMaxTiers)
    return bad(fmt::format("{} memories have an arena, at most {} are supported", memories.size(), format::kMaxTiers),
               "leave some out");
  std::ranges::stable_sort(memories, {}, &MemorySpec::cost);
  return memories;
}

bool fits_cheapest(const MemoryNeeds& needs, std::span<const MemorySpec> memories) {
  return MemoryPlanner(needs, memories).fits_cheapest();
}

bool may_stream(const MemoryNeeds& needs, std::span<const MemorySpec> memories) {
  return needs.weights_cost > 0 && std::ranges::any_of(needs.users, [&](const MemoryUser& user) {
           return !find_streams(*user.model, needs.weights_cost, memories.front().cost).empty();
         });
}

Result<MemoryChoice> place_in_memories(const MemoryNeeds& needs, std::span<const MemorySpec> memories) {
  return MemoryPlanner(needs, memories).run();
}

}  // namespace bantam::compiler
