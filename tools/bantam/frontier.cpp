// bantam plan --frontier: what less memory costs, as a table, JSON and a picture.
#include "frontier.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "compiler/frontier.h"
#include "diagnose/benchmark.h"
#include "feed/feeder.h"
#include "io/file.h"
#include "plan/curve.h"

namespace bantam::cli {
namespace {

/// Milliseconds of one invoke of every session in an arena of these bytes.
Result<double> measure(FleetSpec spec, const CompileOptions& compile_options, std::uint64_t bytes) {
  spec.budget = bytes;
  auto fleet = OpenFleet::compile(spec, compile_options);
  if (!fleet) return fail(std::move(fleet.error()));
  double sum = 0;
  for (std::size_t i = 0; i < fleet->size(); ++i) {
    if (auto filled = feed::fill_random(fleet->session(i)); !filled) return fail(filled.error());
    const auto timed = diagnose::benchmark(fleet->session(i), {.by_operator = false});
    if (!timed) return fail(timed.error());
    sum += timed->median_us / 1000;
  }
  return sum;
}

std::string render_frontier(const FrontierArguments& options, const std::vector<compiler::FrontierPoint>& points,
                            const std::vector<double>& milliseconds) {
  plan::CurveView view;
  view.title = "Memory against time: " + (options.models.files.empty() ? std::string() : options.models.files.front());
  view.unit = options.measure ? "ms per invoke" : "million multiply-accumulates";
  for (std::size_t i = 0; i < points.size(); ++i)
    view.points.push_back({points[i].how.empty() ? "without reductions" : points[i].how,
                           static_cast<std::int64_t>(points[i].arena_bytes),
                           options.measure ? milliseconds[i] : static_cast<double>(points[i].work) / 1e6});
  return options.map.ends_with(".svg") ? plan::render_curve_svg(view) : plan::render_curve_html(view);
}

void print_frontier(const std::vector<compiler::FrontierPoint>& points, const std::vector<double>& milliseconds) {
  std::vector<std::vector<std::string>> rows = {{"arena", "multiply-accumulates", "copied", "ms", "how"}};
  for (std::size_t i = 0; i < points.size(); ++i)
    rows.push_back({std::to_string(points[i].arena_bytes), std::to_string(points[i].work),
                    fmt::format("{} B", points[i].bytes_copied),
                    milliseconds.empty() ? "-" : fmt::format("{:.3f}", milliseconds[i]),
                    points[i].how.empty() ? "without reductions" : printable(points[i].how)});
  fmt::print("{}", format_table(rows, {true, true, true, true, false}));
}

}  // namespace

int plan_frontier(const FrontierArguments& options) {
  const auto fleet = options.models.fleet();
  if (!fleet) return report(fleet.error());
  Progress progress(options.json);
  CompileOptions compile_options = options.models.compile_options();
  compile_options.progress = [&](const std::string& what) { progress.show(what); };
  const auto points = compiler::frontier(fleet->spec, compile_options);
  if (!points) return report(points.error());
  std::vector<double> milliseconds;
  for (const compiler::FrontierPoint& point : *points) {
    if (!options.measure) break;
    progress.show(fmt::format("measuring in {} bytes ...", point.arena_bytes));
    const auto time = measure(fleet->spec, compile_options, point.arena_bytes);
    if (!time) return report(time.error());
    milliseconds.push_back(*time);
  }
  progress.clear();
  if (!options.map.empty())
    if (auto written = io::write_file(options.map, render_frontier(options, *points, milliseconds)); !written)
      return report(written.error());
  if (!options.json) {
    print_frontier(*points, milliseconds);
    return kExitOk;
  }
  nlohmann::json j = nlohmann::json::array();
  for (std::size_t i = 0; i < points->size(); ++i) {
    const compiler::FrontierPoint& p = (*points)[i];
    j.push_back({{"arena_bytes", p.arena_bytes},
                 {"multiply_accumulates", p.work},
                 {"bytes_copied", p.bytes_copied},
                 {"how", p.how}});
    if (options.measure) j.back()["milliseconds"] = milliseconds[i];
  }
  print_json({{"frontier", j}});
  return kExitOk;
}

}  // namespace bantam::cli
