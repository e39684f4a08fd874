#include "io/npz.h"

#include <zip.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "fmt/format.h"
#include "io/npy.h"

namespace bantam::io {
namespace {

constexpr std::string_view kSuffix = ".npy";
constexpr const char* kArchiveRemedy = "write the file with numpy.savez or numpy.savez_compressed";

tl::unexpected<Error> bad_npz(std::string message) {
  return fail(StatusCode::kInvalidArgument, std::move(message), kArchiveRemedy);
}

/// libzip's error object with its text.
class ZipError {
 public:
  ZipError() { zip_error_init(&error_); }
  ZipError(const ZipError&) = delete;
  ZipError& operator=(const ZipError&) = delete;
  ~ZipError() { zip_error_fini(&error_); }
  zip_error_t* get() { return &error_; }
  const char* text() { return zip_error_strerror(&error_); }

 private:
  zip_error_t error_{};
};

struct CloseFile {
  void operator()(zip_file_t* file) const noexcept { zip_fclose(file); }
};
using ZipFile = std::unique_ptr<zip_file_t, CloseFile>;

struct DiscardArchive {
  void operator()(zip_t* archive) const noexcept { zip_discard(archive); }
};
struct FreeSource {
  void operator()(zip_source_t* source) const noexcept { zip_source_free(source); }
};
using ZipSource = std::unique_ptr<zip_source_t, FreeSource>;

/// Appends exactly `count` bytes of the entry. The buffer grows in steps of what has arrived, never by a forged count.
Result<void> append(zip_file_t* file, std::size_t count, std::vector<std::byte>* bytes) {
  constexpr std::size_t kStep = 1 << 20;
  while (count > 0) {
    const std::size_t step = std::min(count, kStep);
    const std::size_t old_size = bytes->size();
    bytes->resize(old_size + step);
    const zip_int64_t n = zip_fread(file, bytes->data() + old_size, step);
    if (n < 0) return bad_npz(fmt::format("damaged data: {}", zip_file_strerror(file)));
    if (n == 0) return bad_npz(fmt::format("the data end after {} bytes, {} more are expected", old_size, count));
    bytes->resize(old_size + static_cast<std::size_t>(n));
    count -= static_cast<std::size_t>(n);
  }
  return {};
}

Result<NpyHeader> read_header(zip_file_t* file) {
  std::vector<std::byte> bytes;
  if (auto done = append(file, kNpyPrefixBytes, &bytes); !done) return fail(done.error());
  const auto length = npy_header_bytes(bytes);
  if (!length) return fail(length.error());
  if (*length < bytes.size()) return bad_npz("npy header is too short for a dictionary");
  if (auto done = append(file, *length - bytes.size(), &bytes); !done) return fail(done.error());
  return parse_npy_header(bytes);
}

Result<Array> read_npy_entry(zip_file_t* file) {
  const auto header = read_header(file);
  if (!header) return fail(header.error());
  if (header->desc.bytes() > kMaxNpzEntryBytes)
    return fail(StatusCode::kUnsupported, fmt::format("array {} takes {} bytes, at most {} are accepted",
                                                      describe(header->desc), header->desc.bytes(), kMaxNpzEntryBytes));
  std::vector<std::byte> data;
  if (auto done = append(file, static_cast<std::size_t>(header->desc.bytes()), &data); !done) return fail(done.error());
  // Reading to the end makes libzip compare the checksum.
  std::byte beyond{};
  const zip_int64_t n = zip_fread(file, &beyond, 1);
  if (n < 0) return bad_npz(fmt::format("damaged data: {}", zip_file_strerror(file)));
  if (n > 0) return bad_npz(fmt::format("bytes follow the data of array {}", describe(header->desc)));
  return parse_npy_data(*header, data);
}

std::string_view without_suffix(std::string_view name) {
  return name.ends_with(kSuffix) ? name.substr(0, name.size() - kSuffix.size()) : name;
}

/// Well-formed UTF-8 of at most U+10FFFF without surrogates or overlong forms.
bool is_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto byte_at = [&](std::size_t k) { return static_cast<unsigned char>(text[k]); };
    const unsigned lead = byte_at(i);
    const std::size_t length = lead < 0x80   ? 1
                               : lead < 0xc2 ? 0
                               : lead < 0xe0 ? 2
                               : lead < 0xf0 ? 3
                               : lead < 0xf5 ? 4
                                             : 0;
    if (length == 0 || i + length > text.size()) return false;
    unsigned code = length == 1 ? lead : lead & (0xffU >> (length + 1));
    for (std::size_t k = 1; k < length; ++k) {
      if ((byte_at(i + k) & 0xc0U) != 0x80U) return false;
      code = code << 6 | (byte_at(i + k) & 0x3fU);
    }
    if (length == 3 && (code < 0x800 || (code >= 0xd800 && code < 0xe000))) return false;
    if (length == 4 && (code < 0x10000 || code > 0x10ffff)) return false;
    i += length;
  }
  return true;
}

