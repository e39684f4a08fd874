#include "preprocessing.h"

#include <initializer_list>
#include <vector>

#include "support.h"

namespace bantam::fuzz {
namespace {

io::InputTarget target_of(ElementType type, std::initializer_list<std::int32_t> dims, Quantization quantization = {}) {
  io::InputTarget target{"x", {}, quantization};
  target.desc.type = type;
  for (const std::int32_t dim : dims) target.desc.dims[target.desc.rank++] = dim;
  target.desc.set_dense_strides();
  return target;
}

}  // namespace

void preprocess_for_typical_inputs(const io::InputSpec& spec, const io::Source& source) {
  const io::InputTarget targets[] = {
      target_of(ElementType::kF32, {1, 64}),
      target_of(ElementType::kI16, {1, 64, 2}),
      target_of(ElementType::kI8, {40}, {0.25F, -3}),
      target_of(ElementType::kF32, {1, 3, 9, 7}),
      target_of(ElementType::kU8, {1, 8, 12, 3}, {0.0078125F, 128}),
      target_of(ElementType::kF16, {6, 5}),
      target_of(ElementType::kI64, {}),
  };
  for (const io::InputTarget& target : targets) {
    const auto array =
        spec.kind == io::SourceKind::kFile ? io::preprocess(spec, source, target) : io::generate(spec, target);
    if (!array) {
      require_message(array.error());
      continue;
    }
    require(same_shape_and_type(array->desc, target.desc), "preprocessing gives another shape or type");
    require(static_cast<std::int64_t>(array->data.size()) == target.desc.bytes(), "preprocessing gives other bytes");
  }
}

}  // namespace bantam::fuzz
