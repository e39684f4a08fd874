#include "diagnose/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "diagnose/tensor_walk.h"
#include "diagnose/trace.h"

namespace bantam::diagnose {
namespace {

/// A tensor of the reference as an operand sees it.
struct Counterpart {
  const io::Array* array = nullptr;
  Walk walk;  ///< strides in the reference, by axis of the operand
};

std::optional<Counterpart> find_counterpart(const TensorSet& reference, const OperandReport& source,
                                            const TensorDesc& desc) {
  if (source.tensor.empty()) return std::nullopt;
  const io::Array* array = reference.find(source.tensor);
  const bool turned = !source.layout.empty();
  if (array == nullptr || array->desc.type != desc.type || (!turned && array->desc.rank != desc.rank) ||
      array->desc.elements() != desc.elements())
    return std::nullopt;
  Counterpart found{array, {}};
  for (int axis = 0; axis < desc.rank; ++axis) {
    const int from = turned ? source.layout[static_cast<std::size_t>(axis)] : axis;
    if (from >= array->desc.rank || (from < 0 ? 1 : array->desc.dims[from]) != desc.dims[axis]) return std::nullopt;
    found.walk.strides[axis] = from < 0 ? 0 : array->desc.strides[from];
  }
  return found;
}

/// An operand or an output that the reference knows.
struct Site {
  std::size_t operand = 0;  ///< of the step, or the output port
  const OperandReport* source = nullptr;
  Counterpart counterpart;
  bool checked = false;  ///< the first place where its tensor is seen whole
};

/// Every place at which the reference has something to say, in the order of execution.
class Sites {
 public:
  Sites(const Session& session, const ModelReport& report, const TensorSet& reference)
      : reads_(session.step_count()), results_(session.step_count()) {
    // One tensor may be there in several layouts, each computed by a step of its own.
    std::set<std::pair<std::string, std::vector<std::size_t>>> seen;
    const auto add = [&](std::vector<Site>& sites, std::size_t i, const OperandReport& source, const Tensor& tensor) {
      const auto counterpart = find_counterpart(reference, source, *tensor.desc);
      if (!counterpart) return;
      const bool computed = !source.steps.empty();
      sites.push_back({i, &source, *counterpart, computed && seen.emplace(source.tensor, source.steps).second});
    };
    for (std::size_t s = 0; s < session.step_count(); ++s) {
      const auto& operands = report.steps[s].operands;
      const std::size_t inputs = session.step_inputs(s);
      for (std::size_t i = 0; i < operands.size(); ++i)
        add(i < inputs ? reads_[s] : results_[s], i, operands[i], session.step_operand(s, i));
    }
    for (std::size_t o = 0; o < session.output_count(); ++o) add(outputs_, o, report.outputs[o], session.output(o));
  }

  const std::vector<Site>& reads(std::size_t step) const { return reads_[step]; }
  const std::vector<Site>& results(std::size_t step) const { return results_[step]; }
  const std::vector<Site>& outputs() const { return outputs_; }

 private:
  std::vector<std::vector<Site>> reads_, results_;  ///< by step
  std::vector<Site> outputs_;
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

Result<void> fill_inputs(Session& session, const std::vector<io::NamedArray>& inputs) {
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
  return {};
}

/// Observes one run and keeps what it finds at every site that is to be checked.
class Run {
 public:
  struct Finding {
    const Site* site;
    ElementType type;
    Difference difference;
  };
  struct Findings {
    std::vector<Finding> tensors;
    std::vector<double> magnitudes;  ///< by step that sums products: of the largest float among its operands, else 0
  };

  Run(const Sites& sites, bool on_reference) : sites_(sites), on_reference_(on_reference) {}

  Result<Findings> of(Session& session, const std::vector<io::NamedArray>& inputs) {
    findings_.magnitudes.assign(session.step_count(), 0);
    session.reset();
    if (auto filled = fill_inputs(session, inputs); !filled) return fail(std::move(filled.error()));
    const Observer observer{this, before, after};
    session.set_observer(&observer);
    const Status status = session.invoke();
    session.set_observer(nullptr);
    if (!status.ok()) return fail(error_from(status).in(std::string(session.name())));
    for (const Site& site : sites_.outputs()) visit(site, session.output(site.operand));
    session.reset();
    return std::move(findings_);
  }

 private:
  static StepDecision before(void* context, const Session& session, std::size_t step) {
    auto* self = static_cast<Run*>(context);
    for (const Site& site : self->sites_.reads(step)) self->visit(site, session.step_operand(step, site.operand));
    for (std::size_t i = 0; session.step_work(step) > 0 && i < session.step_inputs(step); ++i) {
      const Tensor operand = session.step_operand(step, i);
      if (operand.data == nullptr || session.step_operand_is_constant(step, i) || !is_float(operand.desc->type))
        continue;
      const TensorStatistics s = measure(operand);
      double& magnitude = self->findings_.magnitudes[step];
      magnitude = std::max({magnitude, std::abs(s.min), std::abs(s.max)});
    }
    return StepDecision::kRun;
  }

