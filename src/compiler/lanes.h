// Which sessions of a fleet share activations, and where each group of them lies.
//
// Called by the fleet compiler when every session is planned. Sessions of one lane and one priority exclude each other
// and share; any two others can be alive together. As a placement problem its conflict graph is complete multipartite:
// the largest sessions of all groups are alive at once, so that their sum is a lower bound, and stacking the groups
// reaches it, up to alignment. Pure functions; host only.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "package/tables.h"

namespace bantam::compiler {

struct LaneSession {
  std::string lane;
  int priority = 0;
  std::vector<std::uint64_t> bytes;  ///< activations by tier; at most as many as there are tiers
};

struct Grouping {
  std::vector<std::string> lanes;
  std::vector<format::Group> groups;        ///< in the order of their first session
  std::vector<format::Area> areas;          ///< by group, then by tier
  std::vector<std::uint16_t> of_session{};  ///< group, by session

  /// True when nothing needs to be said about lanes: a fleet without them.
  bool is_plain() const { return groups.size() == 1 && groups[0].priority() == 0 && lanes[0].empty(); }
};

Grouping group_sessions(std::span<const LaneSession> sessions, std::size_t tiers);

}  // namespace bantam::compiler
