// lstm_q of int8 on packed weights: the inputs' share of the gates is one matrix product for many steps, the state's
// share one product of a row per step.
#include "base/shape.h"
#include "ops/common/operands.h"
#include "ops/nn/gemm/gemm_i8.h"
#include "ops/nn/lstm_q/kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/nn/lstm_q/lstm_q_simd.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "ops/common/fixed_point_i16_simd-inl.h"
#include "ops/common/fixed_point_simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bantam::ops::lstm_q::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using ops::HWY_NAMESPACE::load_wide;
using ops::HWY_NAMESPACE::logistic_i16;
using ops::HWY_NAMESPACE::multiply_by_quantized_multiplier;
using ops::HWY_NAMESPACE::store_narrow;
using ops::HWY_NAMESPACE::tanh_i16;

using D32 = hn::ScalableTag<std::int32_t>;
using V32 = hn::Vec<D32>;

HWY_INLINE V32 limit16(V32 x) { return hn::Min(hn::Max(x, hn::Set(D32(), -32768)), hn::Set(D32(), 32767)); }

/// scaled_sum of 32-bit sums, or a number that saturate16 limits likewise.
HWY_INLINE V32 scale_sums(const std::int32_t* sums, std::int32_t multiplier, std::int32_t shift) {
  const D32 d;
  return limit16(multiply_by_quantized_multiplier(d, hn::LoadU(d, sums), hn::Set(d, multiplier), shift));
}

/// The Q12 sums of all gates of one batch item.
void scale_gates(const LstmQParams& p, std::int64_t hidden, const std::int32_t* of_input, const std::int32_t* of_state,
                 std::int16_t* gates) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(D32()));
  for (int g = 0; g < kGates; ++g, of_input += hidden, of_state += hidden, gates += hidden) {
    std::int64_t i = 0;
    for (; i + lanes <= hidden; i += lanes) {
      const V32 input = scale_sums(of_input + i, p.input_multiplier[g], p.input_shift[g]);
      const V32 state = scale_sums(of_state + i, p.recurrent_multiplier[g], p.recurrent_shift[g]);
      store_narrow<std::int16_t>(D32(), limit16(hn::Add(input, state)), gates + i);
    }
    for (; i < hidden; ++i)
      gates[i] = saturate16(
          scaled_sum(static_cast<std::uint32_t>(of_input[i]), p.input_multiplier[g], p.input_shift[g]) +
          scaled_sum(static_cast<std::uint32_t>(of_state[i]), p.recurrent_multiplier[g], p.recurrent_shift[g]));
  }
}

/// update_state from the first state on.
void update_states(const LstmQParams& p, std::int64_t hidden, const std::int16_t* gates, std::int8_t* h,
                   std::int16_t* c) {
  const D32 d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int32_t clip = p.cell_clip > 0 ? p.cell_clip : 32768;
  const ActivationInput16 from_q12{};
  const ActivationInput16 from_cell{p.tanh_multiplier, p.tanh_right_shift};
  const auto product = [&](V32 a, V32 b, std::int32_t multiplier, std::int32_t shift) HWY_ATTR {
    return multiply_by_quantized_multiplier(d, hn::Mul(a, b), hn::Set(d, multiplier), shift);
  };
  const auto gate = [&](int g, std::int64_t i) HWY_ATTR { return load_wide(d, gates + g * hidden + i); };
  std::int64_t i = 0;
  for (; i + lanes <= hidden; i += lanes) {
    const V32 input = logistic_i16(d, gate(kInputGate, i), from_q12);
    const V32 forget = logistic_i16(d, gate(kForgetGate, i), from_q12);
    const V32 cell = tanh_i16(d, gate(kCellGate, i), from_q12);
    const V32 output = logistic_i16(d, gate(kOutputGate, i), from_q12);
    const V32 kept = limit16(product(forget, load_wide(d, c + i), p.forget_multiplier, p.forget_shift));
    const V32 added = limit16(product(input, cell, p.cell_multiplier, p.cell_shift));
    const V32 unclipped = limit16(hn::Add(kept, added));
    const V32 next = hn::Min(hn::Max(unclipped, hn::Set(d, -clip)), hn::Set(d, clip));
    store_narrow<std::int16_t>(d, next, c + i);
    const V32 scaled = product(tanh_i16(d, next, from_cell), output, p.hidden_multiplier, p.hidden_shift);
    // Limited before the zero point is added, which then cannot leave int32.
    const V32 limited =
        hn::Min(hn::Max(scaled, hn::Set(d, -128 - p.hidden_zero_point)), hn::Set(d, 127 - p.hidden_zero_point));
    store_narrow<std::int8_t>(d, hn::Add(limited, hn::Set(d, p.hidden_zero_point)), h + i);
  }
  update_state(p, i, hidden, gates, h, c);
}

}  // namespace
}  // namespace bantam::ops::lstm_q::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bantam::ops::lstm_q {

