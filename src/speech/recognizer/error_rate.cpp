#include "speech/recognizer/error_rate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "io/file.h"

namespace bantam::speech {
namespace {

constexpr std::string_view kWhite = " \t\r\n";

/// Characters as they are compared. Bytes that are no UTF-8 count as characters of their own.
std::vector<std::uint32_t> characters(std::string_view text) {
  std::vector<std::uint32_t> out;
  bool space = false;
  for (const char c : text) {
    if (kWhite.find(c) != std::string_view::npos) {
      space = !out.empty();
      continue;
    }
    if (space) out.push_back(' ');
    space = false;
    const auto byte = static_cast<unsigned char>(c);
    if ((byte & 0xC0U) == 0x80U && !out.empty() && out.back() >= 0x80U) {
      out.back() = (out.back() << 8U) | byte;
    } else {
      out.push_back(byte >= 'A' && byte <= 'Z' ? byte - 'A' + 'a' : byte);
    }
  }
  return out;
}

}  // namespace

ErrorCount count_errors(std::string_view recognised, std::string_view reference) {
  const auto from = characters(reference);
  const auto to = characters(recognised);
  // Distances of the reference's first i characters to all beginnings of the other text, row by row.
  std::vector<std::size_t> row(to.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < from.size(); ++i) {
    std::size_t diagonal = row[0]++;
    for (std::size_t k = 0; k < to.size(); ++k) {
      const std::size_t replaced = diagonal + (from[i] == to[k] ? 0 : 1);
      diagonal = row[k + 1];
      row[k + 1] = std::min({replaced, diagonal + 1, row[k] + 1});
    }
  }
  return {row.back(), from.size()};
}

Result<std::map<std::string, std::string>> read_references(const std::filesystem::path& path) {
  constexpr std::int64_t kMostBytes = 64 << 20;
  const auto bytes = io::read_file(path.string(), kMostBytes);
  if (!bytes) return fail(bytes.error());
  std::string_view text(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  std::map<std::string, std::string> references;
  for (int number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t first = line.find_first_not_of(kWhite);
    if (first == std::string_view::npos) continue;
    const std::size_t gap = std::min(line.find_first_of(kWhite, first), line.size());
    if (!references.emplace(line.substr(first, gap - first), line.substr(gap)).second)
      return fail(StatusCode::kInvalidArgument,
                  fmt::format("{}: line {}: '{}' has a transcript already", path.string(), number,
                              line.substr(first, gap - first)),
                  "keep one line per sound");
  }
  return references;
}

}  // namespace bantam::speech
