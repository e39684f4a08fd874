// lstm_q of int8 on packed weights: the inputs' share of the gates is one matrix product for many steps, the state's
// share one product of a row per step.
#include "base/shape.h"
#include "ops/common/operands.h"
#include "ops/nn/gemm/gemm_i8.h"
#include "ops/nn/lstm_q/kernels.h"

namespace bantam::ops::lstm_q {
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
    const std::int32_t* of_input = products_ + next_++ * columns_;
    for (std::int64_t g = 0; g < kGates; ++g)
      for (std::int64_t i = g * e_.hidden; i < (g + 1) * e_.hidden; ++i)
        gates[i] = saturate16(
            scaled_sum(static_cast<std::uint32_t>(of_input[i]), p_.input_multiplier[g], p_.input_shift[g]) +
            scaled_sum(static_cast<std::uint32_t>(of_state_[i]), p_.recurrent_multiplier[g], p_.recurrent_shift[g]));
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
  run_sequence<std::int8_t>(call, PackedGates(call, e));
  return ok_status();
}

}  // namespace bantam::ops::lstm_q
