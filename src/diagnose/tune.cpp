#include "diagnose/tune.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "bantam/open_fleet.h"
#include "diagnose/benchmark.h"

namespace bantam::diagnose {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

/// Time of a layer with each of its kernels.
struct LayerChoice {
  std::string op;
  std::string first;                        ///< the kernel that the compiler takes
  std::map<std::string, double> best_us{};  ///< by kernel
};

class ModelTuner {
 public:
  ModelTuner(const ModelSpec& model, const CompileOptions& compile, const TuneOptions& options)
      : model_(model), compile_(compile), options_(options) {}

  Result<std::vector<KernelRule>> find_rules() {
    say("compiling");
    auto plain = open(model_.kernels);
    if (!plain) return fail(std::move(plain.error()));
    plain_.emplace(std::move(*plain));
    const std::size_t most = note_choices(*plain_->compiled());
    std::vector<OpenFleet> others;
    for (std::size_t k = 0; k < most; ++k)
      // Another kernel may need scratch for which a budget has no room; then it is no choice.
      if (auto other = open(rules_for(k))) others.push_back(std::move(*other));
    if (others.empty()) return model_.kernels;
    std::vector<OpenFleet*> plans = {&*plain_};
    for (OpenFleet& other : others) plans.push_back(&other);
    for (int round = 0; round < options_.rounds; ++round) {
      say(fmt::format("round {} of {}", round + 1, options_.rounds));
      for (OpenFleet* plan : plans)
        if (auto measured = measure_layers(*plan); !measured) return fail(measured.error());
    }
    return chosen_rules();
  }

  /// Best times of an invoke without the rules and with them, in turn; requires find_rules.
  Result<std::pair<double, double>> compare(const std::vector<KernelRule>& rules) {
    auto tuned = open(rules);
    if (!tuned) return fail(std::move(tuned.error()));
    std::pair<double, double> best = {kNever, kNever};
    for (int round = 0; round < options_.rounds; ++round) {
      say(fmt::format("check {} of {}", round + 1, options_.rounds));
      for (auto& [plan, time] : {std::pair(&*plain_, &best.first), std::pair(&*tuned, &best.second)}) {
        auto median = median_of_invoke(*plan);
        if (!median) return fail(std::move(median.error()));
        *time = std::min(*time, *median);
      }
    }
    return best;
  }

  std::vector<TunedLayer> tuned_layers() const {
    std::vector<TunedLayer> layers;
    for (const auto& [layer, choice] : choices_)
      if (const std::string kernel = fastest(choice); kernel != choice.first)
        layers.push_back({name(), layer, choice.op, choice.first, kernel, choice.best_us.at(choice.first),
                          choice.best_us.at(kernel)});
    return layers;
  }

  std::size_t compared() const { return choices_.size(); }

 private:
  std::string name() const { return model_.name.empty() ? model_.path.stem().string() : model_.name; }

  void say(const std::string& what) const {
    if (options_.progress) options_.progress(name() + ": " + what);
  }

  Result<OpenFleet> open(const std::vector<KernelRule>& rules) const {
    FleetSpec fleet{.models = {model_}};
    fleet.models.front().kernels = rules;
    return OpenFleet::compile(fleet, compile_);
  }

  /// Notes the layers that have a choice and returns the most alternatives that one has.
  std::size_t note_choices(const Compiled& compiled) {
    std::size_t most = 0;
    for (const ModelReport& model : compiled.models())
      for (const StepReport& step : model.steps) {
        if (step.alternatives.empty() || step.name.empty()) continue;
        choices_[step.name] = {step.op, step.variant, {}};
        auto& others = alternatives_[step.name];
        if (others.size() < step.alternatives.size()) others = step.alternatives;
        most = std::max(most, others.size());
      }
    return most;
  }

  /// The k-th alternative for every layer that has one; of rules for the same layer, the last counts.
  std::vector<KernelRule> rules_for(std::size_t k) const {
    std::vector<KernelRule> rules = model_.kernels;
    for (const auto& [layer, others] : alternatives_)
      if (k < others.size()) rules.push_back({layer, others[k]});
    return rules;
  }

  Result<BenchmarkResult> run(Session& session, bool by_operator) const {
    if (auto filled = options_.fill(session); !filled) return fail(filled.error());
    session.reset();
    constexpr std::int64_t kMostRuns = 1000;
    return benchmark(session,
                     {.warmup = 1, .runs = kMostRuns, .seconds = options_.seconds, .by_operator = by_operator});
  }

  Result<void> measure_layers(OpenFleet& plan) {
    for (std::size_t s = 0; s < plan.size(); ++s) {
      const auto result = run(plan.session(s), true);
      if (!result) return fail(result.error());
      std::map<std::pair<std::string, std::string>, double> times;  // nodes may share a name
      for (const OperatorTime& layer : result->layers) {
        const auto choice = choices_.find(layer.layer);
        // A step of another operator, such as a transpose before the layer, may have its name.
        if (choice != choices_.end() && choice->second.op == layer.op)
          times[{layer.layer, layer.variant}] += layer.microseconds;
      }
      for (const auto& [key, microseconds] : times) {
        const auto choice = choices_.find(key.first);
        const auto [best, fresh] = choice->second.best_us.try_emplace(key.second, microseconds);
        best->second = std::min(best->second, microseconds);
      }
    }
    return {};
  }

  Result<double> median_of_invoke(OpenFleet& plan) const {
    double sum = 0;
    for (std::size_t s = 0; s < plan.size(); ++s) {
      const auto result = run(plan.session(s), false);
      if (!result) return fail(result.error());
      sum += result->median_us;
    }
    return sum;
  }

  std::string fastest(const LayerChoice& choice) const {
    const auto first = choice.best_us.find(choice.first);
    if (first == choice.best_us.end()) return choice.first;
    double best = first->second * (1 - options_.margin);
    std::string kernel = choice.first;
    for (const auto& [other, microseconds] : choice.best_us)
      if (microseconds < best) {
        best = microseconds;
        kernel = other;
      }
    return kernel;
  }

  std::vector<KernelRule> chosen_rules() const {
    std::vector<KernelRule> rules = model_.kernels;
    for (const TunedLayer& layer : tuned_layers()) {
      std::erase_if(rules, [&](const KernelRule& rule) { return rule.pattern == layer.layer; });
      rules.push_back({layer.layer, layer.after});
    }
    return rules;
  }

  const ModelSpec& model_;
  const CompileOptions& compile_;
  const TuneOptions& options_;
  std::optional<OpenFleet> plain_;              ///< as the compiler plans it without further rules
  std::map<std::string, LayerChoice> choices_;  ///< by layer
  std::map<std::string, std::vector<std::string>> alternatives_;
};

}  // namespace

Result<Tuning> tune(const FleetSpec& fleet, const CompileOptions& compile, const TuneOptions& options) {
  Tuning tuning;
  tuning.fleet = fleet;
  for (ModelSpec& model : tuning.fleet.models) {
    ModelTuner tuner(model, compile, options);
    auto rules = tuner.find_rules();
    if (!rules) return fail(std::move(rules.error()));
    tuning.compared += tuner.compared();
    const auto times = tuner.compare(*rules);
    if (!times) return fail(times.error());
    const bool better = times->second < times->first;
    tuning.before_us += times->first;
    tuning.after_us += better ? times->second : times->first;
    if (!better) continue;
    std::ranges::move(tuner.tuned_layers(), std::back_inserter(tuning.layers));
    model.kernels = std::move(*rules);
  }
  return tuning;
}

}  // namespace bantam::diagnose
