#include "import/import.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "import/onnx/model.h"
#include "io/file.h"

namespace bantam::import {
namespace {

enum class Format : std::uint8_t { kUnknown, kOnnx, kTflite };

/// FlatBuffers puts a file identifier after the offset of the root table.
bool has_tflite_identifier(std::span<const std::byte> bytes) {
  constexpr std::string_view kIdentifier = "TFL3";
  if (bytes.size() < 8) return false;
  return std::string_view(reinterpret_cast<const char*>(bytes.data()) + 4, 4) == kIdentifier;
}

Format recognise(std::span<const std::byte> bytes) {
  if (has_tflite_identifier(bytes)) return Format::kTflite;
  if (onnx::looks_like_model(bytes)) return Format::kOnnx;
  return Format::kUnknown;
}

tl::unexpected<Error> unrecognised(const Source& source) {
  constexpr const char* kRemedy = "give an ONNX (.onnx) or TensorFlow Lite (.tflite) model";
  if (source.bytes.empty())
    return fail(StatusCode::kInvalidModel, fmt::format("{}: the file is empty", source.name), kRemedy);
  std::string start;
  for (const std::byte b : source.bytes.first(std::min<std::size_t>(source.bytes.size(), 8)))
    start += fmt::format("{}{:02x}", start.empty() ? "" : " ", static_cast<unsigned>(b));
  return fail(
      StatusCode::kInvalidModel,
      fmt::format("{}: neither an ONNX nor a TensorFlow Lite model; it begins with the bytes {}", source.name, start),
      kRemedy);
}

}  // namespace

Result<graph::Graph> import_model(const Source& source, const Options& options) {
  switch (recognise(source.bytes)) {
    case Format::kOnnx: return import_onnx(source, options);
    case Format::kTflite: return import_tflite(source, options);
    case Format::kUnknown: break;
  }
  return unrecognised(source);
}

Result<Declaration> declare_model(const Source& source) {
  switch (recognise(source.bytes)) {
    case Format::kOnnx: return declare_onnx(source);
    case Format::kTflite: return declare_tflite(source);
    case Format::kUnknown: break;
  }
  return unrecognised(source);
}

Result<Source> open_source(const std::filesystem::path& path) {
  auto file = io::MappedFile::open(path.string());
  if (!file) return fail(std::move(file.error()));
  auto shared = std::make_shared<const io::MappedFile>(std::move(*file));
  const std::filesystem::path parent = path.parent_path();
  return Source{path.string(), shared->bytes(), shared, parent.empty() ? std::filesystem::path(".") : parent};
}

}  // namespace bantam::import
