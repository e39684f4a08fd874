#include "support.h"
#include "targets.h"

namespace bantam::fuzz {

void fuzz_onnx(std::span<const std::byte> bytes) { import_and_run(bytes, import::import_onnx, import::declare_onnx); }

}  // namespace bantam::fuzz
