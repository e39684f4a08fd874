#include "plan/problem_csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <memory>

namespace bantam::plan {
namespace {

enum Column : std::size_t { kId, kLower, kUpper, kSize, kAlignment, kOffset, kColumns };

constexpr std::array<std::string_view, kColumns> kColumnNames = {"id", "lower", "upper", "size", "alignment", "offset"};
constexpr std::size_t kRequiredColumns = kAlignment;

/// Longest part of a foreign text that a message repeats.
constexpr std::size_t kQuoteLimit = 40;

std::string quoted(std::string_view text) {
  std::string shown(text.substr(0, kQuoteLimit));
  std::replace_if(
      shown.begin(), shown.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; }, '?');
  return fmt::format("'{}{}'", shown, text.size() > kQuoteLimit ? "..." : "");
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t";
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

tl::unexpected<Error> bad_line(std::int64_t line, const std::string& message) {
  return fail(StatusCode::kInvalidArgument, fmt::format("line {}: {}", line, message),
              "expected CSV with the header id,lower,upper,size and optionally alignment and offset");
}

/// Splits CSV text into records. Quoted fields may hold commas, doubled quotes and line breaks.
class RecordReader {
 public:
  explicit RecordReader(std::string_view text) : rest_(text) {
    constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
    if (rest_.substr(0, kByteOrderMark.size()) == kByteOrderMark) rest_.remove_prefix(kByteOrderMark.size());
  }

  /// Line of the record last read, counted from 1.
  std::int64_t line() const { return line_; }

  /// The next record that is not blank; false at the end of the text.
  Result<bool> next(std::vector<std::string>& fields) {
    do {
      if (rest_.empty()) return false;
      line_ = next_line_;
      fields.clear();
      bool more = true;
      while (more) {
        // A record that lists every column twice is already wrong; do not collect a flood of fields.
        if (fields.size() == 2 * kColumns) return bad_line(line_, "too many fields");
        auto field = read_field(more);
        if (!field) return fail(std::move(field.error()));
        fields.push_back(std::move(*field));
      }
    } while (fields.size() == 1 && fields[0].empty());
    return true;
  }

 private:
  /// Consumes one field and its terminator; `more` tells whether the record goes on.
  Result<std::string> read_field(bool& more) {
    std::string field;
    if (!rest_.empty() && rest_[0] == '"') {
      rest_.remove_prefix(1);
      for (bool open = true; open;) {
        const std::size_t quote = rest_.find('"');
        if (quote == std::string_view::npos) return bad_line(line_, "a quoted field is not closed");
        field += rest_.substr(0, quote);
        rest_.remove_prefix(quote + 1);
        open = !rest_.empty() && rest_[0] == '"';
        if (open) {
          field += '"';
          rest_.remove_prefix(1);
        }
      }
      next_line_ += std::count(field.begin(), field.end(), '\n');
      const std::string_view tail = take_unquoted(more);
      if (!trim(tail).empty()) return bad_line(line_, "text after a quoted field: " + quoted(tail));
      return field;
    }
    return std::string(trim(take_unquoted(more)));
  }

  std::string_view take_unquoted(bool& more) {
    const std::size_t end = std::min(rest_.find_first_of(",\n"), rest_.size());
    std::string_view field = rest_.substr(0, end);
    more = end < rest_.size() && rest_[end] == ',';
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    // A comma at the very end of the text opens one last, empty field, which the next call finds.
    if (!more) {
      ++next_line_;
      if (!field.empty() && field.back() == '\r') field.remove_suffix(1);
    }
    return field;
  }

