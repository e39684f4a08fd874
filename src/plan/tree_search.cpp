// Correctness of the pruning. Fix a canonical placement S that fits and among those the one whose twins (blocks of the
// same sections) come in order of index wherever they lie directly on one another or are of equal size. Swapping such
// twins keeps a placement canonical, so S exists. The invariant along the path that agrees with S: every waiting block
// lies in S at or above its `lowest_`, and at or above `floor_` in all its sections.
//  - Branching happens in a valley: neighbouring sections are higher. A block with lowest_ equal to the valley's floor
//    therefore lies in the valley with all its sections, and nothing can come below it later.
//  - If S has nothing at that height in the section (skip), each block that could lie there rests in S on a waiting
//    neighbour c, because all its sections are open at that height; so it lies at lowest_[c] + size of c or higher.
#include "plan/tree_search.h"

#include <algorithm>
#include <limits>
#include <map>

#include "base/shape.h"
#include "plan/index.h"

namespace bantam::plan {
namespace {

/// `lowest_` of a placed block: above every offset, and far from overflow when sizes are added.
constexpr std::int64_t kPlaced = std::int64_t{1} << 61;

/// A few milliseconds.
constexpr std::int64_t kStepsBetweenLooks = 4'000'000;

}  // namespace

std::int64_t TreeSearch::words_needed(const Strip& strip) {
  // Pairs are bounded by what each section holds, and by all pairs.
  std::vector<std::int64_t> alive(u(strip.sections) + 1, 0);
  std::int64_t members = 0;
  for (const Block& b : strip.blocks) {
    ++alive[u(b.begin)];
    --alive[u(b.end)];
    members += b.end - b.begin;
  }
  // Each pair meets first in the section where its later block begins.
  std::vector<std::int64_t> begins(u(strip.sections), 0);
  for (const Block& b : strip.blocks) ++begins[u(b.begin)];
  std::int64_t pairs = 0;
  std::int64_t count = 0;
  for (std::int32_t s = 0; s < strip.sections; ++s) {
    count += alive[u(s)];
    pairs += begins[u(s)] * count;
  }
  return members + 2 * pairs;
}

TreeSearch::TreeSearch(const Strip& strip) : strip_(strip) {
  const auto& blocks = strip.blocks;
  const auto block_count = static_cast<std::int32_t>(blocks.size());
  std::vector<std::vector<std::int32_t>> members(u(strip.sections));
  for (std::int32_t i = 0; i < block_count; ++i)
    for (std::int32_t s = blocks[u(i)].begin; s < blocks[u(i)].end; ++s) members[u(s)].push_back(i);
  for (const auto& section : members) {
    members_begin_.push_back(static_cast<std::int32_t>(members_.size()));
    members_.insert(members_.end(), section.begin(), section.end());
  }
  members_begin_.push_back(static_cast<std::int32_t>(members_.size()));

  std::vector<std::int32_t> marked(blocks.size(), -1);
  std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> groups;
  for (std::int32_t i = 0; i < block_count; ++i) {
    const Block& b = blocks[u(i)];
    neighbours_begin_.push_back(static_cast<std::int32_t>(neighbours_.size()));
    marked[u(i)] = i;
    for (std::int32_t s = b.begin; s < b.end; ++s) {
      for (const std::int32_t other : members[u(s)]) {
        if (marked[u(other)] == i) continue;
        marked[u(other)] = i;
        neighbours_.push_back(other);
      }
    }
    // A rounded size may count at the top of the strip, where the padding is free, so it is not exchanged.
    const bool interchangeable = b.fixed < 0 && b.alignment == 1 && b.bytes == b.size * strip.unit;
    const auto key = interchangeable ? std::pair(b.begin, b.end) : std::pair(-1, i);
    twin_group_.push_back(groups.try_emplace(key, static_cast<std::int32_t>(groups.size())).first->second);
  }
  neighbours_begin_.push_back(static_cast<std::int32_t>(neighbours_.size()));
}

void TreeSearch::reset(std::int64_t capacity) {
  const auto& blocks = strip_.blocks;
  // A block that ends by `capacity` with its real size ends by the rounded capacity with its rounded size.
  room_ = align_up(capacity, strip_.alignment) / strip_.unit;
  const auto sections = u(strip_.sections);
  floor_.assign(sections, 0);
  needed_.assign(sections, 0);
  waiting_.assign(sections, 0);
  choices_.assign(sections, 0);
  top_.assign(sections, -1);
  crossing_.assign(sections, 0);
  failures_.assign(sections, 0);
  offset_.assign(blocks.size(), -1);
  deepest_.assign(blocks.size(), -1);
  lowest_.clear();
  highest_.clear();
  trail_.clear();
  path_.clear();
  alternatives_.clear();
  placed_ = 0;
  deepest_count_ = 0;
  used_ = {};
  next_look_ = 0;
  for (const Block& b : blocks) {
    lowest_.push_back(std::max<std::int64_t>(b.fixed, 0));
    const std::int64_t highest = capacity < b.bytes ? -1 : (capacity - b.bytes) / strip_.unit;
    highest_.push_back(b.fixed >= 0 ? std::min(b.fixed, highest) : highest);
    for (std::int32_t s = b.begin; s < b.end; ++s) {
      needed_[u(s)] += b.size;
      ++waiting_[u(s)];
      if (s > b.begin) ++crossing_[u(s)];
    }
  }
}

bool TreeSearch::is_spent(const Effort& limit, const Deadline& deadline) {
  if (used_.nodes > limit.nodes || used_.steps > limit.steps) return true;
  if (!deadline || used_.steps < next_look_) return false;
  next_look_ = used_.steps + kStepsBetweenLooks;
  return std::chrono::steady_clock::now() >= *deadline;
}

TreeSearch::Outcome TreeSearch::run(std::int64_t capacity, const Guide& guide, Effort limit, const Deadline& deadline) {
  if (capacity < 0) return strip_.blocks.empty() ? Outcome::kFound : Outcome::kImpossible;
  guide_ = &guide;
  reset(capacity);
  for (std::size_t i = 0; i < lowest_.size(); ++i)
    if (lowest_[i] > highest_[i]) return Outcome::kImpossible;
  if (!raise_floors(0, strip_.sections)) return Outcome::kImpossible;

  Verdict verdict = enter(0, strip_.sections);
  while (!path_.empty()) {
    if (verdict == Verdict::kOpen && is_spent(limit, deadline)) return Outcome::kLimit;
    verdict = advance(verdict);
  }
  if (verdict != Verdict::kSuccess) return Outcome::kImpossible;
  deepest_ = offset_;
  deepest_count_ = placed_;
  return Outcome::kFound;
}

/// Opens the node for the waiting blocks of [begin, end), or decides that there is nothing to do.
TreeSearch::Verdict TreeSearch::enter(std::int32_t begin, std::int32_t end) {
  while (begin < end && waiting_[u(begin)] == 0) ++begin;
  while (begin < end && waiting_[u(end - 1)] == 0) --end;
  if (begin == end) return Verdict::kSuccess;
  ++used_.nodes;
  if (!push_split(begin, end)) push_branching(begin, end);
  return Verdict::kOpen;
}

/// Pushes a split when no waiting block crosses some boundary inside [begin, end). The tightest group comes first.
bool TreeSearch::push_split(std::int32_t begin, std::int32_t end) {
  const auto is_cut = [&](std::int32_t s) { return crossing_[u(s)] == 0; };
  std::int32_t cut = begin + 1;
  while (cut < end && !is_cut(cut)) ++cut;
  if (cut == end) return false;

  struct Group {
    std::int32_t begin, end;
    std::int64_t slack;
  };
  std::vector<Group> groups;
  for (std::int32_t low = begin; low < end; low = cut) {
    cut = low + 1;
    while (cut < end && !is_cut(cut)) ++cut;
    std::int64_t slack = std::numeric_limits<std::int64_t>::max();
    for (std::int32_t s = low; s < cut; ++s)
      if (waiting_[u(s)] > 0) slack = std::min(slack, room_ - floor_[u(s)] - needed_[u(s)]);
    if (waiting_[u(low)] > 0) groups.push_back({low, cut, slack});
  }
  std::stable_sort(groups.begin(), groups.end(), [](const Group& a, const Group& b) { return a.slack < b.slack; });
  const std::size_t first = alternatives_.size();
  for (const Group& group : groups) {
    alternatives_.push_back(group.begin);
    alternatives_.push_back(group.end);
  }
  path_.push_back({begin, end, -1, 0, first, alternatives_.size(), first, trail_.size()});
  return true;
}

void TreeSearch::push_branching(std::int32_t begin, std::int32_t end) {
  remember_if_deepest();
  const std::int32_t section = choose_section(begin, end);
  const std::int64_t height = floor_[u(section)];
  const std::size_t first = alternatives_.size();
  collect_alternatives(section, height);
  path_.push_back({begin, end, section, height, first, alternatives_.size(), first, trail_.size()});
}

/// Moves on at the last node of the path, whose last child ended with `child` (kOpen when it has none yet).
TreeSearch::Verdict TreeSearch::advance(Verdict child) {
  Node& node = path_.back();
  const bool split = node.section < 0;
  if (child == (split ? Verdict::kFailure : Verdict::kSuccess)) {
    leave();
    return child;
  }
  if (!split) undo(node.trail);
  if (node.next == node.last) {
    leave();
    return split ? Verdict::kSuccess : Verdict::kFailure;
  }
  if (split) {
    node.next += 2;
    const std::int32_t low = alternatives_[node.next - 2];
    const std::int32_t high = alternatives_[node.next - 1];
    return enter(low, high);  // invalidates `node`
  }
  const std::int32_t block = alternatives_[node.next++];
  const bool consistent = block == kSkip ? skip(node.section, node.height) : place(block, node.height);
  if (!consistent) return Verdict::kFailure;
  return enter(node.begin, node.end);  // invalidates `node`
}

void TreeSearch::leave() {
  alternatives_.resize(path_.back().first);
  path_.pop_back();
}

void TreeSearch::remember_if_deepest() {
  if (placed_ <= deepest_count_) return;
  deepest_count_ = placed_;
  deepest_ = offset_;
}

/// The best section among those at the bottom of a valley: a run of equal floors with higher ones beside it.
std::int32_t TreeSearch::choose_section(std::int32_t begin, std::int32_t end) {
  std::int32_t best = -1;
  double best_score = 0;
  for (std::int32_t low = begin; low < end;) {
    std::int32_t high = low + 1;
    while (high < end && floor_[u(high)] == floor_[u(low)]) ++high;
    const bool valley =
        (low == begin || floor_[u(low - 1)] > floor_[u(low)]) && (high == end || floor_[u(high)] > floor_[u(low)]);
    for (std::int32_t s = low; valley && s < high; ++s) {
      const double current = score(s);
      if (best >= 0 && current >= best_score) continue;
      best = s;
      best_score = current;
    }
    low = high;
  }
  used_.steps += end - begin;
  return best;
}

/// Smaller is better: few alternatives fail early.
double TreeSearch::score(std::int32_t section) const {
  const auto s = u(section);
  const std::int64_t slack = room_ - floor_[s] - needed_[s];
  const double choices = choices_[s] + (slack > 0 ? 1 : 0);
  if (guide_->branching == Guide::Branching::kMostFailures) return choices / (1.0 + static_cast<double>(failures_[s]));
  return choices + static_cast<double>(slack) / (static_cast<double>(room_) + 1.0);
}

/// Appends what may come next at the floor of the section, most promising first.
void TreeSearch::collect_alternatives(std::int32_t section, std::int64_t height) {
  const std::size_t first = alternatives_.size();
  bool skip_remembered = true;  // the remembered placement leaves this spot empty
  for (std::int32_t m = members_begin_[u(section)]; m < members_begin_[u(section) + 1]; ++m) {
    const std::int32_t block = members_[u(m)];
    if (lowest_[u(block)] != height || is_redundant(block, section, height)) continue;
    alternatives_.push_back(block);
    skip_remembered = skip_remembered && guide_->remembered[u(block)] > height;
  }
  std::sort(alternatives_.begin() + static_cast<std::ptrdiff_t>(first), alternatives_.end(),
            [&](std::int32_t a, std::int32_t b) {
              const bool a_remembered = guide_->remembered[u(a)] == height;
              const bool b_remembered = guide_->remembered[u(b)] == height;
              if (a_remembered != b_remembered) return a_remembered;
              if (guide_->priority[u(a)] != guide_->priority[u(b)])
                return guide_->priority[u(a)] > guide_->priority[u(b)];
              return a < b;
            });
  const auto skip_place = skip_remembered ? static_cast<std::ptrdiff_t>(first) : std::ssize(alternatives_);
  alternatives_.insert(alternatives_.begin() + skip_place, kSkip);
}

/// Whether placing the block here only repeats a placement in which twins are in order of index.
bool TreeSearch::is_redundant(std::int32_t block, std::int32_t section, std::int64_t height) const {
  const Block& b = strip_.blocks[u(block)];
  const std::int32_t below = top_[u(section)];
  if (below > block && twin_group_[u(below)] == twin_group_[u(block)] &&
      offset_[u(below)] + strip_.blocks[u(below)].size == height)
    return true;
  for (std::int32_t m = members_begin_[u(b.begin)]; m < members_begin_[u(b.begin) + 1]; ++m) {
    const std::int32_t other = members_[u(m)];
    if (other >= block) break;  // members are in order of index
    if (twin_group_[u(other)] == twin_group_[u(block)] && strip_.blocks[u(other)].size == b.size &&
        lowest_[u(other)] != kPlaced)
      return true;
  }
  return false;
}

bool TreeSearch::place(std::int32_t block, std::int64_t offset) {
  const Block& b = strip_.blocks[u(block)];
  record(Change::Kind::kLowest, block, lowest_[u(block)]);
  record(Change::Kind::kPlaced, block, 0);
  lowest_[u(block)] = kPlaced;
  offset_[u(block)] = offset;
  ++placed_;
  for (std::int32_t s = b.begin; s < b.end; ++s) {
    needed_[u(s)] -= b.size;
    --waiting_[u(s)];
    if (s > b.begin) --crossing_[u(s)];
    record(Change::Kind::kFloor, s, floor_[u(s)]);
    record(Change::Kind::kTop, s, top_[u(s)]);
    floor_[u(s)] = offset + b.size;
    top_[u(s)] = block;
  }
  std::int32_t touched_begin = b.begin;
  std::int32_t touched_end = b.end;
  return raise_blocks(b.begin, b.end, touched_begin, touched_end) && raise_floors(touched_begin, touched_end);
}

void TreeSearch::unplace(std::int32_t block) {
  const Block& b = strip_.blocks[u(block)];
  offset_[u(block)] = -1;
  --placed_;
  for (std::int32_t s = b.begin; s < b.end; ++s) {
    needed_[u(s)] += b.size;
    ++waiting_[u(s)];
    if (s > b.begin) ++crossing_[u(s)];
  }
}

/// Leaves the floor of the section empty at `height`.
bool TreeSearch::skip(std::int32_t section, std::int64_t height) {
  std::int64_t next = kPlaced;
  std::int32_t touched_begin = section;
  std::int32_t touched_end = section + 1;
  for (std::int32_t m = members_begin_[u(section)]; m < members_begin_[u(section) + 1]; ++m) {
    const std::int32_t block = members_[u(m)];
    if (lowest_[u(block)] == height) {
      const std::int64_t support = lowest_support(block);
      if (support > highest_[u(block)]) return fail_at(section);
      record(Change::Kind::kLowest, block, height);
      lowest_[u(block)] = support;
      touched_begin = std::min(touched_begin, strip_.blocks[u(block)].begin);
      touched_end = std::max(touched_end, strip_.blocks[u(block)].end);
    }
    next = std::min(next, lowest_[u(block)]);
  }
  if (next + needed_[u(section)] > room_) return fail_at(section);
  return raise_floors(touched_begin, touched_end);
}

/// Lowest offset at which the block could rest on a waiting neighbour; kPlaced or more when there is none.
std::int64_t TreeSearch::lowest_support(std::int32_t block) {
  std::int64_t support = kPlaced;
  const std::int32_t end = neighbours_begin_[u(block) + 1];
  for (std::int32_t n = neighbours_begin_[u(block)]; n < end; ++n) {
    const std::int32_t other = neighbours_[u(n)];
    support = std::min(support, lowest_[u(other)] + strip_.blocks[u(other)].size);
  }
  used_.steps += end - neighbours_begin_[u(block)];
  return align_up(support, strip_.blocks[u(block)].alignment);
}

/// Lifts the waiting blocks of sections whose floor rose; widens the range of sections touched by that.
bool TreeSearch::raise_blocks(std::int32_t begin, std::int32_t end, std::int32_t& touched_begin,
                              std::int32_t& touched_end) {
  for (std::int32_t s = begin; s < end; ++s) {
    if (waiting_[u(s)] == 0) continue;
    const std::int64_t floor = floor_[u(s)];
    if (floor + needed_[u(s)] > room_) return fail_at(s);
    used_.steps += members_begin_[u(s) + 1] - members_begin_[u(s)];
    for (std::int32_t m = members_begin_[u(s)]; m < members_begin_[u(s) + 1]; ++m) {
      const std::int32_t block = members_[u(m)];
      if (lowest_[u(block)] >= floor) continue;
      const Block& b = strip_.blocks[u(block)];
      const std::int64_t lowest = align_up(floor, b.alignment);
      if (lowest > highest_[u(block)]) return fail_at(s);
      record(Change::Kind::kLowest, block, lowest_[u(block)]);
      lowest_[u(block)] = lowest;
      touched_begin = std::min(touched_begin, b.begin);
      touched_end = std::max(touched_end, b.end);
    }
  }
  return true;
}

/// Lifts each floor to the lowest waiting block of its section and counts the blocks that could lie there.
bool TreeSearch::raise_floors(std::int32_t begin, std::int32_t end) {
  for (std::int32_t s = begin; s < end; ++s) {
    if (waiting_[u(s)] == 0) continue;
    std::int64_t lowest = kPlaced;
    std::int32_t choices = 0;
    for (std::int32_t m = members_begin_[u(s)]; m < members_begin_[u(s) + 1]; ++m) {
      const std::int64_t current = lowest_[u(members_[u(m)])];
      choices = current < lowest ? 1 : choices + (current == lowest ? 1 : 0);
      lowest = std::min(lowest, current);
    }
    used_.steps += members_begin_[u(s) + 1] - members_begin_[u(s)];
    if (choices != choices_[u(s)]) {
      record(Change::Kind::kChoices, s, choices_[u(s)]);
      choices_[u(s)] = choices;
    }
    if (lowest == floor_[u(s)]) continue;
    record(Change::Kind::kFloor, s, floor_[u(s)]);
    floor_[u(s)] = lowest;
    if (lowest + needed_[u(s)] > room_) return fail_at(s);
  }
  return true;
}

bool TreeSearch::fail_at(std::int32_t section) {
  ++failures_[u(section)];
  return false;
}

void TreeSearch::undo(std::size_t length) {
  while (trail_.size() > length) {
    const Change& change = trail_.back();
    const auto i = u(change.index);
    switch (change.kind) {
      case Change::Kind::kFloor: floor_[i] = change.before; break;
      case Change::Kind::kLowest: lowest_[i] = change.before; break;
      case Change::Kind::kChoices: choices_[i] = static_cast<std::int32_t>(change.before); break;
      case Change::Kind::kTop: top_[i] = static_cast<std::int32_t>(change.before); break;
      case Change::Kind::kPlaced: unplace(change.index); break;
    }
    trail_.pop_back();
  }
}

}  // namespace bantam::plan
