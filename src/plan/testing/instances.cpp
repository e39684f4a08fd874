#include "plan/testing/instances.h"

#include <algorithm>
#include <random>

namespace bantam::plan::testing {
namespace {

/// Uniform in [low, high], the same on every standard library.
std::int64_t pick(std::mt19937_64& random, std::int64_t low, std::int64_t high) {
  return low + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(high - low + 1));
}

bool collide(const Buffer& a, std::int64_t a_offset, const Buffer& b, std::int64_t b_offset) {
  return a.lower < b.upper && b.lower < a.upper && a_offset < b_offset + b.size && b_offset < a_offset + a.size;
}

/// Tries all offsets for buffer `index` and those after it.
bool fits(const Problem& problem, std::int64_t capacity, std::size_t index, std::vector<std::int64_t>& offsets) {
  if (index == problem.buffers.size()) return true;
  const Buffer& b = problem.buffers[index];
  const std::int64_t first = b.fixed.value_or(0);
  const std::int64_t last = b.size == 0 ? first : b.fixed.value_or(capacity);
  for (std::int64_t offset = first; offset <= last && offset + b.size <= std::max(capacity, first);
       offset += b.alignment) {
    if (b.size > 0 && offset + b.size > capacity) return false;
    bool free = true;
    for (std::size_t i = 0; i < index && free; ++i)
      free = b.size == 0 || problem.buffers[i].size == 0 || !collide(b, offset, problem.buffers[i], offsets[i]);
    if (!free) continue;
    offsets[index] = offset;
    if (fits(problem, capacity, index + 1, offsets)) return true;
  }
  return b.size == 0 && fits(problem, capacity, index + 1, offsets);
}

}  // namespace

Problem random_problem(std::uint64_t seed, const RandomOptions& options) {
  std::mt19937_64 random(seed);
  Problem problem;
  for (int i = 0; i < options.buffers; ++i) {
    Buffer b;
    b.id.append("b").append(std::to_string(i));
    b.lower = pick(random, 0, options.steps - 1);
    b.upper = pick(random, b.lower + 1, options.steps);
    b.size = pick(random, 0, options.max_size);
    while (b.alignment < options.max_alignment && pick(random, 0, 1) == 1) b.alignment *= 2;
    problem.buffers.push_back(b);
  }
  if (!options.fix_some) return problem;
  for (std::size_t i = 0; i < problem.buffers.size(); i += 3) {
    Buffer& b = problem.buffers[i];
    const std::int64_t offset = pick(random, 0, options.max_size / b.alignment) * b.alignment;
    const bool free = std::none_of(problem.buffers.begin(), problem.buffers.end(), [&](const Buffer& other) {
      return other.fixed && collide(b, offset, other, *other.fixed);
    });
    if (free) b.fixed = offset;
  }
  return problem;
}

Problem cut_rectangle(std::uint64_t seed, int pieces, std::int64_t steps, std::int64_t bytes, std::int64_t unit) {
  struct Piece {
    std::int64_t lower, upper, size;
  };
  std::mt19937_64 random(seed);
  std::vector<Piece> parts = {{0, steps, bytes}};
  // Each cut splits the largest of a few parts drawn at random, across time or across bytes.
  for (int cut = 1; cut < pieces; ++cut) {
    std::size_t chosen = 0;
    double largest = -1;
    for (int draw = 0; draw < 3; ++draw) {
      const auto i = static_cast<std::size_t>(pick(random, 0, static_cast<std::int64_t>(parts.size()) - 1));
      const double area = static_cast<double>(parts[i].upper - parts[i].lower) * static_cast<double>(parts[i].size);
      if (area > largest) {
        largest = area;
        chosen = i;
      }
    }
    Piece& part = parts[chosen];
    const std::int64_t units = part.size / unit;
    const bool by_time = part.upper - part.lower > 1 && (units < 2 || pick(random, 0, 1) == 1);
    if (!by_time && units < 2) continue;
    Piece other = part;
    if (by_time) {
      part.upper = other.lower = pick(random, part.lower + 1, part.upper - 1);
    } else {
      part.size = pick(random, 1, units - 1) * unit;
      other.size -= part.size;
    }
    parts.push_back(other);
  }
  std::shuffle(parts.begin(), parts.end(), random);
  Problem problem;
  for (const Piece& part : parts) {
    Buffer b;
    b.id.append("p").append(std::to_string(problem.buffers.size()));
    b.lower = part.lower;
    b.upper = part.upper;
    b.size = part.size;
    problem.buffers.push_back(b);
  }
  return problem;
}

