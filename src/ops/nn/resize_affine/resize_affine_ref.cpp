#include "ops/common/dispatch.h"
#include "ops/common/operands.h"
#include "ops/common/parallel.h"
#include "ops/nn/resize/sampling.h"
#include "ops/nn/resize_affine/kernels.h"

namespace bantam::ops::resize_affine {
namespace {

/// A sum that begins with its first product.
class Sum {
 public:
  void add(float weight, float number) {
    const float product = weight * number;
    total_ = begun_ ? total_ + product : product;
    begun_ = true;
  }
  float total() const { return total_; }

 private:
  float total_ = 0.0F;
  bool begun_ = false;
};

/// What one result is made of.
template <typename T>
struct Operand {
  const resize::Cursor& cursor;
  const TensorDesc& x;
  const T* data;  ///< the result's element of each run
  std::int32_t zero_point;
  int last;
};

/// Adds the products of all combinations of the taps of axes `axis` up to `last`, which is not one of them. At most
/// kMaxRank deep.
template <typename T>
void blend(const Operand<T>& o, int axis, std::int64_t offset, float weight, Sum& sum) {
  if (axis == o.last) {
    sum.add(weight, static_cast<float>(std::int32_t{o.data[offset]} - o.zero_point));
    return;
  }
  const resize::Taps& taps = o.cursor.taps(axis);
  for (int i = 0; i < taps.count; ++i)
    blend(o, axis + 1, offset + std::int64_t{taps.index[i]} * o.x.strides[axis], weight * taps.weight[i], sum);
}

template <typename T>
float sample(const Operand<T>& o) {
  const resize::Taps& taps = o.cursor.taps(o.last);
  Sum sum;
  for (int t = 0; t < taps.count; ++t) {
    Sum blended;
    blend(o, 0, std::int64_t{taps.index[t]} * o.x.strides[o.last], 1.0F, blended);
    sum.add(taps.weight[t], blended.total());
  }
  return sum.total();
}

template <typename T>
void sample_runs(const Invocation& call, int last) {
  const auto& p = call.as<ResizeAffineParams>();
  const TensorDesc& out = call.out();
  const std::int64_t run = elements_between(out, last + 1, out.rank);
  const float factor = factor_of(p);
  const AffineScaler scaler = scaler_of(p);
  parallel_ranges(
      *call.threads, out.elements() / run, std::max<std::int64_t>(4096 / run, 1),
      [&](std::int64_t begin, std::int64_t end) {
        resize::Cursor cursor(p.resize, call.in(0), last, begin);
        auto* y = call.output<std::uint8_t>() + begin * run;
        for (std::int64_t i = begin; i < end; ++i, cursor.next())
          for (std::int64_t c = 0; c < run; ++c)
            *y++ = scaler.to_byte(sample(Operand<T>{cursor, call.in(0), call.input<T>(0) + c, p.x_zero_point, last}) *
                                  factor);
      });
}

}  // namespace

Status run_reference(const Invocation& call) {
  if (call.out().elements() == 0) return ok_status();
  const int last = std::max(resize::last_resampled(call.as<ResizeAffineParams>().resize, call.in(0)), 0);
  dispatch_type<std::int8_t, std::uint8_t>(call.in(0).type,
                                           [&](auto tag) { sample_runs<typename decltype(tag)::type>(call, last); });
  return ok_status();
}

}  // namespace bantam::ops::resize_affine
