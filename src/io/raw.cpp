#include "io/raw.h"

#include <algorithm>

#include "base/shape.h"
#include "fmt/format.h"
#include "io/file.h"

namespace bantam::io {

Result<Array> parse_raw(std::span<const std::byte> bytes, const TensorDesc& desc) {
  if (const Status status = check_shape(desc); !status.ok()) return fail(error_from(status));
  // Compared before the array is made: a large shape must not allocate for a small file.
  if (bytes.size() != static_cast<std::size_t>(desc.bytes()))
    return fail(StatusCode::kInvalidArgument,
                fmt::format("raw data have {} bytes, {} takes {}", bytes.size(), describe(desc), desc.bytes()),
                "give a file of exactly that size, or state its element type with type=");
  auto array = make_array(desc);
  if (!array) return array;
  std::ranges::copy(bytes, array->data.begin());
  if (desc.type == ElementType::kBool)
    for (Bool8& element : elements_of<Bool8>(*array)) element.value = element.value != 0 ? 1 : 0;
  return array;
}

Result<Array> read_raw(const std::string& path, const TensorDesc& desc) {
  const auto file = MappedFile::open(path);
  if (!file) return fail(file.error());
  return in_file(path, parse_raw(file->bytes(), desc));
}

}  // namespace bantam::io
