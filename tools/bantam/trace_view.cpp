#include "trace_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "cli.h"

namespace bantam::cli {
namespace {

/// Calls f(step trace, result index, tensor name) for every result of every step that ran.
template <typename F>
void for_each_result(const Session& session, const ModelReport* report, const diagnose::Trace& trace, F&& f) {
  for (const diagnose::StepTrace& step : trace.steps()) {
    for (std::size_t r = 0; step.runs > 0 && r < step.results.size(); ++r) {
      const std::size_t operand = session.step_inputs(step.step) + r;
      f(step, operand, step.results[r],
        report != nullptr ? printable(report->steps[step.step].operands[operand].tensor) : std::string());
    }
  }
}

double mean_microseconds(const diagnose::StepTrace& step) {
  return step.microseconds / static_cast<double>(std::max<std::int64_t>(step.runs, 1));
}

}  // namespace

void print_trace(const Session& session, const ModelReport* report, const diagnose::Trace& trace) {
  const auto ran = std::ranges::count_if(trace.steps(), [](const diagnose::StepTrace& step) { return step.runs > 0; });
  fmt::print("\n{}: {} of {} steps ran; what each left in its last run\n", printable(session.name()), ran,
             session.step_count());
  std::vector<std::vector<std::string>> rows = {
      {"step", "us", "million MAC", "operator", "kernel", "result", "min", "max", "mean", "NaN", "Inf", "tensor"}};
  for_each_result(
      session, report, trace,
      [&](const diagnose::StepTrace& step, std::size_t operand, const diagnose::TensorStatistics& s,
          const std::string& tensor) {
        rows.push_back({std::to_string(step.step), fmt::format("{:.1f}", mean_microseconds(step)),
                        fmt::format("{:.3f}", static_cast<double>(session.step_work(step.step)) / 1e6),
                        std::string(session.step_operator(step.step)), std::string(session.step_variant(step.step)),
                        describe_tensor(*session.step_operand(step.step, operand).desc), fmt::format("{:.4g}", s.min),
                        fmt::format("{:.4g}", s.max), fmt::format("{:.4g}", s.mean), std::to_string(s.nans),
                        std::to_string(s.infinities),
                        tensor.empty() ? printable(session.step_name(step.step)) : tensor});
      });
  fmt::print("{}", format_table(rows, {true, true, true, false, false, false, true, true, true, true, true}));
}

nlohmann::json trace_json(const Session& session, const ModelReport* report, const diagnose::Trace& trace) {
  nlohmann::json list = nlohmann::json::array();
  for_each_result(session, report, trace,
                  [&](const diagnose::StepTrace& step, std::size_t operand, const diagnose::TensorStatistics& s,
                      const std::string& tensor) {
                    list.push_back({{"step", step.step},
                                    {"name", session.step_name(step.step)},
                                    {"operator", session.step_operator(step.step)},
                                    {"kernel", session.step_variant(step.step)},
                                    {"multiply_accumulates", session.step_work(step.step)},
                                    {"runs", step.runs},
                                    {"us", mean_microseconds(step)},
                                    {"result", describe_tensor(*session.step_operand(step.step, operand).desc)},
                                    {"tensor", tensor},
                                    {"min", s.min},
                                    {"max", s.max},
                                    {"mean", s.mean},
                                    {"nan", s.nans},
                                    {"inf", s.infinities}});
                  });
  return list;
}

}  // namespace bantam::cli
