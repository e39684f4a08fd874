// lstm_q of int8 on packed weights: the inputs' share of the gates is one matrix product for many steps, the state's
// share one product of a row per step.
#include "base/shape.h"
#include "ops/common/operands.h"
#include "ops/nn/gemm/gemm_i8.h"
#include "ops/nn/lstm_q/kernels.h"

namespace bantam::ops::lstm_q {
namespace {

/// Rows of x whose products are computed at once: enough for the matrix kernel, little scratch.
constexpr std::int64_t kRowsAtOnce = 16;

std::int64_t rows_at_once(const Extents& e) { return std::min(e.steps * e.batch, kRowsAtOnce); }

constexpr std::int64_t row_numbers(std::int64_t k) { return 2 * gemm::pair_count(k); }

template <typename T>
constexpr std::int64_t region_bytes(std::int64_t count) {
  return align_up(count * static_cast<std::int64_t>(sizeof(T)), kAlignment);
}

/// Where the regions of the scratch memory begin, behind the gates.
struct Layout {
  explicit Layout(const Extents& e)
      : rows(align_up(gate_bytes(e), kAlignment)),
        products(rows + region_bytes<std::int16_t>(rows_at_once(e) * row_numbers(e.input))),
        state(products + region_bytes<std::int32_t>(rows_at_once(e) * kGates * e.hidden)),
        of_state(state + region_bytes<std::int16_t>(row_numbers(e.hidden))),
        end(of_state + region_bytes<std::int32_t>(kGates * e.hidden)) {}

  std::int64_t rows;      ///< widened rows of x
  std::int64_t products;  ///< [rows at once, 4H]
  std::int64_t state;     ///< the widened hidden state of one batch item
  std::int64_t of_state;  ///< its products, [4H]
  std::int64_t end;
};

void widen_row(const std::int8_t* from, std::int64_t n, std::int32_t zero_point, std::int16_t* to) {
  gemm::widen(from, n, zero_point, to);
  if (n % 2 != 0) to[n] = 0;
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
        rows_left_(e.steps * e.batch) {
    const Layout layout(e);
    rows_ = reinterpret_cast<std::int16_t*>(call.scratch + layout.rows);
    products_ = reinterpret_cast<std::int32_t*>(call.scratch + layout.products);
    state_ = reinterpret_cast<std::int16_t*>(call.scratch + layout.state);
    of_state_ = reinterpret_cast<std::int32_t*>(call.scratch + layout.of_state);
  }

  void operator()(const std::int8_t* x, const std::int8_t* h, std::int16_t* gates) {
    if (next_ == available_) multiply_inputs(x);
    widen_row(h, e_.hidden, p_.hidden_zero_point, state_);
    multiply({state_, 1, gemm::pair_count(e_.hidden)}, r_, result(of_state_, nullptr));
    const std::int32_t* of_input = products_ + next_++ * columns_;
    for (std::int64_t g = 0; g < kGates; ++g)
      for (std::int64_t i = g * e_.hidden; i < (g + 1) * e_.hidden; ++i)
        gates[i] = saturate16(
            scaled_sum(static_cast<std::uint32_t>(of_input[i]), p_.input_multiplier[g], p_.input_shift[g]) +
            scaled_sum(static_cast<std::uint32_t>(of_state_[i]), p_.recurrent_multiplier[g], p_.recurrent_shift[g]));
  }

 private:
  gemm::AffineResult<std::int32_t> result(std::int32_t* data, const std::int32_t* bias) const {
    return {.data = data, .row_stride = columns_, .scaler = {.bias = bias}, .row_sums = nullptr, .zero_points = {}};
  }

  /// The products of the next rows, which begin at `x`, with bias.
  void multiply_inputs(const std::int8_t* x) {
    next_ = 0;
    available_ = std::min(rows_left_, kRowsAtOnce);
    rows_left_ -= available_;
    for (std::int64_t m = 0; m < available_; ++m)
      widen_row(x + m * e_.input, e_.input, p_.input_zero_point, rows_ + m * row_numbers(e_.input));
    multiply({rows_, available_, gemm::pair_count(e_.input)}, w_, result(products_, bias_));
  }

  const LstmQParams& p_;
  const Extents& e_;
  std::int64_t columns_;
  gemm::RightPanelsI8 w_;
  gemm::RightPanelsI8 r_;
  const std::int32_t* bias_;
  std::int16_t* rows_ = nullptr;
  std::int32_t* products_ = nullptr;
  std::int16_t* state_ = nullptr;
  std::int32_t* of_state_ = nullptr;
  std::int64_t rows_left_;
  std::int64_t available_ = 0;  ///< rows in products_
  std::int64_t next_ = 0;       ///< the first that was not used
};

}  // namespace

bool packed_supports(const OpCall& call) {
  return portable_supports(call) && call.inputs[kW].data != nullptr && call.inputs[kR].data != nullptr;
}

Footprint packed_footprint(const OpCall& call, int threads) {
  Footprint result = footprint(call, threads);
  result.scratch_bytes = Layout(extents_of(call.in(kX), call.in(kR))).end;
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
                       1, k, reinterpret_cast<std::int8_t*>(destination));
}

Status run_packed(const Invocation& call) {
  const Extents e = extents_of(call.in(kX), call.in(kR));
  run_sequence<std::int8_t>(call, PackedGates(call, e));
  return ok_status();
}

}  // namespace bantam::ops::lstm_q
