// The package reader: on the bytes as they are, which the hashes stop, and with sizes and hashes put right, so that the
// structure is what has to stop a hostile file.
#include <cstring>
#include <memory>
#include <new>

#include "base/hash.h"
#include "package/format.h"
#include "support.h"
#include "targets.h"

namespace bantam::fuzz {
namespace {

constexpr std::align_val_t kAlignment{format::kWeightAlignment};

struct Free {
  void operator()(std::byte* memory) const { ::operator delete(memory, kAlignment); }
};

/// Makes the header agree with the bytes as far as the sizes in it allow.
void fix_header(std::byte* package, std::size_t size) {
  format::Header header;
  if (size < sizeof header) return;
  std::memcpy(&header, package, sizeof header);
  std::memcpy(header.magic, format::kMagic, sizeof header.magic);
  header.version = format::kVersion;
  header.file_bytes = size;
  if (header.weights_offset <= size && header.weights_offset >= sizeof header &&
      header.meta_bytes <= header.weights_offset - sizeof header) {
    header.meta_hash = hash64(package + sizeof header, static_cast<std::size_t>(header.meta_bytes));
    header.weights_hash =
        hash64(package + header.weights_offset, size - static_cast<std::size_t>(header.weights_offset));
  }
  header.header_hash = hash64(&header, sizeof header - sizeof header.header_hash);
  std::memcpy(package, &header, sizeof header);
}

}  // namespace

void fuzz_package(std::span<const std::byte> bytes) {
  // An aligned copy whose allocation ends where the package ends, so that AddressSanitizer sees a read beyond it.
  const std::unique_ptr<std::byte, Free> package(
      static_cast<std::byte*>(::operator new(bytes.size(), kAlignment, std::nothrow)));
  require(package != nullptr, "no memory for the package");
  if (!bytes.empty()) std::memcpy(package.get(), bytes.data(), bytes.size());
  run_package({package.get(), bytes.size()});
  fix_header(package.get(), bytes.size());
  run_package({package.get(), bytes.size()});
}

}  // namespace bantam::fuzz
