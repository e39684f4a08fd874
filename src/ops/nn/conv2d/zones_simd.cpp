#include <algorithm>

#include "ops/nn/conv2d/zones.h"

namespace bantam::ops::conv2d {
namespace {

/// Neighbouring results along an axis whose windows have the same taps inside the image.
struct Stretch {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  TapRange taps;

  std::int64_t size() const { return end - begin; }
};

/// The one that begins at `begin` and ends at `limit` at the latest.
Stretch stretch_from(const WindowAxis& axis, std::int64_t extent, std::int64_t begin, std::int64_t limit) {
  const auto taps_of = [&](std::int64_t at) { return taps_inside(axis, window_origin(axis, at), 0, extent); };
  Stretch stretch{begin, begin + 1, taps_of(begin)};
  const auto continues = [&](const TapRange& next) {
    return next.first == stretch.taps.first && next.last == stretch.taps.last;
  };
  while (stretch.end < limit && continues(taps_of(stretch.end))) ++stretch.end;
  return stretch;
}

/// Calls f(stretch) for those that make up the results [begin, end).
template <typename F>
void for_each_stretch(const WindowAxis& axis, std::int64_t extent, std::int64_t begin, std::int64_t end, F f) {
  for (std::int64_t at = begin; at < end;) {
    const Stretch stretch = stretch_from(axis, extent, at, end);
    f(stretch);
    at = stretch.end;
  }
}

/// One zone of one item.
class Zone {
 public:
  Zone(const Problem& p, const float* x, std::int64_t item, const Stretch& rows, const Stretch& columns)
      : p_(p), rows_(rows), columns_(columns), run_(longer_runs()), item_(item) {
    if (rows.taps.size() == 0 || columns.taps.size() == 0) return;
    const ConvGeometry& g = p.g;
    window_ = x + g.x.offset(item, window_origin(g.vertical, rows.begin) + rows.taps.first * g.vertical.dilation,
                             window_origin(g.horizontal, columns.begin) + columns.taps.first * g.horizontal.dilation);
  }

  void multiply(const gemm::RightPanels& weights, const gemm::Result& y) const {
    const std::int64_t row = p_.g.horizontal.kernel * p_.group_inputs;
    const std::int64_t first = rows_.taps.first * row + columns_.taps.first * p_.group_inputs;
    const std::int64_t height = rows_.taps.size();
    const std::int64_t width = columns_.taps.size() * p_.group_inputs;
    if (height == 0 || width == 0) return multiply_part({}, 0, weights, y);
    if (width == row) return multiply_part(taps(0, height), first, weights, y);
    gemm::Result part = y;
    for (std::int64_t ky = 0; ky < height; ++ky) {
      part.resumes = y.resumes || ky > 0;
      part.ends = y.ends && ky + 1 == height;
      multiply_part(taps(ky, 1), first + ky * row, weights, part);
    }
  }

  /// Numbers of a part of k whose weights stay in the second-level cache for all results.
  static constexpr std::int64_t kPart = 256;

  /// The same of a zone of one tap, or of taps of a row that touch, a part of their numbers at a time.
  void multiply_in_parts(gemm::RightPanels weights, const gemm::Result& y) const {
    weights.cached = true;
    const std::int64_t numbers = columns_.taps.size() * p_.group_inputs;
    const std::int64_t parts = (numbers + kPart - 1) / kPart;
    const std::int64_t most = (numbers + parts - 1) / parts;
    const std::int64_t first = (rows_.taps.first * p_.g.horizontal.kernel + columns_.taps.first) * p_.group_inputs;
    for (std::int64_t done = 0; done < numbers; done += most) {
      const std::int64_t length = std::min(most, numbers - done);
      multiply_part({.data = window_ + done, .length = length}, first + done, weights, y);
    }
  }

 private:
  /// Results that follow one another in a product, and how many such runs there are.
  struct Runs {
    std::int64_t length = 0;
    std::int64_t count = 0;
    bool upright = false;
  };

  /// Along the side that takes fewer tiles.
  Runs longer_runs() const {
    const auto tiles = [](std::int64_t length) { return (length + gemm::tile_rows() - 1) / gemm::tile_rows(); };
    const bool upright = columns_.size() * tiles(rows_.size()) < rows_.size() * tiles(columns_.size());
    return upright ? Runs{rows_.size(), columns_.size(), true} : Runs{columns_.size(), rows_.size(), false};
  }

  /// The windows' numbers of `count` kernel rows, of those inside, from row ky on.
  gemm::LeftRows taps(std::int64_t ky, std::int64_t count) const {
    const ConvGeometry& g = p_.g;
    gemm::LeftRows left{.data = window_ + ky * g.vertical.dilation * g.x.h_stride,
                        .outer = count,
                        .outer_stride = g.x.h_stride * g.vertical.dilation,
                        .segments = columns_.taps.size(),
                        .segment_stride = g.x.w_stride * g.horizontal.dilation,
                        .length = p_.group_inputs};
    if (p_.taps_touch) {
      left.length *= left.segments;
      left.segments = 1;
    }
    return left;
  }

