#include "compiler/strips.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/shape.h"
#include "package/format.h"

namespace bantam::compiler {
namespace {

using graph::Graph;
using graph::kNone;
using graph::Node;
using graph::ValueId;

constexpr std::int64_t kUntilTheEnd = std::numeric_limits<std::int64_t>::max() / 4;
/// Storages that get strips, the largest first, and strips of each: bounds on the planner's work.
constexpr std::size_t kMaxStriped = 8;
constexpr std::size_t kMaxStrips = 256;

/// A value's bytes hold what is needed in the steps [def, last].
struct Life {
  std::int64_t def = -1;
  std::int64_t last = -1;
};

bool is_view_of_operand(const StorageMap& map, const Graph& graph, std::size_t n) {
  return map.elided[n] && graph.nodes[n].op->output_view != nullptr;
}

/// A value that is read through views needs only those parts that somebody reads through them.
std::vector<Life> lives_of(const Graph& graph, const StorageMap& map, const std::vector<bool>& preserved_inputs) {
  std::vector<Life> lives(graph.values.size());
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    const bool view = is_view_of_operand(map, graph, n);
    for (const ValueId id : node.inputs)
      if (id != kNone && !view) lives[static_cast<std::size_t>(id)].last = static_cast<std::int64_t>(n);
    for (const ValueId id : node.outputs) {
      if (id == kNone) continue;
      Life& life = lives[static_cast<std::size_t>(id)];
      life.def = view ? lives[static_cast<std::size_t>(node.inputs[0])].def : static_cast<std::int64_t>(n);
      life.last = std::max(life.last, life.def);
    }
  }
  graph::for_each_result(graph, [&](ValueId id) { lives[static_cast<std::size_t>(id)].last = kUntilTheEnd; });
  for (std::size_t i = 0; i < graph.inputs.size(); ++i)
    if (i < preserved_inputs.size() && preserved_inputs[i])
      lives[static_cast<std::size_t>(graph.inputs[i].value)].last = kUntilTheEnd;
  return lives;
}

/// Neighbours that live alike become one; then, while there are too many, the two of which most live at the same time.
void join_neighbours(std::vector<Strip>& strips) {
  std::vector<Strip> joined;
  for (const Strip& s : strips) {
    if (!joined.empty() && joined.back().lower == s.lower && joined.back().upper == s.upper) {
      joined.back().end = s.end;
    } else {
      joined.push_back(s);
    }
  }
  while (joined.size() > kMaxStrips) {
    std::vector<Strip> half;
    for (std::size_t i = 0; i < joined.size(); i += 2) {
      Strip s = joined[i];
      if (i + 1 < joined.size())
        s = {s.begin, joined[i + 1].end, std::min(s.lower, joined[i + 1].lower),
             std::max(s.upper, joined[i + 1].upper)};
      half.push_back(s);
    }
    joined = std::move(half);
  }
  strips = std::move(joined);
}

std::vector<Strip> cut(const Storage& storage, const StorageMap& map, const std::vector<Life>& lives,
                       std::int64_t steps) {
  struct Block {
    std::int64_t begin, end, lower, upper;
  };
  std::vector<Block> blocks;
  std::vector<std::int64_t> cuts = {0, storage.bytes};
  for (const ValueId id : storage.members) {
    const Life& life = lives[static_cast<std::size_t>(id)];
    // What lies in an input before the run is there at the first step, read or not.
    const std::int64_t lower = std::max<std::int64_t>(life.def, 0);
    const std::int64_t upper = std::max(std::min(life.last + 1, steps), lower + 1);
    // The package's reader takes a strided value for all bytes between its first and its last, too.
    const Member& m = map.members[static_cast<std::size_t>(id)];
    const std::int64_t end = m.offset + storage_span(m.desc) * element_size(m.desc.type);
    if (m.offset == end) continue;
    blocks.push_back({m.offset, end, lower, upper});
    cuts.push_back(m.offset);
    cuts.push_back(end);
  }
  std::ranges::sort(cuts);
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  std::vector<Strip> strips;
  for (std::size_t c = 0; c + 1 < cuts.size(); ++c) strips.push_back({cuts[c], cuts[c + 1], steps, 0});
  for (const Block& block : blocks) {
    for (auto c = static_cast<std::size_t>(std::ranges::lower_bound(cuts, block.begin) - cuts.begin());
         c < strips.size() && strips[c].begin < block.end; ++c) {
      strips[c].lower = std::min(strips[c].lower, block.lower);
      strips[c].upper = std::max(strips[c].upper, block.upper);
    }
  }
  for (Strip& s : strips)
    if (s.lower >= s.upper) s = {s.begin, s.end, storage.lower, storage.lower + 1};
  join_neighbours(strips);
  return strips;
}

double area(const Strip& s) { return static_cast<double>(s.end - s.begin) * static_cast<double>(s.upper - s.lower); }

/// Strips bind the planner's hands; they must leave at least a quarter of the block free.
bool is_worth_it(const Storage& storage, const std::vector<Strip>& strips) {
  double used = 0;
  for (const Strip& s : strips) used += area(s);
  return strips.size() > 1 && used <= 0.75 * area({0, storage.bytes, storage.lower, storage.upper});
}

/// How far `above` must rise at least because of one collision; 0 when there is none.
std::int64_t rise(const StripedStorage& above, const StripedStorage& below) {
  for (const Strip& a : above.strips) {
    for (const Strip& b : below.strips) {
      if (a.lower >= b.upper || b.lower >= a.upper) continue;
      const std::int64_t a_begin = above.offset + a.begin;
      if (a_begin < below.offset + b.end && below.offset + b.begin < above.offset + a.end)
        return below.offset + b.end - a_begin;
    }
  }
  return 0;
}

}  // namespace

std::vector<StripedStorage> fix_strips(const Graph& graph, const StorageMap& map,
                                       const std::vector<std::size_t>& candidates,
                                       const std::vector<bool>& preserved_inputs) {
  const std::vector<Life> lives = lives_of(graph, map, preserved_inputs);
  const auto steps = static_cast<std::int64_t>(std::max<std::size_t>(graph.nodes.size(), 1));
  std::vector<StripedStorage> striped;
  for (const std::size_t s : candidates) {
    const Storage& storage = map.storages[s];
    if (storage.members.size() < 3) continue;
    std::vector<Strip> strips = cut(storage, map, lives, steps);
    if (is_worth_it(storage, strips)) striped.push_back({s, 0, std::move(strips)});
  }
  std::ranges::stable_sort(striped, std::greater{},
                           [&](const StripedStorage& s) { return map.storages[s.storage].bytes; });
  if (striped.size() > kMaxStriped) striped.resize(kMaxStriped);
  std::ranges::stable_sort(striped, {}, [&](const StripedStorage& s) { return map.storages[s.storage].lower; });
  for (std::size_t i = 0; i < striped.size(); ++i) {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t j = 0; j < i; ++j) {
        const std::int64_t bytes = rise(striped[i], striped[j]);
        if (bytes == 0) continue;
        striped[i].offset = align_up(striped[i].offset + bytes, static_cast<std::int64_t>(format::kBigBufferAlignment));
        moved = true;
      }
    }
  }
  return striped;
}

}  // namespace bantam::compiler
