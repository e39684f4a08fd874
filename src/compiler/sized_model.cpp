#include "compiler/sized_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <set>
#include <utility>

#include "compiler/sized_graph.h"
#include "passes/passes.h"

namespace bantam::compiler {
namespace {

using graph::Graph;

/// Sizes one apart below the bound that are looked at: they show divisors up to this number.
constexpr std::int64_t kNeighbours = 8;
/// The same where looking costs little.
constexpr std::int64_t kPlannedNeighbours = 32;
/// Distinct sizes of a dimension that a number must follow before it is believed to follow them all.
constexpr std::size_t kFewestSizes = 3;

/// Sizes at which a dimension is looked at, from a little above its bound down to zero.
std::vector<std::int64_t> sizes_to_try(std::int64_t bound, std::int64_t neighbours) {
  std::set<std::int64_t, std::greater<>> sizes = {0, 1, 2, 3, 4, 5, 7, 8, bound / 8, bound / 4, bound / 3, bound / 2};
  sizes.insert(bound - bound / 4);
  for (std::int64_t i = -3; i <= neighbours; ++i) sizes.insert(bound - i);
  std::vector<std::int64_t> result;
  for (const std::int64_t size : sizes)
    if (size >= 0 && size <= bound + 3) result.push_back(size);
  return result;
}

/// The bounds, each dimension varied alone, and all varied together.
std::vector<Sizes> combinations(const std::vector<Dimension>& dimensions, std::int64_t neighbours) {
  Sizes bounds;
  std::vector<std::vector<std::int64_t>> tried;
  for (const Dimension& d : dimensions) {
    bounds.push_back(d.bound);
    tried.push_back(sizes_to_try(d.bound, neighbours));
  }
  std::set<Sizes> seen = {bounds};
  std::vector<Sizes> result = {bounds};
  const auto add = [&](const Sizes& sizes) {
    if (seen.insert(sizes).second) result.push_back(sizes);
  };
  for (std::size_t d = 0; d < dimensions.size(); ++d) {
    for (const std::int64_t size : tried[d]) {
      Sizes sizes = bounds;
      sizes[d] = size;
      add(sizes);
    }
  }
  // Different steps for each, so that sizes which are equal at their bounds come apart.
  for (std::size_t step = 0; dimensions.size() > 1 && step < kNeighbours; ++step) {
    Sizes sizes;
    for (std::size_t d = 0; d < dimensions.size(); ++d) sizes.push_back(tried[d][(step * (d + 1)) % tried[d].size()]);
    add(sizes);
  }
  return result;
}

bool within_bounds(const Sizes& sizes, const std::vector<Dimension>& dimensions) {
  for (std::size_t d = 0; d < sizes.size(); ++d)
    if (sizes[d] > dimensions[d].bound) return false;
  return true;
}

bool at_least(const Sizes& sizes, const std::vector<Dimension>& dimensions) {
  for (std::size_t d = 0; d < sizes.size(); ++d)
    if (sizes[d] < dimensions[d].least) return false;
  return true;
}

/// Small sizes often make operators do nothing, or clamp what they do.
bool is_large(const Sizes& sizes, const std::vector<Dimension>& dimensions) {
  for (std::size_t d = 0; d < sizes.size(); ++d)
    if (sizes[d] < std::max<std::int64_t>(dimensions[d].bound / 2, 1)) return false;
  return true;
}

/// Samples by structure.
class Grouping {
 public:
  Grouping(const std::vector<SizedGraph>& samples, const std::vector<Dimension>& dimensions) : dimensions_(dimensions) {
    for (const SizedGraph& sample : samples) {
      const auto same = std::ranges::find_if(groups_, [&](const auto& group) {
        return structural_difference(group.front()->graph, sample.graph).empty();
      });
      if (same == groups_.end()) {
        groups_.push_back({&sample});
      } else {
        same->push_back(&sample);
      }
    }
    std::ranges::stable_sort(groups_, std::ranges::greater(), [&](const Group& group) { return large(group).size(); });
  }

  /// Copies of the samples of each group that varies enough, the group with the most large sizes first. Of those that
  /// vary enough at large sizes only these.
  std::vector<std::vector<SizedGraph>> candidates() const {
    std::vector<std::vector<SizedGraph>> result;
    for (const Group& group : groups_) {
      const Group chosen = varies_too_little(large(group)) == nullptr ? large(group) : group;
      if (varies_too_little(chosen) != nullptr) continue;
      std::vector<SizedGraph>& samples = result.emplace_back();
      for (const SizedGraph* sample : chosen) samples.push_back(*sample);
    }
    return result;
  }

