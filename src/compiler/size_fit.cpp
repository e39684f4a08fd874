#include "compiler/size_fit.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace bantam::compiler {
namespace {

std::int64_t floor_divide(std::int64_t a, std::int64_t b) {
  const std::int64_t quotient = a / b;
  return a % b < 0 ? quotient - 1 : quotient;
}

std::int64_t size_of(const Sizes& sizes, std::uint8_t dimension) { return dimension == 0 ? 1 : sizes[dimension - 1U]; }

std::int64_t area(const SizeExpression& e, const Sizes& sizes) {
  return size_of(sizes, e.first) * size_of(sizes, e.second);
}

bool fits_word(std::int64_t number) {
  return number >= std::numeric_limits<std::int32_t>::min() && number <= std::numeric_limits<std::int32_t>::max();
}

class Fitter {
 public:
  Fitter(std::span<const std::int64_t> numbers, std::span<const Sizes> sizes) : numbers_(numbers), sizes_(sizes) {}

  std::optional<SizeExpression> run() const {
    if (numbers_.empty()) return std::nullopt;
    if (const auto constant = checked(0, 0, 1, {})) return constant;
    const auto dimensions = static_cast<std::uint8_t>(sizes_.front().size());
    for (std::uint8_t first = 1; first <= dimensions; ++first)
      if (const auto found = along({.first = first})) return found;
    for (std::uint8_t first = 1; first <= dimensions; ++first)
      for (std::uint8_t second = first; second <= dimensions; ++second)
        if (const auto found = linear({.first = first, .second = second})) return found;
    return std::nullopt;
  }

 private:
  std::optional<SizeExpression> along(SizeExpression e) const {
    if (const auto found = linear(e)) return found;
    return quotient(e);
  }

  /// base + scale * area, through the two samples that lie farthest apart.
  std::optional<SizeExpression> linear(SizeExpression e) const {
    std::size_t low = 0;
    std::size_t high = 0;
    for (std::size_t i = 0; i < sizes_.size(); ++i) {
      if (area(e, sizes_[i]) < area(e, sizes_[low])) low = i;
      if (area(e, sizes_[i]) > area(e, sizes_[high])) high = i;
    }
    const std::int64_t run = area(e, sizes_[high]) - area(e, sizes_[low]);
    const std::int64_t rise = numbers_[high] - numbers_[low];
    if (run == 0 || rise % run != 0) return std::nullopt;
    const std::int64_t scale = rise / run;
    return checked(numbers_[low] - scale * area(e, sizes_[low]), scale, 1, e);
  }

  /// floor((base + size) / divisor): as convolutions and slices with a stride give. Where samples show one step of the
  /// quotient, a divisor may fit that is off by one: strides are powers of two more often than not.
  std::optional<SizeExpression> quotient(SizeExpression e) const {
    std::optional<SizeExpression> best;
    for (std::int64_t divisor = 2; divisor <= neighbours(e.first); ++divisor) {
      std::int64_t least = std::numeric_limits<std::int64_t>::min();
      std::int64_t most = std::numeric_limits<std::int64_t>::max();
      for (std::size_t i = 0; i < numbers_.size(); ++i) {
        const std::int64_t base = divisor * numbers_[i] - area(e, sizes_[i]);
        least = std::max(least, base);
        most = std::min(most, base + divisor - 1);
      }
      if (least != most) continue;
      const auto found = checked(least, 1, divisor, e);
      if (found && (!best || std::countr_zero(found->divisor) > std::countr_zero(best->divisor))) best = found;
    }
    return best;
  }

  /// The longest run of sizes of a dimension one apart.
  std::int64_t neighbours(std::uint8_t dimension) const {
    std::vector<std::int64_t> seen;
    for (const Sizes& s : sizes_) seen.push_back(size_of(s, dimension));
    std::ranges::sort(seen);
    seen.erase(std::unique(seen.begin(), seen.end()), seen.end());
    std::int64_t longest = 1;
    std::int64_t run = 1;
    for (std::size_t i = 1; i < seen.size(); ++i) {
      run = seen[i] == seen[i - 1] + 1 ? run + 1 : 1;
      longest = std::max(longest, run);
    }
    return longest;
  }

  std::optional<SizeExpression> checked(std::int64_t base, std::int64_t scale, std::int64_t divisor,
                                        SizeExpression e) const {
    if (scale == 0 && divisor == 1) base = numbers_.front();
    if (!fits_word(base) || !fits_word(scale)) return std::nullopt;
    e.base = static_cast<std::int32_t>(base);
    e.scale = static_cast<std::int32_t>(scale);
    e.divisor = static_cast<std::uint16_t>(divisor);
    for (std::size_t i = 0; i < numbers_.size(); ++i)
      if (evaluate(e, sizes_[i]) != numbers_[i]) return std::nullopt;
    return e;
  }

  std::span<const std::int64_t> numbers_;
  std::span<const Sizes> sizes_;
};

}  // namespace

std::int64_t evaluate(const SizeExpression& expression, const Sizes& sizes) {
  return floor_divide(expression.base + expression.scale * area(expression, sizes), expression.divisor);
}

std::optional<SizeExpression> fit_sizes(std::span<const std::int64_t> numbers, std::span<const Sizes> sizes) {
  return Fitter(numbers, sizes).run();
}

std::optional<SizeExpression> fit_sizes(std::span<const std::int64_t> numbers, std::span<const Sizes> sizes,
                                        const std::vector<bool>& matters) {
  std::vector<std::int64_t> chosen_numbers;
  std::vector<Sizes> chosen_sizes;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (!matters[i]) continue;
    chosen_numbers.push_back(numbers[i]);
    chosen_sizes.push_back(sizes[i]);
  }
  return chosen_numbers.empty() ? SizeExpression{} : fit_sizes(chosen_numbers, chosen_sizes);
}

}  // namespace bantam::compiler
