// A libFuzzer program for the target BANTAM_FUZZ_TARGET.
#include <cstddef>
#include <cstdint>

#include "targets.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  bantam::fuzz::BANTAM_FUZZ_TARGET(std::as_bytes(std::span(data, size)));
  return 0;
}
