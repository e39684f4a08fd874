#include "ops/data/scatter_elements/scatter_elements.h"

#include "ops/common/element_index.h"
#include "ops/data/scatter_nd/reduction.h"

namespace bantam::ops {
namespace {

Status infer_scatter_elements(const void* params, std::span<const Tensor> inputs, std::span<TensorDesc> outputs) {
  const auto& p = *static_cast<const ScatterElementsParams*>(params);
  const TensorDesc& x = desc_of(inputs, 0);
  const TensorDesc& indices = desc_of(inputs, 1);
  const TensorDesc& updates = desc_of(inputs, 2);
  BANTAM_RETURN_IF_ERROR(check_reduction(p.reduction, x));
  BANTAM_RETURN_IF_ERROR(check_element_indices(x, indices, p.axis));
  BANTAM_RETURN_IF_ERROR(check_type(updates, x.type, 2));
  BANTAM_RETURN_IF_ERROR(check_rank(updates, indices.rank, 2));
  for (int i = 0; i < indices.rank; ++i)
    if (updates.dims[i] != indices.dims[i])
      return failure(StatusCode::kInvalidModel, "updates and indices differ in shape", updates.dims[i], indices.dims[i])
          .at(2);
  outputs[0] = x;
  outputs[0].set_dense_strides();
  return ok_status();
}

Status run_scatter_elements(const Invocation& call) {
  const auto& p = call.as<ScatterElementsParams>();
  const TensorDesc& x = call.in(0);
  start_scatter(call);
  Status status = ok_status();
  dispatch_reduction(p.reduction, x.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    status = for_each_element_index(x, call.inputs[1], p.axis, [&](std::int64_t i, std::int64_t element) {
      T& to = call.output<T>()[element];
      to = combine(p.reduction, to, call.input<T>(2)[i]);
    });
  });
  return status;
}

constexpr ScatterElementsParams kDefaults{};
constexpr ParamField kFields[] = {
    i32_field("axis", offsetof(ScatterElementsParams, axis)),
    enum_field("reduction", offsetof(ScatterElementsParams, reduction), kScatterReductionNames),
};
constexpr KernelVariant kVariants[] = {
    {.name = "any__ref", .supports = all_dense, .footprint = scatter_footprint, .run = run_scatter_elements}};

}  // namespace

constexpr OpDef kScatterElements{.name = "scatter_elements",
                                 .params_bytes = sizeof(ScatterElementsParams),
                                 .default_params = &kDefaults,
                                 .fields = kFields,
                                 .min_inputs = 3,
                                 .max_inputs = 3,
                                 .infer = infer_scatter_elements,
                                 .variants = kVariants};

}  // namespace bantam::ops
