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
    const bool many = has_many_weights(p_);
    if (height == 0 || width == 0) return multiply_part({}, 0, weights, y);
    const bool whole_rows = width == row;
    if (whole_rows && !many) return multiply_part(taps(0, height), first, weights, y);
    gemm::Result part = y;
    for (std::int64_t ky = 0; ky < height; ++ky) {
      const std::int64_t length = many ? part_length(width) : width;
      for (std::int64_t done = 0; done < width; done += length) {
        part.resumes = y.resumes || ky > 0 || done > 0;
        part.ends = y.ends && ky + 1 == height && done + length >= width;
        multiply_part(many ? numbers(ky, done, std::min(length, width - done)) : taps(ky, 1), first + ky * row + done,
                      weights, part);
      }
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

  /// Of parts of about as many numbers of a kernel row of `width`, each within one tap or of taps that touch.
  std::int64_t part_length(std::int64_t width) const {
    constexpr std::int64_t kPart = 384;
    const std::int64_t run = p_.taps_touch ? width : p_.group_inputs;
    const std::int64_t parts = (run + kPart - 1) / kPart;
    return (run + parts - 1) / parts;
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

  /// Numbers [first, first + count) of kernel row ky, of those inside, all in one tap unless taps touch.
  gemm::LeftRows numbers(std::int64_t ky, std::int64_t first, std::int64_t count) const {
    const ConvGeometry& g = p_.g;
    const float* row = window_ + ky * g.vertical.dilation * g.x.h_stride;
    const std::int64_t tap = p_.taps_touch ? 0 : first / p_.group_inputs;
    return {.data = row + tap * g.horizontal.dilation * g.x.w_stride + first - tap * p_.group_inputs, .length = count};
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

/// Taps inside the image of all windows along an axis.
std::int64_t taps_of_axis(const WindowAxis& axis, std::int64_t extent, std::int64_t results) {
  std::int64_t taps = 0;
  for_each_stretch(axis, extent, 0, results, [&](const Stretch& s) { taps += s.size() * s.taps.size(); });
  return taps;
}

}  // namespace

bool zones_apply(const Problem& p) {
  constexpr std::int64_t kLeastLength = 32;
  return !p.always_inside && p.group_inputs >= kLeastLength;
}

double share_inside(const Problem& p) {
  const ConvGeometry& g = p.g;
  const auto inside = static_cast<double>(taps_of_axis(g.vertical, g.x.h, g.y.h)) *
                      static_cast<double>(taps_of_axis(g.horizontal, g.x.w, g.y.w));
  return inside / (static_cast<double>(g.y.h) * g.vertical.kernel * g.y.w * g.horizontal.kernel);
}

void convolve_zones(const Problem& p, const float* x, const gemm::RightPanels& weights, const gemm::Result& y,
                    std::int64_t begin, std::int64_t end) {
  const ConvGeometry& g = p.g;
  for (std::int64_t at = begin; at < end;) {
    const std::int64_t item = at / g.y.h;
    const std::int64_t last = std::min<std::int64_t>(end - item * g.y.h, g.y.h);
    for_each_stretch(g.vertical, g.x.h, at - item * g.y.h, last, [&](const Stretch& rows) {
      for_each_stretch(g.horizontal, g.x.w, 0, g.y.w,
                       [&](const Stretch& columns) { Zone(p, x, item, rows, columns).multiply(weights, y); });
    });
    at = item * g.y.h + last;
  }
}

}  // namespace bantam::ops::conv2d
