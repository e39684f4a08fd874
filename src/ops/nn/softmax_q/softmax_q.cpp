#include "ops/nn/softmax_q/softmax_q.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "ops/common/dispatch.h"
#include "ops/common/operands.h"
#include "ops/common/params.h"
#include "ops/common/saturate.h"
#include "ops/fixed_point_i16.h"
#include "ops/nn/softmax_q/kernels.h"

namespace bantam::ops {
namespace {

using namespace softmax_q;  // NOLINT: what its kernels share

constexpr int kExpTable = 1;
constexpr int kReciprocalTable = 2;

Status check_tables(std::span<const Tensor> inputs, bool by_table) {
  for (int i = kExpTable; i <= kReciprocalTable; ++i) {
    if (is_given(inputs, i) != by_table)
      return failure(StatusCode::kInvalidModel, "tables belong to operands of i16, and only to them").at(i);
    if (!by_table) continue;
    BANTAM_RETURN_IF_ERROR(check_type(desc_of(inputs, i), ElementType::kI16, i));
    if (desc_of(inputs, i).elements() != kLookup16Size)
      return failure(StatusCode::kInvalidModel, "table has the wrong size", desc_of(inputs, i).elements(),
                     kLookup16Size)
          .at(i);
  }
  return ok_status();
}

Status infer_softmax_q(const void* params, std::span<const Tensor> inputs, std::span<TensorDesc> outputs) {
  const auto& p = *static_cast<const SoftmaxQParams*>(params);
  const TensorDesc& x = desc_of(inputs, 0);
  const ElementType to = p.to;
  const bool by_table = x.type == ElementType::kI16;
  if (x.type != ElementType::kI8 && x.type != ElementType::kU8 && !by_table)
    return failure(StatusCode::kInvalidModel, "operand must be i8, u8 or i16", static_cast<std::int64_t>(x.type),
                   static_cast<std::int64_t>(ElementType::kI8))
        .at(0);
  if (to != x.type && to != ElementType::kI16)
    return failure(StatusCode::kInvalidModel, "result must have the operand's type or i16",
                   static_cast<std::int64_t>(to), static_cast<std::int64_t>(x.type));
  if (x.rank < 1) return failure(StatusCode::kInvalidModel, "softmax needs a dimension", x.rank, 1).at(0);
  if (p.input_multiplier < 0)
    return failure(StatusCode::kInvalidModel, "input multiplier is negative", p.input_multiplier, 0);
  if (p.input_left_shift < (by_table ? -31 : 0) || p.input_left_shift > 30)
    return failure(StatusCode::kInvalidModel, "input shift is out of range", p.input_left_shift, 30);
  BANTAM_RETURN_IF_ERROR(check_tables(inputs, by_table));
  if (p.diff_min > 0) return failure(StatusCode::kInvalidModel, "smallest difference is positive", p.diff_min, 0);
  outputs[0] = x;
  outputs[0].type = to;
  outputs[0].set_dense_strides();
  return ok_status();
}

/// The result may take the operand's place where its elements are of the same size: the row's maximum and sum are known
/// before the first element is written, and each element depends on its own position only.
Footprint softmax_q_footprint(const OpCall& call, int /*threads*/) {
  Footprint footprint;
  footprint.overwrites[0] = element_size(call.out().type) == element_size(call.in(0).type) ? 1 : 0;
  return footprint;
}

template <typename In, typename Out, typename Exp>
void normalize_row(const Exp& exp, const In* x, Out* y, std::int64_t size) {
  const int maximum = *std::max_element(x, x + size);
  std::int64_t sum = 0;
  for (std::int64_t i = 0; i < size; ++i) sum += rounding_divide_by_pot(exp(maximum - x[i]), kSumIntegerBits);
  const Share share = share_of(sum, 8 * static_cast<int>(sizeof(Out)));
  constexpr std::int32_t kLow = std::numeric_limits<Out>::min();
  constexpr std::int32_t kHigh = std::numeric_limits<Out>::max();
  for (std::int64_t i = 0; i < size; ++i) {
    const std::int32_t product = saturating_rounding_doubling_high_mul(share.multiplier, exp(maximum - x[i]));
    y[i] = static_cast<Out>(std::clamp(rounding_divide_by_pot(product, share.exponent) + kLow, kLow, kHigh));
  }
}

template <typename In, typename Out, typename Exp>
void normalize_rows(const Invocation& call, const Exp& exp) {
  const std::int64_t size = call.in(0).last(0);
  const std::int64_t rows = call.in(0).elements() / size;
  for (std::int64_t r = 0; r < rows; ++r)
    normalize_row(exp, call.input<In>(0) + r * size, call.output<Out>() + r * size, size);
}

template <typename In, typename Out>
void normalize(const Invocation& call) {
  const auto& p = call.as<SoftmaxQParams>();
  const std::int64_t elements = call.in(0).elements();
  if (elements == 0) return;
  if (elements > kDifferences) {
    normalize_rows<In, Out>(call, ExpTable(p));
  } else {
    normalize_rows<In, Out>(call, [&p](int difference) { return exp_below_maximum(p, difference); });
  }
}

/// One row of i16. Its exponentials wait in y for their sum.
void normalize_row_by_table(const Invocation& call, const std::int16_t* x, std::int16_t* y, std::int64_t size) {
  const auto& p = call.as<SoftmaxQParams>();
  const std::int32_t maximum = *std::max_element(x, x + size);
  std::int64_t sum = 0;
  for (std::int64_t i = 0; i < size; ++i) {
    const std::int64_t scaled =
        multiply_by_quantized_multiplier(x[i] - maximum, p.input_multiplier, p.input_left_shift);
    y[i] = lookup_i16(saturate_integer<std::int16_t>(scaled + 32767), call.input<std::int16_t>(kExpTable));
    sum += y[i];
  }
  // The reciprocal of the sum without its leading digits, t in [1, 2), is that of 1 + (t - 1).
  const auto q15 =
      static_cast<std::uint32_t>(std::clamp<std::int64_t>(sum, 1, std::numeric_limits<std::int32_t>::max()));
  const int headroom = std::countl_zero(q15) - 1;
  const auto q16 = static_cast<std::int32_t>(((static_cast<std::int64_t>(q15) << headroom) + (1 << 13)) >> 14);
  const std::int64_t reciprocal = lookup_i16(saturate_integer<std::int16_t>(q16 - (1 << 16) - (1 << 15)),
                                             call.input<std::int16_t>(kReciprocalTable));
  const int shift = 30 - headroom;
  const std::int64_t rounding = shift > 0 ? std::int64_t{1} << (shift - 1) : 0;
  for (std::int64_t i = 0; i < size; ++i)
    y[i] = static_cast<std::int16_t>(std::clamp<std::int64_t>((y[i] * reciprocal + rounding) >> shift, 0, 32767));
}

void normalize_by_table(const Invocation& call) {
  const std::int64_t size = call.in(0).last(0);
  const std::int64_t elements = call.in(0).elements();
  for (std::int64_t row = 0; row < elements; row += size)
    normalize_row_by_table(call, call.input<std::int16_t>(0) + row, call.output<std::int16_t>() + row, size);
}

Status run_softmax_q(const Invocation& call) {
  if (call.in(0).type == ElementType::kI16) {
    normalize_by_table(call);
    return ok_status();
  }
  dispatch_type<std::int8_t, std::uint8_t>(call.in(0).type, [&](auto tag) {
    using In = typename decltype(tag)::type;
    if (call.out().type == ElementType::kI16) {
      normalize<In, std::int16_t>(call);
    } else {
      normalize<In, In>(call);
    }
  });
  return ok_status();
}

constexpr SoftmaxQParams kDefaults{};
constexpr ParamField kFields[] = {
    type_field("to", offsetof(SoftmaxQParams, to)),
    i32_field("input_multiplier", offsetof(SoftmaxQParams, input_multiplier)),
    i32_field("input_left_shift", offsetof(SoftmaxQParams, input_left_shift)),
    i32_field("diff_min", offsetof(SoftmaxQParams, diff_min)),
};
constexpr KernelVariant kVariants[] = {
#if BANTAM_SIMD
    {.name = "i8__simd",
     .supports = softmax_q::supports_bytes,
     .footprint = softmax_q_footprint,
     .run = softmax_q::run_bytes},
#endif
    {.name = "any__ref", .supports = all_dense, .footprint = softmax_q_footprint, .run = run_softmax_q},
};

}  // namespace

constexpr OpDef kSoftmaxQ{.name = "softmax_q",
                          .params_bytes = sizeof(SoftmaxQParams),
                          .default_params = &kDefaults,
                          .fields = kFields,
                          .max_inputs = 3,
                          .infer = infer_softmax_q,
                          .variants = kVariants};

}  // namespace bantam::ops
