// conv_transpose2d of 8- and 16-bit integers as matrix products: by phase (phases.h), or one for all phases
// (integer_columns.h).
#include "ops/nn/conv_transpose2d/integer_columns.h"
#include "ops/nn/conv_transpose2d/kernels.h"
#include "ops/nn/conv_transpose2d/phases.h"

namespace bantam::ops::conv_transpose2d {
namespace {

Geometry geometry_of(const OpCall& call) {
  return conv_transpose2d::geometry_of(call.as<ConvTranspose2dParams>(), call.in(0), call.in(1), call.out());
}

}  // namespace

bool integer_supports(const OpCall& call) {
  const LinearForm form = linear_form(call.in(0), call.in(1));
  return (form == LinearForm::kInt8 || form == LinearForm::kInt16) && is_constant_product(call) &&
         phases_fit(geometry_of(call));
}

Footprint integer_footprint(const OpCall& call, int threads) {
  return phases_footprint(call, geometry_of(call), threads);
}

std::int64_t integer_packed_bytes(const OpCall& call, int input) {
  return input == 1 ? phases_packed_bytes(call, geometry_of(call)) : 0;
}

void integer_pack(const OpCall& call, int /*input*/, std::byte* destination) {
  pack_phases(call, geometry_of(call), 0, destination);
}

Status run_integer(const Invocation& call) {
  const auto& p = call.as<ConvTranspose2dParams>();
  const Geometry g = geometry_of({call.params, call.inputs, call.outputs});
  const Int8Range range = int8_range(p);
  const auto run = [&](const auto* x, gemm::ByteForm form, auto result) {
    run_phases(call, g, x, form, true,
               [&](const gemm::LeftSource& rows, const gemm::Workspace& workspace, const gemm::RightPanelsI8& panels,
                   const PhaseResult& at) {
                 gemm::multiply(rows, workspace, panels,
                                decltype(result){result.data + at.first, at.row_stride,
                                                 result.requantize.from_channel(at.channel)});
               });
  };
  if (linear_form(call.in(0), call.in(1)) == LinearForm::kInt8) {
    run(call.input<std::uint8_t>(0), gemm::byte_form(0, p.input_zero_point),
        gemm::Int8Result{call.output<std::int8_t>(), 0, make_requantizer(call, range)});
  } else {
    run(call.input<std::int16_t>(0), gemm::ByteForm{},
        gemm::Int16Result{call.output<std::int16_t>(), 0, make_requantizer16(call, range)});
  }
  return ok_status();
}

bool integer_columns_supports(const OpCall& call) {
  return linear_form(call.in(0), call.in(1)) == LinearForm::kInt8 && is_constant_product(call) &&
         columns_fit(geometry_of(call));
}

Footprint integer_columns_footprint(const OpCall& call, int threads) {
  return columns_footprint_of(call, geometry_of(call), threads);
}

std::int64_t integer_columns_packed_bytes(const OpCall& call, int input) {
  return input == 1 ? columns_packed_bytes_of(call, geometry_of(call)) : 0;
}

void integer_columns_pack(const OpCall& call, int /*input*/, std::byte* destination) {
  pack_columns(call, geometry_of(call), 0, 0, destination);
}

Status run_integer_columns(const Invocation& call) {
  const auto& p = call.as<ConvTranspose2dParams>();
  const Geometry g = geometry_of({call.params, call.inputs, call.outputs});
  Requantizer requantize = make_requantizer(call, int8_range(p));
  requantize.bias = repeated(call, g, requantize.bias, 0);
  requantize.multiplier = repeated(call, g, requantize.multiplier, 1);
  requantize.shift = repeated(call, g, requantize.shift, 2);
  run_columns_of(call, g, gemm::byte_form(0, p.input_zero_point), call.output<std::int8_t>(),
                 [&](const gemm::LeftSource& rows, const gemm::Workspace& workspace, const gemm::RightPanelsI8& panels,
                     std::int8_t* results) {
                   gemm::multiply(rows, workspace, panels, gemm::Int8Result{results, panels.n, requantize});
                 });
  return ok_status();
}

}  // namespace bantam::ops::conv_transpose2d
