#include "io/npy.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>

#include "base/shape.h"
#include "fmt/format.h"
#include "io/file.h"

namespace bantam::io {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr const char* kRemedy = "write the file with numpy.save or numpy.savez, without pickled objects";

tl::unexpected<Error> bad_npy(std::string message) {
  return fail(StatusCode::kInvalidArgument, std::move(message), kRemedy);
}

struct TypeCode {
  std::string_view code;  ///< NumPy's kind and size, without byte order
  ElementType type;
};
constexpr TypeCode kTypeCodes[] = {
    {"b1", ElementType::kBool}, {"i1", ElementType::kI8},  {"i2", ElementType::kI16}, {"i4", ElementType::kI32},
    {"i8", ElementType::kI64},  {"u1", ElementType::kU8},  {"u2", ElementType::kU16}, {"u4", ElementType::kU32},
    {"u8", ElementType::kU64},  {"f2", ElementType::kF16}, {"f4", ElementType::kF32}, {"f8", ElementType::kF64},
};

/// Reads the Python dictionary literal of a header, restricted to what NumPy writes: string keys; values that are
/// strings, True, False or tuples of non-negative integers.
class HeaderReader {
 public:
  explicit HeaderReader(std::string_view text) : rest_(text) {}

  bool take(char c) {
    skip_space();
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }

  bool at_end() {
    skip_space();
    return rest_.empty();
  }

  std::optional<std::string_view> string() {
    skip_space();
    if (rest_.empty() || (rest_.front() != '\'' && rest_.front() != '"')) return std::nullopt;
    const std::size_t end = rest_.find(rest_.front(), 1);
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view text = rest_.substr(1, end - 1);
    rest_.remove_prefix(end + 1);
    return text;
  }

  std::optional<bool> boolean() {
    skip_space();
    for (const bool value : {false, true}) {
      const std::string_view word = value ? "True" : "False";
      if (!rest_.starts_with(word)) continue;
      rest_.remove_prefix(word.size());
      return value;
    }
    return std::nullopt;
  }

  std::optional<std::vector<std::int64_t>> tuple() {
    std::vector<std::int64_t> values;
    if (!take('(')) return std::nullopt;
    while (!take(')')) {
      skip_space();
      std::int64_t value = 0;
      const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
      if (error != std::errc() || value < 0) return std::nullopt;
      rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
      if (!rest_.empty() && rest_.front() == 'L') rest_.remove_prefix(1);  // a Python 2 long
      values.push_back(value);
      if (!take(',') && (rest_.empty() || rest_.front() != ')')) return std::nullopt;
    }
    return values;
  }

 private:
  void skip_space() {
    const std::size_t n = rest_.find_first_not_of(" \t\r\n");
    rest_.remove_prefix(std::min(n, rest_.size()));
  }

