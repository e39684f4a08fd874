// conv2d in int8, int16 and hybrid form as an implicit matrix product. The windows of a block of output pixels,
// gathered where they are not pixels of the image, are multiplied by the packed weights.
#include <algorithm>

#include "ops/common/parallel.h"
#include "ops/nn/conv2d/kernels.h"
#include "ops/nn/conv2d/overlap.h"
#include "ops/nn/conv2d/windows.h"
#include "ops/nn/conv2d/winograd_i8.h"

namespace bantam::ops::conv2d {
namespace {

/// The quantised copy of x that the hybrid form works on.
std::int64_t hybrid_bytes(const Problem& p) { return align_up(quantized_image_bytes(p.g.x), kAlignment); }

/// Of an OpCall or an Invocation.
template <typename Call>
Problem problem_of(const Call& call) {
  return with_whole_quads(make_problem(call.template as<Conv2dParams>(), call.in(0), call.in(1), call.out()));
}

}  // namespace

bool int8_supports(const OpCall& call) {
  return linear_form(call.in(0), call.in(1)) != LinearForm::kFloat && call.inputs[1].data != nullptr &&
         call.in(1).elements() > 0 && call.out().elements() > 0;
}

Footprint int8_footprint(const OpCall& call, int threads) {
  const Problem p = problem_of(call);
  const bool hybrid = linear_form(call.in(0), call.in(1)) == LinearForm::kHybrid;
  const gemm::ProductScratch scratch = product_scratch(p);
  const std::int64_t copy = hybrid ? hybrid_bytes(p) : 0;
  Footprint result{.scratch_bytes = scratch.least * threads + copy,
                   .useful_scratch_bytes = scratch.useful * threads + copy};
  if (!hybrid) result.lead_bytes = lead_bytes(call, p.g, kOverlapPixels, threads);
  return result;
}

std::int64_t int8_packed_bytes(const OpCall& call, int input) {
  if (input != 1) return 0;
  const Problem p = problem_of(call);
  return packed_window_bytes(p) * p.g.groups;
}

void int8_pack(const OpCall& call, int /*input*/, std::byte* destination) {
  const Problem p = problem_of(call);
  pack_windows(p, static_cast<const std::int8_t*>(call.inputs[1].data), 0, reinterpret_cast<std::int8_t*>(destination));
}

namespace {

/// The form of X numbers, int8 or int16, whose products `Result` finishes with `all`.
template <typename X, typename Result, typename Requantize>
void run_integer_form(const Invocation& call, const Problem& p, const Requantize& all) {
  using Number = std::conditional_t<sizeof(X) == 1, std::uint8_t, X>;
  const gemm::ByteForm form =
      sizeof(X) == 1 ? gemm::byte_form(0, call.as<Conv2dParams>().input_zero_point) : gemm::ByteForm{};
  const std::int64_t pixels = static_cast<std::int64_t>(p.g.y.n) * p.g.y.h * p.g.y.w;
  parallel_slots(*call.threads, pixels, product_grain(p), [&](std::int64_t slot, std::int64_t begin, std::int64_t end) {
    for_each_block(
        call, p, call.input<Number>(0), form, call.input<std::int8_t>(1), workspace(call, slot), true, begin, end,
        [&](std::int32_t group, const gemm::LeftSource& rows, const gemm::RightPanelsI8& panels, const Pixel& at) {
          const std::int64_t first = group * p.group_outputs;
          X* y = call.output<X>() + p.g.y.offset(at.n, at.y, at.x) + first;
          multiply(rows, workspace(call, slot), panels, Result{y, p.g.y.w_stride, all.from_channel(first)});
        });
  });
}

void quantize_item(const ImageShape& shape, const float* x, std::int32_t item, std::int8_t* q, float* scale) {
  float largest = 0.0F;
  for (std::int32_t iy = 0; iy < shape.h; ++iy)
    for (std::int32_t ix = 0; ix < shape.w; ++ix)
      largest = gemm::largest_magnitude_simd(x + shape.offset(item, iy, ix), shape.c, largest);
  *scale = symmetric_scale(largest);
  for (std::int32_t iy = 0; iy < shape.h; ++iy)
    for (std::int32_t ix = 0; ix < shape.w; ++ix, q += shape.c)
      gemm::quantize_symmetric_simd(x + shape.offset(item, iy, ix), shape.c, *scale, q);
}

void run_hybrid_form(const Invocation& call, const Problem& p) {
  const HybridScaler all = make_hybrid_scaler(call);
  auto* q = reinterpret_cast<std::uint8_t*>(call.scratch);
  const std::int64_t item_pixels = static_cast<std::int64_t>(p.g.y.h) * p.g.y.w;
  Problem dense = p;
  dense.g = with_dense_item(p.g);
  dense.taps_touch = p.g.horizontal.dilation == 1 && p.g.groups == 1;
  dense.one_run = p.one_run && p.g.y.n == 1;  // pixels are counted through all items
  for (std::int32_t item = 0; item < p.g.y.n; ++item) {
    float scale = 1.0F;
    quantize_item(p.g.x, call.input<float>(0), item, reinterpret_cast<std::int8_t*>(q), &scale);
    float row_scales[gemm::kMaxBlockRows];  // of a product; lines would have more rows
    std::fill_n(row_scales, std::size(row_scales), scale);
    parallel_slots(
        *call.threads, item_pixels, product_grain(p), [&](std::int64_t slot, std::int64_t begin, std::int64_t end) {
          for_each_block(call, dense, q, gemm::byte_form(0, 0), call.input<std::int8_t>(1),
                         workspace(call, slot, hybrid_bytes(p)), false, item * item_pixels + begin,
                         item * item_pixels + end,
                         [&](std::int32_t group, const gemm::LeftSource& rows, const gemm::RightPanelsI8& panels,
                             const Pixel& at) {
                           const std::int64_t first = group * p.group_outputs;
                           float* y = call.output<float>() + p.g.y.offset(at.n, at.y, at.x) + first;
                           multiply(rows, workspace(call, slot, hybrid_bytes(p)), panels,
                                    gemm::HybridResult{y, p.g.y.w_stride, row_scales, all.from_channel(first),
                                                       call.as<Conv2dParams>().activation});
                         });
        });
  }
}

}  // namespace

Status run_int8(const Invocation& call) {
  const Problem p = problem_of(call);
  const Int8Range range = int8_range(call.as<Conv2dParams>());
  switch (linear_form(call.in(0), call.in(1))) {
    case LinearForm::kInt8:
      run_integer_form<std::int8_t, gemm::Int8Result>(call, p, make_requantizer(call, range));
      break;
    case LinearForm::kInt16:
      run_integer_form<std::int16_t, gemm::Int16Result>(call, p, make_requantizer16(call, range));
      break;
    default: run_hybrid_form(call, p); break;
  }
  return ok_status();
}

bool int8_winograd_supports(const OpCall& call) {
  return linear_form(call.in(0), call.in(1)) == LinearForm::kInt8 && winograd_i8::fits(call, call.as<Conv2dParams>());
}

Footprint int8_winograd_footprint(const OpCall& call, int threads) {
  return winograd_i8::footprint(call, call.as<Conv2dParams>(), threads);
}

std::int64_t int8_winograd_packed_bytes(const OpCall& call, int input) {
  return input == 1 ? winograd_i8::packed_bytes(call.in(1)) : 0;
}

void int8_winograd_pack(const OpCall& call, int /*input*/, std::byte* destination) {
  winograd_i8::pack(call.in(1), static_cast<const std::int8_t*>(call.inputs[1].data), {},
                    gemm::byte_form(0, call.as<Conv2dParams>().input_zero_point), destination);
}

Status run_int8_winograd(const Invocation& call) {
  const auto& p = call.as<Conv2dParams>();
  winograd_i8::run(call, p, gemm::byte_form(0, p.input_zero_point),
                   gemm::Int8Result{call.output<std::int8_t>(), 0, make_requantizer(call, int8_range(p))});
  return ok_status();
}

}  // namespace bantam::ops::conv2d
