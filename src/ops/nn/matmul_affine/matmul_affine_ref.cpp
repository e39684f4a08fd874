// The plain definition of matmul_affine.
#include "ops/nn/matmul_affine/kernels.h"

namespace bantam::ops::matmul_affine {

Status run_reference(const Invocation& call) {
  const auto& p = call.as<MatmulAffineParams>();
  const MatmulGeometry g = geometry_of(p, call.in(0), call.in(1), call.out());
  const AffineScaler scaler = make_affine_scaler(call, p.form);
  const ZeroPoints a_zeros = zero_points(call, 0, 4, p.form.input_zero_point);
  const ZeroPoints b_zeros = zero_points(call, 1, 5, p.form.weights_zero_point);
  const std::uint8_t a_flip = sign_flip(call.in(0).type);
  const std::uint8_t b_flip = sign_flip(call.in(1).type);
  with_affine_result(call, [&](auto* y) {
    for_each_element(g.batch, [&](const auto& offsets) {
      const std::uint8_t* a = call.input<std::uint8_t>(0) + offsets[1];
      const std::uint8_t* b = call.input<std::uint8_t>(1) + offsets[2];
      for (std::int64_t m = 0; m < g.m; ++m)
        for (std::int64_t n = 0; n < g.n; ++n) {
          AffineSum sum;
          for (std::int64_t k = 0; k < g.k; ++k)
            sum = sum.add(static_cast<std::int8_t>(a[m * g.a.row_stride + k] ^ a_flip) - a_zeros[m],
                          static_cast<std::int8_t>(b[k * g.b.row_stride + n * g.b.column_stride] ^ b_flip));
          scaler.store(sum.centred(b_zeros[n]), n, y + offsets[0] + m * g.y.row_stride + n);
        }
    });
  });
  return ok_status();
}

}  // namespace bantam::ops::matmul_affine