HWY_EXPORT(scale_gates);
HWY_EXPORT(update_states);

namespace {

/// Rows of x whose products are computed at once: enough for the matrix kernel, and the fewest that are worth it.
constexpr std::int64_t kRowsAtOnce = 16;
constexpr std::int64_t kLeastRowsAtOnce = 4;

std::int64_t rows_at_once(const Extents& e) { return std::min(e.steps * e.batch, kRowsAtOnce); }

template <typename T>
constexpr std::int64_t region_bytes(std::int64_t count) {
  return align_up(count * static_cast<std::int64_t>(sizeof(T)), kAlignment);
}

/// Where the regions of the scratch memory begin, behind the gates.
struct Layout {
  Layout(const Extents& e, std::int64_t rows, std::int64_t numbers)
      : of_state(align_up(gate_bytes(e), kAlignment)),
        products(of_state + region_bytes<std::int32_t>(kGates * e.hidden)),
        workspace(products + region_bytes<std::int32_t>(rows * kGates * e.hidden)),
        end(workspace + region_bytes<std::int16_t>(numbers)) {}

  std::int64_t of_state;   ///< the products of the hidden state of one batch item, [4H]
  std::int64_t products;   ///< of rows of x, [rows at once, 4H]
  std::int64_t workspace;  ///< for the left matrix of either
  std::int64_t end;
};

std::int64_t longest_row(const Extents& e) { return std::max(e.input, e.hidden); }

Layout least_layout(const Extents& e) {
  const std::int64_t rows = std::clamp<std::int64_t>(rows_at_once(e), 1, kLeastRowsAtOnce);
  return {e, rows, gemm::least_numbers(rows, longest_row(e))};
}

Layout useful_layout(const Extents& e) {
  const std::int64_t rows = rows_at_once(e);
  return {e, rows, std::max(gemm::row_numbers(e.hidden), rows * gemm::row_numbers(e.input))};
}

/// As many rows at once as the scratch has room for, beside a workspace for them.
std::int64_t rows_in(const Extents& e, std::int64_t scratch_bytes) {
  if (scratch_bytes >= useful_layout(e).end) return rows_at_once(e);
  std::int64_t rows = 1;
  while (rows < rows_at_once(e) &&
         Layout(e, rows + 1, gemm::least_numbers(rows + 1, longest_row(e))).end <= scratch_bytes)
    ++rows;
  return rows;
}

/// Neighbouring rows of int8.
gemm::LeftSource rows_of(const std::int8_t* data, std::int64_t rows, std::int64_t k, std::int32_t zero_point) {
  const gemm::ByteForm form = gemm::byte_form(0, zero_point);
  return {.rows = rows,
          .k = k,
          .flip = form.flip,
          .zero = form.zero,
          .data = reinterpret_cast<const std::uint8_t*>(data),
          .row_stride = k};
}

class PackedGates {
 public:
  PackedGates(const Invocation& call, const Extents& e)
      : p_(call.as<LstmQParams>()),
        e_(e),
        columns_(kGates * e.hidden),
        w_{call.input<std::int8_t>(kW), columns_, 0, gemm::panel_count(columns_)},
        r_{call.input<std::int8_t>(kR), columns_, 0, gemm::panel_count(columns_)},
        bias_(call.input<std::int32_t>(kB)),
        rows_left_(e.steps * e.batch),
        rows_at_once_(rows_in(e, call.scratch_bytes)) {
    const Layout layout(e, rows_at_once_, 0);
    products_ = reinterpret_cast<std::int32_t*>(call.scratch + layout.products);
    of_state_ = reinterpret_cast<std::int32_t*>(call.scratch + layout.of_state);
    workspace_ = {reinterpret_cast<std::int16_t*>(call.scratch + layout.workspace),
                  (call.scratch_bytes - layout.workspace) / static_cast<std::int64_t>(sizeof(std::int16_t))};
  }

