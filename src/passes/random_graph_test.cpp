// Differential test: random valid graphs give the same results before and after all passes.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "graph/builder.h"
#include "graph/testing/interpret.h"
#include "graph/text.h"
#include "ops/data/concat/concat.h"
#include "ops/data/gather/gather.h"
#include "ops/data/pad/pad.h"
#include "ops/data/slice/slice.h"
#include "ops/elementwise/binary/binary.h"
#include "ops/elementwise/unary/unary.h"
#include "ops/nn/conv2d/conv2d.h"
#include "ops/nn/depthwise_conv2d/depthwise_conv2d.h"
#include "ops/nn/matmul/matmul.h"
#include "ops/nn/pool2d/pool2d.h"
#include "ops/nn/softmax/softmax.h"
#include "ops/reduce/reduce/reduce.h"
#include "passes/passes.h"

namespace bantam::passes {
namespace {

using graph::Graph;
using graph::ValueId;
using graph::testing::HostTensor;

/// Appends random nodes whose operands are random earlier values; an operator that refuses is skipped.
class RandomGraph {
 public:
  explicit RandomGraph(unsigned seed) : random_(seed), builder_(graph_) {}

  Graph make() {
    for (int i = 0; i < 2; ++i) {
      TensorDesc desc;
      desc.type = ElementType::kF32;
      desc.rank = 4;
      for (int d = 0; d < 4; ++d) desc.dims[d] = pick(1, 4);
      if (i == 1) desc = builder_.desc(values_[0]);
      values_.push_back(builder_.input("x" + std::to_string(i), desc));
    }
    values_.push_back(builder_.state("h", builder_.desc(values_[0])));
    const int nodes = pick(3, 20);
    for (int n = 0; n < nodes; ++n) add();
    builder_.output("last", values_.back());
    builder_.output("any", value());
    graph_.states[0].out = of_shape(builder_.desc(graph_.states[0].in));
    return std::move(graph_);
  }

