// The table behind sampling.h: which function draws applications of which operator. Add a row to the list of the
// operator's family where the operator's parameters are more than flags and its operands more than like-shaped.
#pragma once

#include <span>

#include "ops/testing/sampling.h"

namespace bantam::ops::testing {

struct SamplerRow {
  const OpDef* op = nullptr;
  void (*draw)(Sampling& sampling) = nullptr;  ///< one attempt; infer may refuse it
};

/// By folder of src/ops, and those with ONNX's quantised arithmetic.
std::span<const SamplerRow> data_samplers();
std::span<const SamplerRow> elementwise_samplers();
std::span<const SamplerRow> nn_samplers();
std::span<const SamplerRow> reduce_samplers();
std::span<const SamplerRow> quantized_samplers();
std::span<const SamplerRow> signal_samplers();
std::span<const SamplerRow> spatial_samplers();
std::span<const SamplerRow> tflite_samplers();

/// Null: the operator is drawn by its fields.
const SamplerRow* find_sampler(const OpDef& op);

/// A desc with other dimensions or another type.
TensorDesc with_dim(TensorDesc desc, int axis, std::int64_t dim);
TensorDesc with_type(TensorDesc desc, ElementType type);

/// `desc` with some dimensions 1 and some leading ones left out: what broadcasts to it.
TensorDesc broadcastable(const TensorDesc& desc, Sampling& sampling);

}  // namespace bantam::ops::testing
