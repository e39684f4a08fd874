// lstm_q of int8 for small cores: inner products of one vector by two rows of weights at a time.
#include <cstddef>

#include "ops/common/dot_i8.h"
#include "ops/common/operands.h"
#include "ops/nn/lstm_q/kernels.h"

namespace bantam::ops::lstm_q {
namespace {

/// sums[o] += products of `x` with rows 0 ... O-1 of `w`.
template <int O>
void accumulate_rows(const std::int8_t* x, std::int32_t zero_point, const std::int8_t* w, std::int64_t n,
                     std::uint32_t (&sums)[1][O]) {
  const auto length = static_cast<std::ptrdiff_t>(n);
  const std::int8_t* const left[1] = {x};
  const std::int8_t* rows[O];
  for (int o = 0; o < O; ++o) rows[o] = w + o * length;
  const std::int8_t* const(&fixed_rows)[O] = rows;
  accumulate_i8(left, zero_point, fixed_rows, length, sums);
}

class Int8Gates {
 public:
  Int8Gates(const Invocation& call, const Extents& e)
      : p_(call.as<LstmQParams>()),
        e_(e),
        w_(call.input<std::int8_t>(kW)),
        r_(call.input<std::int8_t>(kR)),
        bias_(call.input<std::int32_t>(kB)) {}

  void operator()(const std::int8_t* x, const std::int8_t* h, std::int16_t* gates) const {
    for (int g = 0; g < kGates; ++g) {
      const std::int64_t last = (g + 1) * e_.hidden;
      std::int64_t row = g * e_.hidden;
      for (; row + 2 <= last; row += 2) rows<2>(g, row, x, h, gates);
      if (row < last) rows<1>(g, row, x, h, gates);
    }
  }

 private:
  template <int O>
  void rows(int g, std::int64_t row, const std::int8_t* x, const std::int8_t* h, std::int16_t* gates) const {
    std::uint32_t of_input[1][O] = {};
    std::uint32_t of_state[1][O] = {};
    accumulate_rows<O>(x, p_.input_zero_point, w_ + row * e_.input, e_.input, of_input);
    accumulate_rows<O>(h, p_.hidden_zero_point, r_ + row * e_.hidden, e_.hidden, of_state);
    for (int o = 0; o < O; ++o)
      gates[row + o] = saturate16(scaled_sum(of_input[0][o] + static_cast<std::uint32_t>(bias_[row + o]),
                                             p_.input_multiplier[g], p_.input_shift[g]) +
                                  scaled_sum(of_state[0][o], p_.recurrent_multiplier[g], p_.recurrent_shift[g]));
  }

  const LstmQParams& p_;
  const Extents& e_;
  const std::int8_t* w_;
  const std::int8_t* r_;
  const std::int32_t* bias_;
};

}  // namespace

bool portable_supports(const OpCall& call) { return call.in(kX).type == ElementType::kI8 && all_dense(call); }

Status run_portable(const Invocation& call) {
  const Extents e = extents_of(call.in(kX), call.in(kR));
  run_sequence<std::int8_t>(call, Int8Gates(call, e));
  return ok_status();
}

}  // namespace bantam::ops::lstm_q
