#include "compiler/size_formula.h"

#include <fmt/format.h>

#include <cctype>
#include <charconv>
#include <optional>

#include "base/shape.h"

namespace bantam::compiler {
namespace {

/// Parentheses within parentheses: a formula is a line, not a program.
constexpr int kMaxDepth = 32;

class Formula {
 public:
  Formula(std::string_view text, const std::map<std::string, std::int64_t>& sizes) : text_(text), sizes_(sizes) {}

  Result<std::int64_t> run() {
    const std::optional<std::int64_t> value = sum(0);
    skip_blanks();
    if (value && error_.empty() && at_ == text_.size()) return *value;
    if (error_.empty()) note("a number, a name or an operator is expected");
    return fail(StatusCode::kInvalidArgument, error_, "write sizes like \"(T - 3) / 4 + 64\"");
  }

 private:
  using Number = std::optional<std::int64_t>;

  void note(const std::string& what) {
    if (error_.empty()) error_ = fmt::format("formula '{}', character {}: {}", text_, at_ + 1, what);
  }

  void skip_blanks() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }

  bool take(char wanted) {
    skip_blanks();
    if (at_ >= text_.size() || text_[at_] != wanted) return false;
    ++at_;
    return true;
  }

  Number checked(Number value) {
    if (!value) note("the number leaves 64 bits");
    return value;
  }

  Number sum(int depth) {
    Number left = product(depth);
    while (left) {
      const bool add = take('+');
      if (!add && !take('-')) break;
      const Number right = product(depth);
      if (!right) return right;
      const Number negated = add ? right : checked(checked_multiply(*right, -1));
      left = negated ? checked(checked_add(*left, *negated)) : negated;
    }
    return left;
  }

  Number product(int depth) {
    Number left = factor(depth);
    while (left) {
      const bool multiply = take('*');
      if (!multiply && !take('/')) break;
      const Number right = factor(depth);
      if (!right) return right;
      left = multiply ? checked(checked_multiply(*left, *right)) : quotient(*left, *right);
    }
    return left;
  }

  Number quotient(std::int64_t a, std::int64_t b) {
    if (b <= 0) {
      note(fmt::format("the divisor {} is not positive", b));
      return std::nullopt;
    }
    return a / b - (a % b < 0 ? 1 : 0);
  }

  Number factor(int depth) {
    if (take('(')) {
      if (depth >= kMaxDepth) {
        note("too many parentheses");
        return std::nullopt;
      }
      const Number inner = sum(depth + 1);
      if (inner && !take(')')) note("')' is expected");
      return error_.empty() ? inner : std::nullopt;
    }
    skip_blanks();
    const std::size_t first = at_;
    while (at_ < text_.size() && is_word(text_[at_])) ++at_;
    return word(text_.substr(first, at_ - first));
  }

  static bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.'; }

  Number word(std::string_view text) {
    if (const auto size = sizes_.find(std::string(text)); size != sizes_.end()) return size->second;
    std::int64_t number = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (!text.empty() && code == std::errc() && end == text.data() + text.size()) return number;
    note(text.empty() ? "a number or a name is expected"
                      : fmt::format("'{}' is neither a number nor a dimension", text));
    return std::nullopt;
  }

  std::string_view text_;
  const std::map<std::string, std::int64_t>& sizes_;
  std::size_t at_ = 0;
  std::string error_;
};

}  // namespace

Result<std::int64_t> evaluate_formula(std::string_view formula, const std::map<std::string, std::int64_t>& sizes) {
  return Formula(formula, sizes).run();
}

}  // namespace bantam::compiler