/// Adds one array to the archive. `bytes` must outlive the archive.
Result<void> add_entry(zip_t* archive, const std::string& name, std::span<const std::byte> bytes) {
  if (name.find('\0') != std::string::npos) return bad_npz(fmt::format("array name '{}' holds a zero byte", name));
  ZipSource source(zip_source_buffer(archive, bytes.data(), bytes.size(), 0));
  if (source == nullptr) return fail(StatusCode::kIo, zip_strerror(archive));
  const std::string file_name = name + std::string(kSuffix);
  const zip_flags_t encoding = is_utf8(file_name) ? ZIP_FL_ENC_UTF_8 : ZIP_FL_ENC_CP437;
  const zip_int64_t index = zip_file_add(archive, file_name.c_str(), source.get(), encoding);
  if (index < 0) return bad_npz(fmt::format("cannot add array '{}': {}", name, zip_strerror(archive)));
  static_cast<void>(source.release());  // the archive owns it now
  if (zip_set_file_compression(archive, static_cast<zip_uint64_t>(index), ZIP_CM_DEFLATE, 0) != 0)
    return fail(StatusCode::kIo, zip_strerror(archive));
  return {};
}

Result<std::vector<std::byte>> content_of(zip_source_t* source) {
  const auto failure = [&] { return fail(StatusCode::kIo, zip_error_strerror(zip_source_error(source))); };
  zip_stat_t info;
  if (zip_source_stat(source, &info) != 0 || zip_source_open(source) != 0) return failure();
  std::vector<std::byte> bytes(info.size);
  const zip_int64_t n = zip_source_read(source, bytes.data(), bytes.size());
  const bool complete = n >= 0 && static_cast<zip_uint64_t>(n) == info.size;
  zip_source_close(source);
  if (!complete) return failure();
  return bytes;
}

/// An archive without entries as the format writes it: libzip itself refuses to write one.
std::vector<std::byte> empty_archive() {
  std::vector<std::byte> bytes(22);
  const auto signature = bytes_of("PK\x05\x06");
  std::ranges::copy(signature, bytes.begin());
  return bytes;
}

}  // namespace

void NpzReader::Close::operator()(zip* archive) const noexcept { zip_discard(archive); }

Result<NpzReader> NpzReader::from_memory(std::span<const std::byte> bytes) {
  if (bytes.empty()) return bad_npz("not a readable zip archive: no bytes");  // libzip would take it as a new archive
  ZipError error;
  ZipSource source(zip_source_buffer_create(bytes.data(), bytes.size(), 0, error.get()));
  if (source == nullptr) return bad_npz(fmt::format("not a readable zip archive: {}", error.text()));
  NpzReader reader;
  reader.archive_.reset(zip_open_from_source(source.get(), ZIP_RDONLY, error.get()));
  if (reader.archive_ == nullptr) return bad_npz(fmt::format("not a readable zip archive: {}", error.text()));
  static_cast<void>(source.release());  // the archive owns it now

  const zip_int64_t count = zip_get_num_entries(reader.archive_.get(), 0);
  for (zip_int64_t i = 0; i < count; ++i) {
    const char* name = zip_get_name(reader.archive_.get(), static_cast<zip_uint64_t>(i), ZIP_FL_ENC_RAW);
    if (name == nullptr) return bad_npz(fmt::format("entry {} has no readable name", i));
    reader.names_.emplace_back(without_suffix(name));
  }
  return reader;
}

