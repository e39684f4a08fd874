#include "import/tflite/custom_options.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "ops/common/half.h"

namespace bantam::import::tflite {
namespace {

constexpr std::uint64_t kMaxEntries = 256;

/// FlexBuffers' numbers of value types: the inline scalars, the same behind an offset, and maps.
enum class FlexType : std::uint8_t {
  kNull = 0,
  kInt = 1,
  kUInt = 2,
  kFloat = 3,
  kIndirectInt = 6,
  kIndirectUInt = 7,
  kIndirectFloat = 8,
  kMap = 9,
  kBool = 26,
};

tl::unexpected<Error> damaged(const char* what) {
  return fail(StatusCode::kInvalidModel, std::string("the custom options are damaged: ") + what,
              "the file breaks the rules of its format; export it again");
}

bool is_width(std::uint64_t width) { return width == 1 || width == 2 || width == 4 || width == 8; }

/// Bounded reads. A position is an index into the bytes.
class Reader {
 public:
  explicit Reader(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}

  std::size_t size() const noexcept { return bytes_.size(); }
  bool holds(std::uint64_t at, std::uint64_t count) const noexcept {
    return at <= bytes_.size() && count <= bytes_.size() - at;
  }
  std::optional<std::uint64_t> unsigned_at(std::uint64_t at, std::uint64_t width) const noexcept {
    if (!holds(at, width)) return std::nullopt;
    std::uint64_t value = 0;
    for (std::uint64_t i = width; i > 0; --i) value = value << 8 | bytes_[static_cast<std::size_t>(at + i - 1)];
    return value;
  }
  /// Where the offset stored at `at` leads: backwards from there.
  std::optional<std::uint64_t> target(std::uint64_t at, std::uint64_t width) const noexcept {
    const auto offset = unsigned_at(at, width);
    if (!offset || *offset > at) return std::nullopt;
    return at - *offset;
  }
  std::optional<double> signed_at(std::uint64_t at, std::uint64_t width) const noexcept {
    const auto raw = unsigned_at(at, width);
    if (!raw) return std::nullopt;
    const auto unused = static_cast<int>(64 - 8 * width);
    return static_cast<double>(static_cast<std::int64_t>(*raw << unused) >> unused);
  }
  std::optional<double> float_at(std::uint64_t at, std::uint64_t width) const noexcept {
    const auto raw = unsigned_at(at, width);
    if (!raw || width == 1) return std::nullopt;
    if (width == 8) return std::bit_cast<double>(*raw);
    if (width == 4) return std::bit_cast<float>(static_cast<std::uint32_t>(*raw));
    return ops::to_f32(ops::Half{static_cast<std::uint16_t>(*raw)});
  }
  /// A zero-terminated string.
  std::optional<std::string> key_at(std::uint64_t at) const {
    if (at >= bytes_.size()) return std::nullopt;
    const auto first = bytes_.begin() + static_cast<std::ptrdiff_t>(at);
    const auto last = std::find(first, bytes_.end(), std::uint8_t{0});
    if (last == bytes_.end()) return std::nullopt;
    return std::string(first, last);
  }

 private:
  std::span<const std::uint8_t> bytes_;
};

/// A value's place and its packed type: width in the low bits, type above.
struct Value {
  std::uint64_t at = 0;
  std::uint64_t parent_width = 0;
  std::uint8_t packed = 0;

  FlexType type() const noexcept { return static_cast<FlexType>(packed >> 2); }
  std::uint64_t width() const noexcept { return std::uint64_t{1} << (packed & 3); }
};

std::optional<double> number_of(const Reader& reader, const Value& value) {
  const auto behind = reader.target(value.at, value.parent_width);
  switch (value.type()) {
    case FlexType::kInt: return reader.signed_at(value.at, value.parent_width);
    case FlexType::kBool:
    case FlexType::kUInt: {
      const auto raw = reader.unsigned_at(value.at, value.parent_width);
      return raw ? std::optional(static_cast<double>(*raw)) : std::nullopt;
    }
    case FlexType::kFloat: return reader.float_at(value.at, value.parent_width);
    case FlexType::kIndirectInt: return behind ? reader.signed_at(*behind, value.width()) : std::nullopt;
    case FlexType::kIndirectUInt: {
      const auto raw = behind ? reader.unsigned_at(*behind, value.width()) : std::nullopt;
      return raw ? std::optional(static_cast<double>(*raw)) : std::nullopt;
    }
    case FlexType::kIndirectFloat: return behind ? reader.float_at(*behind, value.width()) : std::nullopt;
    default: return std::nullopt;
  }
}

}  // namespace

Result<CustomOptions> CustomOptions::parse(std::span<const std::uint8_t> bytes) {
  CustomOptions options;
  if (bytes.empty()) return options;
  const Reader reader(bytes);
  if (bytes.size() < 3) return damaged("they are too short");
  const std::uint64_t root_width = bytes.back();
  Value root{0, root_width, bytes[bytes.size() - 2]};
  if (!is_width(root_width) || bytes.size() < 2 + root_width) return damaged("the root has no width");
  root.at = bytes.size() - 2 - root_width;
  if (root.type() != FlexType::kMap) return damaged("the root is no map");
  // A map is its keys' place and width, its size, the values, and a byte of type per value.
  const std::uint64_t width = root.width();
  const auto values = reader.target(root.at, root_width);
  if (!values || *values < 3 * width) return damaged("the map lies outside them");
  const auto size = reader.unsigned_at(*values - width, width);
  const auto key_width = reader.unsigned_at(*values - 2 * width, width);
  const auto keys = reader.target(*values - 3 * width, width);
  if (!size || !key_width || !keys || !is_width(*key_width)) return damaged("the map has no keys");
  if (*size > kMaxEntries) return damaged("the map is too large");
  if (!reader.holds(*values, *size * width + *size) || !reader.holds(*keys, *size * *key_width))
    return damaged("the map ends outside them");
  for (std::uint64_t i = 0; i < *size; ++i) {
    const auto name_at = reader.target(*keys + i * *key_width, *key_width);
    auto name = name_at ? reader.key_at(*name_at) : std::nullopt;
    const auto packed = reader.unsigned_at(*values + *size * width + i, 1);
    if (!name || !packed) return damaged("a key has no end");
    const Value value{*values + i * width, width, static_cast<std::uint8_t>(*packed)};
    options.entries_.push_back({*std::move(name), number_of(reader, value)});
  }
  return options;
}

const CustomOptions::Entry* CustomOptions::find(std::string_view name) const noexcept {
  const auto entry = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& e) { return e.name == name; });
  return entry == entries_.end() ? nullptr : &*entry;
}

std::optional<double> CustomOptions::number(std::string_view name) const noexcept {
  const Entry* entry = find(name);
  return entry == nullptr ? std::nullopt : entry->number;
}

std::vector<std::string> CustomOptions::names() const {
  std::vector<std::string> names;
  for (const Entry& entry : entries_) names.push_back(entry.name);
  return names;
}

}  // namespace bantam::import::tflite
