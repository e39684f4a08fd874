#include "ops/nn/col2im/col2im.h"

#include <algorithm>

#include "ops/common/dispatch.h"
#include "ops/common/operands.h"
#include "ops/common/parallel.h"
#include "ops/common/params.h"
#include "ops/common/window.h"

namespace bantam::ops {
namespace {

WindowAxis window_axis(const Col2ImParams& p, int i) noexcept {
  return {p.block[i], p.strides[i], p.dilations[i], p.before[i], p.after[i]};
}

/// Multiplies `product`, saturating beyond every dimension.
void multiply(std::int64_t& product, std::int64_t factor) noexcept {
  product = std::min(checked_multiply(product, factor).value_or(kMaxElements + 1), kMaxElements + 1);
}

Status infer_col2im(const void* params, std::span<const Tensor> inputs, std::span<TensorDesc> outputs) {
  const auto& p = *static_cast<const Col2ImParams*>(params);
  const TensorDesc& x = desc_of(inputs, 0);
  if (!is_one_of<float, double>(x.type))
    return failure(StatusCode::kUnsupported, "blocks are of f32 or f64", static_cast<std::int64_t>(x.type),
                   static_cast<std::int64_t>(ElementType::kF32))
        .at(0);
  BANTAM_RETURN_IF_ERROR(check_rank(x, 3, 0));
  const int axes = p.image.size;
  if (axes < 1 || axes > kMaxRank - 2)
    return failure(StatusCode::kInvalidModel, "image has a wrong number of axes", axes, kMaxRank - 2);
  for (const IntList* list : {&p.block, &p.strides, &p.dilations, &p.before, &p.after})
    BANTAM_RETURN_IF_ERROR(check_list(*list, axes, "blocks do not have the image's axes"));
  std::int64_t dims[kMaxRank] = {x.dims[0]};
  std::int64_t block = 1;
  std::int64_t count = 1;
  for (int i = 0; i < axes; ++i) {
    if (p.image[i] < 0) return failure(StatusCode::kInvalidModel, "image has a negative size", p.image[i], 0).at(i);
    std::int64_t positions = 0;
    BANTAM_RETURN_IF_ERROR(window_positions(window_axis(p, i), p.image[i], false, &positions).at(i));
    multiply(block, p.block[i]);
    multiply(count, positions);
    dims[2 + i] = p.image[i];
  }
  if (x.dims[1] % block != 0)
    return failure(StatusCode::kInvalidModel, "columns are not a multiple of the block", x.dims[1], block).at(0);
  if (x.dims[2] != count)
    return failure(StatusCode::kInvalidModel, "number of columns is not that of block positions", x.dims[2], count)
        .at(0);
  dims[1] = x.dims[1] / block;
  return make_desc(x.type, dims, 2 + axes, &outputs[0]);
}

std::int64_t work(const OpCall& call) { return call.in(0).elements(); }

/// Adds row `tap` of the columns of one channel to its image.
template <typename T>
void add_row(const Col2ImParams& p, const TensorDesc& y, std::int64_t tap, const T* row, std::int64_t columns,
             T* image) {
  const int axes = p.image.size;
  std::int64_t moved[kMaxRank] = {};  // the image coordinate of block position 0
  std::int64_t positions[kMaxRank] = {};
  for (int i = axes - 1; i >= 0; --i) {
    moved[i] = tap % p.block[i] * p.dilations[i] - p.before[i];
    tap /= p.block[i];
    static_cast<void>(window_positions(window_axis(p, i), p.image[i], false, &positions[i]));  // infer checked it
  }
  for (std::int64_t column = 0; column < columns; ++column) {
    std::int64_t rest = column;
    std::int64_t offset = 0;
    bool inside = true;
    for (int i = axes - 1; i >= 0; --i) {
      const std::int64_t at = moved[i] + rest % positions[i] * p.strides[i];
      rest /= positions[i];
      inside = inside && at >= 0 && at < p.image[i];
      offset += at * y.strides[2 + i];
    }
    if (inside) image[offset] += row[column];
  }
}

template <typename T>
void run(const Invocation& call) {
  const auto& p = call.as<Col2ImParams>();
  const TensorDesc& x = call.in(0);
  const TensorDesc& y = call.out();
  const std::int64_t channels = elements_between(y, 0, 2);
  const std::int64_t pixels = elements_between(y, 2, y.rank);
  const std::int64_t columns = x.dims[2];
  const std::int64_t taps = y.dims[1] > 0 ? x.dims[1] / y.dims[1] : 0;
  parallel_ranges(*call.threads, channels, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t c = begin; c < end; ++c) {
      T* image = call.output<T>() + c * pixels;
      std::fill_n(image, pixels, T{0});
      for (std::int64_t tap = 0; tap < taps; ++tap)
        add_row(p, y, tap, call.input<T>(0) + (c * taps + tap) * columns, columns, image);
    }
  });
}

Status run_col2im(const Invocation& call) {
  dispatch_type<float, double>(call.in(0).type, [&](auto tag) { run<typename decltype(tag)::type>(call); });
  return ok_status();
}

constexpr Col2ImParams kDefaults{};
constexpr ParamField kFields[] = {
    list_field("image", offsetof(Col2ImParams, image)),     list_field("block", offsetof(Col2ImParams, block)),
    list_field("strides", offsetof(Col2ImParams, strides)), list_field("dilations", offsetof(Col2ImParams, dilations)),
    list_field("before", offsetof(Col2ImParams, before)),   list_field("after", offsetof(Col2ImParams, after)),
};
constexpr KernelVariant kVariants[] = {{.name = "any__ref", .supports = all_dense, .run = run_col2im}};

}  // namespace

constexpr OpDef kCol2im{.name = "col2im",
                        .params_bytes = sizeof(Col2ImParams),
                        .default_params = &kDefaults,
                        .fields = kFields,
                        .infer = infer_col2im,
                        .work = work,
                        .variants = kVariants};

}  // namespace bantam::ops
