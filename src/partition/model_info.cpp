#include "partition/model_info.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "partition/finding.h"

namespace bantam::partition {
namespace {

constexpr std::size_t kLeadingTokens = 2;   // type and version
constexpr std::size_t kTokensPerLabel = 4;  // word, window, two thresholds

/// The text without its leading comment lines and without white space at its end.
std::string_view strip(std::string_view text) {
  while (!text.empty() && text.front() == '#') text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
  const std::size_t last = text.find_last_not_of(" \t\r\n");
  return last == std::string_view::npos ? std::string_view() : text.substr(0, last + 1);
}

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> tokens;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('_'), text.size());
    if (end > 0) tokens.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return tokens;
}

template <typename T>
Result<T> parse_number(std::string_view token, const char* what, std::string_view word) {
  T value{};
  const auto [stop, code] = std::from_chars(token.data(), token.data() + token.size(), value);
  if (code != std::errc() || stop != token.data() + token.size())
    return fail(StatusCode::kInvalidModel,
                fmt::format("the {} of {} is {}, expected a number", what, quote(word), quote(token)));
  return value;
}

Result<ModelLabel> parse_label(const std::string_view* tokens) {
  const std::string_view word = tokens[0];
  const auto window = parse_number<int>(tokens[1], "window", word);
  const auto at_90 = parse_number<double>(tokens[2], "first threshold", word);
  const auto at_95 = parse_number<double>(tokens[3], "second threshold", word);
  for (const auto* threshold : {&at_90, &at_95})
    if (!*threshold) return fail(threshold->error());
  if (!window) return fail(window.error());
  return ModelLabel{std::string(word), *window, *at_90, *at_95};
}

}  // namespace

Result<ModelInfo> parse_model_info(std::string_view text) {
  if (text.size() > kMaxModelInfoBytes)
    return fail(StatusCode::kInvalidModel, fmt::format("has more than {} bytes", kMaxModelInfoBytes));
  const std::string_view line = strip(text);
  if (line.empty()) return fail(StatusCode::kInvalidModel, "holds no line that is not a comment");
  const auto control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  if (const auto at = std::ranges::find_if(line, control); at != line.end())
    return fail(StatusCode::kInvalidModel,
                *at == '\n'
                    ? std::string("holds more than one line that is not a comment; the loader takes them as one")
                    : fmt::format("holds the control character \\x{:02x}", static_cast<unsigned char>(*at)));
  const std::vector<std::string_view> tokens = split(line);
  if (tokens.size() < kLeadingTokens || (tokens.size() - kLeadingTokens) % kTokensPerLabel != 0)
    return fail(StatusCode::kInvalidModel,
                fmt::format("{} has {} parts between underscores, expected type_version and four for each word",
                            quote(line), tokens.size()));
  ModelInfo info{std::string(tokens[0]), std::string(tokens[1]), {}};
  for (std::size_t i = kLeadingTokens; i < tokens.size(); i += kTokensPerLabel) {
    auto label = parse_label(tokens.data() + i);
    if (!label) return fail(std::move(label.error()));
    info.labels.push_back(std::move(*label));
  }
  return info;
}

}  // namespace bantam::partition
