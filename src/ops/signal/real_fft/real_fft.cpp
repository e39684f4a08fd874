#include "ops/signal/real_fft/real_fft.h"

#include <algorithm>
#include <type_traits>

#include "ops/common/dispatch.h"
#include "ops/common/operands.h"
#include "ops/common/params.h"
#include "signal/real_fft.h"

namespace bantam::ops {
namespace {

constexpr ParamField kFields[] = {
    i32_field("n", offsetof(RealFftParams, n)),
    bool_field("inverse", offsetof(RealFftParams, inverse)),
};

constexpr RealFftParams kDefaults{};

Status infer_real_fft(const void* params, std::span<const Tensor> inputs, std::span<TensorDesc> outputs) {
  const auto& p = *static_cast<const RealFftParams*>(params);
  const TensorDesc& x = desc_of(inputs, 0);
  const TensorDesc& twiddles = desc_of(inputs, 1);
  if (!is_one_of<std::int16_t, std::int32_t, float>(x.type))
    return failure(StatusCode::kUnsupported, "real_fft: operand is not i16, i32 or f32",
                   static_cast<std::int64_t>(x.type), static_cast<std::int64_t>(ElementType::kI16))
        .at(0);
  if (!is_flag(p.inverse)) return failure(StatusCode::kInvalidModel, "real_fft: inverse is not 0 or 1", p.inverse, 1);
  if (!signal::supports_real_fft(p.n))
    return failure(StatusCode::kUnsupported,
                   "real_fft: n is not an even number from 4 to 65536 with the prime factors 2, 3 and 5 only", p.n,
                   signal::kMaxFft);
  if (x.rank < 1) return failure(StatusCode::kInvalidModel, "real_fft: operand has no dimension", x.rank, 1).at(0);
  const std::int32_t length = x.last(0);
  if (p.inverse != 0 ? length != p.n + 2 : length > p.n)
    return failure(StatusCode::kInvalidModel, "real_fft: the last dimension does not fit n", length,
                   p.inverse != 0 ? p.n + 2 : p.n)
        .at(0);
  BANTAM_RETURN_IF_ERROR(check_type(twiddles, x.type, 1));
  const auto wanted = static_cast<std::int64_t>(2 * signal::twiddle_count(p.n));
  if (twiddles.elements() != wanted)
    return failure(StatusCode::kInvalidModel, "real_fft: the constants have the wrong size", twiddles.elements(),
                   wanted)
        .at(1);
  std::int64_t dims[kMaxRank] = {};
  for (int i = 0; i < x.rank; ++i) dims[i] = x.dims[i];
  dims[x.rank - 1] = p.inverse != 0 ? p.n : p.n + 2;
  return make_desc(x.type, dims, x.rank, &outputs[0]);
}

/// Work memory, and before it a row padded to n.
Footprint real_fft_footprint(const OpCall& call, int /*threads*/) {
  const std::int64_t n = call.as<RealFftParams>().n;
  Footprint footprint;
  footprint.scratch_bytes =
      (n + 2 * static_cast<std::int64_t>(signal::work_count(static_cast<int>(n)))) * element_size(call.in(0).type);
  return footprint;
}

template <typename T>
void transform_rows(const Invocation& call) {
  using Complex = signal::Complex<T>;
  const auto& p = call.as<RealFftParams>();
  const std::int64_t in_length = call.in(0).last(0);
  const std::int64_t out_length = call.out().last(0);
  const std::int64_t rows = call.out().elements() / out_length;
  const auto* twiddles = reinterpret_cast<const Complex*>(call.input<T>(1));
  auto* padded = reinterpret_cast<T*>(call.scratch);
  auto* work = reinterpret_cast<Complex*>(padded + p.n);
  for (std::int64_t row = 0; row < rows; ++row) {
    const T* x = call.input<T>(0) + row * in_length;
    T* y = call.output<T>() + row * out_length;
    if (p.inverse == 0) {
      std::fill(std::copy_n(x, in_length, padded), padded + p.n, T{0});
      signal::forward_real(p.n, twiddles, padded, reinterpret_cast<Complex*>(y), work);
      continue;
    }
    signal::inverse_real(p.n, twiddles, reinterpret_cast<const Complex*>(x), y, work);
    if constexpr (std::is_floating_point_v<T>)
      for (std::int64_t i = 0; i < out_length; ++i) y[i] /= static_cast<T>(p.n);
  }
}

Status run_real_fft(const Invocation& call) {
  dispatch_type<std::int16_t, std::int32_t, float>(
      call.in(0).type, [&](auto tag) { transform_rows<typename decltype(tag)::type>(call); });
  return ok_status();
}

std::int64_t work_of(const OpCall& call) {
  const std::int64_t n = call.as<RealFftParams>().n;
  std::int64_t stages = 0;
  for (std::int64_t size = n; size > 1; size /= 2) ++stages;
  return call.out().elements() * stages;
}

constexpr KernelVariant kVariants[] = {
    {.name = "any__ref", .supports = all_dense, .footprint = real_fft_footprint, .run = run_real_fft},
};

}  // namespace

constexpr OpDef kRealFft{
    .name = "real_fft",
    .params_bytes = sizeof(RealFftParams),
    .default_params = &kDefaults,
    .fields = kFields,
    .min_inputs = 2,
    .max_inputs = 2,
    .infer = infer_real_fft,
    .work = work_of,
    .variants = kVariants,
};

}  // namespace bantam::ops
