// Exact search for a placement of a strip's blocks within a capacity: a depth-first search over canonical placements.
//
// A placement is canonical when no block can be moved down; if any placement fits, a canonical one does. The search
// fills the strip from below. At every node it takes a section at the bottom of a valley of the skyline and branches
// over what lies there next: one of the blocks that fit into the valley, or nothing ("skip"), which lifts the skyline
// to the next height at which something can lie. After each step the lowest possible offset of every block and the
// lowest free byte of every section are raised, and a branch is cut when a section has less room left than its blocks
// need. When the blocks left fall apart into groups that share no section, each group is solved by itself.
//
// One object searches one strip again and again with different Guides (restarts). Used by search.cpp only.
// Deterministic; owns its memory, about 60 bytes per pair of blocks that share a section. Thread rule: one thread at a
// time.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "plan/strip.h"

namespace bantam::plan {

/// What a search prefers, within what it must try anyway.
struct Guide {
  /// Which section to branch on: fewest choices first, or fewest choices weighed by how often the section failed.
  enum class Branching { kFewestChoices, kMostFailures };

  Branching branching = Branching::kFewestChoices;
  std::vector<double> priority;          ///< per block; larger is tried earlier
  std::vector<std::int64_t> remembered;  ///< per block the offset to try first, -1 for none
};

/// How far one search goes or may go.
struct Effort {
  std::int64_t nodes = 0;
  std::int64_t steps = 0;  ///< elementary steps, about a nanosecond each
};

using Deadline = std::optional<std::chrono::steady_clock::time_point>;

class TreeSearch {
 public:
  enum class Outcome {
    kFound,
    kImpossible,  ///< the whole tree was searched: no placement fits
    kLimit,       ///< the effort was used up first
  };

  explicit TreeSearch(const Strip& strip);

  /// Memory that a search of the strip takes, in words; to be looked at before constructing one.
  static std::int64_t words_needed(const Strip& strip);

  /// Looks for a placement with offset + size <= capacity for all blocks. `capacity` in bytes, strip.base excluded.
  /// The deadline, if any, is looked at every few milliseconds; passing it counts as kLimit.
  Outcome run(std::int64_t capacity, const Guide& guide, Effort limit, const Deadline& deadline);

  /// Offsets in units: of all blocks after kFound, else of the node with most blocks placed (-1 for the others).
  const std::vector<std::int64_t>& deepest() const { return deepest_; }
  std::int32_t deepest_count() const { return deepest_count_; }

  /// What the last run used.
  Effort used() const { return used_; }

 private:
  struct Change {
    enum class Kind : std::uint8_t { kFloor, kLowest, kChoices, kTop, kPlaced };
    Kind kind;
    std::int32_t index;
    std::int64_t before;
  };

  /// A node of the tree on the current path: either a branching over one section, or a split into groups.
  struct Node {
    std::int32_t begin, end;  ///< sections
    std::int32_t section;     ///< branched on; -1 for a split
    std::int64_t height;      ///< where the alternatives would lie
    std::size_t first, last;  ///< alternatives_: blocks or kSkip; for a split, section boundaries
    std::size_t next;         ///< next alternative to try
    std::size_t trail;        ///< length of the trail on arrival
  };
  enum class Verdict { kOpen, kSuccess, kFailure };

  static constexpr std::int32_t kSkip = -1;

  void reset(std::int64_t capacity);
  bool is_spent(const Effort& limit, const Deadline& deadline);
  Verdict enter(std::int32_t begin, std::int32_t end);
  bool push_split(std::int32_t begin, std::int32_t end);
  void push_branching(std::int32_t begin, std::int32_t end);
  Verdict advance(Verdict child);
  void leave();

  std::int32_t choose_section(std::int32_t begin, std::int32_t end);
  double score(std::int32_t section) const;
  void collect_alternatives(std::int32_t section, std::int64_t height);
  bool is_redundant(std::int32_t block, std::int32_t section, std::int64_t height) const;
  void remember_if_deepest();

  bool place(std::int32_t block, std::int64_t offset);
  bool skip(std::int32_t section, std::int64_t height);
  std::int64_t lowest_support(std::int32_t block);
  bool raise_blocks(std::int32_t begin, std::int32_t end, std::int32_t& touched_begin, std::int32_t& touched_end);
  bool raise_floors(std::int32_t begin, std::int32_t end);
  bool fail_at(std::int32_t section);

  void record(Change::Kind kind, std::int32_t index, std::int64_t before) { trail_.push_back({kind, index, before}); }
  void undo(std::size_t length);
  void unplace(std::int32_t block);

  const Strip& strip_;
  std::vector<std::int32_t> members_;        ///< blocks of each section, section by section
  std::vector<std::int32_t> members_begin_;  ///< per section and one more
  std::vector<std::int32_t> neighbours_;     ///< blocks that share a section with each block
  std::vector<std::int32_t> neighbours_begin_;
  std::vector<std::int32_t> twin_group_;  ///< equal for free blocks of equal sections and no alignment; else unique

  const Guide* guide_ = nullptr;
  std::int64_t room_ = 0;               ///< capacity in units
  std::vector<std::int64_t> highest_;   ///< per block, largest offset that keeps the capacity (or the fixed one)
  std::vector<std::int64_t> lowest_;    ///< per block, smallest offset still possible; kPlaced once placed
  std::vector<std::int64_t> offset_;    ///< per block, -1 when not placed
  std::vector<std::int64_t> floor_;     ///< per section, no waiting block lies lower
  std::vector<std::int64_t> needed_;    ///< per section, sum of the sizes of waiting blocks
  std::vector<std::int32_t> waiting_;   ///< per section, number of waiting blocks
  std::vector<std::int32_t> choices_;   ///< per section, waiting blocks that could lie on its floor
  std::vector<std::int32_t> top_;       ///< per section, block placed last, -1 for none
  std::vector<std::int32_t> crossing_;  ///< per section, waiting blocks it shares with the section before
  std::vector<std::int64_t> failures_;  ///< per section
  std::vector<Change> trail_;
  std::vector<Node> path_;
  std::vector<std::int32_t> alternatives_;
  std::int32_t placed_ = 0;
  std::vector<std::int64_t> deepest_;
  std::int32_t deepest_count_ = 0;
  Effort used_;
  std::int64_t next_look_ = 0;  ///< step at which to look at the clock again
};

}  // namespace bantam::plan
