#include "diagnose/benchmark.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>

#include "ops/narrowing.h"
#include "ops/nn/gemm/half_products.h"

namespace bantam::diagnose {
namespace {

using Clock = std::chrono::steady_clock;

double microseconds(Clock::duration d) { return std::chrono::duration<double, std::micro>(d).count(); }

/// Accumulates kernel times by step, without allocating while the session runs.
struct StepTimer {
  std::vector<double> total;
  Clock::time_point start;

  static StepDecision before(void* context, const Session&, std::size_t) {
    static_cast<StepTimer*>(context)->start = Clock::now();
    return StepDecision::kRun;
  }
  static Status after(void* context, const Session&, std::size_t step) {
    auto* self = static_cast<StepTimer*>(context);
    self->total[step] += microseconds(Clock::now() - self->start);
    return ok_status();
  }
};

/// What the inputs held, for invokes that overwrite them.
class Inputs {
 public:
  explicit Inputs(const Session& session) {
    for (std::size_t i = 0; i < session.input_count(); ++i) {
      const Tensor input = session.input(i);
      const auto* bytes = static_cast<const std::byte*>(input.data);
      copies_.emplace_back(bytes, bytes + input.desc->bytes());
    }
  }

  void restore(const Session& session) const {
    for (std::size_t i = 0; i < copies_.size(); ++i)
      std::copy(copies_[i].begin(), copies_[i].end(), static_cast<std::byte*>(session.input(i).data));
  }

