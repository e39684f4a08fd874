#include "import/onnx/constant.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <exception>
#include <protozero/pbf_reader.hpp>
#include <system_error>

#include "base/shape.h"
#include "import/onnx/fields.h"
#include "ops/common/half.h"

namespace bantam::import::onnx {
namespace {

using protozero::pbf_reader;
using protozero::tag_and_type;

constexpr auto kVarint = protozero::pbf_wire_type::varint;
constexpr auto kBytes = protozero::pbf_wire_type::length_delimited;
constexpr auto kFixed32 = protozero::pbf_wire_type::fixed32;
constexpr auto kFixed64 = protozero::pbf_wire_type::fixed64;

using Bytes = std::vector<std::byte>;

/// Appends the low bytes of `value`, as many as an element of `type` has.
void append_integer(Bytes& out, std::uint64_t value, std::int32_t size) {
  for (std::int32_t i = 0; i < size; ++i) out.push_back(static_cast<std::byte>(value >> (8 * i)));
}

/// Appends elements stored as varints, one by one or packed.
void append_varints(Bytes& out, pbf_reader& m, std::int32_t size) {
  if (m.wire_type() == kVarint) {
    append_integer(out, m.get_uint64(), size);
  } else {
    for (const std::uint64_t value : m.get_packed_uint64()) append_integer(out, value, size);
  }
}

/// Appends fixed-width elements, which protobuf stores as the element's own little-endian bytes.
void append_fixed(Bytes& out, pbf_reader& m) {
  if (m.wire_type() == kFixed32) {
    append_integer(out, m.get_fixed32(), 4);
  } else if (m.wire_type() == kFixed64) {
    append_integer(out, m.get_fixed64(), 8);
  } else {
    const auto view = m.get_view();
    const auto* first = reinterpret_cast<const std::byte*>(view.data());
    out.insert(out.end(), first, first + view.size());
  }
}

/// The field that holds typed data of `type`, with the element size it is converted to.
std::uint32_t data_field(ElementType type) {
  switch (type) {
    case ElementType::kF32: return field::tensor::kFloatData;
    case ElementType::kF64: return field::tensor::kDoubleData;
    case ElementType::kI64: return field::tensor::kInt64Data;
    case ElementType::kU32:
    case ElementType::kU64: return field::tensor::kUint64Data;
    default: return field::tensor::kInt32Data;
  }
}

/// Data of a typed field, converted to the element's own size; grows with what is really there, to at most one element
/// more than `limit` bytes per chunk of the file.
Bytes read_typed_data(const TensorProto& tensor, ElementType type) {
  const std::uint32_t wanted = data_field(type);
  const bool fixed = wanted == field::tensor::kFloatData || wanted == field::tensor::kDoubleData;
  // Nibbles come two to an entry, like bytes.
  const std::int32_t size = std::max(element_size(type), 1);
  Bytes out;
  pbf_reader m(tensor.message.data(), tensor.message.size());
  while (m.next()) {
    const auto wire = m.wire_type();
    if (m.tag() == wanted && fixed && (wire == kBytes || wire == kFixed32 || wire == kFixed64)) {
      append_fixed(out, m);
    } else if (m.tag() == wanted && !fixed && (wire == kBytes || wire == kVarint)) {
      append_varints(out, m, size);
    } else {
      m.skip();
    }
  }
  return out;
}

struct ExternalEntry {
  std::string location;
  std::int64_t offset = 0;
  std::int64_t length = -1;  ///< -1: as many bytes as the tensor has
  bool valid = true;
};

std::int64_t parse_number(std::string_view text, bool& valid) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  valid = valid && error == std::errc() && end == text.data() + text.size() && value >= 0;
  return value;
}

ExternalEntry read_external_entries(const TensorProto& tensor) {
  ExternalEntry result;
  pbf_reader m(tensor.message.data(), tensor.message.size());
  while (m.next()) {
    if (m.tag_and_type() != tag_and_type(field::tensor::kExternalData, kBytes)) {
      m.skip();
      continue;
    }
    pbf_reader entry = m.get_message();
    std::string key;
    std::string value;
    while (entry.next()) {
      switch (entry.tag_and_type()) {
        case tag_and_type(field::entry::kKey, kBytes): key = entry.get_string(); break;
        case tag_and_type(field::entry::kValue, kBytes): value = entry.get_string(); break;
        default: entry.skip();
      }
    }
    if (key == "location") result.location = value;
    if (key == "offset") result.offset = parse_number(value, result.valid);
    if (key == "length") result.length = parse_number(value, result.valid);
  }
  return result;
}

/// Runs `read`, which walks a message that protozero has already walked once: an exception can only mean that packed
/// numbers inside a field are damaged.
template <typename T, typename Read>
Result<T> contained(const TensorProto& tensor, Read&& read) {
  try {
    return read();
  } catch (const std::exception& e) {
    return fail(StatusCode::kInvalidModel,
                fmt::format("tensor '{}': its data are damaged ({})", printable(tensor.name), e.what()),
                "copy or export the file again");
  }
}

graph::Constant own(Bytes bytes) {
  auto owner = std::make_shared<Bytes>(std::move(bytes));
  return {std::span<const std::byte>(*owner), owner};
}

/// Two numbers to a byte, the first in the low half, as one byte each.
graph::Constant unpacked_nibbles(std::span<const std::byte> packed, std::int64_t elements, bool is_signed) {
  Bytes bytes;
  for (std::int64_t i = 0; i < elements; ++i) {
    const int number = (std::to_integer<int>(packed[static_cast<std::size_t>(i / 2)]) >> (i % 2 * 4)) & 15;
    bytes.push_back(static_cast<std::byte>(is_signed && number > 7 ? number - 16 : number));
  }
  return own(std::move(bytes));
}

/// Kernels rely on bools being 0 or 1; files may hold any byte.
graph::Constant normalised_bools(graph::Constant constant) {
  const auto is_bool = [](std::byte b) { return b <= std::byte{1}; };
  if (std::all_of(constant.bytes.begin(), constant.bytes.end(), is_bool)) return constant;
  Bytes copy(constant.bytes.begin(), constant.bytes.end());
  for (std::byte& b : copy) b = std::min(b, std::byte{1});
  return own(std::move(copy));
}

/// True when `location` names a file below the model's folder without leaving it on the way.
bool stays_inside(const std::filesystem::path& location) {
  if (location.empty() || location.is_absolute()) return false;
  return std::none_of(location.begin(), location.end(), [](const auto& part) { return part == ".."; });
}

template <typename T>
graph::Constant widened(const graph::Constant& constant) {
  const std::size_t count = constant.bytes.size() / sizeof(T);
  Bytes bytes(count * sizeof(float));
  for (std::size_t i = 0; i < count; ++i) {
    T element;
    std::memcpy(&element, constant.bytes.data() + i * sizeof(T), sizeof(T));
    const float value = ops::to_f32(element);
    std::memcpy(bytes.data() + i * sizeof(float), &value, sizeof(float));
  }
  return own(std::move(bytes));
}

}  // namespace