  void operator()(const std::int8_t* x, const std::int8_t* h, std::int16_t* gates) {
    if (next_ == available_) multiply_inputs(x);
    multiply(rows_of(h, 1, e_.hidden, p_.hidden_zero_point), workspace_, r_, result(of_state_, nullptr));
    HWY_DYNAMIC_DISPATCH(scale_gates)(p_, e_.hidden, products_ + next_++ * columns_, of_state_, gates);
  }

 private:
  gemm::AffineResult<std::int32_t> result(std::int32_t* data, const std::int32_t* bias) const {
    return {.data = data, .row_stride = columns_, .scaler = {.bias = bias}, .zero_points = {}};
  }

  /// The products of the next rows, which begin at `x`, with bias.
  void multiply_inputs(const std::int8_t* x) {
    next_ = 0;
    available_ = std::min(rows_left_, rows_at_once_);
    rows_left_ -= available_;
    multiply(rows_of(x, available_, e_.input, p_.input_zero_point), workspace_, w_, result(products_, bias_));
  }

  const LstmQParams& p_;
  const Extents& e_;
  std::int64_t columns_;
  gemm::RightPanelsI8 w_;
  gemm::RightPanelsI8 r_;
  const std::int32_t* bias_;
  std::int32_t* products_ = nullptr;
  std::int32_t* of_state_ = nullptr;
  gemm::Workspace workspace_;
  std::int64_t rows_left_;
  std::int64_t rows_at_once_;
  std::int64_t available_ = 0;  ///< rows in products_
  std::int64_t next_ = 0;       ///< the first that was not used
};

}  // namespace

bool packed_supports(const OpCall& call) {
  return portable_supports(call) && call.inputs[kW].data != nullptr && call.inputs[kR].data != nullptr;
}

Footprint packed_footprint(const OpCall& call, int threads) {
  Footprint result = footprint(call, threads);
  const Extents e = extents_of(call.in(kX), call.in(kR));
  result.scratch_bytes = least_layout(e).end;
  result.useful_scratch_bytes = useful_layout(e).end;
  return result;
}

std::int64_t packed_bytes(const OpCall& call, int input) {
  if (input != kW && input != kR) return 0;
  return gemm::packed_i8_bytes(call.in(input).dims[1], call.in(input).dims[0]);
}

void pack(const OpCall& call, int input, std::byte* destination) {
  const std::int64_t columns = call.in(input).dims[0];
  const std::int64_t k = call.in(input).dims[1];
  gemm::pack_panels_i8(static_cast<const std::int8_t*>(call.inputs[static_cast<std::size_t>(input)].data), k, columns,
                       1, k, 0, reinterpret_cast<std::int8_t*>(destination));
}

Status run_packed(const Invocation& call) {
  const Extents e = extents_of(call.in(kX), call.in(kR));
  run_sequence<std::int8_t>(call, PackedGates(call, e), HWY_DYNAMIC_DISPATCH(update_states));
  return ok_status();
}

}  // namespace bantam::ops::lstm_q
#endif
