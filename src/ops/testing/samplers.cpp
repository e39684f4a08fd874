#include "ops/testing/samplers.h"

namespace bantam::ops::testing {

const SamplerRow* find_sampler(const OpDef& op) {
  for (const auto rows : {data_samplers(), elementwise_samplers(), nn_samplers(), reduce_samplers(),
                          quantized_samplers(), signal_samplers(), spatial_samplers(), tflite_samplers()})
    for (const SamplerRow& row : rows)
      if (row.op == &op) return &row;
  return nullptr;
}

TensorDesc with_dim(TensorDesc desc, int axis, std::int64_t dim) {
  desc.dims[axis] = static_cast<std::int32_t>(dim);
  desc.set_dense_strides();
  return desc;
}

TensorDesc with_type(TensorDesc desc, ElementType type) {
  desc.type = type;
  return desc;
}

TensorDesc broadcastable(const TensorDesc& desc, Sampling& s) {
  const int left_out = s.one_in(3) ? s.pick(0, desc.rank) : 0;
  std::vector<std::int64_t> dims(desc.dims + left_out, desc.dims + desc.rank);
  for (std::int64_t& d : dims)
    if (s.one_in(4)) d = 1;
  return dense_desc(desc.type, dims);
}

}  // namespace bantam::ops::testing
