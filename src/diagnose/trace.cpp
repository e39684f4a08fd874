#include "diagnose/trace.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include "diagnose/tensor_walk.h"
#include "io/array.h"

namespace bantam::diagnose {
namespace {

std::int64_t nanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

TensorStatistics measure(const Tensor& tensor) {
  TensorStatistics s;
  s.min = std::numeric_limits<double>::infinity();
  s.max = -s.min;
  double sum = 0;
  const Walk walk = Walk::of(*tensor.desc);
  io::with_element_type(tensor.desc->type, [&]<typename T>(std::type_identity<T>) {
    walk_pairs(*tensor.desc, walk, walk, [&](std::int64_t at, std::int64_t) {
      const auto x = static_cast<double>(io::number_of(tensor.as<T>()[at]));
      if (!std::isfinite(x)) {
        ++(std::isnan(x) ? s.nans : s.infinities);
        return;
      }
      ++s.elements;
      s.min = std::min(s.min, x);
      s.max = std::max(s.max, x);
      sum += x;
    });
  });
  if (s.elements == 0) s.min = s.max = 0;
  s.mean = sum / static_cast<double>(std::max<std::int64_t>(s.elements, 1));
  return s;
}

Trace::Trace(const Session& session) : steps_(session.step_count()) {
  for (std::size_t s = 0; s < steps_.size(); ++s) {
    steps_[s].step = s;
    steps_[s].results.resize(session.step_outputs(s));
  }
}

const Observer* Trace::observer() {
  observer_ = {this, before, after};
  return &observer_;
}

StepDecision Trace::before(void* context, const Session&, std::size_t) {
  static_cast<Trace*>(context)->start_ = nanoseconds();
  return StepDecision::kRun;
}

Status Trace::after(void* context, const Session& session, std::size_t step) {
  auto* self = static_cast<Trace*>(context);
  StepTrace& trace = self->steps_[step];
  trace.microseconds += static_cast<double>(nanoseconds() - self->start_) / 1e3;
  ++trace.runs;
  for (std::size_t r = 0; r < trace.results.size(); ++r)
    trace.results[r] = measure(session.step_operand(step, session.step_inputs(step) + r));
  return ok_status();
}

}  // namespace bantam::diagnose