 private:
  int pick(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  float number() { return std::uniform_real_distribution<float>(-1.0F, 1.0F)(random_); }
  /// Recent values more often, so that chains grow.
  ValueId value() {
    const int last = static_cast<int>(values_.size()) - 1;
    return values_[static_cast<std::size_t>(pick(0, 1) == 0 ? pick(std::max(0, last - 2), last) : pick(0, last))];
  }
  ValueId of_shape(const TensorDesc& desc) {
    std::vector<ValueId> fitting;
    for (const ValueId id : values_)
      if (same_shape_and_type(builder_.desc(id), desc)) fitting.push_back(id);
    return fitting[static_cast<std::size_t>(pick(0, static_cast<int>(fitting.size()) - 1))];
  }
  ValueId weights(std::vector<std::int64_t> dims) {
    std::int64_t n = 1;
    for (const auto d : dims) n *= d;
    std::vector<float> elements(static_cast<std::size_t>(n));
    for (float& e : elements) e = number();
    return builder_.constant<float>("", dims, std::span<const float>(elements));
  }

  void add() {
    using Add = void (RandomGraph::*)();
    static constexpr Add kAdd[] = {
        &RandomGraph::transpose, &RandomGraph::transpose, &RandomGraph::unary,   &RandomGraph::binary,
        &RandomGraph::binary,    &RandomGraph::scalar,    &RandomGraph::affine,  &RandomGraph::conv,
        &RandomGraph::depthwise, &RandomGraph::pool,      &RandomGraph::concat,  &RandomGraph::slice,
        &RandomGraph::pad,       &RandomGraph::reduce,    &RandomGraph::softmax, &RandomGraph::reshape,
        &RandomGraph::gather,    &RandomGraph::matmul,
    };
    (this->*kAdd[static_cast<std::size_t>(pick(0, static_cast<int>(std::size(kAdd)) - 1))])();
  }
  void keep(const Result<ValueId>& result) {
    if (result && !graph_.is_constant(*result) && builder_.desc(*result).elements() <= 4096 &&
        builder_.desc(*result).elements() > 0)
      values_.push_back(*result);
  }

  void transpose() {
    const ValueId x = value();
    std::vector<int> perm(builder_.desc(x).rank);
    for (std::size_t i = 0; i < perm.size(); ++i) perm[i] = static_cast<int>(i);
    const bool image = perm.size() == 4 && pick(0, 2) != 0;
    if (image) {
      perm = pick(0, 1) == 0 ? std::vector{0, 2, 3, 1} : std::vector{0, 3, 1, 2};
    } else {
      std::shuffle(perm.begin(), perm.end(), random_);
    }
    keep(builder_.transpose(x, perm));
  }
  void unary() {
    using enum ops::UnaryFunction;
    static constexpr ops::UnaryFunction kFunctions[] = {kRelu, kSigmoid, kTanh, kIdentity, kAbs, kClip, kSquare};
    const auto function = kFunctions[static_cast<std::size_t>(pick(0, 6))];
    keep(builder_.emit1(ops::kUnary, ops::UnaryParams{function, -0.5F, 0.5F}, {value()}));
  }
  ops::BinaryParams function() {
    using enum ops::BinaryFunction;
    static constexpr ops::BinaryFunction kFunctions[] = {kAdd, kSub, kMul, kMin, kMax};
    return {kFunctions[static_cast<std::size_t>(pick(0, 4))], {}};
  }
  void binary() {
    const ValueId a = value();
    keep(builder_.emit1(ops::kBinary, function(), {a, pick(0, 1) == 0 ? of_shape(builder_.desc(a)) : value()}));
  }
  void scalar() {
    static constexpr float kNumbers[] = {0.0F, 1.0F, 2.0F, 0.5F};
    const ValueId c = builder_.scalar(kNumbers[pick(0, 3)]);
    const ValueId x = value();
    keep(builder_.emit1(ops::kBinary, function(), pick(0, 1) == 0 ? std::vector{c, x} : std::vector{x, c}));
  }
  void affine() {
    const ValueId x = value();
    const TensorDesc& d = builder_.desc(x);
    if (d.rank == 0) return;
    std::vector<std::int64_t> dims{d.last(0)};
    if (d.rank > 2 && pick(0, 1) == 0) dims = {d.last(2), 1, 1};
    keep(builder_.emit1(ops::kBinary, function(), {x, weights(dims)}));
  }
  ops::Conv2dParams window() {
    ops::Conv2dParams p;
    p.stride_h = pick(1, 2);
    p.pad_top = pick(0, 1);
    p.pad_right = pick(0, 1);
    return p;
  }
  void conv() {
    const ValueId x = value();
    if (builder_.desc(x).rank != 4) return;
    const int outputs = pick(1, 4);
    keep(builder_.emit1(ops::kConv2d, window(),
                        {x, weights({outputs, pick(1, 2), pick(1, 2), builder_.desc(x).last(0)}),
                         pick(0, 1) == 0 ? graph::kNone : weights({outputs})}));
  }
  void depthwise() {
    const ValueId x = value();
    if (builder_.desc(x).rank != 4) return;
    keep(builder_.emit1(ops::kDepthwiseConv2d, window(),
                        {x, weights({pick(1, 2), pick(1, 2), builder_.desc(x).last(0) * pick(1, 2)})}));
  }
  void pool() {
    ops::Pool2dParams p;
    p.kind = pick(0, 1) == 0 ? ops::PoolKind::kMax : ops::PoolKind::kAverage;
    p.kernel_h = pick(1, 2);
    p.kernel_w = pick(1, 2);
    p.pad_top = p.kernel_h - 1;
    p.count_include_pad = pick(0, 1);
    keep(builder_.emit1(ops::kPool2d, p, {value()}));
  }
  void concat() {
    const ValueId a = value();
    const int rank = builder_.desc(a).rank;
    if (rank == 0) return;
    keep(builder_.emit1(ops::kConcat, ops::ConcatParams{pick(0, rank - 1)}, {a, of_shape(builder_.desc(a))}));
  }
  void slice() {
    const ValueId x = value();
    const TensorDesc& d = builder_.desc(x);
    ops::SliceParams p;
    p.starts.size = p.steps.size = p.sizes.size = d.rank;
    for (int i = 0; i < d.rank; ++i) {
      p.starts.v[i] = pick(0, d.dims[i] - 1);
      p.steps.v[i] = pick(0, 3) == 0 ? -1 : pick(1, 2);
      const int room = p.steps.v[i] < 0 ? p.starts.v[i] + 1 : (d.dims[i] - 1 - p.starts.v[i]) / p.steps.v[i] + 1;
      p.sizes.v[i] = pick(1, room);
    }
    keep(builder_.emit1(ops::kSlice, p, {x}));
  }
  void pad() {
    const ValueId x = value();
    ops::PadParams p;
    p.before.size = p.after.size = builder_.desc(x).rank;
    for (int i = 0; i < p.before.size; ++i) {
      p.before.v[i] = pick(0, 2) == 0 ? 1 : 0;
      p.after.v[i] = pick(0, 2) == 0 ? 1 : 0;
    }
    if (p.before.size == 4 && pick(0, 1) == 0) p.before.v[0] = p.before.v[3] = p.after.v[0] = p.after.v[3] = 0;
    keep(builder_.emit1(ops::kPad, p, {x}));
  }
  void reduce() {
    const ValueId x = value();
    ops::ReduceParams p;
    p.function = pick(0, 1) == 0 ? ops::ReduceFunction::kMean : ops::ReduceFunction::kMax;
    for (int i = 0; i < builder_.desc(x).rank; ++i)
      if (pick(0, 2) == 0) p.axes.v[p.axes.size++] = i;
    p.keep_dims = pick(0, 1);
    keep(builder_.emit1(ops::kReduce, p, {x}));
  }
  void softmax() {
    const ValueId x = value();
    const int rank = builder_.desc(x).rank;
    if (rank != 0) keep(builder_.emit1(ops::kSoftmax, ops::SoftmaxParams{pick(-rank, rank - 1), 0}, {x}));
  }
  void reshape() {
    const ValueId x = value();
    const TensorDesc& d = builder_.desc(x);
    std::vector<std::int64_t> dims(d.dims, d.dims + d.rank);
    if (dims.size() > 1 && pick(0, 1) == 0) {  // merge two neighbours
      const auto i = static_cast<std::size_t>(pick(0, static_cast<int>(dims.size()) - 2));
      dims[i] *= dims[i + 1];
      dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    } else if (!dims.empty() && dims.size() < 5) {  // split one
      const auto i = static_cast<std::size_t>(pick(0, static_cast<int>(dims.size()) - 1));
      const std::int64_t factor = dims[i] % 2 == 0 ? 2 : 1;
      dims[i] /= factor;
      dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(i), factor);
    }
    keep(builder_.reshape(x, dims));
  }
  void gather() {
    const ValueId x = value();
    const TensorDesc& d = builder_.desc(x);
    if (d.rank == 0) return;
    const int axis = pick(0, d.rank - 1);
    std::vector<std::int64_t> indices;
    for (int n = pick(1, 3); n > 0; --n) indices.push_back(pick(-d.dims[axis], d.dims[axis] - 1));
    keep(builder_.emit1(ops::kGather, ops::GatherParams{axis, 0}, {x, builder_.integers(indices)}));
  }
  void matmul() {
    const ValueId x = value();
    if (builder_.desc(x).rank < 2) return;
    if (pick(0, 1) == 0) {
      keep(builder_.emit1(ops::kMatmul, ops::MatmulParams{}, {x, weights({builder_.desc(x).last(0), pick(1, 3)})}));
    } else {
      keep(builder_.emit1(ops::kMatmul, ops::MatmulParams{}, {x, value()}));
    }
  }

