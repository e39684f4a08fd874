// The kernels of matmul behind its variants table in matmul.cpp.
#pragma once

#include "ops/op.h"

namespace bantam::ops::matmul {

Footprint reference_footprint(const OpCall& call, int threads);
Status run_reference(const Invocation& call);

/// int8, weights without zero point; for small cores.
bool portable_supports(const OpCall& call);
Status run_portable(const Invocation& call);

/// f32, constant b.
bool packed_supports(const OpCall& call);
Footprint packed_footprint(const OpCall& call, int threads);
std::int64_t packed_bytes(const OpCall& call, int input);
void pack(const OpCall& call, int input, std::byte* destination);
Status run_packed(const Invocation& call);

/// f32, constant b that is narrowed to `type` (nn/gemm/narrow_panels.h); a is not transposed.
bool narrow_supports(const OpCall& call);
Footprint narrow_footprint(const OpCall& call, int threads);
std::int64_t narrow_packed_bytes(const OpCall& call, int input, ElementType type);
void narrow_pack(const OpCall& call, int input, ElementType type, std::byte* destination);
void narrow_restore(const OpCall& call, int input, ElementType type, const std::byte* packed, float* elements);
Status run_narrow(const Invocation& call, ElementType type);

/// The same on b in f16, which computes in 16 bits too where the processor does (nn/gemm/gemm_f16.h).
Footprint half_footprint(const OpCall& call, int threads);
Status run_half(const Invocation& call, ElementType type);

/// f32, contiguous rows by one column, any b.
bool column_supports(const OpCall& call);
Status run_column(const Invocation& call);

/// f32, up to eight rows by any b that has contiguous rows or columns.
bool rows_supports(const OpCall& call);
Status run_rows(const Invocation& call);

/// f32, any b.
bool dynamic_supports(const OpCall& call);
Footprint dynamic_footprint(const OpCall& call, int threads);
Status run_dynamic(const Invocation& call);

/// int8 and hybrid, constant b without zero point.
bool int8_supports(const OpCall& call);
Footprint int8_footprint(const OpCall& call, int threads);
std::int64_t int8_packed_bytes(const OpCall& call, int input);
void int8_pack(const OpCall& call, int input, std::byte* destination);
Status run_int8(const Invocation& call);

}  // namespace bantam::ops::matmul
