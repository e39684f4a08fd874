// conv_transpose2d_affine as matrix products: by phase (nn/conv_transpose2d/phases.h), or one for all phases
// (nn/conv_transpose2d/integer_columns.h).
#include "ops/nn/conv_transpose2d/integer_columns.h"
#include "ops/nn/conv_transpose2d/phases.h"
#include "ops/nn/conv_transpose2d_affine/kernels.h"

namespace bantam::ops::conv_transpose2d_affine {
namespace {

using conv_transpose2d::Geometry;

Geometry geometry_of(const OpCall& call) {
  return conv_transpose2d::geometry_of(call.as<ConvTranspose2dAffineParams>(), call.in(0), call.in(1), call.out());
}

gemm::ByteForm x_form(const Invocation& call, const AffineForm& form) {
  return gemm::byte_form(sign_flip(call.in(0).type), zero_points(call, 0, 4, form.input_zero_point)[0]);
}

/// Of the weights, as int8 kernels see it.
std::int32_t constant_zero_point(const OpCall& call) {
  return call.as<ConvTranspose2dAffineParams>().form.weights_zero_point - sign_flip(call.in(1).type);
}

}  // namespace

bool gemm_supports(const OpCall& call) {
  return conv_transpose2d::is_constant_product(call) && conv_transpose2d::phases_fit(geometry_of(call));
}

Footprint gemm_footprint(const OpCall& call, int threads) {
  return conv_transpose2d::phases_footprint(call, geometry_of(call), threads);
}

std::int64_t gemm_packed_bytes(const OpCall& call, int input) {
  return input == 1 ? conv_transpose2d::phases_packed_bytes(call, geometry_of(call)) : 0;
}

void gemm_pack(const OpCall& call, int /*input*/, std::byte* destination) {
  conv_transpose2d::pack_phases(call, geometry_of(call), sign_flip(call.in(1).type), destination);
}

Status run_gemm(const Invocation& call) {
  const auto& form = call.as<ConvTranspose2dAffineParams>().form;
  const AffineScaler scaler = make_affine_scaler(call, form);
  const ZeroPoints w_zeros = zero_points(call, 1, 5, form.weights_zero_point);
  with_affine_result(call, [&](auto* y) {
    using Y = std::remove_pointer_t<decltype(y)>;
    conv_transpose2d::run_phases(
        call, geometry_of({call.params, call.inputs, call.outputs}), call.input<std::uint8_t>(0), x_form(call, form),
        w_zeros.are_zero(),
        [&](const gemm::LeftSource& rows, const gemm::Workspace& workspace, const gemm::RightPanelsI8& panels,
            const conv_transpose2d::PhaseResult& at) {
          gemm::multiply(rows, workspace, panels,
                         gemm::AffineResult<Y>{y + at.first, at.row_stride, scaler.from_channel(at.channel),
                                               w_zeros.from(at.channel)});
        });
  });
  return ok_status();
}

bool columns_supports(const OpCall& call) {
  const bool has_zero_points = call.inputs.size() > 5 && call.in(5).present();
  return !has_zero_points && conv_transpose2d::is_constant_product(call) &&
         conv_transpose2d::columns_fit(geometry_of(call));
}

Footprint columns_footprint(const OpCall& call, int threads) {
  return conv_transpose2d::columns_footprint_of(call, geometry_of(call), threads);
}

std::int64_t columns_packed_bytes(const OpCall& call, int input) {
  return input == 1 ? conv_transpose2d::columns_packed_bytes_of(call, geometry_of(call)) : 0;
}

void columns_pack(const OpCall& call, int /*input*/, std::byte* destination) {
  conv_transpose2d::pack_columns(call, geometry_of(call), sign_flip(call.in(1).type), constant_zero_point(call),
                                 destination);
}

Status run_columns(const Invocation& call) {
  const auto& form = call.as<ConvTranspose2dAffineParams>().form;
  const Geometry g = geometry_of({call.params, call.inputs, call.outputs});
  AffineScaler scaler = make_affine_scaler(call, form);
  scaler.bias = conv_transpose2d::repeated(call, g, scaler.bias, 0);
  scaler.real_bias = conv_transpose2d::repeated(call, g, scaler.real_bias, 1);
  if (scaler.per_channel) scaler.scale = conv_transpose2d::repeated(call, g, scaler.scale, 2);
  const ZeroPoints w_zeros = zero_points(call, 1, 5, form.weights_zero_point);
  with_affine_result(call, [&](auto* y) {
    using Y = std::remove_pointer_t<decltype(y)>;
    conv_transpose2d::run_columns_of(
        call, g, x_form(call, form), y,
        [&](const gemm::LeftSource& rows, const gemm::Workspace& workspace, const gemm::RightPanelsI8& panels,
            Y* results) {
          gemm::multiply(rows, workspace, panels, gemm::AffineResult<Y>{results, panels.n, scaler, w_zeros});
        });
  });
  return ok_status();
}

}  // namespace bantam::ops::conv_transpose2d_affine
