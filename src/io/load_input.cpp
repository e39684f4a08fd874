#include "io/load_input.h"

#include <algorithm>
#include <string>

#include "fmt/format.h"
#include "io/file.h"
#include "io/image.h"
#include "io/npy.h"
#include "io/npz.h"
#include "io/wav.h"

namespace bantam::io {
namespace {

bool starts_with(std::span<const std::byte> bytes, std::string_view magic) {
  return bytes.size() >= magic.size() && std::ranges::equal(bytes.first(magic.size()), bytes_of(magic));
}

template <typename T>
Result<Source> as_source(Result<T> result) {
  return std::move(result).map([](T&& value) { return Source(std::move(value)); });
}

Result<Array> read_archive(std::span<const std::byte> bytes, const std::string& entry) {
  const auto reader = NpzReader::from_memory(bytes);
  if (!reader) return fail(reader.error());
  if (!entry.empty()) return reader->read(entry);
  if (reader->names().size() == 1) return reader->read(reader->names().front());
  return fail(StatusCode::kInvalidArgument,
              fmt::format("the archive has {} entries and none is named", reader->names().size()),
              fmt::format("write FILE.npz:ENTRY; entries are: {}", fmt::join(reader->names(), ", ")));
}

Result<Source> decode(std::span<const std::byte> bytes, const InputSpec& spec) {
  if (starts_with(bytes, "\x93NUMPY")) return as_source(parse_npy(bytes));
  if (!spec.entry.empty() || starts_with(bytes, "PK")) return as_source(read_archive(bytes, spec.entry));
  if (looks_like_image(bytes)) return as_source(decode_image(bytes));
  if (spec.path.ends_with(".raw") || spec.path.ends_with(".bin"))
    return Source(RawBytes{std::vector<std::byte>(bytes.begin(), bytes.end())});
  return as_source(decode_sound(bytes).map_error([](Error&& error) {
    error.remedy = "give an npy, npz, PNG, JPEG or sound file, or name raw data .raw or .bin";
    return std::move(error);
  }));
}

}  // namespace

Result<Source> open_source(const InputSpec& spec) {
  if (spec.kind != SourceKind::kFile) return fail(StatusCode::kInvalidArgument, "zeros, fill and random have no file");
  const auto file = MappedFile::open(spec.path);
  if (!file) return fail(file.error());
  return in_file(spec.path, decode(file->bytes(), spec));
}

Result<Array> load_input(const InputSpec& spec, const InputTarget& target) {
  if (spec.kind != SourceKind::kFile) return generate(spec, target);
  const auto source = open_source(spec);
  if (!source) return fail(Error(source.error()).in(fmt::format("input '{}'", target.name)));
  return in_file(spec.path, preprocess(spec, *source, target));
}

Result<Array> load_input(std::string_view spec_text, const InputTarget& target) {
  const auto spec = parse_input_spec(spec_text);
  if (!spec) return fail(Error(spec.error()).in(fmt::format("input '{}'", target.name)));
  return load_input(*spec, target);
}

}  // namespace bantam::io