Result<NpzReader> NpzReader::open(const std::string& path) {
  auto file = MappedFile::open(path);
  if (!file) return fail(file.error());
  auto reader = from_memory(file->bytes());
  if (!reader) return fail(std::move(reader.error()).in(path));
  reader->file_ = std::move(*file);
  return reader;
}

bool NpzReader::contains(std::string_view name) const noexcept {
  return std::ranges::find(names_, without_suffix(name)) != names_.end();
}

Result<Array> NpzReader::read_entry(std::size_t index) const {
  const ZipFile file(zip_fopen_index(archive_.get(), index, 0));
  auto array = file != nullptr ? read_npy_entry(file.get()) : Result<Array>(bad_npz(zip_strerror(archive_.get())));
  if (!array) return fail(std::move(array.error()).in(fmt::format("entry '{}'", names_[index])));
  return array;
}

Result<Array> NpzReader::read(std::string_view name) const {
  const auto found = std::ranges::find(names_, without_suffix(name));
  if (found == names_.end())
    return fail(StatusCode::kNotFound, fmt::format("no entry '{}' among {} entries", name, names_.size()),
                names_.empty() ? "" : fmt::format("entries are: {}", fmt::join(names_, ", ")));
  return read_entry(static_cast<std::size_t>(found - names_.begin()));
}

Result<std::vector<NamedArray>> NpzReader::read_all() const {
  std::vector<NamedArray> arrays;
  for (std::size_t i = 0; i < names_.size(); ++i) {
    auto array = read_entry(i);
    if (!array) return fail(array.error());
    arrays.push_back({names_[i], std::move(*array)});
  }
  return arrays;
}

Result<std::vector<std::byte>> encode_npz(std::span<const NamedArray> arrays) {
  if (arrays.empty()) return empty_archive();
  std::vector<std::vector<std::byte>> files;  // must outlive the archive, which reads them when it is closed
  for (const NamedArray& entry : arrays) {
    auto bytes = encode_npy(entry.array);
    if (!bytes) return fail(std::move(bytes.error()).in(fmt::format("array '{}'", entry.name)));
    files.push_back(std::move(*bytes));
  }

  ZipError error;
  const ZipSource target(zip_source_buffer_create(nullptr, 0, 0, error.get()));
  if (target == nullptr) return fail(StatusCode::kIo, error.text());
  zip_source_keep(target.get());  // one reference for the archive, one to read the result
  std::unique_ptr<zip_t, DiscardArchive> archive(zip_open_from_source(target.get(), ZIP_TRUNCATE, error.get()));
  if (archive == nullptr) {
    zip_source_free(target.get());
    return fail(StatusCode::kIo, error.text());
  }
  for (std::size_t i = 0; i < arrays.size(); ++i)
    if (auto added = add_entry(archive.get(), arrays[i].name, files[i]); !added) return fail(added.error());
  if (zip_close(archive.get()) != 0) return fail(StatusCode::kIo, zip_strerror(archive.get()));
  static_cast<void>(archive.release());  // closed
  return content_of(target.get());
}

Result<std::vector<NamedArray>> read_npz(const std::string& path) {
  const auto reader = NpzReader::open(path);
  if (!reader) return fail(reader.error());
  return in_file(path, reader->read_all());
}

Result<void> write_npz(const std::string& path, std::span<const NamedArray> arrays) {
  const auto bytes = encode_npz(arrays);
  if (!bytes) return fail(bytes.error());
  return write_file(path, *bytes);
}

}  // namespace bantam::io
