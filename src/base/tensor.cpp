#include "bantam/tensor.h"

#include <string_view>

namespace bantam {
namespace {

constexpr std::string_view kNames[] = {"none", "f32", "f16", "bf16", "f64", "i8",   "u8", "i16",
                                       "u16",  "i32", "u32", "i64",  "u64", "bool", "i4"};
static_assert(sizeof(kNames) / sizeof(kNames[0]) == static_cast<std::size_t>(ElementType::kCount));

}  // namespace

const char* element_type_name(ElementType type) noexcept {
  return type < ElementType::kCount ? kNames[static_cast<std::size_t>(type)].data() : "?";
}

ElementType element_type_from_name(const char* name, std::size_t length) noexcept {
  const std::string_view wanted(name, length);
  for (std::size_t i = 1; i < static_cast<std::size_t>(ElementType::kCount); ++i)
    if (kNames[i] == wanted) return static_cast<ElementType>(i);
  return ElementType::kNone;
}

}  // namespace bantam