TensorConstant in_compute_type(TensorConstant constant) {
  const ElementType type = constant.desc.type;
  if (compute_type(type) == type) return constant;
  constant.data = type == ElementType::kF16 ? widened<ops::Half>(constant.data) : widened<ops::BFloat16>(constant.data);
  constant.desc.type = ElementType::kF32;
  return constant;
}

Result<TensorConstant> ConstantReader::read(const TensorProto& tensor) {
  TensorConstant result;
  const bool is_uint4 = tensor.data_type == kUint4Code;
  const ElementType type = is_uint4 ? ElementType::kI4 : element_type(tensor.data_type);
  if (type == ElementType::kNone)
    return fail(StatusCode::kUnsupported, fmt::format("tensor '{}' has element type {}, which is not supported",
                                                      printable(tensor.name), data_type_name(tensor.data_type)));
  const int rank = tensor.dims.size() > kMaxRank ? kMaxRank + 1 : static_cast<int>(tensor.dims.size());
  if (const Status status = make_desc(type, tensor.dims.data(), rank, &result.desc); !status.ok())
    return fail(error_from(status).in(fmt::format("tensor '{}'", printable(tensor.name))));

  if (tensor.external) {
    auto data = external(tensor, result.desc);
    if (!data) return fail(std::move(data.error()));
    result.data = std::move(*data);
  } else if (tensor.raw_data && !tensor.raw_data->empty()) {
    result.data = {std::as_bytes(std::span(*tensor.raw_data)), source_.owner};
  } else {
    auto bytes = contained<Bytes>(tensor, [&] { return read_typed_data(tensor, type); });
    if (!bytes) return fail(std::move(bytes.error()));
    result.data = own(std::move(*bytes));
  }
  if (static_cast<std::int64_t>(result.data.bytes.size()) != result.desc.bytes())
    return fail(StatusCode::kInvalidModel,
                fmt::format("tensor '{}' is declared as {}, {} bytes, but has {} bytes of data", printable(tensor.name),
                            graph::format_desc(result.desc), result.desc.bytes(), result.data.bytes.size()),
                "copy or export the file again");
  if (type == ElementType::kI4) {
    result.nibbles = true;
    result.data = unpacked_nibbles(result.data.bytes, result.desc.elements(), !is_uint4);
    result.desc.type = is_uint4 ? ElementType::kU8 : ElementType::kI8;
    result.desc.set_dense_strides();
  }
  if (type == ElementType::kBool) result.data = normalised_bools(std::move(result.data));
  return result;
}

