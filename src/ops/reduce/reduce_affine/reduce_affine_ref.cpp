#include "ops/common/affine_form.h"
#include "ops/common/dispatch.h"
#include "ops/reduce/reduce_affine/kernels.h"
#include "ops/reduce/reduce_loops.h"

namespace bantam::ops {

Status run_reduce_affine_ref(const Invocation& invocation) {
  const auto& p = invocation.as<ReduceAffineParams>();
  const ReduceLoops loops = make_reduce_loops(p.axes, p.keep_dims, invocation.in(0), invocation.out());
  const AffineScaler scaler = make_byte_scaler(p.to, p.y_zero_point, p.minimum, p.maximum);
  const float factor = reduce_factor(p, loops.reduced.elements);
  dispatch_type<std::int8_t, std::uint8_t>(invocation.in(0).type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for_each_result<T, std::uint8_t>(invocation, loops, [&](const StridedRows<1>& elements, const T* x) {
      std::int64_t sum = 0;
      for_each_element(elements, [&](const auto& offsets) { sum += x[offsets[0]] - p.x_zero_point; });
      return scaler.to_byte(static_cast<float>(sum) * factor);
    });
  });
  return ok_status();
}

}  // namespace bantam::ops
