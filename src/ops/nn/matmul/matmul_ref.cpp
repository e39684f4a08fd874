// The plain definition of matmul: every output is a sum over k in ascending order.
#include <algorithm>
#include <type_traits>

#include "ops/nn/matmul/geometry.h"
#include "ops/nn/matmul/kernels.h"

namespace bantam::ops::matmul {
namespace {

/// Multiplies row `a` by matrix `b` into row `y`, some columns at a time so that memory is read along cache lines
/// whichever way b lies. `add(acc, a, b)` extends an accumulator, `finish(acc, column)` makes it an output.
template <typename A, typename B, typename Y, typename Accumulator, typename Add, typename Finish>
void multiply_row(const MatmulGeometry& g, const A* a, const B* b, Y* y, Accumulator zero, Add add, Finish finish) {
  constexpr std::int32_t kColumns = 32;
  Accumulator sums[kColumns];
  for (std::int32_t n0 = 0; n0 < g.n; n0 += kColumns) {
    const std::int32_t columns = std::min(kColumns, g.n - n0);
    std::fill_n(sums, columns, zero);
    for (std::int32_t k = 0; k < g.k; ++k) {
      const A left = a[k * g.a.column_stride];
      const B* right = b + k * g.b.row_stride + n0 * g.b.column_stride;
      for (std::int32_t n = 0; n < columns; ++n) sums[n] = add(sums[n], left, right[n * g.b.column_stride]);
    }
    for (std::int32_t n = 0; n < columns; ++n) y[n0 + n] = finish(sums[n], n0 + n);
  }
}

/// Calls f(y, a, b) with the first elements of every row of y and a and the matrix b that they belong to.
template <typename A, typename B, typename Y, typename F>
void for_each_matrix_row(const Invocation& call, const MatmulGeometry& g, F f) {
  for_each_element(g.batch, [&](const auto& offsets) {
    for (std::int32_t m = 0; m < g.m; ++m)
      f(call.output<Y>() + offsets[0] + m * g.y.row_stride, call.input<A>(0) + offsets[1] + m * g.a.row_stride,
        call.input<B>(1) + offsets[2]);
  });
}

void run_float(const Invocation& call, const MatmulGeometry& g) {
  const auto* bias = optional_input<float>(call, 2);
  const Activation& activation = call.as<MatmulParams>().activation;
  for_each_matrix_row<float, float, float>(call, g, [&](float* y, const float* a, const float* b) {
    multiply_row(
        g, a, b, y, 0.0F, [](float sum, float left, float right) { return sum + left * right; },
        [&](float sum, std::int32_t n) { return apply_activation(bias != nullptr ? sum + bias[n] : sum, activation); });
  });
}

void run_int8(const Invocation& call, const MatmulGeometry& g) {
  const auto& p = call.as<MatmulParams>();
  const Requantizer requantize = make_requantizer(call, int8_range(p));
  const std::int32_t a_zero = p.input_zero_point;
  const std::int32_t b_zero = p.weights_zero_point;
  for_each_matrix_row<std::int8_t, std::int8_t, std::int8_t>(
      call, g, [&](std::int8_t* y, const std::int8_t* a, const std::int8_t* b) {
        multiply_row(
            g, a, b, y, std::uint32_t{0},
            [a_zero, b_zero](std::uint32_t sum, std::int8_t left, std::int8_t right) {
              return sum + static_cast<std::uint32_t>((left - a_zero) * (right - b_zero));
            },
            requantize);
      });
}

void run_int16(const Invocation& call, const MatmulGeometry& g) {
  const Requantizer16 requantize = make_requantizer16(call, int8_range(call.as<MatmulParams>()));
  for_each_matrix_row<std::int16_t, std::int8_t, std::int16_t>(
      call, g, [&](std::int16_t* y, const std::int16_t* a, const std::int8_t* b) {
        multiply_row(
            g, a, b, y, std::uint64_t{0},
            [](std::uint64_t sum, std::int16_t left, std::int8_t right) {
              return sum + static_cast<std::uint64_t>(std::int64_t{left * right});
            },
            requantize);
      });
}

RowQuantization quantize_row(const float* x, std::int64_t n, std::int8_t* q) {
  const float scale = symmetric_scale(largest_magnitude(x, n, 0.0F));
  quantize_symmetric(x, n, scale, q);
  return {scale, 0};
}

void run_hybrid(const Invocation& call, const MatmulGeometry& g) {
  const HybridScaler scaler = make_hybrid_scaler(call);
  const Activation& activation = call.as<MatmulParams>().activation;
  const bool asymmetric = call.as<MatmulParams>().asymmetric != 0;
  auto* q = reinterpret_cast<std::int8_t*>(call.scratch);
  for_each_matrix_row<float, std::int8_t, float>(call, g, [&](float* y, const float* a, const std::int8_t* b) {
    const RowQuantization row = asymmetric ? quantize_asymmetric(a, g.k, q) : quantize_row(a, g.k, q);
    multiply_row(
        g, q, b, y, std::uint32_t{0},
        [zero_point = row.zero_point](std::uint32_t sum, std::int8_t left, std::int8_t right) {
          return sum + static_cast<std::uint32_t>((left - zero_point) * right);
        },
        [&](std::uint32_t sum, std::int32_t n) { return apply_activation(scaler(sum, row.scale, n), activation); });
  });
}

/// Integers are summed without a sign, so that they wrap.
template <typename T>
void run_plain(const Invocation& call, const MatmulGeometry& g) {
  using Sum = std::conditional_t<std::is_integral_v<T>, std::uint64_t, T>;
  const auto* bias = optional_input<T>(call, 2);
  for_each_matrix_row<T, T, T>(call, g, [&](T* y, const T* a, const T* b) {
    multiply_row(
        g, a, b, y, Sum{0},
        [](Sum sum, T left, T right) { return sum + static_cast<Sum>(left) * static_cast<Sum>(right); },
        [&](Sum sum, std::int32_t n) {
          return static_cast<T>(bias != nullptr ? sum + static_cast<Sum>(bias[n]) : sum);
        });
  });
}

}  // namespace

Footprint reference_footprint(const OpCall& call, int /*threads*/) {
  Footprint result;
  // One quantised row of a.
  if (linear_form(call.in(0), call.in(1)) == LinearForm::kHybrid) result.scratch_bytes = call.in(0).last(0);
  return result;
}

Status run_reference(const Invocation& call) {
  const MatmulGeometry g = matmul_geometry(call.as<MatmulParams>(), call.in(0), call.in(1), call.out());
  const bool plain = is_plain_product(call.in(0).type) &&
                     dispatch_type<double, std::int32_t, std::uint32_t, std::int64_t, std::uint64_t>(
                         call.in(0).type, [&](auto tag) { run_plain<typename decltype(tag)::type>(call, g); });
  if (plain) return ok_status();
  switch (linear_form(call.in(0), call.in(1))) {
    case LinearForm::kFloat: run_float(call, g); break;
    case LinearForm::kInt8: run_int8(call, g); break;
    case LinearForm::kInt16: run_int16(call, g); break;
    case LinearForm::kHybrid: run_hybrid(call, g); break;
  }
  return ok_status();
}

}  // namespace bantam::ops::matmul
