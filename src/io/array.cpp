#include "io/array.h"

#include <algorithm>
#include <bit>

#include "base/shape.h"
#include "fmt/format.h"

namespace bantam::io {

static_assert(std::endian::native == std::endian::little, "arrays are stored as the host stores numbers");

Result<Array> make_array(const TensorDesc& desc) {
  const std::vector<std::int64_t> dims(desc.dims, desc.dims + std::min<int>(desc.rank, kMaxRank));
  return make_array(desc.type, dims);
}

Result<Array> make_array(ElementType type, std::span<const std::int64_t> dims) {
  Array array;
  if (element_size(type) == 0)
    return fail(StatusCode::kUnsupported, fmt::format("an array of {} elements", element_type_name(type)),
                "use a type with whole bytes per element");
  if (dims.size() > kMaxRank)
    return fail(StatusCode::kUnsupported,
                fmt::format("an array has {} dimensions, at most {} are supported", dims.size(), kMaxRank));
  const Status status = make_desc(type, dims.data(), static_cast<int>(dims.size()), &array.desc);
  if (!status.ok()) return fail(error_from(status));
  array.data.resize(static_cast<std::size_t>(array.desc.bytes()));
  return array;
}

std::string describe(const TensorDesc& desc) {
  return fmt::format("{}[{}]", element_type_name(desc.type),
                     fmt::join(desc.dims, desc.dims + std::min<int>(desc.rank, kMaxRank), ","));
}

Result<Array> convert(const Array& array, ElementType type) {
  if (type == array.desc.type) return array;
  TensorDesc desc = array.desc;
  desc.type = type;
  auto result = make_array(desc);
  if (!result) return result;
  const bool supported = with_element_type(array.desc.type, [&]<typename From>(std::type_identity<From>) {
    with_element_type(type, [&]<typename To>(std::type_identity<To>) {
      std::ranges::transform(elements_of<From>(array), elements_of<To>(*result).begin(),
                             [](From element) { return element_from<To>(number_of(element)); });
    });
  });
  if (!supported)
    return fail(StatusCode::kUnsupported, fmt::format("no conversion from {} to {}", element_type_name(array.desc.type),
                                                      element_type_name(type)));
  return result;
}

Result<Array> quantize(const Array& real, ElementType type, Quantization quantization) {
  if (real.desc.type != ElementType::kF32)
    return fail(StatusCode::kInvalidArgument,
                fmt::format("quantisation of {}, expected f32 values", describe(real.desc)));
  if (!(quantization.scale > 0) || !std::isfinite(quantization.scale))
    return fail(StatusCode::kInvalidModel,
                fmt::format("quantisation scale is {}, expected a positive number", quantization.scale));
  TensorDesc desc = real.desc;
  desc.type = type;
  auto result = make_array(desc);
  if (!result) return result;
  bool supported = false;
  with_element_type(type, [&]<typename To>(std::type_identity<To>) {
    if constexpr (std::is_integral_v<To> && sizeof(To) <= 4) {
      supported = true;
      std::ranges::transform(elements_of<float>(real), elements_of<To>(*result).begin(), [&](float x) {
        // Both terms are integers or infinite, so that the sum in double is exact wherever it is within the range.
        return round_saturate<To>(std::round(static_cast<double>(x / quantization.scale)) + quantization.zero_point);
      });
    }
  });
  if (!supported)
    return fail(StatusCode::kUnsupported,
                fmt::format("quantisation to {}, expected an integer of at most 32 bits", element_type_name(type)));
  return result;
}

}  // namespace bantam::io
