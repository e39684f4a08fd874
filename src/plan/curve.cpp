#include "plan/curve.h"

#include <fmt/format.h>

#include <algorithm>

#include "plan/report.h"

namespace bantam::plan {
namespace {

// Geometry in SVG units.
constexpr double kCurveLeft = 110;
constexpr double kCurveTop = 48;
constexpr double kCurvePlotWidth = 760;
constexpr double kCurvePlotHeight = 400;
constexpr double kCurveWidth = kCurveLeft + kCurvePlotWidth + 30;
constexpr double kCurveHeight = kCurveTop + kCurvePlotHeight + 60;
constexpr int kTicks = 5;
/// Axes begin below the smallest and end beyond the largest number by this part of the distance between them.
constexpr double kMargin = 0.08;

constexpr std::string_view kCurveStyle =
    "svg{font:12px system-ui,sans-serif;max-width:100%;height:auto}.paper{fill:#fff}text{fill:#1b1f24}"
    ".head{font-size:16px;font-weight:600}.grid{stroke:#d5dae1}.curve{fill:none;stroke:#2f6fb0;stroke-width:2}"
    ".point{fill:#2f6fb0}.point:hover{fill:#c62828}@media(prefers-color-scheme:dark){.paper{fill:#14171b}"
    "text{fill:#e7eaee}.grid{stroke:#333a43}.curve{stroke:#7db3ea}.point{fill:#7db3ea}}";
constexpr std::string_view kCurvePageStyle =
    ":root{color-scheme:light dark}body{font:14px system-ui,sans-serif;margin:24px;max-width:1000px}"
    "table{border-collapse:collapse}th,td{padding:3px 12px;text-align:left;border-bottom:1px solid #8886}"
    "td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}";

struct Axis {
  double low = 0;
  double high = 1;

  void take_in(double number) {
    low = std::min(low, number);
    high = std::max(high, number);
  }
  /// With a margin; an axis of one number gets some length.
  Axis widened() const {
    const double room = high > low ? (high - low) * kMargin : std::max(high * kMargin, 1.0);
    return {std::max(low - room, 0.0), high + room};
  }
  double part(double number) const { return (number - low) / (high - low); }
  double tick(int i) const { return low + (high - low) * i / kTicks; }
};

std::string body(const CurveView& view) {
  Axis bytes{static_cast<double>(view.points.front().bytes), static_cast<double>(view.points.front().bytes)};
  Axis time{view.points.front().time, view.points.front().time};
  for (const CurvePoint& p : view.points) {
    bytes.take_in(static_cast<double>(p.bytes));
    time.take_in(p.time);
  }
  bytes = bytes.widened();
  time = time.widened();
  const auto x = [&](double t) { return kCurveLeft + time.part(t) * kCurvePlotWidth; };
  const auto y = [&](double b) { return kCurveTop + (1 - bytes.part(b)) * kCurvePlotHeight; };
  std::string svg = fmt::format("<rect class=\"paper\" width=\"{}\" height=\"{}\"/>", kCurveWidth, kCurveHeight);
  svg += fmt::format("<text class=\"head\" x=\"{}\" y=\"24\">{}</text>", kCurveLeft, escape_markup(view.title));
  for (int i = 0; i <= kTicks; ++i) {
    svg += fmt::format("<line class=\"grid\" x1=\"{0:.1f}\" x2=\"{1:.1f}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\"/>", kCurveLeft,
                       kCurveLeft + kCurvePlotWidth, y(bytes.tick(i)));
    svg += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{:.1f} KiB</text>", kCurveLeft - 8,
                       y(bytes.tick(i)) + 4, bytes.tick(i) / 1024);
    svg += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{:.3g}</text>", x(time.tick(i)),
                       kCurveTop + kCurvePlotHeight + 20, time.tick(i));
  }
  svg += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>",
                     kCurveLeft + kCurvePlotWidth / 2, kCurveTop + kCurvePlotHeight + 44, escape_markup(view.unit));
  std::string corners;
  for (const CurvePoint& p : view.points)
    corners += fmt::format("{:.1f},{:.1f} ", x(p.time), y(static_cast<double>(p.bytes)));
  svg += fmt::format("<polyline class=\"curve\" points=\"{}\"/>", corners);
  for (const CurvePoint& p : view.points)
    svg += fmt::format(
        "<circle class=\"point\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"5\"><title>{} bytes, {:.6g} {}: {}</title></circle>",
        x(p.time), y(static_cast<double>(p.bytes)), p.bytes, p.time, escape_markup(view.unit),
        escape_markup(p.label, 2000));
  return svg;
}

std::string drawing(const CurveView& view) {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\">"
      "<style>{2}</style>{3}</svg>\n",
      kCurveWidth, kCurveHeight, kCurveStyle, body(view));
}

}  // namespace

std::string render_curve_svg(const CurveView& view) {
  return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n" + drawing(view);
}

std::string render_curve_html(const CurveView& view) {
  std::string rows;
  for (const CurvePoint& p : view.points)
    rows += fmt::format("<tr><td class=\"n\">{}</td><td class=\"n\">{:.6g}</td><td>{}</td></tr>\n", p.bytes, p.time,
                        escape_markup(p.label, 2000));
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{0}</title><style>{1}</style></head>\n"
      "<body>{2}<table><tr><th class=\"n\">bytes</th><th "
      "class=\"n\">{3}</th><th>how</th></tr>\n{4}</table></body></html>\n",
      escape_markup(view.title), kCurvePageStyle, drawing(view), escape_markup(view.unit), rows);
}

}  // namespace bantam::plan
