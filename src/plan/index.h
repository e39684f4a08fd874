// Indices of buffers and steps are 32-bit, which halves the memory of a search; containers want std::size_t.
#pragma once

#include <cstddef>
#include <cstdint>

namespace bantam::plan {

/// `index` >= 0 as a container wants it.
constexpr std::size_t u(std::int32_t index) noexcept { return static_cast<std::size_t>(index); }

}  // namespace bantam::plan
