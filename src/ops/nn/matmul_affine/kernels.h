// The kernels of matmul_affine behind its variants table in matmul_affine.cpp, and what they share.
#pragma once

#include "ops/nn/matmul/geometry.h"
#include "ops/nn/matmul_affine/matmul_affine.h"

namespace bantam::ops::matmul_affine {

inline MatmulGeometry geometry_of(const MatmulAffineParams& p, const TensorDesc& a, const TensorDesc& b,
                                  const TensorDesc& y) noexcept {
  MatmulParams plain;
  plain.transpose_b = p.transpose_b;
  return matmul_geometry(plain, a, b, y);
}

Status run_reference(const Invocation& call);

/// Constant matrix b: packed by the compiler.
bool packed_supports(const OpCall& call);
Footprint packed_footprint(const OpCall& call, int threads);
std::int64_t packed_bytes(const OpCall& call, int input);
void pack(const OpCall& call, int input, std::byte* destination);
Status run_packed(const Invocation& call);

/// Any b: packed into scratch, product by product.
bool dynamic_supports(const OpCall& call);
Footprint dynamic_footprint(const OpCall& call, int threads);
Status run_dynamic(const Invocation& call);

}  // namespace bantam::ops::matmul_affine
