// Memory maps: a solved plan as a picture, time across and addresses up, one block per buffer.
//
// Called by `bantam plan` and by the demo. Input is a MapView, which the caller fills with whatever names its objects
// have; they are escaped, bad UTF-8 and control characters are replaced, so that hostile model names stay text. The
// output is self-contained (no scripts, nothing loaded from elsewhere) and follows the reader's light or dark setting.
// Hovering over a block shows its name, size, place and lifetime; the blocks that make the peak stand out. Thread rule:
// pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "plan/problem.h"

namespace bantam::plan {

struct MapBlock {
  std::string name;
  std::string kind;        ///< colour and legend: "activation", "state", "scratch", ...
  std::int64_t lower = 0;  ///< first step alive
  std::int64_t upper = 0;  ///< first step no longer alive
  std::int64_t offset = 0;
  std::int64_t size = 0;
  std::string detail;  ///< free text for the hover box, may be empty
};

/// A way of planning that was tried, for the table before and after.
struct MapTrial {
  std::string name;
  std::int64_t bytes = 0;
  std::int64_t lower_bound = 0;
  std::int64_t work = 0;  ///< multiply-accumulates
  bool kept = false;
};

struct MapView {
  std::string title;
  std::string note{};  ///< a line below the title
  std::vector<MapBlock> blocks;
  std::vector<std::string> step_labels;  ///< name of step 0, 1, ...; may be shorter than the plan, or empty
  std::int64_t total_bytes = 0;          ///< the arena; drawn as the upper edge
  std::int64_t lower_bound = 0;          ///< drawn as a dashed line; 0 for none
  std::vector<MapTrial> trials{};        ///< shown on pages only
};

/// The view of a bare problem and its solution; all blocks are of the kind "buffer".
MapView make_map_view(const std::string& title, const Problem& problem, const Solution& solution,
                      std::int64_t lower_bound);

/// A complete SVG file.
std::string render_svg(const MapView& view);

/// One HTML page with a map per view, and below each what is alive at its peak and what was tried before.
std::string render_html(const std::string& title, std::span<const MapView> views);

/// `text` made safe inside HTML and XML, in elements and in quoted attributes; at most `limit` bytes of it.
std::string escape_markup(std::string_view text, std::size_t limit = 200);

}  // namespace bantam::plan