  /// Why there is no candidate.
  Error failure() const {
    const Dimension* dimension = varies_too_little(groups_.front());
    const std::string name = dimension != nullptr ? dimension->name : dimensions_.front().name;
    std::string difference = "too few sizes work";
    if (groups_.size() > 1) difference = structural_difference(groups_[0].front()->graph, groups_[1].front()->graph);
    return {StatusCode::kUnsupported,
            fmt::format("the model's structure depends on the size of '{}': {}", name, difference),
            fmt::format("fix the dimension with --dim {}=N instead of --bound", name)};
  }

 private:
  using Group = std::vector<const SizedGraph*>;

  Group large(const Group& group) const {
    Group result;
    for (const SizedGraph* sample : group)
      if (is_large(sample->sizes, dimensions_)) result.push_back(sample);
    return result;
  }

  /// The first dimension of which the group has too few sizes, or null.
  const Dimension* varies_too_little(const Group& group) const {
    for (std::size_t d = 0; d < dimensions_.size(); ++d) {
      std::set<std::int64_t> sizes;
      for (const SizedGraph* sample : group) sizes.insert(sample->sizes[d]);
      // A small bound leaves few; then all of them are looked at.
      const auto all = static_cast<std::size_t>(dimensions_[d].bound) + 1;
      if (sizes.size() < std::min(kFewestSizes, all)) return &dimensions_[d];
    }
    return nullptr;
  }

  const std::vector<Dimension>& dimensions_;
  std::vector<Group> groups_;
};

class SizedModelMaker {
 public:
  SizedModelMaker(const std::map<std::string, std::int64_t>& bounds, const ImportAt& import_at, const Prepare& prepare)
      : import_at_(import_at), prepare_(prepare) {
    for (const auto& [name, bound] : bounds) dimensions_.push_back({name, 0, bound});
  }

  Result<SizedModel> run() {
    for (const auto step : {&SizedModelMaker::import_samples, &SizedModelMaker::fit_import,
                            &SizedModelMaker::find_least_sizes, &SizedModelMaker::fit_prepared})
      if (auto done = (this->*step)(); !done) return fail(std::move(done.error()));
    return make_instances();
  }

 private:
  Result<void> import_samples() {
    for (const Sizes& sizes : combinations(dimensions_, kNeighbours)) {
      auto graph = import_at_(sizes);
      if (graph) {
        imported_.push_back({sizes, std::move(*graph)});
      } else if (imported_.empty()) {
        return fail(std::move(graph.error()));  // at the bounds the model must work
      } else {
        refused_.push_back(sizes);
      }
    }
    return {};
  }

  Result<void> fit_import() {
    const Grouping grouping(imported_, dimensions_);
    auto candidates = grouping.candidates();
    if (candidates.empty()) return fail(grouping.failure());
    auto fitted = GraphTemplate::fit(std::move(candidates.front()));
    if (!fitted) return fail(std::move(fitted.error()));
    model_ = std::move(*fitted);
    return {};
  }

  /// Is the expressed model the one that the importer gives at this size?
  Result<bool> agrees(const SizedGraph& imported) const {
    auto expressed = model_.at(imported.sizes);
    if (!expressed) return false;
    Graph expected = imported.graph;
    for (Graph* graph : {&*expressed, &expected})
      if (auto cleaned = passes::run_passes(*graph, {"remove-identities", false}); !cleaned)
        return fail(std::move(cleaned.error()));
    return compute_the_same(*expressed, expected);
  }

  Result<void> find_least_sizes() {
    std::vector<Sizes> wrong = refused_;
    for (const SizedGraph& imported : imported_) {
      const auto same = agrees(imported);
      if (!same) return fail(same.error());
      if (!*same) wrong.push_back(imported.sizes);
    }
    raise_least_sizes(wrong, [&](const Sizes& sizes) {
      auto graph = import_at_(sizes);
      return graph && agrees({sizes, std::move(*graph)}).value_or(false);
    });
    for (const Sizes& sizes : wrong)
      if (within_bounds(sizes, dimensions_) && at_least(sizes, dimensions_) &&
          std::ranges::find(refused_, sizes) == refused_.end())
        return fail(depends_on_size(sizes));
    return {};
  }

  /// `works` is asked about sizes between one that does not work and the next that was looked at.
  void raise_least_sizes(const std::vector<Sizes>& wrong, const std::function<bool(const Sizes& sizes)>& works) {
    for (std::size_t d = 0; d < dimensions_.size(); ++d) {
      std::int64_t largest_wrong = -1;
      Sizes at = imported_.front().sizes;
      for (const Sizes& sizes : wrong)
        if (varies_alone(sizes, d)) largest_wrong = std::max(largest_wrong, sizes[d]);
      if (largest_wrong < dimensions_[d].least) continue;
      std::int64_t right = next_size(d, largest_wrong);
      while (right - largest_wrong > 1) {
        at[d] = largest_wrong + (right - largest_wrong) / 2;
        (works(at) ? right : largest_wrong) = at[d];
      }
      dimensions_[d].least = right;
    }
  }

