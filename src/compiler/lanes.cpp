#include "compiler/lanes.h"

#include <algorithm>

#include "package/format.h"

namespace bantam::compiler {
namespace {

std::uint16_t lane_index(std::vector<std::string>& lanes, const std::string& lane) {
  const auto index = static_cast<std::size_t>(std::ranges::find(lanes, lane) - lanes.begin());
  if (index == lanes.size()) lanes.push_back(lane);
  return static_cast<std::uint16_t>(index);
}

std::uint16_t group_index(std::vector<format::Group>& groups, std::uint16_t lane, int priority) {
  const auto it = std::ranges::find_if(
      groups, [&](const format::Group& g) { return g.lane() == lane && g.priority() == priority; });
  const auto index = static_cast<std::size_t>(it - groups.begin());
  if (index == groups.size()) groups.emplace_back(priority, lane, std::uint16_t{0});
  return static_cast<std::uint16_t>(index);
}

std::uint64_t aligned(std::uint64_t bytes) {
  return (bytes + format::kArenaAlignment - 1) / format::kArenaAlignment * format::kArenaAlignment;
}

}  // namespace

Grouping group_sessions(std::span<const LaneSession> sessions, std::size_t tiers) {
  Grouping result;
  for (const LaneSession& session : sessions)
    result.of_session.push_back(group_index(result.groups, lane_index(result.lanes, session.lane), session.priority));
  std::vector<std::uint64_t> largest(result.groups.size() * tiers, 0);
  for (std::size_t s = 0; s < sessions.size(); ++s)
    for (std::size_t t = 0; t < sessions[s].bytes.size(); ++t) {
      std::uint64_t& most = largest[result.of_session[s] * tiers + t];
      most = std::max(most, sessions[s].bytes[t]);
    }
  std::vector<std::uint64_t> end(tiers, 0);
  for (std::size_t a = 0; a < largest.size(); ++a) {
    std::uint64_t& next = end[a % tiers];
    const std::uint64_t offset = aligned(next);
    result.areas.emplace_back(offset, largest[a]);
    next = offset + largest[a];
  }
  return result;
}

}  // namespace bantam::compiler
