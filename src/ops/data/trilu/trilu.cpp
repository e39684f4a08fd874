#include "ops/data/trilu/trilu.h"

#include <algorithm>
#include <cstring>

#include "ops/common/operands.h"
#include "ops/common/params.h"

namespace bantam::ops {
namespace {

Status infer_trilu(const void* params, std::span<const Tensor> inputs, std::span<TensorDesc> outputs) {
  const TensorDesc& x = desc_of(inputs, 0);
  BANTAM_RETURN_IF_ERROR(check_whole_bytes(x, 0));
  if (x.rank < 2) return failure(StatusCode::kInvalidModel, "a triangle needs two dimensions", x.rank, 2).at(0);
  if (!is_flag(static_cast<const TriluParams*>(params)->upper))
    return failure(StatusCode::kInvalidModel, "upper is neither 0 nor 1",
                   static_cast<const TriluParams*>(params)->upper, 1);
  outputs[0] = x;
  outputs[0].set_dense_strides();
  return ok_status();
}

Footprint trilu_footprint(const OpCall& /*call*/, int /*threads*/) {
  Footprint footprint;
  footprint.overwrites[0] = 1;
  return footprint;
}

Status run_trilu(const Invocation& call) {
  const auto& p = call.as<TriluParams>();
  const TensorDesc& x = call.in(0);
  const std::int64_t bytes = element_size(x.type);
  const std::int64_t columns = x.last(0);
  const std::int64_t row_bytes = columns * bytes;
  const std::int64_t matrices = elements_between(x, 0, x.rank - 2);
  const auto* from = call.input<std::byte>(0);
  auto* to = call.output<std::byte>();
  const auto clear = [&](std::int64_t begin, std::int64_t end) {
    std::memset(to + begin * bytes, 0, static_cast<std::size_t>((end - begin) * bytes));
  };
  for (std::int64_t m = 0; m < matrices; ++m) {
    for (std::int64_t i = 0; i < x.last(1); ++i, from += row_bytes, to += row_bytes) {
      if (columns == 0) continue;
      if (to != from) std::memcpy(to, from, static_cast<std::size_t>(row_bytes));
      const std::int64_t diagonal = i + p.diagonal;
      if (p.upper != 0) {
        clear(0, std::clamp<std::int64_t>(diagonal, 0, columns));
      } else {
        clear(std::clamp<std::int64_t>(diagonal + 1, 0, columns), columns);
      }
    }
  }
  return ok_status();
}

constexpr TriluParams kDefaults{};
constexpr ParamField kFields[] = {
    bool_field("upper", offsetof(TriluParams, upper)),
    i32_field("diagonal", offsetof(TriluParams, diagonal)),
};
constexpr KernelVariant kVariants[] = {
    {.name = "any__ref", .supports = all_dense, .footprint = trilu_footprint, .run = run_trilu}};

}  // namespace

constexpr OpDef kTrilu{.name = "trilu",
                       .params_bytes = sizeof(TriluParams),
                       .default_params = &kDefaults,
                       .fields = kFields,
                       .infer = infer_trilu,
                       .variants = kVariants};

}  // namespace bantam::ops