Result<graph::Constant> ConstantReader::external(const TensorProto& tensor, const TensorDesc& desc) {
  const std::string context = fmt::format("tensor '{}': external data", printable(tensor.name));
  auto entry = contained<ExternalEntry>(tensor, [&] { return read_external_entries(tensor); });
  if (!entry) return fail(std::move(entry.error()));
  if (!entry->valid || !stays_inside(entry->location))
    return fail(StatusCode::kInvalidModel,
                fmt::format("{} at '{}' are refused: location, offset or length is not valid", context,
                            printable(entry->location)),
                "the location must be a relative path without '..', offset and length must be numbers");
  auto file = map(entry->location);
  if (!file) return fail(std::move(file.error()).in(context));
  const std::span<const std::byte> bytes = (*file)->bytes();
  const std::int64_t length = entry->length >= 0 ? entry->length : desc.bytes();
  const auto end = checked_add(entry->offset, length);
  if (!end || *end > static_cast<std::int64_t>(bytes.size()))
    return fail(StatusCode::kInvalidModel,
                fmt::format("{}: bytes {}+{} lie outside '{}', which has {}", context, entry->offset, length,
                            printable(entry->location), bytes.size()),
                "the data file belongs to another model or is truncated");
  return graph::Constant{bytes.subspan(static_cast<std::size_t>(entry->offset), static_cast<std::size_t>(length)),
                         *file};
}

Result<std::shared_ptr<const io::MappedFile>> ConstantReader::map(const std::string& location) {
  if (const auto found = files_.find(location); found != files_.end()) return found->second;
  if (source_.directory.empty())
    return fail(StatusCode::kInvalidArgument,
                fmt::format("the model refers to the file '{}', but was not opened from a folder", printable(location)),
                "open the model by its path");
  // A symbolic link inside the folder must not lead out of it either.
  std::error_code error;
  const auto root = std::filesystem::weakly_canonical(source_.directory, error);
  if (error) return fail(StatusCode::kIo, fmt::format("'{}': {}", source_.directory.string(), error.message()));
  const auto path = std::filesystem::weakly_canonical(root / location, error);
  if (error) return fail(StatusCode::kIo, fmt::format("'{}': {}", printable(location), error.message()));
  if (std::mismatch(root.begin(), root.end(), path.begin(), path.end()).first != root.end())
    return fail(StatusCode::kInvalidModel,
                fmt::format("'{}' leads out of the model's folder through a symbolic link", printable(location)),
                "put the data file beside the model");
  auto mapped = io::MappedFile::open(path.string());
  if (!mapped) return fail(std::move(mapped.error()));
  auto shared = std::make_shared<const io::MappedFile>(std::move(*mapped));
  files_.emplace(location, shared);
  return shared;
}

}  // namespace bantam::import::onnx
