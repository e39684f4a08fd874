#include "io/npy.h"
#include "preprocessing.h"
#include "support.h"
#include "targets.h"

namespace bantam::fuzz {

void fuzz_npy(std::span<const std::byte> bytes) {
  const auto array = io::parse_npy(bytes);
  if (!array) {
    require_message(array.error());
    return;
  }
  require(static_cast<std::int64_t>(array->data.size()) == array->desc.bytes(), "an array of the wrong size");
  const auto written = io::encode_npy(*array);
  require(written.has_value(), "an array that was read cannot be written");
  const auto again = io::parse_npy(*written);
  require(again.has_value() && same_shape_and_type(again->desc, array->desc) && again->data == array->data,
          "an array changes when written and read");
  preprocess_for_typical_inputs({}, *array);
}

}  // namespace bantam::fuzz
