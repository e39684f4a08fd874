#include "ops/nn/matmul_blocks/matmul_blocks.h"

#include "base/shape.h"
#include "ops/common/operands.h"
#include "ops/common/params.h"
#include "ops/nn/matmul_blocks/kernels.h"

namespace bantam::ops {
namespace {

constexpr ParamField kFields[] = {
    i32_field("bits", offsetof(MatmulBlocksParams, bits)),
    i32_field("block_size", offsetof(MatmulBlocksParams, block_size)),
};

constexpr MatmulBlocksParams kDefaults{};

/// Operand i must be [N, B], dense.
Status check_per_block(std::span<const Tensor> inputs, int i, const TensorDesc& weights) {
  const TensorDesc& desc = desc_of(inputs, i);
  BANTAM_RETURN_IF_ERROR(check_rank(desc, 2, i));
  if (desc.dims[0] != weights.dims[0] || desc.dims[1] != weights.dims[1])
    return failure(StatusCode::kInvalidModel, "operand does not have one number per block", desc.elements(),
                   static_cast<std::int64_t>(weights.dims[0]) * weights.dims[1])
        .at(i);
  if (!desc.is_dense()) return failure(StatusCode::kInvalidModel, "operand must be dense").at(i);
  return ok_status();
}

Status check_weights(const MatmulBlocksParams& p, std::span<const Tensor> inputs, std::int32_t k) {
  const TensorDesc& w = desc_of(inputs, 1);
  BANTAM_RETURN_IF_ERROR(check_type(w, ElementType::kU8, 1));
  BANTAM_RETURN_IF_ERROR(check_rank(w, 3, 1));
  if (p.bits != 4 && p.bits != 8) return failure(StatusCode::kUnsupported, "weights must have 4 or 8 bits", p.bits, 4);
  if (p.block_size < 2 || p.block_size % 2 != 0)
    return failure(StatusCode::kInvalidModel, "block size must be a positive multiple of 2", p.block_size, 32);
  const std::int64_t blocks = (std::int64_t{k} + p.block_size - 1) / p.block_size;
  if (w.dims[1] != blocks)
    return failure(StatusCode::kInvalidModel, "weights have the wrong number of blocks", w.dims[1], blocks).at(1);
  const std::int64_t bytes = std::int64_t{p.block_size} * p.bits / 8;
  if (w.dims[2] != bytes)
    return failure(StatusCode::kInvalidModel, "blocks have the wrong size", w.dims[2], bytes).at(1);
  if (!w.is_dense()) return failure(StatusCode::kInvalidModel, "weights must be dense").at(1);
  return ok_status();
}

Status infer_matmul_blocks(const void* params, std::span<const Tensor> inputs, std::span<TensorDesc> outputs) {
  const auto& p = *static_cast<const MatmulBlocksParams*>(params);
  const TensorDesc& a = desc_of(inputs, 0);
  BANTAM_RETURN_IF_ERROR(check_type(a, ElementType::kF32, 0));
  if (a.rank < 2) return failure(StatusCode::kInvalidModel, "operand must be a matrix", a.rank, 2).at(0);
  BANTAM_RETURN_IF_ERROR(check_weights(p, inputs, a.last(0)));
  const TensorDesc& w = desc_of(inputs, 1);
  BANTAM_RETURN_IF_ERROR(check_per_block(inputs, 2, w));
  const ElementType scale = desc_of(inputs, 2).type;
  if (scale != ElementType::kF32 && scale != ElementType::kF16)
    return failure(StatusCode::kInvalidModel, "scales must be f32 or f16", static_cast<std::int64_t>(scale),
                   static_cast<std::int64_t>(ElementType::kF32))
        .at(2);
  if (is_given(inputs, 3)) {
    BANTAM_RETURN_IF_ERROR(check_per_block(inputs, 3, w));
    const ElementType zero = desc_of(inputs, 3).type;
    if (zero != ElementType::kF32 && zero != ElementType::kU8)
      return failure(StatusCode::kInvalidModel, "zero points must be f32 or u8", static_cast<std::int64_t>(zero),
                     static_cast<std::int64_t>(ElementType::kU8))
          .at(3);
  }
  if (is_given(inputs, 4)) {
    BANTAM_RETURN_IF_ERROR(check_type(desc_of(inputs, 4), ElementType::kF32, 4));
    BANTAM_RETURN_IF_ERROR(check_rank(desc_of(inputs, 4), 1, 4));
    if (desc_of(inputs, 4).dims[0] != w.dims[0])
      return failure(StatusCode::kInvalidModel, "bias has the wrong length", desc_of(inputs, 4).dims[0], w.dims[0])
          .at(4);
  }
  std::int64_t dims[kMaxRank] = {};
  std::copy_n(a.dims, a.rank - 1, dims);
  dims[a.rank - 1] = w.dims[0];
  return make_desc(ElementType::kF32, dims, a.rank, &outputs[0]);
}

std::int64_t work(const OpCall& call) {
  // The product of an element count and a dimension, both below 2^31.
  return call.out().elements() * call.in(0).last(0);
}

constexpr KernelVariant kVariants[] = {
#if BANTAM_SIMD
    {.name = "f32_panels__simd",
     .supports = matmul_blocks::panels_supports,
     .footprint = matmul_blocks::panels_footprint,
     .packed_bytes = matmul_blocks::panels_packed_bytes,
     .pack = matmul_blocks::panels_pack,
     .run = matmul_blocks::run_panels,
     .accuracy = {Accuracy::Kind::kRelative, 1e-5F}},
#endif
    {.name = "f32__ref", .footprint = matmul_blocks::reference_footprint, .run = matmul_blocks::run_reference},
};

}  // namespace

constexpr OpDef kMatmulBlocks{.name = "matmul_blocks",
                              .params_bytes = sizeof(MatmulBlocksParams),
                              .default_params = &kDefaults,
                              .fields = kFields,
                              .min_inputs = 3,
                              .max_inputs = 5,
                              .outputs = 1,
                              .infer = infer_matmul_blocks,
                              .work = work,
                              .variants = kVariants};

}  // namespace bantam::ops
