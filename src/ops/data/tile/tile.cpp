#include "ops/data/tile/tile.h"

#include "ops/common/box.h"
#include "ops/common/operands.h"
#include "ops/common/params.h"

namespace bantam::ops {
namespace {

Status infer_tile(const void* params, std::span<const Tensor> inputs, std::span<TensorDesc> outputs) {
  const IntList& repeats = static_cast<const TileParams*>(params)->repeats;
  const TensorDesc& x = desc_of(inputs, 0);
  BANTAM_RETURN_IF_ERROR(check_whole_bytes(x, 0));
  BANTAM_RETURN_IF_ERROR(check_list(repeats, x.rank, "repeats do not have the operand's rank"));
  std::int64_t dims[kMaxRank] = {};
  for (int i = 0; i < x.rank; ++i) {
    if (repeats[i] < 0) return failure(StatusCode::kInvalidModel, "negative number of repeats", repeats[i], 0).at(i);
    dims[i] = static_cast<std::int64_t>(x.dims[i]) * repeats[i];
  }
  return make_desc(x.type, dims, x.rank, &outputs[0]);
}

Status run_tile(const Invocation& call) {
  const IntList& repeats = call.as<TileParams>().repeats;
  const TensorDesc& x = call.in(0);
  const TensorDesc& out = call.out();
  Box box;
  for (int i = 0; i < x.rank; ++i) {
    box.add(repeats[i], 0, static_cast<std::int64_t>(out.strides[i]) * x.dims[i]);
    box.add(x.dims[i], x.strides[i], out.strides[i]);
  }
  copy_box(*call.threads, box, element_size(x.type), call.inputs[0].data, call.outputs[0].data);
  return ok_status();
}

constexpr TileParams kDefaults{};
constexpr ParamField kFields[] = {list_field("repeats", offsetof(TileParams, repeats))};
constexpr KernelVariant kVariants[] = {{.name = "any__ref", .run = run_tile}};

}  // namespace

constexpr OpDef kTile{.name = "tile",
                      .params_bytes = sizeof(TileParams),
                      .default_params = &kDefaults,
                      .fields = kFields,
                      .infer = infer_tile,
                      .variants = kVariants};

}  // namespace bantam::ops
