// Memory against time as a picture: each point a plan, the curve what can be had.
//
// Called by `bantam plan --frontier`. Self-contained like the maps of report.h: no scripts, nothing loaded from
// elsewhere, names escaped. Hovering over a point shows its label. Thread rule: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace bantam::plan {

struct CurvePoint {
  std::string label;
  std::int64_t bytes = 0;
  double time = 0;  ///< in the unit of CurveView::unit
};

struct CurveView {
  std::string title;
  std::string unit;                ///< of the time axis, e.g. "million multiplications"
  std::vector<CurvePoint> points;  ///< at least one
};

/// A complete SVG file.
std::string render_curve_svg(const CurveView& view);

/// One HTML page with the curve and its points as a table.
std::string render_curve_html(const CurveView& view);

}  // namespace bantam::plan
