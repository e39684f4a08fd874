#include "ops/elementwise/lookup8/line.h"

#include <algorithm>

namespace bantam::ops {
namespace {

constexpr int kCount = 256;

/// Those that a slope leaves; none if the least is the larger one. Each is set by an entry.
struct Offsets {
  int least, largest;
  int at_least, at_largest;  ///< the entries, counted from the line's origin
};

/// A table whose entries rise, if it is a line.
class RisingTable {
 public:
  /// The flips as of Line.
  RisingTable(const std::uint8_t* table, std::uint8_t x_flip, std::uint8_t y_flip) noexcept {
    for (int x = 0; x < kCount; ++x) numbers_[x] = table[x ^ x_flip] ^ y_flip;
    line_ = {.x_flip = x_flip, .y_flip = y_flip, .maximum = numbers_[kCount - 1]};
    while (rises() < kCount && numbers_[rises()] == minimum()) ++line_.origin;
    last_ = kCount - 1;
    while (last_ > rises() && numbers_[last_] == line_.maximum) --last_;
  }

  /// Halves the range of slopes: the entries that set a slope's offsets say whether steeper lines or flatter ones leave
  /// more.
  Line find_line() noexcept {
    constexpr int kShortest = 8;
    const int run = last_ - rises();
    if (run < kShortest) return {};
    const int rise = numbers_[last_] - numbers_[rises()];
    int flattest = std::max((rise * Line::kOne - Line::kOne * 3 / 2) / run, 0);
    int steepest = std::min((rise * Line::kOne + Line::kOne * 3 / 2) / run, Line::kSlopes * Line::kOne - 1);
    while (flattest <= steepest) {
      line_.slope = (flattest + steepest) / 2;
      const Offsets offsets = offsets_of(line_.slope);
      if (offsets.least <= offsets.largest) {
        line_.offset = (offsets.least + offsets.largest) / 2;
        return gives_all_entries() ? line_ : Line{};
      }
      if (offsets.at_least > offsets.at_largest) {
        flattest = line_.slope + 1;
      } else {
        steepest = line_.slope - 1;
      }
    }
    return {};
  }

 private:
  int minimum() const noexcept { return numbers_[0]; }
  /// The first entry that is larger.
  int rises() const noexcept { return line_.origin + 1; }

  Offsets offsets_of(int slope) const noexcept {
    Offsets offsets{256 * minimum(), 65535, 0, 0};
    for (int i = 0; i < kCount; ++i) {
      const int x = std::max(i - line_.origin, 0);
      const int lower = 256 * numbers_[i] - x * slope / 256;
      const int upper = lower + 255;
      // Of the least numbers any offset is large enough, of the largest ones small enough.
      if (numbers_[i] > minimum() && lower > offsets.least) {
        offsets.least = lower;
        offsets.at_least = x;
      }
      if (numbers_[i] < line_.maximum && upper < offsets.largest) {
        offsets.largest = upper;
        offsets.at_largest = x;
      }
    }
    return offsets;
  }

  /// Not if entries fall somewhere.
  bool gives_all_entries() const noexcept {
    for (int i = 0; i < kCount; ++i) {
      const int x = std::max(i - line_.origin, 0);
      if (std::min<int>((x * line_.slope / 256 + line_.offset) / 256, line_.maximum) != numbers_[i]) return false;
    }
    return true;
  }

  std::uint8_t numbers_[kCount];
  Line line_;
  int last_;  ///< the last entry below the maximum
};

}  // namespace

Line find_line(const std::uint8_t* table, std::uint8_t x_flip, std::uint8_t y_flip) noexcept {
  return RisingTable(table, x_flip, y_flip).find_line();
}

}  // namespace bantam::ops
