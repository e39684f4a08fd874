#include "package/size_patches.h"

#include <limits>
#include <optional>

#include "base/shape.h"
#include "ops/common/operands.h"

namespace bantam::format {
namespace {

Status bad(const char* message, std::int64_t found = 0, std::int64_t expected = 0) {
  return failure(StatusCode::kInvalidPackage, message, found, expected);
}

Status verify_dimension(const Dimension& dimension) {
  if (dimension.least() < 0 || dimension.bound() < 1 || dimension.least() > dimension.bound())
    return bad("a dimension's limits contradict each other", dimension.least(), dimension.bound());
  return ok_status();
}

Status verify_patch(const Model& model, const SizePatch& patch) {
  const std::uint32_t dimensions = dimension_count(model);
  if (patch.divisor() == 0) return bad("a size is divided by zero");
  if (first_dimension(patch) > dimensions || second_dimension(patch) > dimensions)
    return bad("a size names no dimension", patch.dims(), dimensions);
  if (patch.field() >= kSizeFieldCount) return bad("a size belongs to no field", patch.field(), kSizeFieldCount);
  if (patch.field() == kParamField)
    return patch.index() < model.params()->size() ? ok_status() : bad("a size names no parameter", patch.index());
  if (patch.index() >= model.values()->size()) return bad("a size names no value", patch.index());
  if (model.values()->Get(patch.index())->slot() == kWeights) return bad("a constant changes its size", patch.index());
  return ok_status();
}

/// floor((base + scale * x * y) / divisor), or nothing when a number on the way leaves int64.
std::optional<std::int64_t> evaluate(const SizePatch& patch, const std::int32_t* sizes) {
  const auto size = [&](std::uint32_t dimension) { return dimension == 0 ? 1 : std::int64_t{sizes[dimension - 1]}; };
  const auto area = size(first_dimension(patch)) * size(second_dimension(patch));  // of two numbers below 2^31
  const auto scaled = checked_multiply(area, patch.scale());
  const auto sum = scaled ? checked_add(*scaled, patch.base()) : std::nullopt;
  if (!sum) return std::nullopt;
  const std::int64_t quotient = *sum / patch.divisor();
  return *sum % patch.divisor() < 0 ? quotient - 1 : quotient;
}

bool fits_word(std::int64_t number) {
  return number >= std::numeric_limits<std::int32_t>::min() && number <= std::numeric_limits<std::int32_t>::max();
}

Value patched(const Value& value, std::uint8_t field, std::int64_t number) {
  TensorDesc desc = *desc_of(value);
  auto offset = value.offset();
  if (field < kStrideField) {
    desc.dims[field] = static_cast<std::int32_t>(number);
  } else if (field < kOffsetField) {
    desc.strides[field - kStrideField] = static_cast<std::int32_t>(number);
  } else if (field == kOffsetField) {
    offset = static_cast<std::uint64_t>(number);
  } else if (check_shape(desc).ok()) {
    desc.set_dense_strides();
  }
  return make_value(desc, value.slot(), offset, value.bytes());
}

/// Brings a patched desc into the form that views have, and sets the bytes. The desc may be anything at this point: the
/// verifier has still to accept it.
void finish_value(Value& value) {
  TensorDesc desc = *desc_of(value);
  if (!check_shape(desc).ok()) return;
  const bool empty = desc.elements() == 0;
  if (empty) {
    desc.set_dense_strides();
  } else {
    ops::finish_view(&desc);
  }
  const std::uint64_t bytes =
      check_strides(desc, 2 * kMaxElements).ok()
          ? static_cast<std::uint64_t>(storage_span(desc)) * static_cast<std::uint64_t>(element_size(desc.type))
          : 0;
  value = make_value(desc, value.slot(), empty ? 0 : value.offset(), bytes);
}

}  // namespace

Status verify_patches(const Model& model) noexcept {
  if (dimension_count(model) > kMaxDimensions)
    return bad("too many dimensions", dimension_count(model), kMaxDimensions);
  for (std::uint32_t i = 0; i < dimension_count(model); ++i)
    BANTAM_RETURN_IF_ERROR(verify_dimension(*model.dimensions()->Get(i)).at(static_cast<std::int32_t>(i)));
  if (model.patches() == nullptr) return ok_status();
  for (std::uint32_t i = 0; i < model.patches()->size(); ++i)
    BANTAM_RETURN_IF_ERROR(verify_patch(model, *model.patches()->Get(i)).at(static_cast<std::int32_t>(i)));
  return ok_status();
}

Status apply_patches(const Model& model, const std::int32_t* sizes, Value* values, std::uint32_t* params) noexcept {
  if (model.patches() == nullptr) return ok_status();
  // Strides that no patch gives stand only in the package: at some sizes a view has others.
  for (const SizePatch* patch : *model.patches())
    if (patch->field() != kParamField) values[patch->index()] = *model.values()->Get(patch->index());
  for (const SizePatch* patch : *model.patches()) {
    const auto number = evaluate(*patch, sizes);
    // A negative offset is that of a value without elements, or one beyond every region.
    if (!number || (patch->field() != kOffsetField && !fits_word(*number))) return bad("a size leaves its type");
    if (patch->field() == kParamField) {
      params[patch->index()] = static_cast<std::uint32_t>(*number);
    } else {
      values[patch->index()] = patched(values[patch->index()], patch->field(), *number);
    }
  }
  for (const SizePatch* patch : *model.patches())
    if (patch->field() != kParamField) finish_value(values[patch->index()]);
  return ok_status();
}

}  // namespace bantam::format
