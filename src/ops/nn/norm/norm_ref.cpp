#include <cmath>

#include "ops/common/operands.h"
#include "ops/common/strides.h"
#include "ops/nn/norm/kernels.h"

namespace bantam::ops::norm {
namespace {

/// The operand's dimensions split in two loop nests: over groups, and over the elements of one group.
struct Split {
  TensorDesc kept;
  TensorDesc normalised;
};

Split split_dimensions(const TensorDesc& x, const IntList& axes) {
  Split split{x, x};
  unsigned over = 0;
  for (int i = 0; i < axes.size; ++i) over |= 1U << axes[i];
  for (int i = 0; i < x.rank; ++i) ((over >> i & 1U) != 0 ? split.kept : split.normalised).dims[i] = 1;
  return split;
}

/// Element of an optional operand that broadcasts to x, or `fallback`.
template <typename T>
T parameter(const T* values, std::int64_t offset, T fallback) {
  return values != nullptr ? values[offset] : fallback;
}

template <typename T>
void run(const Invocation& call) {
  const auto& p = call.as<NormParams>();
  const TensorDesc& x = call.in(0);
  if (x.elements() == 0) return;
  const TensorDesc& scale = call.has(1) ? call.in(1) : x;
  const TensorDesc& bias = call.has(2) ? call.in(2) : x;
  const Split split = split_dimensions(x, p.axes);
  // Each desc with the shape of a nest and the operand's own strides steps through that nest.
  const auto nest = [&](const TensorDesc& shape) {
    TensorDesc x_part = x;
    TensorDesc scale_part = scale;
    TensorDesc bias_part = bias;
    for (int i = 0; i < x.rank; ++i)
      if (shape.dims[i] == 1) {
        x_part.dims[i] = 1;
        if (i >= x.rank - scale.rank) scale_part.dims[i - (x.rank - scale.rank)] = 1;
        if (i >= x.rank - bias.rank) bias_part.dims[i - (x.rank - bias.rank)] = 1;
      }
    return make_rows<3>(shape, {&x_part, &scale_part, &bias_part});
  };
  const auto groups = nest(split.kept);
  const auto members = nest(split.normalised);
  const auto count = static_cast<double>(members.elements);
  for_each_element(groups, [&](const auto& base) {
    const T* from = call.input<T>(0) + base[0];
    T* to = call.output<T>() + base[0];
    double sum = 0;
    if (p.rms == 0) for_each_element(members, [&](const auto& at) { sum += from[at[0]]; });
    const double mean = sum / count;
    double squares = 0;
    for_each_element(members, [&](const auto& at) { squares += (from[at[0]] - mean) * (from[at[0]] - mean); });
    const double factor = 1 / std::sqrt(squares / count + static_cast<double>(p.epsilon));
    for_each_element(members, [&](const auto& at) {
      const auto normal = static_cast<T>((from[at[0]] - mean) * factor);
      to[at[0]] = normal * parameter<T>(call.has(1) ? call.input<T>(1) : nullptr, base[1] + at[1], T{1}) +
                  parameter<T>(call.has(2) ? call.input<T>(2) : nullptr, base[2] + at[2], T{0});
    });
  });
}

}  // namespace

Status run_reference(const Invocation& call) {
  if (call.in(0).type == ElementType::kF64) {
    run<double>(call);
  } else {
    run<float>(call);
  }
  return ok_status();
}

}  // namespace bantam::ops::norm