  std::string_view rest_;
};

/// The three entries of a header as written.
struct HeaderFields {
  std::optional<std::string_view> descr;
  std::optional<bool> fortran_order;
  std::optional<std::vector<std::int64_t>> shape;
};

Result<HeaderFields> read_fields(std::string_view text) {
  HeaderReader reader(text);
  HeaderFields fields;
  if (!reader.take('{')) return bad_npy("npy header is not a dictionary");
  while (!reader.take('}')) {
    const auto key = reader.string();
    if (!key || !reader.take(':')) return bad_npy("npy header has no valid key where one is expected");
    bool known = true;
    if (*key == "descr") {
      known = (fields.descr = reader.string()).has_value();
    } else if (*key == "fortran_order") {
      known = (fields.fortran_order = reader.boolean()).has_value();
    } else if (*key == "shape") {
      known = (fields.shape = reader.tuple()).has_value();
    } else {
      return bad_npy(fmt::format("npy header has the unknown key '{}'", *key));
    }
    if (!known)
      return bad_npy(
          fmt::format("npy header has an unreadable value of '{}' (arrays of records are not supported)", *key));
    if (reader.take(',')) continue;
    if (!reader.take('}')) return bad_npy("npy header misses a comma or its closing brace");
    break;
  }
  if (!reader.at_end()) return bad_npy("npy header goes on after its closing brace");
  if (!fields.descr || !fields.fortran_order || !fields.shape)
    return bad_npy("npy header lacks 'descr', 'fortran_order' or 'shape'");
  return fields;
}

Result<void> apply_descr(std::string_view descr, ElementType* type, bool* big_endian) {
  const std::string_view orders = "<>=|";
  const bool has_order = !descr.empty() && orders.find(descr.front()) != std::string_view::npos;
  *big_endian = has_order && descr.front() == '>';
  const std::string_view code = has_order ? descr.substr(1) : descr;
  const auto* found = std::ranges::find(kTypeCodes, code, &TypeCode::code);
  if (found == std::end(kTypeCodes))
    return bad_npy(fmt::format(
        "npy element type '{}' is not supported; expected bool, an integer or a float of 2 to 8 bytes", descr));
  *type = found->type;
  return {};
}

/// Copies elements listed first index fastest into row-major order.
void copy_from_fortran_order(const TensorDesc& desc, std::span<const std::byte> from, std::span<std::byte> to) {
  const auto size = static_cast<std::size_t>(element_size(desc.type));
  std::int64_t source_strides[kMaxRank] = {};
  std::int64_t stride = 1;
  for (int i = 0; i < desc.rank; ++i) {
    source_strides[i] = stride;
    stride *= desc.dims[i];
  }
  std::int32_t index[kMaxRank] = {};
  std::int64_t source = 0;
  for (std::size_t at = 0; at < to.size(); at += size) {
    std::memcpy(to.data() + at, from.data() + static_cast<std::size_t>(source) * size, size);
    for (int i = desc.rank - 1; i >= 0; --i) {
      source += source_strides[i];
      if (++index[i] < desc.dims[i]) break;
      source -= source_strides[i] * desc.dims[i];
      index[i] = 0;
    }
  }
}

void swap_bytes(std::span<std::byte> data, std::size_t element_bytes) {
  for (std::size_t at = 0; at < data.size(); at += element_bytes) std::ranges::reverse(data.subspan(at, element_bytes));
}

/// Stored truth values other than 0 and 1 would be out of contract everywhere else.
void normalize_bools(std::span<std::byte> data) {
  for (std::byte& b : data) b = b == std::byte{0} ? b : std::byte{1};
}

}  // namespace

Result<std::size_t> npy_header_bytes(std::span<const std::byte> prefix) {
  if (prefix.size() < kMagic.size() + 4 || std::memcmp(prefix.data(), kMagic.data(), kMagic.size()) != 0)
    return bad_npy(fmt::format("not an npy file: it does not start with npy's magic number and version ({} bytes seen)",
                               prefix.size()));
  const auto byte_at = [&](std::size_t i) { return std::to_integer<std::size_t>(prefix[i]); };
  const std::size_t version = byte_at(6);
  if (version < 1 || version > 3) return bad_npy(fmt::format("npy version {}, expected 1, 2 or 3", version));
  const std::size_t length_bytes = version == 1 ? 2 : 4;
  const std::size_t start = 8 + length_bytes;
  if (prefix.size() < start) return bad_npy("npy file ends within its header length");
  std::size_t length = 0;
  for (std::size_t i = 0; i < length_bytes; ++i) length |= byte_at(8 + i) << (8 * i);
  if (length > kMaxNpyHeaderBytes)
    return bad_npy(fmt::format("npy header claims {} bytes, at most {} are accepted", length, kMaxNpyHeaderBytes));
  return start + length;
}

