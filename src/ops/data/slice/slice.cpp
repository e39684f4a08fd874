#include "ops/data/slice/slice.h"

#include <array>
#include <cstring>

#include "ops/common/box.h"
#include "ops/common/dispatch.h"
#include "ops/common/operands.h"
#include "ops/common/params.h"
#include "ops/common/strides.h"

namespace bantam::ops {
namespace {

Status check_range(std::int32_t start, std::int32_t step, std::int32_t size, std::int32_t dim) {
  if (size < 0) return failure(StatusCode::kInvalidModel, "slice has a negative size", size, 0);
  if (step == 0) return failure(StatusCode::kInvalidModel, "slice step is zero", 0, 1);
  if (size == 0) return ok_status();
  if (start < 0 || start >= dim)
    return failure(StatusCode::kInvalidModel, "slice starts outside the operand", start, dim - 1);
  const std::int64_t last = start + (static_cast<std::int64_t>(size) - 1) * step;
  if (last < 0 || last >= dim)
    return failure(StatusCode::kInvalidModel, "slice ends outside the operand", last, dim - 1);
  return ok_status();
}

Status infer_slice(const void* params, std::span<const Tensor> inputs, std::span<TensorDesc> outputs) {
  const auto& p = *static_cast<const SliceParams*>(params);
  const TensorDesc& x = desc_of(inputs, 0);
  BANTAM_RETURN_IF_ERROR(check_whole_bytes(x, 0));
  BANTAM_RETURN_IF_ERROR(check_list(p.starts, x.rank, "slice starts do not have the operand's rank"));
  BANTAM_RETURN_IF_ERROR(check_list(p.steps, x.rank, "slice steps do not have the operand's rank"));
  BANTAM_RETURN_IF_ERROR(check_list(p.sizes, x.rank, "slice sizes do not have the operand's rank"));
  for (int i = 0; i < x.rank; ++i)
    BANTAM_RETURN_IF_ERROR(check_range(p.starts[i], p.steps[i], p.sizes[i], x.dims[i]).at(i));
  return desc_from_list(x.type, p.sizes, &outputs[0]);
}

/// Elements from the operand's first to the slice's first.
std::int64_t first_element(const SliceParams& p, const TensorDesc& x, const TensorDesc& out) {
  if (out.elements() == 0) return 0;
  std::int64_t offset = 0;
  for (int i = 0; i < x.rank; ++i) offset += static_cast<std::int64_t>(p.starts[i]) * x.strides[i];
  return offset;
}

bool slice_view(const OpCall& call, TensorDesc* view, std::int64_t* offset) {
  const auto& p = call.as<SliceParams>();
  const TensorDesc& x = call.in(0);
  *view = call.out();
  for (int i = 0; i < x.rank; ++i) {
    if (p.steps[i] != 1 && p.sizes[i] > 1) return false;
    view->strides[i] = x.strides[i];
  }
  *offset = first_element(p, x, call.out());
  return finish_view(view);
}

/// A result from front to back never writes what it has yet to read when nothing is read backwards.
Footprint slice_footprint(const OpCall& call, int /*threads*/) {
  const auto& p = call.as<SliceParams>();
  Footprint footprint;
  bool forwards = call.in(0).is_dense() && call.out().is_dense();
  for (int i = 0; i < call.in(0).rank; ++i) forwards = forwards && (p.steps[i] > 0 || p.sizes[i] <= 1);
  footprint.overwrites[0] = forwards ? 1 : 0;
  return footprint;
}

/// Elements that lie `stride` apart to neighbouring places, which they may share.
template <typename T>
void move_elements(std::int64_t n, const std::byte* from, std::int64_t stride, std::byte* to) {
  for (std::int64_t i = 0; i < n; ++i, from += stride * static_cast<std::int64_t>(sizeof(T)), to += sizeof(T)) {
    T element;
    std::memcpy(&element, from, sizeof element);
    std::memcpy(to, &element, sizeof element);
  }
}

/// Moves rows to the front of the memory that they lie in, element after element.
void move_rows(const Invocation& call, const TensorDesc& from, std::int64_t first) {
  const auto bytes = static_cast<std::size_t>(element_size(from.type));
  auto* base = call.output<std::byte>();
  const auto rows = make_rows<2>(call.out(), {&call.out(), &from});
  dispatch_size(element_size(from.type), [&](auto tag) {
    for_each_row(rows, [&](std::array<std::int64_t, 2> offsets, std::int64_t n) {
      auto* to = base + static_cast<std::size_t>(offsets[0]) * bytes;
      const auto* source = base + static_cast<std::size_t>(first + offsets[1]) * bytes;
      if (rows.all_contiguous()) {
        std::memmove(to, source, static_cast<std::size_t>(n) * bytes);
      } else {
        move_elements<typename decltype(tag)::type>(n, source, rows.row_strides[1], to);
      }
    });
  });
}

/// The operand's elements that the slice takes, from `first_element` on.
TensorDesc taken_elements(const SliceParams& p, const TensorDesc& x, const TensorDesc& out) {
  TensorDesc taken = out;
  for (int i = 0; i < out.rank; ++i) taken.strides[i] = out.dims[i] > 1 ? x.strides[i] * p.steps[i] : 0;
  return taken;
}

Status run_slice(const Invocation& call) {
  const auto& p = call.as<SliceParams>();
  const TensorDesc& x = call.in(0);
  const TensorDesc& out = call.out();
  if (call.outputs[0].data == call.inputs[0].data) {
    move_rows(call, taken_elements(p, x, out), first_element(p, x, out));
    return ok_status();
  }
  Box box;
  for (int i = 0; i < out.rank; ++i)
    box.add(out.dims[i], static_cast<std::int64_t>(x.strides[i]) * p.steps[i], out.strides[i]);
  const std::int64_t bytes = element_size(x.type);
  copy_box(*call.threads, box, bytes, advance(call.input<void>(0), first_element(p, x, out), bytes),
           call.outputs[0].data);
  return ok_status();
}

constexpr SliceParams kDefaults{};
constexpr ParamField kFields[] = {
    list_field("starts", offsetof(SliceParams, starts)),
    list_field("steps", offsetof(SliceParams, steps)),
    list_field("sizes", offsetof(SliceParams, sizes)),
};
constexpr KernelVariant kVariants[] = {{.name = "any__ref", .footprint = slice_footprint, .run = run_slice}};

}  // namespace

constexpr OpDef kSlice{.name = "slice",
                       .params_bytes = sizeof(SliceParams),
                       .default_params = &kDefaults,
                       .fields = kFields,
                       .infer = infer_slice,
                       .output_view = slice_view,
                       .variants = kVariants};

}  // namespace bantam::ops
