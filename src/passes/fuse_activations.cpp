// Applies a unary function in the last step of the operator that computes its operand.
//
// Operators with an `activation` parameter apply it to each result before they store it, by the definition `unary`
// uses; so x -> op -> f and op with activation f agree. Only when f is the sole reader of op, op has no activation yet,
// results are f32, and the function is fusible (ops/elementwise/unary/function.h).
#include <cstddef>
#include <string_view>

#include "ops/elementwise/binary/binary.h"
#include "ops/elementwise/unary/unary.h"
#include "ops/nn/conv2d/conv2d.h"
#include "ops/nn/conv2d_affine/conv2d_affine.h"
#include "ops/nn/conv_transpose2d/conv_transpose2d.h"
#include "ops/nn/conv_transpose2d_affine/conv_transpose2d_affine.h"
#include "ops/nn/matmul/matmul.h"
#include "ops/nn/matmul_affine/matmul_affine.h"
#include "ops/nn/pool2d/pool2d.h"
#include "passes/list.h"
#include "passes/rewriter.h"

namespace bantam::passes {
namespace {

using graph::Node;
using graph::ValueId;
using Replacement = std::optional<ValueId>;

/// Where an operator's parameters have their activation.
struct Host {
  std::string_view op;
  std::size_t offset;
};
constexpr Host kHosts[] = {
    {"binary", offsetof(ops::BinaryParams, activation)},
    {"conv2d", offsetof(ops::Conv2dParams, activation)},
    {"conv2d_affine", offsetof(ops::Conv2dAffineParams, form.activation)},
    {"conv_transpose2d", offsetof(ops::ConvTranspose2dParams, activation)},
    {"conv_transpose2d_affine", offsetof(ops::ConvTranspose2dAffineParams, form.activation)},
    {"depthwise_conv2d", offsetof(ops::Conv2dParams, activation)},
    {"matmul", offsetof(ops::MatmulParams, activation)},
    {"matmul_affine", offsetof(ops::MatmulAffineParams, form.activation)},
    {"pool2d", offsetof(ops::Pool2dParams, activation)},
};

const Host* find_host(std::string_view op) {
  for (const Host& host : kHosts)
    if (host.op == op) return &host;
  return nullptr;
}

Replacement fuse(Rewriter& rewriter, const Node& node) {
  const auto& unary = node.as<ops::UnaryParams>();
  const ValueId x = node.inputs[0];
  const Node* producer = rewriter.producer(x);
  if (producer == nullptr || !rewriter.only_reader(x) || rewriter.desc(x).type != ElementType::kF32)
    return std::nullopt;
  const Host* host = find_host(producer->op->name);
  if (host == nullptr || unary.function == ops::UnaryFunction::kIdentity || !ops::is_fusible(unary.function))
    return std::nullopt;
  graph::Params params = producer->params;
  auto& activation = *reinterpret_cast<ops::Activation*>(params.data() + host->offset);
  if (activation.function != ops::UnaryFunction::kIdentity) return std::nullopt;
  activation = {unary.function, unary.a, unary.b};
  rewriter.set_fused_source(*producer, node);
  return rewriter.emit(*producer->op, std::move(params), producer->inputs);
}

}  // namespace

Result<bool> fuse_activations(graph::Graph& graph) {
  return Rewriter(graph).sweep([](Rewriter& rewriter, const Node& node) -> Replacement {
    return node.is(ops::kUnary) ? fuse(rewriter, node) : std::nullopt;
  });
}

}  // namespace bantam::passes
