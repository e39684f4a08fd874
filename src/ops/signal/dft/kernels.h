// The kernel of dft behind its variants table in dft.cpp.
#pragma once

#include <algorithm>

#include "ops/op.h"
#include "ops/signal/dft/dft.h"

namespace bantam::ops::dft {

enum Operand : int { kX = 0, kTwiddles, kWindow };

/// Samples of a frame.
template <typename Call>
std::int64_t frame_samples(const Call& call) noexcept {
  const auto& p = call.template as<DftParams>();
  if (p.step == 0) return std::min(call.in(kX).dims[1], p.length);
  return call.has(kWindow) ? call.in(kWindow).dims[0] : p.length;
}

Footprint reference_footprint(const OpCall& call, int threads);
Status run_reference(const Invocation& call);

}  // namespace bantam::ops::dft
