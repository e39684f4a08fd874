// NumPy's .npz format: a zip archive of .npy files, stored or deflated, zip64 included. Used for the inputs and outputs
// of the command and for reference files.
//
// Entries are read one at a time, on demand. Untrusted archives: an entry's memory grows with what really comes out of
// the decompressor and ends where the shape in its own header ends, at most kMaxNpzEntryBytes; checksums are verified.
// An object belongs to one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bantam/error.h"
#include "io/array.h"
#include "io/file.h"

struct zip;

namespace bantam::io {

/// Largest array read from an archive, in bytes of elements: the most a hostile file can make the reader allocate.
inline constexpr std::int64_t kMaxNpzEntryBytes = std::int64_t{1} << 30;

struct NamedArray {
  std::string name;
  Array array;
};

class NpzReader {
 public:
  static Result<NpzReader> open(const std::string& path);

  /// `bytes` must outlive the reader.
  static Result<NpzReader> from_memory(std::span<const std::byte> bytes);

  /// Names in the order of the archive, without ".npy". They may hold any bytes.
  const std::vector<std::string>& names() const noexcept { return names_; }
  bool contains(std::string_view name) const noexcept;

  /// The array called `name`, with or without ".npy"; of several with that name the first.
  Result<Array> read(std::string_view name) const;

  Result<std::vector<NamedArray>> read_all() const;

 private:
  struct Close {
    void operator()(zip* archive) const noexcept;
  };

  Result<Array> read_entry(std::size_t index) const;

  MappedFile file_;  // outlives archive_, which reads from it
  std::unique_ptr<zip, Close> archive_;
  std::vector<std::string> names_;
};

/// A deflated archive. Fails when two arrays have the same name, a name has a zero byte, or npy cannot hold a type.
Result<std::vector<std::byte>> encode_npz(std::span<const NamedArray> arrays);

Result<std::vector<NamedArray>> read_npz(const std::string& path);
Result<void> write_npz(const std::string& path, std::span<const NamedArray> arrays);

}  // namespace bantam::io
