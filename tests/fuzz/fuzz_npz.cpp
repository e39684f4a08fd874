#include "io/npz.h"
#include "support.h"
#include "targets.h"

namespace bantam::fuzz {

void fuzz_npz(std::span<const std::byte> bytes) {
  const auto reader = io::NpzReader::from_memory(bytes);
  if (!reader) {
    require_message(reader.error());
    return;
  }
  for (const std::string& name : reader->names()) {
    require(reader->contains(name), "an archive does not contain a name that it lists");
    const auto array = reader->read(name);
    if (!array) {
      require_message(array.error());
      continue;
    }
    require(static_cast<std::int64_t>(array->data.size()) == array->desc.bytes(), "an array of the wrong size");
  }
}

}  // namespace bantam::fuzz
