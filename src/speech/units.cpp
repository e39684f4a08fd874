#include <algorithm>

#include "bantam/speech.h"

namespace bantam::speech {
namespace {

constexpr std::int32_t kMostUnits = 1 << 20;
constexpr std::string_view kWordSeparator = "\xE2\x96\x81";  // U+2581, a word's beginning
constexpr std::string_view kUnknown = "<unk>";

/// `text` without its first `n` characters, of which it has as many. substr would bring an exception's code along.
std::string_view behind(std::string_view text, std::size_t n) noexcept { return {text.data() + n, text.size() - n}; }
std::string_view first(std::string_view text, std::size_t n) noexcept { return {text.data(), n}; }

bool is_blank(char c) noexcept { return c == ' ' || c == '\t' || c == '\r'; }

/// One line "symbol id"; false when it is none.
bool parse_line(std::string_view line, std::string_view* symbol, std::int32_t* id) noexcept {
  while (!line.empty() && is_blank(line.back())) line.remove_suffix(1);
  const std::size_t gap = line.find_last_of(" \t");
  if (gap == std::string_view::npos || gap + 1 == line.size()) return false;
  std::int64_t number = 0;
  for (const char c : behind(line, gap + 1)) {
    if (c < '0' || c > '9') return false;
    number = number * 10 + (c - '0');
    if (number >= kMostUnits) return false;
  }
  line = first(line, gap);
  while (!line.empty() && is_blank(line.back())) line.remove_suffix(1);
  *symbol = line;
  *id = static_cast<std::int32_t>(number);
  return !line.empty();
}

/// Calls f(symbol, id) for every line that is not empty; fails with the number of a line that is malformed.
template <typename F>
Status for_each_unit(std::string_view text, F&& f) noexcept {
  std::int32_t number = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = first(text, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (std::ranges::all_of(line, is_blank)) continue;
    std::string_view symbol;
    std::int32_t id = 0;
    if (!parse_line(line, &symbol, &id))
      return failure(StatusCode::kInvalidArgument, "a line of the list of units is not 'symbol id'").at(number);
    BANTAM_RETURN_IF_ERROR(f(symbol, id).at(number));
  }
  return ok_status();
}

}  // namespace

Status Units::count(std::string_view text, std::int32_t* units) noexcept {
  *units = 0;
  return for_each_unit(text, [&](std::string_view, std::int32_t id) noexcept {
    *units = std::max(*units, id + 1);
    return ok_status();
  });
}

Status Units::place(std::string_view text, std::span<Unit> table, Units* out) noexcept {
  if (text.size() > UINT32_MAX) return failure(StatusCode::kUnsupported, "the list of units is too long");
  std::ranges::fill(table, Unit{});
  const char* const start = text.data();
  const Status read = for_each_unit(text, [&](std::string_view symbol, std::int32_t id) noexcept {
    if (static_cast<std::size_t>(id) >= table.size())
      return failure(StatusCode::kOutOfRange, "id of a unit is outside of the table", id,
                     static_cast<std::int64_t>(table.size()));
    Unit& unit = table[static_cast<std::size_t>(id)];
    if (unit.length != 0) return failure(StatusCode::kInvalidArgument, "two units have this id", id, -1);
    unit = {static_cast<std::uint32_t>(symbol.data() - start), static_cast<std::uint32_t>(symbol.size())};
    return ok_status();
  });
  BANTAM_RETURN_IF_ERROR(read);
  out->text_ = text;
  out->table_ = table;
  out->longest_ = 0;
  for (const Unit& unit : table) out->longest_ = std::max<std::size_t>(out->longest_, unit.length);
  return ok_status();
}

std::string_view Units::symbol(std::int32_t id) const noexcept {
  if (id < 0 || static_cast<std::size_t>(id) >= table_.size()) return {};
  const Unit& unit = table_[static_cast<std::size_t>(id)];
  return {text_.data() + unit.offset, unit.length};
}

std::size_t Units::join(std::span<const std::int32_t> tokens, std::span<char> out) const noexcept {
  std::size_t length = 0;
  bool space = false;  // wanted before the next character
  const auto put = [&](char c) noexcept {
    if (length < out.size()) out[length++] = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  };
  for (const std::int32_t token : tokens) {
    std::string_view rest = symbol(token);
    if (rest == kUnknown) continue;
    while (!rest.empty()) {
      const bool separator = rest.starts_with(kWordSeparator);
      if (separator || rest.front() == ' ') {
        space = length > 0;
        rest.remove_prefix(separator ? kWordSeparator.size() : 1);
        continue;
      }
      if (space) put(' ');
      space = false;
      put(rest.front());
      rest.remove_prefix(1);
    }
  }
  return length;
}

}  // namespace bantam::speech