Result<NpyHeader> parse_npy_header(std::span<const std::byte> bytes) {
  const auto end = npy_header_bytes(bytes);
  if (!end) return fail(end.error());
  if (bytes.size() < *end)
    return bad_npy(fmt::format("npy file ends within its header: {} bytes found, {} expected", bytes.size(), *end));
  const std::size_t start = std::to_integer<int>(bytes[6]) == 1 ? 10 : 12;
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()) + start, *end - start);
  const auto fields = read_fields(text);
  if (!fields) return fail(fields.error());

  NpyHeader header;
  header.fortran_order = *fields->fortran_order;
  header.data_offset = *end;
  ElementType type = ElementType::kNone;
  if (auto known = apply_descr(*fields->descr, &type, &header.big_endian); !known) return fail(known.error());
  if (fields->shape->size() > kMaxRank)
    return bad_npy(
        fmt::format("npy array has {} dimensions, at most {} are supported", fields->shape->size(), kMaxRank));
  const Status status = make_desc(type, fields->shape->data(), static_cast<int>(fields->shape->size()), &header.desc);
  if (!status.ok()) return fail(error_from(status).in("npy shape"));
  return header;
}

Result<Array> parse_npy_data(const NpyHeader& header, std::span<const std::byte> data) {
  const auto expected = static_cast<std::size_t>(header.desc.bytes());
  if (data.size() != expected)
    return bad_npy(
        fmt::format("npy array {} has {} bytes of data, expected {}", describe(header.desc), data.size(), expected));
  Array array{header.desc, {}};
  if (header.fortran_order && header.desc.rank > 1) {
    array.data.resize(expected);
    copy_from_fortran_order(header.desc, data, array.data);
  } else {
    array.data.assign(data.begin(), data.end());
  }
  if (header.big_endian) swap_bytes(array.data, static_cast<std::size_t>(element_size(header.desc.type)));
  if (header.desc.type == ElementType::kBool) normalize_bools(array.data);
  return array;
}

Result<Array> parse_npy(std::span<const std::byte> bytes) {
  const auto header = parse_npy_header(bytes);
  if (!header) return fail(header.error());
  return parse_npy_data(*header, bytes.subspan(header->data_offset));
}

Result<std::vector<std::byte>> encode_npy(const Array& array) {
  const auto* found = std::ranges::find(kTypeCodes, array.desc.type, &TypeCode::type);
  if (found == std::end(kTypeCodes))
    return fail(StatusCode::kUnsupported,
                fmt::format("the npy format has no element type {}", element_type_name(array.desc.type)),
                "convert to f32 first");
  std::string shape;
  for (int i = 0; i < array.desc.rank; ++i) shape += fmt::format("{}, ", array.desc.dims[i]);
  std::string header = fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': ({}), }}",
                                   element_size(array.desc.type) == 1 ? '|' : '<', found->code, shape);
  // Spaces and a line feed bring the data to a multiple of 64 bytes, as NumPy does.
  constexpr std::size_t kStart = 10;
  constexpr std::size_t kAlignment = 64;
  header.append(kAlignment - 1 - (kStart + header.size()) % kAlignment, ' ').push_back('\n');

  std::string file(kMagic);
  file.push_back('\x01');
  file.push_back('\x00');
  file.push_back(static_cast<char>(header.size() & 0xff));
  file.push_back(static_cast<char>(header.size() >> 8));
  file += header;
  const auto text = bytes_of(file);
  std::vector<std::byte> bytes(text.begin(), text.end());
  bytes.insert(bytes.end(), array.data.begin(), array.data.end());
  return bytes;
}

Result<Array> read_npy(const std::string& path) {
  const auto file = MappedFile::open(path);
  if (!file) return fail(file.error());
  return in_file(path, parse_npy(file->bytes()));
}

Result<void> write_npy(const std::string& path, const Array& array) {
  const auto bytes = encode_npy(array);
  if (!bytes) return fail(bytes.error());
  return write_file(path, *bytes);
}

}  // namespace bantam::io