Problem cut_square(std::uint64_t seed, const CutOptions& options) {
  struct Piece {
    std::int64_t lower, upper, begin, end;
    std::int64_t area() const { return (upper - lower) * (end - begin); }
  };
  std::mt19937_64 random(seed);
  const auto wanted = static_cast<std::size_t>(options.buffers / (1 - options.removed));
  std::vector<Piece> pieces = {{0, options.side, 0, options.side}};
  const auto cut_between = [&](std::int64_t low, std::int64_t high) {
    const std::int64_t margin = options.square ? (high - low) * 3 / 10 : 0;
    return pick(random, low + std::max<std::int64_t>(margin, 1), high - std::max<std::int64_t>(margin, 1));
  };
  while (pieces.size() < wanted) {
    Piece& largest = *std::max_element(pieces.begin(), pieces.end(),
                                       [](const Piece& a, const Piece& b) { return a.area() < b.area(); });
    if (largest.area() < 2) break;
    Piece other = largest;
    const std::int64_t life = largest.upper - largest.lower;
    const std::int64_t size = largest.end - largest.begin;
    const bool wants_time =
        options.square ? life > size : static_cast<double>(pick(random, 0, 999)) < options.by_time * 1000;
    if (size < 2 || (wants_time && life > 1)) {
      largest.upper = other.lower = cut_between(largest.lower, largest.upper);
    } else {
      largest.end = other.begin = cut_between(largest.begin, largest.end);
    }
    pieces.push_back(other);
  }
  std::shuffle(pieces.begin(), pieces.end(), random);
  pieces.resize(std::min(pieces.size(), static_cast<std::size_t>(options.buffers)));
  Problem problem;
  problem.capacity = options.side * options.unit;
  for (const Piece& piece : pieces)
    problem.buffers.push_back({.id = std::to_string(problem.buffers.size()),
                               .lower = piece.lower * options.unit,
                               .upper = piece.upper * options.unit,
                               .size = (piece.end - piece.begin) * options.unit});
  return problem;
}

std::span<const CutFamily> cut_families() {
  static constexpr CutFamily kFamilies[] = {
      {"like A", {.by_time = 0.45, .removed = 0.05}},
      {"like B", {.by_time = 0.45, .removed = 0.023}},
      {"like C", {.by_time = 0.45, .removed = 0.03}},
      {"like D", {.by_time = 0.33, .removed = 0.11}},
      {"like E", {.by_time = 0.6, .removed = 0.11}},
      {"like F", {.square = true, .removed = 0.36}},
      {"full", {.by_time = 0.5}},
      {"long, tight", {.by_time = 0.33, .removed = 0.03}},
      {"short, tight", {.by_time = 0.6, .removed = 0.03}},
      {"even, tight", {.square = true, .removed = 0.1}},
  };
  return kFamilies;
}

Problem full_timeline(std::uint64_t seed, std::int64_t steps, std::int64_t bytes, std::int64_t max_size) {
  std::mt19937_64 random(seed);
  Problem problem;
  for (std::int64_t step = 0; step < steps; ++step) {
    std::int64_t free = bytes;
    for (Buffer& b : problem.buffers) {
      if (b.upper != step || pick(random, 0, 1) == 0) continue;
      b.upper = step + 1;
      free -= b.size;
    }
    while (free > 0) {
      Buffer b;
      b.id.append("t").append(std::to_string(problem.buffers.size()));
      b.lower = step;
      b.upper = step + 1;
      b.size = pick(random, 1, std::min(free, max_size));
      free -= b.size;
      problem.buffers.push_back(b);
    }
  }
  return problem;
}

std::int64_t brute_force_peak(const Problem& problem) {
  std::vector<std::int64_t> offsets(problem.buffers.size(), 0);
  std::int64_t capacity = 0;
  while (!fits(problem, capacity, 0, offsets)) ++capacity;
  return capacity;
}

}  // namespace bantam::plan::testing
