#include "ops/nn/attention/attention.h"

#include <cmath>

#include "ops/common/params.h"
#include "ops/nn/attention/kernels.h"
#include "ops/nn/attention/problem.h"

namespace bantam::ops {
namespace {

using namespace attention;  // NOLINT: this file is the operator's table

Status check_params(const AttentionParams& p) {
  if (!std::isfinite(p.scale) || !std::isfinite(p.bias_scale) || !std::isfinite(p.softcap) || p.softcap < 0)
    return failure(StatusCode::kInvalidModel, "scale, bias_scale or softcap is not a valid number");
  if (std::isnan(p.masked_value)) return failure(StatusCode::kInvalidModel, "masked_value is not a number");
  for (const std::int32_t flag :
       {p.mask_keeps, p.empty_rows_zero, p.aligned_end, p.q_heads_last, p.k_heads_last, p.v_heads_last, p.y_heads_last})
    if (!is_flag(flag)) return failure(StatusCode::kInvalidModel, "a flag is neither 0 nor 1", flag, 1);
  return ok_status();
}

/// An optional operand must broadcast to the scores without enlarging them.
Status check_scores_operand(std::span<const Tensor> inputs, int operand, ElementType type, const Problem& problem) {
  if (!is_given(inputs, operand)) return ok_status();
  const TensorDesc& desc = desc_of(inputs, operand);
  BANTAM_RETURN_IF_ERROR(check_type(desc, type, operand));
  if (desc.rank > 4) return failure(StatusCode::kInvalidModel, "operand has the wrong rank", desc.rank, 4).at(operand);
  const std::int64_t scores[] = {problem.batch, problem.q.heads, problem.q.rows, problem.k.rows};
  for (int i = 0; i < desc.rank; ++i)
    if (desc.last(i) != 1 && desc.last(i) != scores[3 - i])
      return failure(StatusCode::kInvalidModel, "operand does not broadcast to the scores", desc.last(i), scores[3 - i])
          .at(operand);
  return ok_status();
}

Status differ(const char* message, std::int64_t found, std::int64_t expected, int operand) {
  return found == expected ? ok_status() : failure(StatusCode::kInvalidModel, message, found, expected).at(operand);
}

Status infer_attention(const void* params, std::span<const Tensor> inputs, std::span<TensorDesc> outputs) {
  const auto& p = *static_cast<const AttentionParams*>(params);
  BANTAM_RETURN_IF_ERROR(check_params(p));
  for (int i = kQ; i <= kV; ++i) {
    BANTAM_RETURN_IF_ERROR(check_type(desc_of(inputs, i), ElementType::kF32, i));
    BANTAM_RETURN_IF_ERROR(check_rank(desc_of(inputs, i), 4, i));
  }
  Problem problem;
  problem.q = head_view(desc_of(inputs, kQ), p.q_heads_last != 0);
  problem.k = head_view(desc_of(inputs, kK), p.k_heads_last != 0);
  problem.v = head_view(desc_of(inputs, kV), p.v_heads_last != 0);
  problem.batch = desc_of(inputs, kQ).dims[0];
  for (const int i : {kK, kV})
    BANTAM_RETURN_IF_ERROR(differ("batch sizes differ", desc_of(inputs, i).dims[0], problem.batch, i));
  BANTAM_RETURN_IF_ERROR(differ("queries and keys have different widths", problem.k.width, problem.q.width, kK));
  BANTAM_RETURN_IF_ERROR(differ("keys and values differ in number", problem.v.rows, problem.k.rows, kV));
  BANTAM_RETURN_IF_ERROR(differ("keys and values have different heads", problem.v.heads, problem.k.heads, kV));
  if (problem.q.heads != problem.k.heads && (problem.k.heads == 0 || problem.q.heads % problem.k.heads != 0))
    return failure(StatusCode::kInvalidModel, "the heads of the keys do not divide those of the queries",
                   problem.k.heads, problem.q.heads)
        .at(kK);
  BANTAM_RETURN_IF_ERROR(check_scores_operand(inputs, kBias, ElementType::kF32, problem));
  BANTAM_RETURN_IF_ERROR(check_scores_operand(inputs, kMask, ElementType::kBool, problem));
  if (is_given(inputs, kLengths)) {
    BANTAM_RETURN_IF_ERROR(check_type(desc_of(inputs, kLengths), ElementType::kI32, kLengths));
    BANTAM_RETURN_IF_ERROR(check_rank(desc_of(inputs, kLengths), 1, kLengths));
    BANTAM_RETURN_IF_ERROR(
        differ("one length per batch item is expected", desc_of(inputs, kLengths).dims[0], problem.batch, kLengths));
  }
  std::int64_t dims[] = {problem.batch, problem.q.heads, problem.q.rows, problem.v.width};
  if (p.y_heads_last != 0) std::swap(dims[1], dims[2]);
  return make_desc(ElementType::kF32, dims, 4, &outputs[0]);
}

std::int64_t work(const OpCall& call) {
  const Problem problem = make_problem(call);
  // Both factors are element counts of tensors or less.
  return call.in(kQ).elements() * problem.k.rows + call.out().elements() * problem.k.rows;
}

constexpr AttentionParams kDefaults{};
constexpr ParamField kFields[] = {
    f32_field("scale", offsetof(AttentionParams, scale)),
    f32_field("softcap", offsetof(AttentionParams, softcap)),
    f32_field("bias_scale", offsetof(AttentionParams, bias_scale)),
    f32_field("masked_value", offsetof(AttentionParams, masked_value)),
    bool_field("mask_keeps", offsetof(AttentionParams, mask_keeps)),
    bool_field("empty_rows_zero", offsetof(AttentionParams, empty_rows_zero)),
    i32_field("left", offsetof(AttentionParams, left)),
    i32_field("right", offsetof(AttentionParams, right)),
    bool_field("aligned_end", offsetof(AttentionParams, aligned_end)),
    bool_field("q_heads_last", offsetof(AttentionParams, q_heads_last)),
    bool_field("k_heads_last", offsetof(AttentionParams, k_heads_last)),
    bool_field("v_heads_last", offsetof(AttentionParams, v_heads_last)),
    bool_field("y_heads_last", offsetof(AttentionParams, y_heads_last)),
};
constexpr KernelVariant kVariants[] = {
#if BANTAM_SIMD
    {.name = "f32_blocks__simd",
     .footprint = attention::blocks_footprint,
     .run = attention::run_blocks,
     // The rounding of a score is that of a sum of products; the exponential carries it over to the result.
     .accuracy = {Accuracy::Kind::kRelative, 3e-5F}},
#endif
    {.name = "f32__ref", .footprint = attention::reference_footprint, .run = attention::run_reference},
};

}  // namespace

constexpr OpDef kAttention{.name = "attention",
                           .params_bytes = sizeof(AttentionParams),
                           .default_params = &kDefaults,
                           .fields = kFields,
                           .min_inputs = 3,
                           .max_inputs = 6,
                           .infer = infer_attention,
                           .work = work,
                           .variants = kVariants};

}  // namespace bantam::ops
