// Products of real rows and weights that were quantised: the weights keep their stored size.
#pragma once

#include "passes/rewriter.h"

namespace bantam::passes {

/// matmul with a constant matrix that was dequantised, one scale for all, one per column or one per block of a column,
/// as matmul_blocks: in 4 bits where its numbers fit, else in 8. Nothing when the node is no such product.
std::optional<graph::ValueId> multiply_by_blocks(Rewriter& rewriter, const graph::Node& node);

}  // namespace bantam::passes
