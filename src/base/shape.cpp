#include "base/shape.h"

#include <algorithm>

namespace bantam {

Status check_shape(const TensorDesc& desc) noexcept {
  if (element_bits(desc.type) == 0)
    return failure(StatusCode::kInvalidModel, "unknown element type", static_cast<std::int64_t>(desc.type), 0);
  if (desc.rank > kMaxRank) return failure(StatusCode::kUnsupported, "rank is too large", desc.rank, kMaxRank);
  std::int64_t elements = 1;
  for (int i = 0; i < desc.rank; ++i) {
    if (desc.dims[i] < 0) return failure(StatusCode::kInvalidModel, "negative dimension", desc.dims[i], 0).at(i);
    // A zero dimension makes the tensor empty, but the others must still be sane together.
    elements *= std::max<std::int32_t>(desc.dims[i], 1);
    if (elements > kMaxElements)
      return failure(StatusCode::kUnsupported, "tensor has too many elements", elements, kMaxElements);
  }
  return ok_status();
}

Status check_strides(const TensorDesc& desc, std::int64_t storage_elements) noexcept {
  BANTAM_RETURN_IF_ERROR(check_shape(desc));
  std::int64_t inner = 1;  // elements that one step of the current dimension must clear
  for (int i = desc.rank - 1; i >= 0; --i) {
    if (desc.dims[i] > 1) {
      if (i == desc.rank - 1 && desc.strides[i] != 1)
        return failure(StatusCode::kInvalidModel, "innermost dimension is not contiguous", desc.strides[i], 1).at(i);
      if (desc.strides[i] < inner)
        return failure(StatusCode::kInvalidModel, "rows overlap: stride is too small", desc.strides[i], inner).at(i);
      const auto span = checked_multiply(desc.strides[i], desc.dims[i]);
      if (!span || *span > 2 * kMaxElements)
        return failure(StatusCode::kInvalidModel, "stride is too large", desc.strides[i], kMaxElements).at(i);
      inner = *span;
    }
  }
  const std::int64_t span = storage_span(desc);
  if (span > storage_elements)
    return failure(StatusCode::kInvalidModel, "tensor reaches beyond its storage", span, storage_elements);
  return ok_status();
}

std::int64_t storage_span(const TensorDesc& desc) noexcept {
  std::int64_t last = 0;
  for (int i = 0; i < desc.rank; ++i) {
    if (desc.dims[i] == 0) return 0;
    last += static_cast<std::int64_t>(desc.dims[i] - 1) * desc.strides[i];
  }
  return last + 1;
}

Status make_desc(ElementType type, const std::int64_t* dims, int rank, TensorDesc* out) noexcept {
  *out = TensorDesc{};
  out->type = type;
  if (rank < 0 || rank > kMaxRank) return failure(StatusCode::kUnsupported, "rank is too large", rank, kMaxRank);
  out->rank = static_cast<std::uint8_t>(rank);
  for (int i = 0; i < rank; ++i) {
    if (dims[i] < 0) return failure(StatusCode::kInvalidModel, "negative dimension", dims[i], 0).at(i);
    if (dims[i] > kMaxElements)
      return failure(StatusCode::kUnsupported, "dimension is too large", dims[i], kMaxElements).at(i);
    out->dims[i] = static_cast<std::int32_t>(dims[i]);
  }
  BANTAM_RETURN_IF_ERROR(check_shape(*out));
  out->set_dense_strides();
  return ok_status();
}

bool broadcast(const TensorDesc& a, const TensorDesc& b, ElementType type, TensorDesc* out) noexcept {
  const int rank = std::max<int>(a.rank, b.rank);
  TensorDesc result;
  result.type = type;
  result.rank = static_cast<std::uint8_t>(rank);
  for (int i = 0; i < rank; ++i) {
    const int ia = a.rank - 1 - i;
    const int ib = b.rank - 1 - i;
    const std::int32_t da = ia >= 0 ? a.dims[ia] : 1;
    const std::int32_t db = ib >= 0 ? b.dims[ib] : 1;
    if (da != db && da != 1 && db != 1) return false;
    result.dims[rank - 1 - i] = da == 1 ? db : da;
  }
  if (!check_shape(result).ok()) return false;
  result.set_dense_strides();
  *out = result;
  return true;
}

}  // namespace bantam
