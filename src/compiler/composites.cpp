#include "compiler/composites.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <utility>

#include "base/shape.h"

namespace bantam::compiler {
namespace {

using Order = std::vector<std::size_t>;

std::int64_t end_of(const Composite& c) {
  std::int64_t end = 0;
  for (const Part& p : c.parts) end = std::max(end, p.offset + p.bytes);
  return end;
}

/// Bytes times steps.
std::int64_t area_of(const Composite& c) {
  std::int64_t area = 0;
  for (const Part& p : c.parts) area += p.bytes * (p.upper - p.lower);
  return area;
}

std::int64_t start_of(const Composite& c) {
  std::int64_t start = INT64_MAX;
  for (const Part& p : c.parts) start = std::min(start, p.lower);
  return start;
}

class Placer {
 public:
  explicit Placer(const std::vector<Composite>& composites) : composites_(composites), offsets_(composites.size(), 0) {}

  /// First fit in this order; the peak.
  std::int64_t place(const Order& order) {
    std::int64_t peak = 0;
    for (std::size_t i = 0; i < order.size(); ++i) {
      const std::size_t c = order[i];
      offsets_[c] = first_fit(order, i);
      peak = std::max(peak, offsets_[c] + end_of(composites_[c]));
    }
    return peak;
  }

  const std::vector<std::int64_t>& offsets() const { return offsets_; }

 private:
  /// The least offset of order[i] at which it collides with none before it.
  std::int64_t first_fit(const Order& order, std::size_t i) {
    const Composite& own = composites_[order[i]];
    taken_.clear();
    for (std::size_t j = 0; j < i; ++j)
      for (const Part& other : composites_[order[j]].parts)
        for (const Part& part : own.parts) {
          if (part.upper <= other.lower || other.upper <= part.lower) continue;
          const std::int64_t at = offsets_[order[j]] + other.offset;
          // Offsets strictly between these collide.
          taken_.emplace_back(at - part.offset - part.bytes, at + other.bytes - part.offset);
        }
    std::ranges::sort(taken_);
    std::int64_t offset = 0;
    for (const auto& [low, high] : taken_)
      if (low < offset && offset < high) offset = align_up(high, own.alignment);
    return offset;
  }

  const std::vector<Composite>& composites_;
  std::vector<std::int64_t> offsets_;
  std::vector<std::pair<std::int64_t, std::int64_t>> taken_;
};

/// No arena is smaller than what is alive at a step, nor than the longest buffer.
void find_bound(const std::vector<Composite>& composites, CompositePlan* plan) {
  std::map<std::int64_t, std::int64_t> changes;
  for (const Composite& c : composites)
    for (const Part& p : c.parts) {
      changes[p.lower] += p.bytes;
      changes[p.upper] -= p.bytes;
    }
  std::int64_t alive = 0;
  for (const auto& [step, change] : changes) {
    alive += change;
    if (alive <= plan->bound) continue;
    plan->bound = alive;
    plan->peak_step = step;
  }
  for (const Composite& c : composites) {
    if (end_of(c) <= plan->bound) continue;
    plan->bound = end_of(c);
    plan->peak_step = start_of(c);
  }
}

template <typename Key>
Order sorted_by(const std::vector<Composite>& composites, Key key) {
  Order order(composites.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order,
                           [&](std::size_t a, std::size_t b) { return key(composites[a]) < key(composites[b]); });
  return order;
}

}  // namespace

CompositePlan place_composites(const std::vector<Composite>& composites, int rounds) {
  CompositePlan plan;
  find_bound(composites, &plan);
  Placer placer(composites);
  Order best;
  plan.peak = INT64_MAX;
  const auto attempt = [&](const Order& order) {
    const std::int64_t peak = placer.place(order);
    if (peak > plan.peak) return;
    plan.peak = peak;
    plan.offsets = placer.offsets();
    best = order;
  };
  attempt(sorted_by(composites, start_of));
  attempt(sorted_by(composites, [](const Composite& c) { return -area_of(c); }));
  attempt(sorted_by(composites, [](const Composite& c) { return -end_of(c); }));
  // Whatever reaches the peak is placed earlier.
  std::mt19937 random(1);
  for (int round = 0; round < rounds && plan.peak > plan.bound; ++round) {
    Order order = best;
    for (std::size_t i = 1; i < order.size(); ++i) {
      if (plan.offsets[order[i]] + end_of(composites[order[i]]) != plan.peak) continue;
      const std::size_t to = random() % i;
      std::rotate(order.begin() + static_cast<std::ptrdiff_t>(to), order.begin() + static_cast<std::ptrdiff_t>(i),
                  order.begin() + static_cast<std::ptrdiff_t>(i) + 1);
      break;
    }
    if (order == best && order.size() > 1) std::swap(order[random() % order.size()], order[random() % order.size()]);
    attempt(order);
  }
  return plan;
}

}  // namespace bantam::compiler
