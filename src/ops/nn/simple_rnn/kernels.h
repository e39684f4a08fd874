// The kernel of simple_rnn behind its variants table in simple_rnn.cpp. Dense operands; y_h holds the running state.
#pragma once

#include "ops/nn/lstm/rnn.h"
#include "ops/nn/simple_rnn/simple_rnn.h"

namespace bantam::ops::simple_rnn {

inline constexpr int kGates = 1;

Footprint reference_footprint(const OpCall& call, int threads);
Status run_reference(const Invocation& call);

}  // namespace bantam::ops::simple_rnn