  std::mt19937 random_;
  Graph graph_;
  graph::Builder builder_;
  std::vector<ValueId> values_;
};

std::map<std::string, HostTensor> random_inputs(const Graph& graph, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> number(-1.0F, 1.0F);
  std::map<std::string, HostTensor> inputs;
  for (const graph::Port& port : graph.inputs) {
    const TensorDesc& desc = graph.value(port.value).desc;
    std::vector<float> elements(static_cast<std::size_t>(desc.elements()));
    for (float& e : elements) e = number(random);
    const std::vector<std::int64_t> dims(desc.dims, desc.dims + desc.rank);
    inputs.emplace(port.name, graph::testing::host_tensor<float>(dims, elements));
  }
  return inputs;
}

/// |a - b| within 1e-5 of the largest magnitude, and at least of 1.
void expect_near(const HostTensor& expected, const HostTensor& actual) {
  ASSERT_TRUE(same_shape_and_type(expected.desc, actual.desc));
  const auto a = expected.as<float>();
  const auto b = actual.as<float>();
  float largest = 1.0F;
  for (const float x : a) largest = std::isfinite(x) ? std::max(largest, std::abs(x)) : largest;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!std::isfinite(a[i])) continue;
    ASSERT_NEAR(a[i], b[i], 1e-5F * largest) << "element " << i;
  }
}

void check(unsigned seed) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  const Graph original = RandomGraph(seed).make();
  ASSERT_TRUE(graph::verify(original));
  SCOPED_TRACE(graph::to_text(original));
  Graph optimised = original;
  const auto done = run_passes(optimised, {.stop_after = "", .verify = true});
  ASSERT_TRUE(done) << done.error().message;
  SCOPED_TRACE(graph::to_text(optimised));
  ASSERT_EQ(original.outputs.size(), optimised.outputs.size());

  graph::testing::Interpreter before(original);
  graph::testing::Interpreter after(optimised);
  for (unsigned step = 0; step < 2; ++step) {  // the second step reads what the first left in the state
    const auto inputs = random_inputs(original, seed + step);
    const auto expected = before.run(inputs);
    const auto actual = after.run(inputs);
    ASSERT_TRUE(expected) << expected.error().message;
    ASSERT_TRUE(actual) << actual.error().message;
    for (const auto& [name, tensor] : *expected) expect_near(tensor, actual->at(name));
  }
}

TEST(AllPasses, KeepTheResultsOfRandomGraphs) {
  for (unsigned seed = 1; seed <= 1500 && !::testing::Test::HasFailure(); ++seed) check(seed);
}

}  // namespace
}  // namespace bantam::passes