  /// Within the bounds, with every other dimension at its own.
  bool varies_alone(const Sizes& sizes, std::size_t dimension) const {
    for (std::size_t d = 0; d < sizes.size(); ++d)
      if (d == dimension ? sizes[d] > dimensions_[d].bound : sizes[d] != dimensions_[d].bound) return false;
    return true;
  }

  /// The next larger size that was looked at.
  std::int64_t next_size(std::size_t dimension, std::int64_t size) const {
    std::int64_t next = dimensions_[dimension].bound;
    for (const std::int64_t tried : sizes_to_try(dimensions_[dimension].bound, kNeighbours))
      if (tried > size) next = std::min(next, tried);
    return next;
  }

  Error depends_on_size(const Sizes& sizes) const {
    return {StatusCode::kUnsupported,
            fmt::format("at the sizes {} the model is another one than at its bounds {}", fmt::join(sizes, "x"),
                        fmt::join(imported_.front().sizes, "x")),
            "fix one of the dimensions with --dim instead of --bound"};
  }

  static Error works_too_rarely(const Dimension& d) {
    return {StatusCode::kUnsupported,
            fmt::format("dimension '{}': the model is the same only from size {} up to its bound {}", d.name, d.least,
                        d.bound),
            fmt::format("fix the dimension: --dim {}={}", d.name, d.bound)};
  }

  /// Passes may use what is so at some sizes only, such as where a slice of two joined tensors begins. When the form
  /// that they give fails at sizes where the model works, they do without.
  Result<void> fit_prepared() {
    for (const bool any_size : {false, true}) {
      std::vector<SizedGraph> samples;
      for (const SizedGraph& imported : imported_) {
        auto graph = model_.at(imported.sizes);
        if (!graph) continue;
        if (auto done = prepare_(*graph, any_size); !done) return done;
        samples.push_back({imported.sizes, std::move(*graph)});
      }
      // Where rules of the sizes themselves give no common form, those that hold at any size may.
      if (auto chosen = choose_form(samples); !chosen && any_size) return chosen;
      if (prepared_ && failing_.empty()) return {};
    }
    raise_least_sizes(failing_, [&](const Sizes& sizes) { return prepared_->at(sizes).has_value(); });
    return {};
  }

  Result<void> choose_form(const std::vector<SizedGraph>& samples) {
    const Grouping grouping(samples, dimensions_);
    auto candidates = grouping.candidates();
    if (candidates.empty()) return fail(grouping.failure());
    std::optional<GraphTemplate> best;
    std::optional<Error> first_error;
    for (std::vector<SizedGraph>& candidate : candidates) {
      auto fitted = GraphTemplate::fit(std::move(candidate));
      if (!fitted && !first_error) first_error = fitted.error();
      if (!fitted) continue;
      std::vector<Sizes> failing = sizes_that_fail(*fitted);
      if (best && !failing.empty()) continue;
      best = std::move(*fitted);
      failing_ = std::move(failing);
      if (failing_.empty()) break;
    }
    if (!best) return fail(std::move(*first_error));
    prepared_ = std::move(*best);
    return {};
  }

  /// Sizes at which the model works and this form of it does not.
  std::vector<Sizes> sizes_that_fail(const GraphTemplate& form) const {
    std::vector<Sizes> failing;
    for (const Sizes& sizes : combinations(dimensions_, kPlannedNeighbours))
      if (within_bounds(sizes, dimensions_) && at_least(sizes, dimensions_) && model_.at(sizes) && !form.at(sizes))
        failing.push_back(sizes);
    return failing;
  }

  Result<SizedModel> make_instances() {
    for (const Dimension& d : dimensions_)
      if (d.least > d.bound / 2 + 1) return fail(works_too_rarely(d));
    SizedModel result;
    for (const Sizes& sizes : combinations(dimensions_, kPlannedNeighbours)) {
      if (!within_bounds(sizes, dimensions_) || !at_least(sizes, dimensions_)) continue;
      auto graph = prepared_->at(sizes);
      if (!graph && result.instances.empty()) return fail(std::move(graph.error()));
      // A combination that the model itself excludes is refused again when somebody asks for it.
      if (graph) result.instances.push_back({sizes, std::move(*graph)});
    }
    result.dimensions = std::move(dimensions_);
    return result;
  }

  const ImportAt& import_at_;
  const Prepare& prepare_;
  std::vector<Dimension> dimensions_;
  std::vector<SizedGraph> imported_;
  std::vector<Sizes> refused_;             ///< by the importer
  GraphTemplate model_;                    ///< as imported
  std::optional<GraphTemplate> prepared_;  ///< as it will be planned
  std::vector<Sizes> failing_;             ///< at which prepared_ does not work
};

}  // namespace

Result<SizedModel> size_model(const std::map<std::string, std::int64_t>& bounds, const ImportAt& import_at,
                              const Prepare& prepare) {
  return SizedModelMaker(bounds, import_at, prepare).run();
}

}  // namespace bantam::compiler
