#include "ops/data/gather_elements/gather_elements.h"

#include "ops/common/dispatch.h"
#include "ops/common/element_index.h"
#include "ops/common/operands.h"
#include "ops/common/params.h"

namespace bantam::ops {
namespace {

Status infer_gather_elements(const void* params, std::span<const Tensor> inputs, std::span<TensorDesc> outputs) {
  const TensorDesc& x = desc_of(inputs, 0);
  BANTAM_RETURN_IF_ERROR(check_whole_bytes(x, 0));
  BANTAM_RETURN_IF_ERROR(
      check_element_indices(x, desc_of(inputs, 1), static_cast<const GatherElementsParams*>(params)->axis));
  outputs[0] = desc_of(inputs, 1);
  outputs[0].type = x.type;
  outputs[0].set_dense_strides();
  return ok_status();
}

Status run_gather_elements(const Invocation& call) {
  const TensorDesc& x = call.in(0);
  Status status = ok_status();
  dispatch_size(element_size(x.type), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* from = call.input<T>(0);
    T* to = call.output<T>();
    status = for_each_element_index(x, call.inputs[1], call.as<GatherElementsParams>().axis,
                                    [=](std::int64_t i, std::int64_t element) { to[i] = from[element]; });
  });
  return status;
}

constexpr GatherElementsParams kDefaults{};
constexpr ParamField kFields[] = {i32_field("axis", offsetof(GatherElementsParams, axis))};
constexpr KernelVariant kVariants[] = {{.name = "any__ref", .supports = all_dense, .run = run_gather_elements}};

}  // namespace

constexpr OpDef kGatherElements{.name = "gather_elements",
                                .params_bytes = sizeof(GatherElementsParams),
                                .default_params = &kDefaults,
                                .fields = kFields,
                                .min_inputs = 2,
                                .max_inputs = 2,
                                .infer = infer_gather_elements,
                                .variants = kVariants};

}  // namespace bantam::ops