 private:
  std::vector<std::vector<std::byte>> copies_;
};

/// The value below which a fraction `q` of the sorted samples lies.
double quantile(const std::vector<double>& sorted, double q) {
  const auto last = static_cast<double>(sorted.size() - 1);
  return sorted[static_cast<std::size_t>(std::llround(q * last))];
}

Result<std::vector<OperatorTime>> time_layers(Session& session, std::int64_t runs, OutputSet outputs,
                                              const Inputs& inputs) {
  StepTimer timer{std::vector<double>(session.step_count(), 0.0), {}};
  const Observer observer{&timer, StepTimer::before, StepTimer::after};
  session.set_observer(&observer);
  Status status = ok_status();
  for (std::int64_t i = 0; i < runs && status.ok(); ++i) {
    inputs.restore(session);
    status = session.invoke(outputs);
  }
  session.set_observer(nullptr);
  if (!status.ok()) return fail(error_from(status));
  std::vector<OperatorTime> times = layers_of(session, outputs);
  auto layer = times.begin();
  for (std::size_t s = 0; s < timer.total.size(); ++s)
    if (session.step_needed(s, outputs)) (layer++)->microseconds = timer.total[s] / static_cast<double>(runs);
  return times;
}

std::vector<OperatorTime> by_kernel(const std::vector<OperatorTime>& layers) {
  std::vector<OperatorTime> kernels;
  for (const OperatorTime& layer : layers) {
    const auto same = std::ranges::find_if(kernels, [&](const OperatorTime& k) {
      return k.op == layer.op && k.variant == layer.variant && k.factors == layer.factors;
    });
    OperatorTime& kernel =
        same != kernels.end() ? *same
                              : kernels.emplace_back(OperatorTime{layer.op, layer.variant, {}, 0, 0, 0, layer.factors});
    kernel.calls += layer.calls;
    kernel.microseconds += layer.microseconds;
    kernel.work += layer.work;
  }
  std::ranges::stable_sort(kernels, std::greater(), &OperatorTime::microseconds);
  return kernels;
}

// Models of microseconds are invoked often: what else the machine does, and clocks that rise, last for milliseconds.
constexpr std::int64_t kUsualRuns = 50;
constexpr std::int64_t kMostUsualRuns = 100000;
constexpr double kUsualSeconds = 0.25;

std::int64_t most_runs(const BenchmarkOptions& options) { return options.runs > 0 ? options.runs : kMostUsualRuns; }

/// Is there another invoke after so many, which took so long?
bool goes_on(const BenchmarkOptions& options, std::int64_t runs, double seconds) {
  const bool enough = options.runs == 0 && runs >= kUsualRuns && seconds >= kUsualSeconds;
  return runs < most_runs(options) && seconds < options.seconds && !enough;
}

/// Invokes in which layers are timed: ten, or as many as take a tenth of the usual time, but no more than `result` had.
std::int64_t layer_runs(const BenchmarkResult& result) {
  constexpr double kMicroseconds = 1e6 * kUsualSeconds / 10;
  return std::min(result.runs,
                  static_cast<std::int64_t>(std::max(10.0, kMicroseconds / std::max(result.median_us, 1e-3))));
}

Factors factors_of(const Session& session, std::size_t step) {
  if (session.step_inputs(step) > 0 && !is_float(session.step_operand(step, 0).desc->type)) return Factors::kBytes;
  const ops::OpDef* op = ops::find_op(session.step_operator(step));
  const ops::KernelVariant* variant = op != nullptr ? ops::find_variant(*op, session.step_variant(step)) : nullptr;
  const bool halves =
      variant != nullptr && ops::narrow_form(*op, *variant).half_arithmetic && ops::gemm::half_products();
  return halves ? Factors::kHalves : Factors::kFloats;
}

double roof_of(const schedule::Roof& roof, Factors factors) {
  switch (factors) {
    case Factors::kHalves: return roof.half_macs;
    case Factors::kBytes: return roof.integer_macs;
    default: return roof.float_macs;
  }
}

}  // namespace

std::vector<OperatorTime> layers_of(const Session& session, OutputSet outputs) {
  std::vector<OperatorTime> layers;
  for (std::size_t s = 0; s < session.step_count(); ++s) {
    if (!session.step_needed(s, outputs)) continue;
    layers.push_back({std::string(session.step_operator(s)), std::string(session.step_variant(s)),
                      std::string(session.step_name(s)), 1, 0, static_cast<std::int64_t>(session.step_work(s)),
                      factors_of(session, s)});
  }
  return layers;
}

double share_of_roof(const schedule::Roof& roof, std::span<const OperatorTime> times, double microseconds) {
  double least_us = 0;  // in which the work could be done
  for (const OperatorTime& t : times) {
    const double macs = roof_of(roof, t.factors);
    if (macs <= 0) return 0;
    least_us += 1e6 * static_cast<double>(t.work) / macs;
  }
  return microseconds > 0 ? least_us / microseconds : 0;
}

Result<BenchmarkResult> benchmark(Session& session, const BenchmarkOptions& options) {
  const Inputs inputs(session);
  const auto invoke = [&] {
    inputs.restore(session);
    const auto start = Clock::now();
    const Status status = session.invoke(options.outputs);
    return std::pair(status, microseconds(Clock::now() - start));
  };
  for (std::int64_t i = 0; i < options.warmup; ++i)
    if (const auto [status, time] = invoke(); !status.ok()) return fail(error_from(status));
  std::vector<double> samples;
  samples.reserve(static_cast<std::size_t>(most_runs(options)));
  const auto begin = Clock::now();
  do {
    const auto [status, time] = invoke();
    if (!status.ok()) return fail(error_from(status));
    samples.push_back(time);
  } while (goes_on(options, static_cast<std::int64_t>(samples.size()),
                   std::chrono::duration<double>(Clock::now() - begin).count()));

  BenchmarkResult result;
  result.runs = static_cast<std::int64_t>(samples.size());
  std::sort(samples.begin(), samples.end());
  result.median_us = quantile(samples, 0.5);
  result.min_us = samples.front();
  result.p99_us = quantile(samples, 0.99);
  if (options.by_operator) {
    auto layers = time_layers(session, layer_runs(result), options.outputs, inputs);
    if (!layers) return fail(std::move(layers.error()));
    result.layers = std::move(*layers);
    result.operators = by_kernel(result.layers);
  }
  return result;
}

}  // namespace bantam::diagnose
