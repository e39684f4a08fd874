#include "diagnose/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "diagnose/tensor_walk.h"

namespace bantam::diagnose {
namespace {

/// A tensor of the reference as an operand sees it.
struct Counterpart {
  const io::Array* array = nullptr;
  Walk walk;  ///< strides in the reference, by axis of the operand
};

/// What of the reference belongs to each operand of each step.
class Matcher {
 public:
  Matcher(const Session& session, const ModelReport& report, const TensorSet& reference)
      : session_(session), report_(report), reference_(reference) {}

  std::optional<Counterpart> find(std::size_t step, std::size_t operand) const {
    const OperandReport& source = report_.steps[step].operands[operand];
    if (source.tensor.empty()) return std::nullopt;
    const io::Array* array = reference_.find(source.tensor);
    const TensorDesc& desc = *session_.step_operand(step, operand).desc;
    if (array == nullptr || array->desc.type != desc.type || array->desc.rank != desc.rank) return std::nullopt;
    Counterpart found{array, {}};
    for (int axis = 0; axis < desc.rank; ++axis) {
      const int from = source.layout.empty() ? axis : source.layout[static_cast<std::size_t>(axis)];
      if (from < 0 || from >= desc.rank || array->desc.dims[from] != desc.dims[axis]) return std::nullopt;
      found.walk.strides[axis] = array->desc.strides[from];
    }
    return found;
  }

 private:
  const Session& session_;
  const ModelReport& report_;
  const TensorSet& reference_;
};

Difference difference_to(const Tensor& actual, const Counterpart& expected) {
  // Nothing is written through the reference.
  const Tensor reference{const_cast<std::byte*>(expected.array->data.data()), &expected.array->desc};
  return difference(actual, reference, expected.walk.strides);
}

/// Gives an operand the reference's elements.
void replace(const Tensor& operand, const Counterpart& by) {
  const auto size = static_cast<std::size_t>(element_size(operand.desc->type));
  walk_pairs(*operand.desc, Walk::of(*operand.desc), by.walk, [&](std::int64_t to, std::int64_t from) {
    std::memcpy(static_cast<std::byte*>(operand.data) + static_cast<std::size_t>(to) * size,
                by.array->data.data() + static_cast<std::size_t>(from) * size, size);
  });
}

/// Observes one run and keeps the differences of all results that have a counterpart.
class Run {
 public:
  using Results = std::map<std::pair<std::size_t, std::size_t>, Difference>;  ///< by step and operand

  Run(const Matcher& matcher, bool on_reference) : matcher_(matcher), on_reference_(on_reference) {}

  Result<Results> of(Session& session, const std::vector<io::NamedArray>& inputs) {
    session.reset();
    for (std::size_t i = 0; i < session.input_count(); ++i) {
      const PortInfo info = session.input_info(i);
      const auto input = std::ranges::find(inputs, info.name, &io::NamedArray::name);
      if (input == inputs.end() || !same_shape_and_type(input->array.desc, *info.desc))
        return fail(StatusCode::kInvalidArgument,
                    fmt::format("nothing of {} is there for input '{}'", io::describe(*info.desc), info.name),
                    "give it with --input");
      if (!input->array.data.empty())
        std::memcpy(session.input(i).data, input->array.data.data(), input->array.data.size());
    }
    const Observer observer{this, before, after};
    session.set_observer(&observer);
    const Status status = session.invoke();
    session.set_observer(nullptr);
    session.reset();
    if (!status.ok()) return fail(error_from(status).in(std::string(session.name())));
    return std::move(results_);
  }

 private:
  static StepDecision before(void* context, const Session& session, std::size_t step) {
    const auto* self = static_cast<const Run*>(context);
    for (std::size_t i = 0; self->on_reference_ && i < session.step_inputs(step); ++i)
      if (const auto by = self->matcher_.find(step, i)) replace(session.step_operand(step, i), *by);
    return StepDecision::kRun;
  }

  static Status after(void* context, const Session& session, std::size_t step) {
    auto* self = static_cast<Run*>(context);
    const std::size_t first = session.step_inputs(step);
    for (std::size_t i = first; i < first + session.step_outputs(step); ++i) {
      const auto expected = self->matcher_.find(step, i);
      if (!expected) continue;
      const Tensor actual = session.step_operand(step, i);
      self->results_[{step, i}] = difference_to(actual, *expected);
      if (self->on_reference_) replace(actual, *expected);
    }
    return ok_status();
  }

  const Matcher& matcher_;
  bool on_reference_;
  Results results_;
};

/// The steps between a result and the tensors of the reference that it is computed from.
class Suspects {
 public:
  Suspects(const Session& session, const ModelReport& report, const Matcher& matcher)
      : session_(session), report_(report), matcher_(matcher) {
    for (std::size_t s = 0; s < session.step_count(); ++s)
      for (std::size_t i = session.step_inputs(s); i < session.step_inputs(s) + session.step_outputs(s); ++i)
        producers_[report.steps[s].operands[i].value] = {s, i};
  }

  std::vector<std::size_t> of(std::size_t step) const {
    std::set<std::size_t> found{step};
    std::vector<std::size_t> open{step};
    while (!open.empty()) {
      const std::size_t s = open.back();
      open.pop_back();
      for (std::size_t i = 0; i < session_.step_inputs(s); ++i) {
        const auto producer = producers_.find(report_.steps[s].operands[i].value);
        if (producer == producers_.end()) continue;
        const auto [from, operand] = producer->second;
        if (!matcher_.find(from, operand) && found.insert(from).second) open.push_back(from);
      }
    }
    return {found.begin(), found.end()};
  }

 private:
  const Session& session_;
  const ModelReport& report_;
  const Matcher& matcher_;
  std::map<std::int32_t, std::pair<std::size_t, std::size_t>> producers_;  ///< value -> step, operand
};

}  // namespace

Result<Comparison> compare_steps(Session& session, const ModelReport& report, const TensorSet& reference,
                                 const std::vector<io::NamedArray>& inputs, const Tolerance& tolerance) {
  if (report.steps.size() != session.step_count())
    return fail(StatusCode::kInvalidArgument,
                fmt::format("the report has {} steps, the session {}", report.steps.size(), session.step_count()),
                "give the report of the compilation that the session comes from");
  const Matcher matcher(session, report, reference);
  const auto accumulated = Run(matcher, false).of(session, inputs);
  if (!accumulated) return fail(accumulated.error());
  const auto own = Run(matcher, true).of(session, inputs);
  if (!own) return fail(own.error());
  const Suspects suspects(session, report, matcher);
  Comparison comparison;
  for (std::size_t s = 0; s < session.step_count(); ++s) comparison.unmatched += session.step_outputs(s);
  for (const auto& [place, difference] : *own) {
    const auto [step, operand] = place;
    ResultCheck check;
    check.step = step;
    check.tensor = report.steps[step].operands[operand].tensor;
    check.type = session.step_operand(step, operand).desc->type;
    check.own = difference;
    check.accumulated = accumulated->at(place);
    check.within = tolerance.allows(difference, check.type);
    check.suspects = suspects.of(step);
    if (!check.within && !comparison.first_fault) comparison.first_fault = comparison.checks.size();
    comparison.checks.push_back(std::move(check));
    --comparison.unmatched;
  }
  return comparison;
}

}  // namespace bantam::diagnose
