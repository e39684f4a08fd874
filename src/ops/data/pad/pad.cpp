#include "ops/data/pad/pad.h"

#include <algorithm>

#include "ops/common/operands.h"
#include "ops/common/params.h"
#include "ops/data/pad/pad_kernels.h"

namespace bantam::ops {
namespace {

constexpr std::string_view kModeNames[] = {"constant", "reflect", "edge", "wrap", "symmetric"};
static_assert(std::size(kModeNames) == static_cast<std::size_t>(PadMode::kCount));

Status infer_pad(const void* params, std::span<const Tensor> inputs, std::span<TensorDesc> outputs) {
  const auto& p = *static_cast<const PadParams*>(params);
  const TensorDesc& x = desc_of(inputs, 0);
  BANTAM_RETURN_IF_ERROR(check_whole_bytes(x, 0));
  if (!is_enumerator(p.mode))
    return failure(StatusCode::kInvalidModel, "unknown padding mode", static_cast<std::int64_t>(p.mode), 0);
  BANTAM_RETURN_IF_ERROR(check_list(p.before, x.rank, "paddings before do not have the operand's rank"));
  BANTAM_RETURN_IF_ERROR(check_list(p.after, x.rank, "paddings after do not have the operand's rank"));
  if (is_given(inputs, 1)) {
    BANTAM_RETURN_IF_ERROR(check_type(desc_of(inputs, 1), x.type, 1));
    if (desc_of(inputs, 1).elements() != 1)
      return failure(StatusCode::kInvalidModel, "padding value is not a single element", desc_of(inputs, 1).elements(),
                     1)
          .at(1);
  }
  std::int64_t dims[kMaxRank] = {};
  for (int i = 0; i < x.rank; ++i) {
    dims[i] = static_cast<std::int64_t>(x.dims[i]) + p.before[i] + p.after[i];
    if (p.mode != PadMode::kConstant && x.dims[i] == 0 && dims[i] > 0)
      return failure(StatusCode::kInvalidModel, "an empty axis has nothing to pad with", dims[i], 0).at(i);
  }
  return make_desc(x.type, dims, x.rank, &outputs[0]);
}

/// The operand within the result, unless some of it is cropped.
bool pad_view(const OpCall& call, int i, TensorDesc* view, std::int64_t* offset) {
  const auto& p = call.as<PadParams>();
  if (i != 0) return false;
  *view = call.in(0);
  *offset = 0;
  for (int d = 0; d < view->rank; ++d) {
    if (p.before[d] < 0 || p.after[d] < 0) return false;
    view->strides[d] = call.out().strides[d];
    *offset += static_cast<std::int64_t>(p.before[d]) * call.out().strides[d];
  }
  if (view->elements() == 0) *offset = 0;
  return true;
}

Footprint pad_footprint(const OpCall& call, int /*threads*/) {
  Footprint footprint;
  TensorDesc view;
  std::int64_t offset = 0;
  footprint.within = pad_view(call, 0, &view, &offset) ? 1 : 0;
  return footprint;
}

constexpr PadParams kDefaults{};
constexpr ParamField kFields[] = {
    enum_field("mode", offsetof(PadParams, mode), kModeNames),
    list_field("before", offsetof(PadParams, before)),
    list_field("after", offsetof(PadParams, after)),
};
constexpr KernelVariant kVariants[] = {
    {.name = "any_slabs__portable", .supports = supports_pad_slabs, .footprint = pad_footprint, .run = run_pad_slabs},
    {.name = "any__ref", .footprint = pad_footprint, .run = run_pad},
};

}  // namespace

constexpr OpDef kPad{.name = "pad",
                     .params_bytes = sizeof(PadParams),
                     .default_params = &kDefaults,
                     .fields = kFields,
                     .min_inputs = 1,
                     .max_inputs = 2,
                     .infer = infer_pad,
                     .input_view = pad_view,
                     .variants = kVariants};

}  // namespace bantam::ops
