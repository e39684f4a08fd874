#include "plan/strip_search.h"

#include <algorithm>
#include <cmath>

namespace bantam::plan {
namespace {

constexpr std::int32_t kPriorities = 4;
constexpr std::int32_t kStyles = 2 * kPriorities;  ///< times two ways to branch
constexpr std::int64_t kFirstNodes = 500;
constexpr double kNoise = 0.3;

/// Restarts without a deeper placement after which the search begins afresh.
constexpr std::int32_t kPatience = 96;

/// Luby's sequence 1 1 2 1 1 2 4 ..., index from 1.
std::int64_t luby(std::int64_t index) {
  for (;;) {
    std::int64_t power = 1;
    while (2 * power - 1 < index) power *= 2;
    if (2 * power - 1 == index) return power;
    index -= power - 1;
  }
}

}  // namespace

StripSearch::StripSearch(const Strip& strip, std::uint64_t seed)
    : strip_(strip), tree_(strip), random_state_(seed), memory_(strip.blocks.size(), -1) {
  std::vector<std::int64_t> needed(static_cast<std::size_t>(strip.sections), 0);
  for (const Block& b : strip.blocks)
    for (std::int32_t s = b.begin; s < b.end; ++s) needed[static_cast<std::size_t>(s)] += b.size;
  for (const Block& b : strip.blocks)
    crowd_.push_back(*std::max_element(needed.begin() + b.begin, needed.begin() + b.end));
}

TreeSearch::Outcome StripSearch::run(std::int64_t target, std::int64_t steps, const Deadline& deadline,
                                     const std::function<void(std::int64_t)>& pulse) {
  const auto first_nodes = std::max(kFirstNodes, 2 * std::ssize(strip_.blocks));
  std::int64_t used = 0;
  for (std::int32_t restart = 0; used < steps; ++restart) {
    const Guide guide = next_guide(restart);
    const Effort limit{first_nodes * luby(restart / kStyles + 1), steps - used};
    const auto outcome = tree_.run(target - strip_.base, guide, limit, deadline);
    used += tree_.used().steps + 1;
    pulse(tree_.used().steps + 1);
    if (outcome != TreeSearch::Outcome::kLimit) return outcome;
    if (deadline && std::chrono::steady_clock::now() >= *deadline) break;
    ++idle_;
    if (tree_.deepest_count() >= memory_depth_) {
      if (tree_.deepest_count() > memory_depth_) idle_ = 0;
      memory_depth_ = tree_.deepest_count();
      memory_ = tree_.deepest();
    }
    if (idle_ > kPatience) {
      idle_ = memory_depth_ = 0;
      std::fill(memory_.begin(), memory_.end(), -1);
    }
  }
  return TreeSearch::Outcome::kLimit;
}

std::vector<std::int64_t> StripSearch::offsets() const {
  std::vector<std::int64_t> offsets = tree_.deepest();
  for (std::int64_t& offset : offsets) offset = strip_.base + offset * strip_.unit;
  return offsets;
}

Guide StripSearch::next_guide(std::int32_t restart) {
  Guide guide;
  guide.branching = restart % 2 == 0 ? Guide::Branching::kFewestChoices : Guide::Branching::kMostFailures;
  guide.remembered = memory_;
  const bool first_round = restart < kStyles;
  if (!first_round) forget_window(guide.remembered);
  for (std::size_t i = 0; i < strip_.blocks.size(); ++i) {
    const Block& b = strip_.blocks[i];
    const double width = b.end - b.begin;
    const auto size = static_cast<double>(b.size);
    const auto crowd = static_cast<double>(crowd_[i]);
    const double area = width * size;
    const double factor = first_round ? 1.0 : noise(kNoise);
    // Each priority is a logarithm, so that the noise weighs equally on large and small blocks and ties stay rare.
    switch (restart / 2 % kPriorities) {
      case 0: guide.priority.push_back(std::log(area) + factor); break;
      case 1: guide.priority.push_back(10 * (std::log(width) + factor) + std::log(size)); break;
      case 2: guide.priority.push_back(100 * (std::log(crowd) + 0.1 * factor) + std::log(area)); break;
      default: guide.priority.push_back(10 * (std::log(size) + factor) + std::log(width)); break;
    }
  }
  return guide;
}

void StripSearch::forget_window(std::vector<std::int64_t>& offsets) {
  const auto sections = static_cast<std::uint64_t>(strip_.sections);
  const auto width = static_cast<std::int32_t>(sections * (1 + random() % 30) / 100 + 1);
  const auto begin = static_cast<std::int32_t>(random() % sections);
  for (std::size_t i = 0; i < offsets.size(); ++i)
    if (strip_.blocks[i].begin < begin + width && strip_.blocks[i].end > begin) offsets[i] = -1;
}

/// Uniform in [-spread, spread].
double StripSearch::noise(double spread) {
  return spread * (2.0 * static_cast<double>(random() >> 11) / 9007199254740992.0 - 1.0);
}

/// SplitMix64: the same sequence on every platform.
std::uint64_t StripSearch::random() {
  random_state_ += 0x9e3779b97f4a7c15U;
  std::uint64_t z = random_state_;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31);
}

}  // namespace bantam::plan