  /// A part of k, which begins with row first_k of the panels, for all runs.
  void multiply_part(gemm::LeftRows left, std::int64_t first_k, gemm::RightPanels weights, gemm::Result y) const {
    const ConvGeometry& g = p_.g;
    const std::int64_t down = g.vertical.stride * g.x.h_stride;
    const std::int64_t across = g.horizontal.stride * g.x.w_stride;
    left.rows = run_.length;
    left.row_stride = run_.upright ? down : across;
    weights.first_k = first_k;
    weights.k = p_.k;
    y.data += g.y.offset(item_, rows_.begin, columns_.begin);
    y.row_stride = run_.upright ? g.y.h_stride : g.y.w_stride;
    for (std::int64_t i = 0; i < run_.count; ++i) {
      gemm::multiply(left, weights, y);
      if (left.length > 0) left.data += run_.upright ? across : down;
      y.data += run_.upright ? g.y.w_stride : g.y.h_stride;
    }
  }

  const Problem& p_;
  Stretch rows_;
  Stretch columns_;
  Runs run_;
  std::int64_t item_;
  const float* window_ = nullptr;  ///< the first number of the first window that lies inside; null where none does
};

}  // namespace

bool zones_apply(const Problem& p) {
  constexpr std::int64_t kLeastLength = 32;
  return !p.always_inside && p.group_inputs >= kLeastLength;
}

namespace {

void convolve_zone_by_zone(const Problem& p, const float* x, const gemm::RightPanels& weights, const gemm::Result& y,
                           std::int64_t item, std::int64_t begin, std::int64_t end) {
  const ConvGeometry& g = p.g;
  for_each_stretch(g.vertical, g.x.h, begin, end, [&](const Stretch& rows) {
    for_each_stretch(g.horizontal, g.x.w, 0, g.y.w,
                     [&](const Stretch& columns) { Zone(p, x, item, rows, columns).multiply(weights, y); });
  });
}

/// The results in [begin, end) whose windows have tap `tap` inside the image.
Stretch results_of_tap(const WindowAxis& axis, std::int64_t extent, std::int64_t begin, std::int64_t end,
                       std::int32_t tap) {
  const auto origin = [&](std::int64_t at) { return window_origin(axis, at) + tap * axis.dilation; };
  while (begin < end && origin(begin) < 0) ++begin;
  while (begin < end && origin(end - 1) >= extent) --end;
  return {begin, end, {tap, tap + 1}};
}

/// Columns of results that have tap kx of a kernel's row inside, and which of the taps after it they have as well:
/// those that touch, up to a part of k.
Stretch results_of_taps(const Problem& p, std::int32_t kx) {
  const WindowAxis& axis = p.g.horizontal;
  const auto of_tap = [&](std::int32_t tap) { return results_of_tap(axis, p.g.x.w, 0, p.g.y.w, tap); };
  Stretch columns = of_tap(kx);
  while (p.taps_touch && columns.taps.last < axis.kernel && (columns.taps.size() + 1) * p.group_inputs <= Zone::kPart) {
    const Stretch next = of_tap(columns.taps.last);
    if (next.begin != columns.begin || next.end != columns.end) break;
    ++columns.taps.last;
  }
  return columns;
}

void convolve_taps(const Problem& p, const float* x, const gemm::RightPanels& weights, const gemm::Result& result,
                   std::int64_t item, std::int64_t begin, std::int64_t end) {
  const ConvGeometry& g = p.g;
  gemm::Result y = result;
  y.ends = false;
  const Zone all(p, x, item, {begin, end, {}}, {0, g.y.w, {}});
  if (!y.resumes) all.multiply(weights, y);
  y.resumes = true;
  for (std::int32_t ky = 0; ky < g.vertical.kernel; ++ky) {
    const Stretch rows = results_of_tap(g.vertical, g.x.h, begin, end, ky);
    for (std::int32_t kx = 0; kx < g.horizontal.kernel && rows.size() > 0;) {
      const Stretch columns = results_of_taps(p, kx);
      if (columns.size() > 0) Zone(p, x, item, rows, columns).multiply_in_parts(weights, y);
      kx = columns.taps.last;
    }
  }
  y.ends = result.ends;
  if (y.ends && y.activation.function != UnaryFunction::kIdentity) all.multiply(weights, y);
}

/// So many columns at a time that a part of a tap's weights stays in the second-level cache.
void convolve_tap_by_tap(const Problem& p, const float* x, const gemm::RightPanels& weights, const gemm::Result& y,
                         std::int64_t item, std::int64_t begin, std::int64_t end) {
  constexpr std::int64_t kPanelsAtOnce = 24;
  gemm::RightPanels panels = weights;
  for (; panels.first < weights.last; panels.first += kPanelsAtOnce) {
    panels.last = std::min(panels.first + kPanelsAtOnce, weights.last);
    convolve_taps(p, x, panels, y, item, begin, end);
  }
}

}  // namespace

void convolve_zones(const Problem& p, const float* x, const gemm::RightPanels& weights, const gemm::Result& y,
                    std::int64_t begin, std::int64_t end) {
  const std::int64_t height = p.g.y.h;
  const auto convolve = has_many_weights(p) ? convolve_tap_by_tap : convolve_zone_by_zone;
  for (std::int64_t at = begin; at < end;) {
    const std::int64_t item = at / height;
    const std::int64_t last = std::min<std::int64_t>(end - item * height, height);
    convolve(p, x, weights, y, item, at - item * height, last);
    at = item * height + last;
  }
}

}  // namespace bantam::ops::conv2d
