#include "support.h"
#include "targets.h"

namespace bantam::fuzz {

void fuzz_tflite(std::span<const std::byte> bytes) {
  import_and_run(bytes, import::import_tflite, import::declare_tflite);
}

}  // namespace bantam::fuzz
