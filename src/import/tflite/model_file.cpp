#include "import/tflite/model_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace bantam::import::tflite {
namespace {

constexpr std::size_t kTableAlignment = 8;  ///< of 64-bit scalars in tables
constexpr std::size_t kShownNameLength = 80;
/// A model nests tables five deep; the rest of the depth is reserve.
constexpr std::size_t kMaxDepth = 16;
constexpr std::size_t kMaxTables = 2'000'000;
constexpr std::uint32_t kSchemaVersion = 3;
constexpr auto kLastOldOperator = static_cast<std::int32_t>(127);  ///< announces builtin_code in old_builtin_code

tl::unexpected<Error> damaged(const Source& source, std::string what) {
  return fail(StatusCode::kInvalidModel, fmt::format("{}: {}", source.name, what),
              "the file is truncated or damaged; export or download it again");
}

}  // namespace

Result<ModelFile> ModelFile::open(const Source& source) {
  ModelFile file;
  file.bytes_ = source.bytes;
  file.owner_ = source.owner;
  if (reinterpret_cast<std::uintptr_t>(source.bytes.data()) % kTableAlignment != 0) {
    auto copy = std::make_shared<std::vector<std::byte>>(source.bytes.begin(), source.bytes.end());
    file.bytes_ = *copy;
    file.owner_ = std::move(copy);
  }
  const auto* data = reinterpret_cast<const std::uint8_t*>(file.bytes_.data());
  // Offset and identifier.
  if (file.bytes_.size() < 8)
    return damaged(source, fmt::format("{} bytes are too few for a model", file.bytes_.size()));
  if (!schema::ModelBufferHasIdentifier(data))
    return fail(StatusCode::kInvalidModel,
                fmt::format("{}: not a TensorFlow Lite model (no TFL3 identifier)", source.name),
                "give a .tflite file");
  // Tables lie in the first 2 GiB; later bytes are reached only through Buffer.offset.
  const std::size_t table_bytes = std::min<std::size_t>(file.bytes_.size(), FLATBUFFERS_MAX_BUFFER_SIZE - 1);
  flatbuffers::Verifier verifier(data, table_bytes, kMaxDepth, kMaxTables);
  if (!schema::VerifyModelBuffer(verifier)) return damaged(source, "the FlatBuffers tables do not lie inside the file");
  file.model_ = schema::GetModel(data);
  if (file.model_->version() != kSchemaVersion)
    return fail(StatusCode::kUnsupported,
                fmt::format("{}: schema version {} is not supported, version {} is", source.name,
                            file.model_->version(), kSchemaVersion),
                "convert the model with a current TensorFlow Lite converter");
  return file;
}

Result<std::span<const std::byte>> ModelFile::buffer(std::uint32_t index) const {
  if (index >= count(model_->buffers()))
    return fail(StatusCode::kInvalidModel,
                fmt::format("buffer {} does not exist, the file has {}", index, count(model_->buffers())));
  const schema::Buffer& b = *model_->buffers()->Get(index);
  if (b.offset() > 1) {
    if (b.offset() > bytes_.size() || b.size() > bytes_.size() - b.offset())
      return fail(StatusCode::kInvalidModel,
                  fmt::format("buffer {} (offset {}, size {}) ends beyond the file's {} bytes", index, b.offset(),
                              b.size(), bytes_.size()));
    return bytes_.subspan(static_cast<std::size_t>(b.offset()), static_cast<std::size_t>(b.size()));
  }
  if (b.data() == nullptr) return std::span<const std::byte>{};
  return std::as_bytes(std::span(b.data()->data(), b.data()->size()));
}

std::vector<std::pair<std::string, std::string>> ModelFile::metadata() const {
  std::vector<std::pair<std::string, std::string>> entries;
  for (std::uint32_t i = 0; i < count(model_->metadata()); ++i) {
    const schema::Metadata& entry = *model_->metadata()->Get(i);
    const auto content = buffer(entry.buffer());
    entries.emplace_back(text(entry.name()), fmt::format("{} bytes", content ? content->size() : 0));
  }
  return entries;
}

std::string text(const flatbuffers::String* s) { return s == nullptr ? std::string{} : s->str(); }

std::string shown_name(std::string_view name) {
  std::string shown(name.substr(0, kShownNameLength));
  std::replace_if(
      shown.begin(), shown.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, '?');
  return fmt::format("'{}{}'", shown, name.size() > kShownNameLength ? "..." : "");
}

ElementType element_type(schema::TensorType type) noexcept {
  using schema::TensorType;
  switch (type) {
    case TensorType::FLOAT32: return ElementType::kF32;
    case TensorType::FLOAT16: return ElementType::kF16;
    case TensorType::BFLOAT16: return ElementType::kBF16;
    case TensorType::FLOAT64: return ElementType::kF64;
    case TensorType::INT8: return ElementType::kI8;
    case TensorType::UINT8: return ElementType::kU8;
    case TensorType::INT16: return ElementType::kI16;
    case TensorType::UINT16: return ElementType::kU16;
    case TensorType::INT32: return ElementType::kI32;
    case TensorType::UINT32: return ElementType::kU32;
    case TensorType::INT64: return ElementType::kI64;
    case TensorType::UINT64: return ElementType::kU64;
    case TensorType::BOOL: return ElementType::kBool;
    case TensorType::INT4: return ElementType::kI4;
    default: return ElementType::kNone;
  }
}

std::string type_name(schema::TensorType type) {
  const std::string_view name = schema::EnumNameTensorType(type);
  return name.empty() ? fmt::format("type {}", static_cast<int>(type)) : std::string(name);
}

schema::BuiltinOperator builtin_operator(const schema::OperatorCode& code) noexcept {
  // Files of either age leave the other field at 0, except that new files put 127 or the same number in the old one.
  const auto old_code = static_cast<std::int32_t>(code.old_builtin_code());
  if (old_code == kLastOldOperator) return code.builtin_code();
  return static_cast<schema::BuiltinOperator>(std::max(old_code, static_cast<std::int32_t>(code.builtin_code())));
}

std::string operator_name(const schema::OperatorCode& code) {
  const schema::BuiltinOperator builtin = builtin_operator(code);
  if (builtin == schema::BuiltinOperator::CUSTOM) {
    const std::string name = shown_name(text(code.custom_code()));
    return "CUSTOM:" + name.substr(1, name.size() - 2);
  }
  const std::string_view name = schema::EnumNameBuiltinOperator(builtin);
  return name.empty() ? fmt::format("operator {}", static_cast<std::int32_t>(builtin)) : std::string(name);
}

std::optional<Quantization> port_quantization(const schema::Tensor& tensor) {
  const schema::QuantizationParameters* q = tensor.quantization();
  if (q == nullptr || count(q->scale()) != 1 || count(q->zero_point()) > 1) return std::nullopt;
  const float scale = q->scale()->Get(0);
  const std::int64_t zero_point = count(q->zero_point()) == 1 ? element(q->zero_point(), 0) : 0;
  if (!std::isfinite(scale) || scale <= 0 || zero_point != static_cast<std::int32_t>(zero_point)) return std::nullopt;
  return Quantization{scale, static_cast<std::int32_t>(zero_point)};
}

std::string port_name(const schema::Tensor& tensor, std::string_view kind, std::size_t index) {
  if (tensor.name() == nullptr || tensor.name()->size() == 0) return fmt::format("{}{}", kind, index);
  return tensor.name()->str();
}

}  // namespace bantam::import::tflite
