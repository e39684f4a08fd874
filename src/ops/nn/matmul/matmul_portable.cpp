// matmul of int8 for small cores: inner products of rows, two rows of a by two rows of the weights at a time. No
// scratch and no packed weights.
#include <cstddef>

#include "ops/common/dot_i8.h"
#include "ops/common/finish_i8.h"
#include "ops/common/unrolled.h"
#include "ops/nn/matmul/geometry.h"
#include "ops/nn/matmul/kernels.h"

namespace bantam::ops::matmul {
namespace {

class Int8Product {
 public:
  Int8Product(const Invocation& call, const MatmulGeometry& g)
      : g_(g),
        requantize_(make_requantizer(call, int8_range(call.as<MatmulParams>()))),
        zero_point_(call.as<MatmulParams>().input_zero_point) {}

  void run(const std::int8_t* a, const std::int8_t* b, std::int8_t* y) const {
    const auto a_row = static_cast<std::ptrdiff_t>(g_.a.row_stride);
    const auto y_row = static_cast<std::ptrdiff_t>(g_.y.row_stride);
    std::int32_t m = 0;
    for (; m + 2 <= g_.m; m += 2) rows<2>(a + m * a_row, b, y + m * y_row);
    if (m < g_.m) rows<1>(a + m * a_row, b, y + m * y_row);
  }

 private:
  template <int P>
  void rows(const std::int8_t* a, const std::int8_t* b, std::int8_t* y) const {
    std::int32_t n = 0;
    for (; n + 2 <= g_.n; n += 2) block<P, 2>(a, b, n, y);
    if (n < g_.n) block<P, 1>(a, b, n, y);
  }

  template <int P, int O>
  [[gnu::noinline]] void block(const std::int8_t* a, const std::int8_t* b, std::int32_t n, std::int8_t* y) const {
    std::uint32_t sums[P][O] = {};
    const std::int8_t* x[P];
    const std::int8_t* w[O];
    unrolled<P>([&](auto p) { x[p] = a + p * static_cast<std::ptrdiff_t>(g_.a.row_stride); });
    unrolled<O>([&](auto o) { w[o] = b + (n + o) * static_cast<std::ptrdiff_t>(g_.b.column_stride); });
    accumulate_i8<P, O>(x, zero_point_, w, g_.k, sums);
    finish_i8<P, O>(sums, requantize_, n, y + n, static_cast<std::ptrdiff_t>(g_.y.row_stride));
  }

  const MatmulGeometry& g_;
  Requantizer requantize_;
  std::int32_t zero_point_;
};

}  // namespace

bool portable_supports(const OpCall& call) {
  // Weights are [N,K]: infer accepts no other quantised ones.
  return linear_form(call.in(0), call.in(1)) == LinearForm::kInt8 && call.as<MatmulParams>().weights_zero_point == 0;
}

Status run_portable(const Invocation& call) {
  const MatmulGeometry g = matmul_geometry(call.as<MatmulParams>(), call.in(0), call.in(1), call.out());
  const Int8Product product(call, g);
  for_each_element(g.batch, [&](const auto& offsets) {
    product.run(call.input<std::int8_t>(0) + offsets[1], call.input<std::int8_t>(1) + offsets[2],
                call.output<std::int8_t>() + offsets[0]);
  });
  return ok_status();
}

}  // namespace bantam::ops::matmul
