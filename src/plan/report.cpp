#include "plan/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <string_view>

namespace bantam::plan {
namespace {

/// Above this number only the largest blocks are drawn, to keep the page usable; the map says so.
constexpr std::size_t kMaxDrawnBlocks = 20'000;
constexpr std::size_t kMaxPeakRows = 40;

// Geometry of a map in SVG units.
constexpr double kLeft = 96;
constexpr double kTop = 64;
constexpr double kPlotWidth = 1060;
constexpr double kPlotHeight = 560;
constexpr double kWidth = kLeft + kPlotWidth + 24;
constexpr double kHeight = kTop + kPlotHeight + 52;
constexpr double kBarWidth = 320;    ///< of the largest of the ways that were tried
constexpr double kGlyphWidth = 6.2;  ///< of the label font, on average

/// Colours of the kinds, in order of appearance. Plain rules, because few SVG viewers know CSS variables.
constexpr std::size_t kColours = 10;
constexpr std::string_view kStyle = R"(
.map{font:12px system-ui,sans-serif;max-width:100%;height:auto}
.map .paper{fill:#fff} .map text{fill:#1b1f24} .map .head{font-size:16px;font-weight:600}
.map .grid{stroke:#d5dae1} .map .edge{stroke:#1b1f24} .map .bound{stroke:#1b1f24;stroke-dasharray:6 4}
.map .peak{fill:#c62828;opacity:.3;pointer-events:none} .map .alive{fill:none;stroke:#c62828;pointer-events:none}
.map .block rect,.map .key rect{stroke:#5b6570;stroke-width:.7} .map .block text{font-size:11px;pointer-events:none}
.map .hot rect{stroke:#c62828;stroke-width:1.6} .map .block:hover rect{stroke:#000;stroke-width:2.5}
.map .c0 rect{fill:#9fc5f0} .map .c1 rect{fill:#f3c48a} .map .c2 rect{fill:#a6dcae} .map .c3 rect{fill:#f2a9b4}
.map .c4 rect{fill:#c4b1ee} .map .c5 rect{fill:#e6dc86} .map .c6 rect{fill:#98dcd9} .map .c7 rect{fill:#e8aede}
.map .c8 rect{fill:#c5dd93} .map .c9 rect{fill:#f0ae9a}
@media(prefers-color-scheme:dark){
.map .paper{fill:#14171b} .map text{fill:#e7eaee} .map .grid{stroke:#333a43} .map .edge,.map .bound{stroke:#e7eaee}
.map .peak{fill:#ff7043} .map .alive{stroke:#ff7043}
.map .block rect,.map .key rect{stroke:#aab4c0} .map .hot rect{stroke:#ff7043} .map .block:hover rect{stroke:#fff}
.map .c0 rect{fill:#2f5680} .map .c1 rect{fill:#7d5424} .map .c2 rect{fill:#2f6b3a} .map .c3 rect{fill:#85343f}
.map .c4 rect{fill:#54418a} .map .c5 rect{fill:#6a6220} .map .c6 rect{fill:#266a67} .map .c7 rect{fill:#7c3a70}
.map .c8 rect{fill:#55701f} .map .c9 rect{fill:#84432f}}
)";

constexpr std::string_view kPageStyle = R"(
:root{color-scheme:light dark} body{font:14px system-ui,sans-serif;margin:24px;max-width:1240px}
@media(prefers-color-scheme:dark){body{background:#14171b;color:#e7eaee}}
table{border-collapse:collapse;margin:8px 0 32px} th,td{padding:3px 12px;text-align:left;border-bottom:1px solid #8886}
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums} tr.kept td{font-weight:600}
.bar{display:inline-block;height:10px;background:#4a7fb5} tr.kept .bar{background:#c62828}
)";

std::string format_bytes(std::int64_t bytes) {
  constexpr std::array kUnits = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return fmt::format("{} B", bytes);
  auto value = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < kUnits.size(); ++unit) value /= 1024;
  return fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::string format_exactly(std::int64_t bytes) {
  return bytes < 1024 ? format_bytes(bytes) : fmt::format("{} bytes ({})", bytes, format_bytes(bytes));
}

/// Length of the valid UTF-8 sequence that `text` starts with, 0 when there is none.
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  std::size_t length = 0;
  std::uint32_t code = 0;
  if (byte(0) < 0x80) return 1;
  if ((byte(0) & 0xe0) == 0xc0) {
    length = 2;
    code = byte(0) & 0x1fU;
  } else if ((byte(0) & 0xf0) == 0xe0) {
    length = 3;
    code = byte(0) & 0x0fU;
  } else if ((byte(0) & 0xf8) == 0xf0) {
    length = 4;
    code = byte(0) & 0x07U;
  } else {
    return 0;
  }
  if (text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
    code = code << 6 | (byte(i) & 0x3fU);
  }
  constexpr std::array<std::uint32_t, 5> kSmallest = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xd800 && code <= 0xdfff;
  const bool noncharacter = (code & 0xfffe) == 0xfffe;
  return code < kSmallest[length] || code > 0x10ffff || surrogate || noncharacter ? 0 : length;
}

/// Steps of equal length on an axis from 0 to `end`: 1, 2 or 5 times a power of ten, about `count` of them.
std::int64_t tick_distance(std::int64_t end, std::int64_t count) {
  std::int64_t distance = 1;
  for (std::int64_t power = 1; end / distance > count; power *= 10)
    for (const std::int64_t factor : {1, 2, 5})
      if (end / distance > count) distance = power * factor;
  return distance;
}

/// What is alive over time.
struct Load {
  std::vector<std::pair<std::int64_t, std::int64_t>> changes;  ///< step, bytes alive from there on
  std::int64_t peak_bytes = 0;
  std::int64_t peak_lower = 0;  ///< first range of steps with peak_bytes
  std::int64_t peak_upper = 0;
};

/// A view whose blocks are sane (within 0 <= lower < upper and 0 <= offset), with what the drawing needs to know.
class Map {
 public:
  explicit Map(const MapView& view) : view_(view) {
    std::int64_t total = 0;
    for (const MapBlock& b : view.blocks) {
      const bool drawable = b.lower >= 0 && b.lower < b.upper && b.upper <= kMaxStep && b.offset >= 0 &&
                            b.offset <= kMaxBytes && b.size >= 0 && b.size <= kMaxBytes;
      if (!drawable || b.size == 0 || b.size > kMaxBytes - total) continue;
      total += b.size;
      blocks_.push_back(&b);
      begin_ = std::min(begin_, b.lower);
      end_ = std::max(end_, b.upper);
      height_ = std::max(height_, b.offset + b.size);
      kinds_.try_emplace(b.kind, kinds_.size());
    }
    height_ = std::max({height_, std::min(view.total_bytes, kMaxBytes), std::int64_t{1}});
    if (blocks_.empty()) begin_ = 0;
    end_ = std::max(end_, begin_ + 1);
    find_load();
  }

  /// The <svg> element; `style` goes inside when it is to stand alone.
  std::string svg(std::string_view style) const {
    std::string out = fmt::format(
        "<svg class=\"map\" xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" "
        "role=\"img\">\n",
        kWidth, kHeight);
    if (!style.empty()) out += fmt::format("<style>{}</style>\n", style);
    out += fmt::format("<rect class=\"paper\" width=\"{}\" height=\"{}\"/>\n", kWidth, kHeight);
    append_head(out);
    append_axes(out);
    append_blocks(out);
    append_load(out);
    append_peak(out);
    return out + "</svg>\n";
  }

  /// A table of what is alive at the peak, largest first.
  std::string peak_table() const {
    std::vector<const MapBlock*> alive;
    for (const MapBlock* b : blocks_)
      if (b->lower <= load_.peak_lower && b->upper > load_.peak_lower) alive.push_back(b);
    std::stable_sort(alive.begin(), alive.end(), [](const auto* a, const auto* b) { return a->size > b->size; });
    std::string out =
        fmt::format("<h3>Alive at {}: {}</h3>\n", step_text(load_.peak_lower), format_exactly(load_.peak_bytes));
    out +=
        "<table><tr><th>name</th><th>kind</th><th class=\"n\">bytes</th><th class=\"n\">offset</th>"
        "<th>alive in steps</th><th>detail</th></tr>\n";
    for (std::size_t i = 0; i < std::min(alive.size(), kMaxPeakRows); ++i) {
      const MapBlock& b = *alive[i];
      out += fmt::format(
          "<tr><td>{}</td><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td>{} to {}</td><td>{}</td></tr>\n",
          escape_markup(b.name), escape_markup(b.kind), b.size, b.offset, b.lower, b.upper - 1,
          escape_markup(b.detail));
    }
    out += "</table>\n";
    if (alive.size() > kMaxPeakRows) out += fmt::format("<p>and {} smaller ones</p>\n", alive.size() - kMaxPeakRows);
    return out;
  }

 private:
  void find_load() {
    std::map<std::int64_t, std::int64_t> difference;
    for (const MapBlock* b : blocks_) {
      difference[b->lower] += b->size;
      difference[b->upper] -= b->size;
    }
    std::int64_t alive = 0;
    for (auto change = difference.begin(); change != difference.end(); ++change) {
      alive += change->second;
      load_.changes.emplace_back(change->first, alive);
      if (alive <= load_.peak_bytes) continue;
      load_.peak_bytes = alive;
      load_.peak_lower = change->first;
      load_.peak_upper = std::next(change)->first;  // something is alive, so it also ends
    }
  }

  double x(std::int64_t step) const {
    return kLeft + kPlotWidth * static_cast<double>(step - begin_) / static_cast<double>(end_ - begin_);
  }
  double y(std::int64_t bytes) const {
    return kTop + kPlotHeight * (1.0 - static_cast<double>(bytes) / static_cast<double>(height_));
  }
  std::size_t colour(const MapBlock& b) const { return kinds_.find(b.kind)->second % kColours; }

  std::string step_text(std::int64_t step) const {
    if (static_cast<std::size_t>(step) >= view_.step_labels.size()) return fmt::format("step {}", step);
    return fmt::format("step {} ({})", step, escape_markup(view_.step_labels[static_cast<std::size_t>(step)]));
  }

  void append_head(std::string& out) const {
    out += fmt::format("<title>{}</title>\n", escape_markup(view_.title));
    out += fmt::format("<text class=\"head\" x=\"{}\" y=\"22\">{}</text>\n", kLeft, escape_markup(view_.title, 80));
    std::string line = fmt::format("arena {}", format_exactly(view_.total_bytes));
    if (view_.lower_bound > 0) line += fmt::format(", lower bound {}", format_exactly(view_.lower_bound));
    if (blocks_.size() > kMaxDrawnBlocks)
      line += fmt::format(", the {} largest of {} buffers", kMaxDrawnBlocks, blocks_.size());
    out += fmt::format("<text x=\"{}\" y=\"40\">{}</text>\n", kLeft, line);
    append_legend(out);
  }

  void append_legend(std::string& out) const {
    std::vector<std::string_view> names(kinds_.size());
    for (const auto& [kind, index] : kinds_) names[index] = kind;
    double at = kLeft;
    for (std::size_t i = 0; i < names.size() && at < kWidth - 100; ++i) {
      out += fmt::format("<g class=\"key c{}\"><rect x=\"{:.1f}\" y=\"47\" width=\"11\" height=\"11\"/></g>",
                         i % kColours, at);
      out += fmt::format("<text x=\"{:.1f}\" y=\"57\">{}</text>\n", at + 16, escape_markup(names[i], 24));
      at += 32 + kGlyphWidth * 1.1 * static_cast<double>(std::min<std::size_t>(names[i].size(), 24));
    }
  }

  void append_axes(std::string& out) const {
    std::int64_t byte_distance = 1;
    while (height_ / byte_distance > 8) byte_distance *= 2;
    for (std::int64_t bytes = 0; bytes <= height_; bytes += byte_distance)
      out += fmt::format(
          "<line class=\"grid\" x1=\"{0}\" x2=\"{1}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\"/>"
          "<text x=\"{3}\" y=\"{4:.1f}\" text-anchor=\"end\">{5}</text>\n",
          kLeft, kLeft + kPlotWidth, y(bytes), kLeft - 8, y(bytes) + 4, format_bytes(bytes));
    const std::int64_t step_distance = tick_distance(end_ - begin_, 16);
    for (std::int64_t step = (begin_ + step_distance - 1) / step_distance * step_distance; step <= end_;
         step += step_distance)
      out += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n", x(step),
                         kTop + kPlotHeight + 18, step);
    out +=
        fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"end\">step</text>\n", kLeft - 16, kTop + kPlotHeight + 18);
    append_level(out, "edge", view_.total_bytes);
    if (view_.lower_bound > 0) append_level(out, "bound", view_.lower_bound);
  }

  void append_level(std::string& out, std::string_view style, std::int64_t bytes) const {
    if (bytes < 0 || bytes > height_) return;
    out += fmt::format("<line class=\"{0}\" x1=\"{1}\" x2=\"{2}\" y1=\"{3:.1f}\" y2=\"{3:.1f}\"/>\n", style, kLeft,
                       kLeft + kPlotWidth, y(bytes));
  }

  void append_peak(std::string& out) const {
    if (load_.peak_bytes == 0) return;
    const double left = x(load_.peak_lower);
    const double width = std::max(x(load_.peak_upper) - left, 1.0);
    out += fmt::format("<rect class=\"peak\" x=\"{:.2f}\" y=\"{}\" width=\"{:.2f}\" height=\"{}\"/>\n", left, kTop,
                       width, kPlotHeight + 26);
    const double middle = left + width / 2;
    out += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"{}\">most alive at once: {} at {}</text>\n", middle,
                       kTop + kPlotHeight + 40, middle > kLeft + kPlotWidth / 2 ? "end" : "start",
                       format_exactly(load_.peak_bytes), step_text(load_.peak_lower));
  }

  void append_blocks(std::string& out) const {
    std::vector<const MapBlock*> drawn = blocks_;
    if (drawn.size() > kMaxDrawnBlocks) {
      std::stable_sort(drawn.begin(), drawn.end(), [](const auto* a, const auto* b) { return a->size > b->size; });
      drawn.resize(kMaxDrawnBlocks);
    }
    for (const MapBlock* b : drawn) append_block(out, *b);
  }

  void append_block(std::string& out, const MapBlock& b) const {
    const double left = x(b.lower);
    const double width = std::max(x(b.upper) - left, 0.6);
    const double top = y(b.offset + b.size);
    const double height = std::max(y(b.offset) - top, 0.6);
    const bool hot = b.lower <= load_.peak_lower && b.upper > load_.peak_lower;
    out += fmt::format("<g class=\"block c{}{}\"><title>{}\n{}, {}\nbytes {} to {}\nalive from {} to {}", colour(b),
                       hot ? " hot" : "", escape_markup(b.name), escape_markup(b.kind), format_exactly(b.size),
                       b.offset, b.offset + b.size - 1, step_text(b.lower), step_text(b.upper - 1));
    if (!b.detail.empty()) {
      out += '\n';
      out += escape_markup(b.detail, 1000);
    }
    out += fmt::format("</title><rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\"/>", left, top, width,
                       height);
    const auto letters = static_cast<std::size_t>(std::max(0.0, (width - 8) / kGlyphWidth));
    if (height >= 13 && letters >= 3)
      out += fmt::format("<text x=\"{:.2f}\" y=\"{:.2f}\">{}</text>", left + 4, top + std::min(height / 2 + 4, 14.0),
                         escape_markup(b.name, letters));
    out += "</g>\n";
  }

  /// The bytes alive at each step as a line: where it reaches the upper edge nothing is wasted.
  void append_load(std::string& out) const {
    if (load_.changes.empty()) return;
    out += fmt::format("<path class=\"alive\" d=\"M{:.2f} {:.2f}", x(load_.changes[0].first), y(0));
    for (const auto& [step, bytes] : load_.changes)
      out += fmt::format("H{:.2f}V{:.2f}", x(step), y(std::min(bytes, height_)));
    out += "\"/>\n";
  }

  const MapView& view_;
  std::vector<const MapBlock*> blocks_;
  std::map<std::string_view, std::size_t> kinds_;  ///< number of each kind, in order of appearance
  std::int64_t begin_ = kMaxStep;
  std::int64_t end_ = 0;
  std::int64_t height_ = 0;
  Load load_;
};

}  // namespace

std::string escape_markup(std::string_view text, std::size_t limit) {
  constexpr std::string_view kReplacement = "\xef\xbf\xbd";
  std::string out;
  std::size_t i = 0;
  while (i < text.size()) {
    const std::size_t length = utf8_length(text.substr(i));
    if (i + std::max<std::size_t>(length, 1) > limit) {
      out += "…";
      break;
    }
    const char c = text[i];
    const bool control = length == 1 && (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) && c != '\n' && c != '\t';
    if (length == 0 || control) {
      out += kReplacement;
      ++i;
      continue;
    }
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      default: out += text.substr(i, length); break;
    }
    i += length;
  }
  return out;
}

MapView make_map_view(const std::string& title, const Problem& problem, const Solution& solution,
                      std::int64_t lower_bound) {
  MapView view{
      .title = title, .blocks = {}, .step_labels = {}, .total_bytes = solution.peak, .lower_bound = lower_bound};
  for (std::size_t i = 0; i < problem.buffers.size(); ++i) {
    const Buffer& b = problem.buffers[i];
    view.blocks.push_back({.name = b.id,
                           .kind = "buffer",
                           .lower = b.lower,
                           .upper = b.upper,
                           .offset = solution.offsets[i],
                           .size = b.size,
                           .detail = {}});
  }
  return view;
}

std::string render_svg(const MapView& view) {
  return fmt::format("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{}", Map(view).svg(kStyle));
}

namespace {

/// What was tried, in order, with bars.
std::string trials_table(const std::vector<MapTrial>& trials) {
  if (trials.empty()) return {};
  std::int64_t largest = 1;
  for (const MapTrial& trial : trials) largest = std::max(largest, trial.bytes);
  std::string out =
      "<h3>Ways that were tried</h3>\n<table><tr><th>way</th><th class=\"n\">bytes</th><th class=\"n\">lower "
      "bound</th><th class=\"n\">multiply-accumulates</th><th></th></tr>\n";
  for (const MapTrial& trial : trials)
    out += fmt::format(
        "<tr{}><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td>"
        "<td><span class=\"bar\" style=\"width:{:.0f}px\"></span></td></tr>\n",
        trial.kept ? " class=\"kept\"" : "", escape_markup(trial.name), trial.bytes, trial.lower_bound, trial.work,
        kBarWidth * static_cast<double>(std::max<std::int64_t>(trial.bytes, 0)) / static_cast<double>(largest));
  return out + "</table>\n";
}

}  // namespace

std::string render_html(const std::string& title, std::span<const MapView> views) {
  std::string out = fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
      "<meta name=\"viewport\" content=\"width=device-width\"><title>{0}</title>\n<style>{1}{2}</style></head>\n"
      "<body><h1>{0}</h1>\n<p>Time runs across, addresses run up. The red line is what is alive at each step; the band "
      "marks the step where that is most.</p>\n",
      escape_markup(title), kPageStyle, kStyle);
  for (const MapView& view : views) {
    const Map map(view);
    out += map.svg({});
    if (!view.note.empty()) out += fmt::format("<p>{}</p>\n", escape_markup(view.note, 1000));
    out += map.peak_table();
    out += trials_table(view.trials);
  }
  return out + "</body></html>\n";
}

}  // namespace bantam::plan