  std::string_view rest_;
  std::int64_t line_ = 1;
  std::int64_t next_line_ = 1;
};

/// Column of each field, from the header.
Result<std::vector<Column>> parse_header(const std::vector<std::string>& fields, std::int64_t line) {
  std::vector<Column> columns;
  for (const std::string& field : fields) {
    const auto* const known = std::find(kColumnNames.begin(), kColumnNames.end(), field);
    if (known == kColumnNames.end()) return bad_line(line, "unknown column " + quoted(field));
    const auto column = static_cast<Column>(known - kColumnNames.begin());
    if (std::find(columns.begin(), columns.end(), column) != columns.end())
      return bad_line(line, "column " + quoted(field) + " appears twice");
    columns.push_back(column);
  }
  for (std::size_t c = 0; c < kRequiredColumns; ++c)
    if (std::find(columns.begin(), columns.end(), static_cast<Column>(c)) == columns.end())
      return bad_line(line, "column '" + std::string(kColumnNames[c]) + "' is missing");
  return columns;
}

Result<std::int64_t> parse_number(const std::string& field, Column column, std::int64_t line) {
  std::int64_t value = 0;
  const char* const end = field.data() + field.size();
  const auto [stop, error] = std::from_chars(field.data(), end, value);
  if (error != std::errc() || stop != end)
    return bad_line(line, fmt::format("{} is {}, expected a whole number", kColumnNames[column], quoted(field)));
  return value;
}

Result<Buffer> parse_buffer(const std::vector<std::string>& fields, const std::vector<Column>& columns,
                            std::int64_t line) {
  if (fields.size() != columns.size())
    return bad_line(line, fmt::format("{} fields, expected {}", fields.size(), columns.size()));
  Buffer buffer;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (columns[i] == kId) {
      buffer.id = fields[i];
      continue;
    }
    if (fields[i].empty() && columns[i] >= kRequiredColumns) continue;
    const auto number = parse_number(fields[i], columns[i], line);
    if (!number) return fail(number.error());
    switch (columns[i]) {
      case kLower: buffer.lower = *number; break;
      case kUpper: buffer.upper = *number; break;
      case kSize: buffer.size = *number; break;
      case kAlignment: buffer.alignment = *number; break;
      case kOffset: buffer.fixed = *number; break;
      case kId:
      case kColumns: break;
    }
  }
  return buffer;
}

std::string escape_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n\t ") == std::string::npos) return text;
  std::string escaped = "\"";
  for (const char c : text) {
    if (c == '"') escaped += '"';
    escaped += c;
  }
  return escaped + '"';
}

/// `offset_of(i)` gives the text of the last column, which `with_offset` asks for.
template <typename OffsetOf>
std::string format_csv(const Problem& problem, bool with_offset, OffsetOf offset_of) {
  const auto& buffers = problem.buffers;
  const bool with_alignment =
      std::any_of(buffers.begin(), buffers.end(), [](const Buffer& b) { return b.alignment != 1; });
  std::string text = "id,lower,upper,size";
  if (with_alignment) text += ",alignment";
  if (with_offset) text += ",offset";
  text += '\n';
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const Buffer& b = buffers[i];
    text += fmt::format("{},{},{},{}", escape_field(b.id), b.lower, b.upper, b.size);
    if (with_alignment) text += fmt::format(",{}", b.alignment);
    if (with_offset) {
      text += ',';
      text += offset_of(i);
    }
    text += '\n';
  }
  return text;
}

}  // namespace

Result<Problem> parse_problem_csv(std::string_view text) {
  RecordReader reader(text);
  std::vector<std::string> fields;
  auto found = reader.next(fields);
  if (!found) return fail(std::move(found.error()));
  if (!*found) return bad_line(1, "the text is empty");
  const auto columns = parse_header(fields, reader.line());
  if (!columns) return fail(columns.error());

  Problem problem;
  for (;;) {
    found = reader.next(fields);
    if (!found) return fail(std::move(found.error()));
    if (!*found) break;
    auto buffer = parse_buffer(fields, *columns, reader.line());
    if (!buffer) return fail(std::move(buffer.error()));
    if (auto valid = validate_buffer(*buffer); !valid)
      return fail(std::move(valid.error()).in(fmt::format("line {}", reader.line())));
    if (static_cast<std::int64_t>(problem.buffers.size()) == kMaxBuffers)
      return bad_line(reader.line(), fmt::format("more than {} buffers", kMaxBuffers));
    problem.buffers.push_back(std::move(*buffer));
  }
  if (auto valid = validate(problem); !valid) return fail(std::move(valid.error()));
  return problem;
}

Result<Problem> read_problem_csv(const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), &std::fclose);
  if (!file) return fail(StatusCode::kIo, "cannot open '" + path + "'", "check the path and its permissions");
  std::string text;
  std::array<char, 1 << 16> chunk;
  while (const std::size_t count = std::fread(chunk.data(), 1, chunk.size(), file.get())) {
    text.append(chunk.data(), count);
    if (static_cast<std::int64_t>(text.size()) > kMaxCsvBytes)
      return fail(StatusCode::kUnsupported, fmt::format("'{}' is larger than {} bytes", path, kMaxCsvBytes));
  }
  if (std::ferror(file.get()) != 0) return fail(StatusCode::kIo, "cannot read '" + path + "'");
  auto problem = parse_problem_csv(text);
  if (!problem) return fail(std::move(problem.error()).in(path));
  return problem;
}

std::string format_problem_csv(const Problem& problem) {
  const auto& buffers = problem.buffers;
  const bool any_fixed =
      std::any_of(buffers.begin(), buffers.end(), [](const Buffer& b) { return b.fixed.has_value(); });
  return format_csv(problem, any_fixed, [&](std::size_t i) {
    return buffers[i].fixed ? std::to_string(*buffers[i].fixed) : std::string();
  });
}

std::string format_solution_csv(const Problem& problem, const Solution& solution) {
  return format_csv(problem, true, [&](std::size_t i) { return std::to_string(solution.offsets[i]); });
}

}  // namespace bantam::plan
