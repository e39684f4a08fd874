// What a FrontEndPlan holds, for the front end that is made from it.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "audio/stages.h"
#include "bantam/audio.h"

namespace bantam::audio {

inline constexpr std::size_t kBlockAlignment = 64;

struct FreeBlock {
  void operator()(std::byte* block) const noexcept { ::operator delete[](block, std::align_val_t{kBlockAlignment}); }
};

/// Memory aligned as arenas need it; null when there is none.
using OwnedBlock = std::unique_ptr<std::byte[], FreeBlock>;

inline OwnedBlock allocate_block(std::size_t bytes) {
  return OwnedBlock(static_cast<std::byte*>(::operator new[](bytes, std::align_val_t{kBlockAlignment}, std::nothrow)));
}

struct FrontEndPlan::Parts {
  FrontEndConfig config;
  std::vector<ConfigChange> changes;
  FrontEndMemory memory;
  std::string pipeline;
  Compiled compiled;
  Package package;
  StageShapes shapes;
};

}  // namespace bantam::audio