  static Status after(void* context, const Session& session, std::size_t step) {
    auto* self = static_cast<Run*>(context);
    for (const Site& site : self->sites_.results(step)) self->visit(site, session.step_operand(step, site.operand));
    return ok_status();
  }

  void visit(const Site& site, const Tensor& actual) {
    if (site.checked) findings_.tensors.push_back({&site, actual.desc->type, difference_to(actual, site.counterpart)});
    if (on_reference_) replace(actual, site.counterpart);
  }

  const Sites& sites_;
  bool on_reference_;
  Findings findings_;
};

/// The steps between a tensor and the tensors of the reference that it is computed from.
std::vector<std::size_t> find_suspects(const Sites& sites, const ModelReport& report, const OperandReport& tensor) {
  std::set<std::size_t> found(tensor.steps.begin(), tensor.steps.end());
  std::vector<std::size_t> open = tensor.steps;
  while (!open.empty()) {
    const std::size_t step = open.back();
    open.pop_back();
    for (std::size_t i = 0; i < report.steps[step].operands.size(); ++i) {
      // What the reference has is right when the step reads it.
      if (std::ranges::find(sites.reads(step), i, &Site::operand) != sites.reads(step).end()) continue;
      for (const std::size_t from : report.steps[step].operands[i].steps)
        if (found.insert(from).second) open.push_back(from);
    }
  }
  return {found.begin(), found.end()};
}

/// A sum of products is rounded in units of what is summed: where the terms cancel, the error may be large beside the
/// result and still mean nothing.
constexpr double kSumRounding = 0x1p-18;

/// What is tolerable for this tensor, whatever the caller says.
Tolerance tolerance_for(const Session& session, const TensorCheck& check, const std::vector<double>& magnitudes,
                        Tolerance tolerance) {
  // A float that differs in its last place may be quantised to the next step: no fault of the quantising operator, nor
  // of one that computes in integers, with factors in float, what the reference computes in float.
  constexpr int kQuantizedBits = 16;
  for (const std::size_t step : check.suspects) {
    tolerance.float_floor = std::max(tolerance.float_floor, kSumRounding * magnitudes[step]);
    for (std::size_t i = 0; i < session.step_inputs(step) && element_bits(check.type) <= kQuantizedBits; ++i)
      if (is_float(session.step_operand(step, i).desc->type)) tolerance.integers = std::max(tolerance.integers, 1.0);
  }
  return tolerance;
}

}  // namespace

Result<Comparison> compare_steps(Session& session, const ModelReport& report, const TensorSet& reference,
                                 const std::vector<io::NamedArray>& inputs, const Tolerance& tolerance) {
  if (report.steps.size() != session.step_count() || report.outputs.size() != session.output_count())
    return fail(StatusCode::kInvalidArgument,
                fmt::format("the report has {} steps, the session {}", report.steps.size(), session.step_count()),
                "give the report of the compilation that the session comes from");
  for (std::size_t d = 0; d < session.dim_count(); ++d)
    if (session.dim_is_measured(d))
      return fail(
          StatusCode::kUnsupported,
          fmt::format("the model computes the size of '{}', so its tensors have other shapes than the reference's",
                      session.dim_name(d)),
          "compare the part before it: --outputs, or what the model gives as a whole: bantam verify");
  const Sites sites(session, report, reference);
  const auto accumulated = Run(sites, false).of(session, inputs);
  if (!accumulated) return fail(accumulated.error());
  const auto own = Run(sites, true).of(session, inputs);
  if (!own) return fail(own.error());
  Comparison comparison;
  std::set<std::size_t> matched;
  for (std::size_t i = 0; i < own->tensors.size(); ++i) {
    const OperandReport& source = *own->tensors[i].site->source;
    TensorCheck check;
    check.step = *std::ranges::max_element(source.steps);
    check.tensor = source.tensor;
    check.type = own->tensors[i].type;
    check.own = own->tensors[i].difference;
    check.accumulated = accumulated->tensors[i].difference;
    check.suspects = find_suspects(sites, report, source);
    check.within = tolerance_for(session, check, own->magnitudes, tolerance).allows(check.own, check.type);
    matched.insert(source.steps.begin(), source.steps.end());
    comparison.checks.push_back(std::move(check));
  }
  std::ranges::stable_sort(comparison.checks, {}, &TensorCheck::step);
  const auto fault = std::ranges::find(comparison.checks, false, &TensorCheck::within);
  if (fault != comparison.checks.end())
    comparison.first_fault = static_cast<std::size_t>(fault - comparison.checks.begin());
  comparison.unmatched = session.step_count() - matched.size();
  return comparison;
}

}  // namespace bantam::diagnose
