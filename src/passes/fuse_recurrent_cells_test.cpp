// Cells as exporters write them become the operator, with the same results; what is no cell stays as it is.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "base/shape.h"
#include "graph/builder.h"
#include "graph/testing/interpret.h"
#include "ops/data/concat/concat.h"
#include "ops/data/slice/slice.h"
#include "ops/elementwise/binary/binary.h"
#include "ops/elementwise/unary/unary.h"
#include "ops/nn/gru/gru.h"
#include "ops/nn/lstm/lstm.h"
#include "ops/nn/matmul/matmul.h"
#include "passes/list.h"

namespace bantam::passes {
namespace {

using graph::Graph;
using graph::ValueId;
using graph::testing::HostTensor;
using ops::BinaryFunction;
using ops::UnaryFunction;

/// How an exporter writes a cell.
struct Form {
  std::string name;
  std::vector<std::int64_t> rows{1};  ///< dimensions before the width
  std::int64_t input = 5;
  std::int64_t order[4] = {0, 3, 1, 2};  ///< where input, output, forget gate and candidate lie
  bool transposed = false;               ///< weights are [4H,K], each with its bias
  bool joined = false;                   ///< one product of inputs and state side by side
  bool state_first = false;              ///< the recurrent product is written first
  bool operands_turned = false;          ///< products and sums of two have them the other way round
  float forget_bias = 0.0F;              ///< added to this gate alone
  UnaryFunction gate = UnaryFunction::kSigmoid;
  UnaryFunction other_gate = UnaryFunction::kSigmoid;  ///< of the output gate
  bool gates_read = false;                             ///< by somebody else, too
  bool overlapping = false;                            ///< two gates are one slice
  bool becomes_lstm = true;
};

constexpr std::int64_t kHidden = 6;

/// How an exporter writes a step of a GRU.
struct GruForm {
  std::string name;
  std::vector<std::int64_t> rows{1};
  std::int64_t order[3] = {1, 0, 2};  ///< where update gate, reset gate and candidate lie
  bool transposed = false;
  bool weighted_sum = false;  ///< z h + (1 - z) n instead of n + z (h - n)
  bool operands_turned = false;
  bool other_state = false;                            ///< what is mixed is not what is multiplied
  bool one_product = false;                            ///< both shares are of x
  UnaryFunction other_gate = UnaryFunction::kSigmoid;  ///< of the reset gate
  bool becomes_gru = true;
};

/// What forms of all cells are written with.
class Writer {
 protected:
  Writer(const std::vector<std::int64_t>& rows, bool transposed, bool operands_turned)
      : rows_(rows), transposed_(transposed), operands_turned_(operands_turned), builder_(graph_) {}

  std::vector<std::int64_t> dims(std::int64_t width) const {
    std::vector<std::int64_t> dims = rows_;
    dims.push_back(width);
    return dims;
  }
  ValueId input(const std::string& name, std::int64_t width) {
    TensorDesc desc;
    const auto shape = dims(width);
    EXPECT_TRUE(make_desc(ElementType::kF32, shape.data(), static_cast<int>(shape.size()), &desc).ok());
    return builder_.input(name, desc);
  }
  ValueId emit(const ops::OpDef& op, graph::Params params, std::vector<ValueId> inputs) {
    auto result = builder_.emit1(op, std::move(params), std::move(inputs));
    EXPECT_TRUE(result) << (result ? "" : result.error().message);
    return result ? *result : graph::kNone;
  }
  ValueId unary(UnaryFunction function, ValueId x) {
    return emit(ops::kUnary, graph::Params::of(ops::UnaryParams{function, 0.2F, 0.5F}), {x});
  }
  ValueId binary(BinaryFunction function, ValueId a, ValueId b) {
    if (operands_turned_) std::swap(a, b);
    return emit(ops::kBinary, graph::Params::of(ops::BinaryParams{function}), {a, b});
  }
  ValueId weights(std::vector<std::int64_t> shape) {
    std::int64_t n = 1;
    for (const auto d : shape) n *= d;
    std::vector<float> elements(static_cast<std::size_t>(n));
    for (float& e : elements) e = std::uniform_real_distribution<float>(-1.0F, 1.0F)(random_);
    return builder_.constant<float>("", shape, std::span<const float>(elements));
  }
  ValueId product(ValueId x, std::int64_t k, std::int64_t n) {
    const ops::MatmulParams params{.transpose_b = transposed_ ? 1 : 0};
    std::vector<ValueId> inputs{x, transposed_ ? weights({n, k}) : weights({k, n})};
    if (transposed_) inputs.push_back(weights({n}));
    return emit(ops::kMatmul, graph::Params::of(params), inputs);
  }
  ValueId part(ValueId whole, std::int64_t index) {
    ops::SliceParams p;
    p.starts.size = p.steps.size = p.sizes.size = static_cast<std::int32_t>(rows_.size()) + 1;
    for (std::size_t d = 0; d < rows_.size(); ++d) p.sizes.v[d] = static_cast<std::int32_t>(rows_[d]);
    for (std::size_t d = 0; d <= rows_.size(); ++d) p.steps.v[d] = 1;
    p.starts.v[rows_.size()] = static_cast<std::int32_t>(index * kHidden);
    p.sizes.v[rows_.size()] = static_cast<std::int32_t>(kHidden);
    return emit(ops::kSlice, graph::Params::of(p), {whole});
  }

  ValueId biased(ValueId sum, std::int64_t n) {
    return transposed_ ? sum : binary(BinaryFunction::kAdd, sum, weights({n}));
  }

  const std::vector<std::int64_t>& rows_;
  bool transposed_;
  bool operands_turned_;
  std::mt19937 random_{7};
  Graph graph_;
  graph::Builder builder_;
};

/// Writes a cell out, inputs x, h and c, results h1 and c1.
class WrittenLstm : private Writer {
 public:
  explicit WrittenLstm(const Form& form) : Writer(form.rows, form.transposed, form.operands_turned), form_(form) {}

  Graph make() {
    x_ = input("x", form_.input);
    h_ = input("h", kHidden);
    c_ = input("c", kHidden);
    const ValueId sum =
        form_.joined ? biased(product(joined(), form_.input + kHidden, kColumns), kColumns) : products();
    ValueId gates[4];
    for (std::size_t g = 0; g < 4; ++g) gates[g] = part(sum, form_.overlapping ? form_.order[g / 2] : form_.order[g]);
    if (form_.forget_bias != 0.0F)
      gates[2] = binary(BinaryFunction::kAdd, gates[2], builder_.scalar(form_.forget_bias));
    const ValueId in = unary(form_.gate, gates[0]);
    const ValueId candidate = unary(UnaryFunction::kTanh, gates[3]);
    const ValueId kept = binary(BinaryFunction::kMul, unary(form_.gate, gates[2]), c_);
    const ValueId c1 = binary(BinaryFunction::kAdd, kept, binary(BinaryFunction::kMul, in, candidate));
    const ValueId out = unary(form_.other_gate, gates[1]);
    const ValueId h1 = binary(BinaryFunction::kMul, out, unary(UnaryFunction::kTanh, c1));
    builder_.output("h1", h1);
    builder_.output("c1", c1);
    if (form_.gates_read) builder_.output("gates", unary(UnaryFunction::kAbs, sum));
    return std::move(graph_);
  }

 private:
  static constexpr std::int64_t kColumns = 4 * kHidden;

  ValueId products() {
    const ValueId of_x = product(x_, form_.input, kColumns);
    const ValueId of_h = product(h_, kHidden, kColumns);
    return biased(
        form_.state_first ? binary(BinaryFunction::kAdd, of_h, of_x) : binary(BinaryFunction::kAdd, of_x, of_h),
        kColumns);
  }
  ValueId joined() {
    const auto axis = static_cast<std::int32_t>(form_.rows.size());
    return emit(ops::kConcat, graph::Params::of(ops::ConcatParams{axis}), {x_, h_});
  }

  const Form& form_;
  ValueId x_ = graph::kNone;
  ValueId h_ = graph::kNone;
  ValueId c_ = graph::kNone;
};

/// Writes a step of a GRU out, inputs x and h, result h1.
class WrittenGru : private Writer {
 public:
  explicit WrittenGru(const GruForm& form) : Writer(form.rows, form.transposed, form.operands_turned), form_(form) {}

  Graph make() {
    const ValueId x = input("x", kInput);
    const ValueId h = input("h", kHidden);
    const ValueId mixed = form_.other_state ? unary(UnaryFunction::kAbs, h) : h;
    const ValueId of_x = biased(product(x, kInput, kColumns), kColumns);
    const ValueId of_h = form_.one_product ? of_x : biased(product(h, kHidden, kColumns), kColumns);
    const auto gate = [&](std::size_t g) {
      return binary(BinaryFunction::kAdd, part(of_x, form_.order[g]), part(of_h, form_.order[g]));
    };
    const ValueId z = unary(UnaryFunction::kSigmoid, gate(0));
    const ValueId r = unary(form_.other_gate, gate(1));
    const ValueId reset = binary(BinaryFunction::kMul, r, part(of_h, form_.order[2]));
    const ValueId n = unary(UnaryFunction::kTanh, binary(BinaryFunction::kAdd, part(of_x, form_.order[2]), reset));
    builder_.output("h1", form_.weighted_sum ? weighted_sum(z, mixed, n) : step_towards(z, mixed, n));
    return std::move(graph_);
  }

 private:
  static constexpr std::int64_t kInput = 5;
  static constexpr std::int64_t kColumns = 3 * kHidden;

  ValueId subtract(ValueId a, ValueId b) {
    return emit(ops::kBinary, graph::Params::of(ops::BinaryParams{BinaryFunction::kSub}), {a, b});
  }
  ValueId step_towards(ValueId z, ValueId h, ValueId n) {
    return binary(BinaryFunction::kAdd, n, binary(BinaryFunction::kMul, z, subtract(h, n)));
  }
  ValueId weighted_sum(ValueId z, ValueId h, ValueId n) {
    const ValueId fresh = binary(BinaryFunction::kMul, subtract(builder_.scalar(1.0F), z), n);
    return binary(BinaryFunction::kAdd, binary(BinaryFunction::kMul, z, h), fresh);
  }

  const GruForm& form_;
};

std::map<std::string, HostTensor> all_results_of(const Graph& graph) {
  std::mt19937 random(5);
  std::map<std::string, HostTensor> inputs;
  for (const graph::Port& port : graph.inputs) {
    HostTensor tensor{graph.value(port.value).desc, {}};
    tensor.bytes.resize(static_cast<std::size_t>(tensor.desc.bytes()));
    for (std::size_t i = 0; i < tensor.bytes.size(); i += sizeof(float)) {
      const float value = std::uniform_real_distribution<float>(-2, 2)(random);
      std::memcpy(&tensor.bytes[i], &value, sizeof value);
    }
    inputs.emplace(port.name, std::move(tensor));
  }
  auto results = graph::testing::interpret(graph, inputs);
  EXPECT_TRUE(results) << (results ? "" : results.error().message);
  return results ? std::move(*results) : std::map<std::string, HostTensor>{};
}

std::int64_t count_of(const Graph& graph, const ops::OpDef& op) {
  return std::count_if(graph.nodes.begin(), graph.nodes.end(), [&](const graph::Node& node) { return node.is(op); });
}

/// The pass makes one `op` of the graph and leaves neither products nor sums, or, if `becomes` is false, changes
/// nothing; results stay the same.
void expect_cell(Graph graph, const ops::OpDef& op, bool becomes) {
  const auto before = all_results_of(graph);
  const auto changed = fuse_recurrent_cells(graph);
  ASSERT_TRUE(changed) << changed.error().message;
  const auto sound = graph::verify(graph);
  ASSERT_TRUE(sound) << sound.error().message;
  EXPECT_EQ(*changed, becomes);
  EXPECT_EQ(count_of(graph, op), becomes ? 1 : 0);
  EXPECT_EQ(count_of(graph, ops::kMatmul) + count_of(graph, ops::kBinary) == 0, becomes);
  const auto after = all_results_of(graph);
  ASSERT_EQ(before.size(), after.size());
  for (const auto& [name, expected] : before) {
    const auto& found = after.at(name);
    ASSERT_TRUE(same_shape_and_type(expected.desc, found.desc)) << name;
    for (std::size_t i = 0; i < expected.bytes.size(); i += sizeof(float)) {
      float a = 0;
      float b = 0;
      std::memcpy(&a, &expected.bytes[i], sizeof a);
      std::memcpy(&b, &found.bytes[i], sizeof b);
      EXPECT_NEAR(a, b, 1e-5) << name << " element " << i / sizeof(float);
    }
  }
}

class FuseLstm : public ::testing::TestWithParam<Form> {};
class FuseGru : public ::testing::TestWithParam<GruForm> {};

TEST_P(FuseLstm, GivesTheSameResults) {
  expect_cell(WrittenLstm(GetParam()).make(), ops::kLstm, GetParam().becomes_lstm);
}

TEST_P(FuseGru, GivesTheSameResults) { expect_cell(WrittenGru(GetParam()).make(), ops::kGru, GetParam().becomes_gru); }

INSTANTIATE_TEST_SUITE_P(
    Forms, FuseLstm,
    ::testing::Values(
        Form{.name = "Keras"}, Form{.name = "Torch", .order = {0, 3, 1, 2}, .transposed = true},
        Form{.name = "TensorFlow1", .order = {0, 3, 2, 1}, .joined = true, .forget_bias = 1.0F},
        Form{.name = "JoinedAndTransposed", .transposed = true, .joined = true},
        Form{.name = "OtherOrder", .order = {2, 0, 3, 1}}, Form{.name = "Rows", .rows = {3}},
        Form{.name = "Batch", .rows = {2, 3}, .transposed = true},
        Form{.name = "StateFirst", .input = 9, .state_first = true}, Form{.name = "AsWideAsTheState", .input = kHidden},
        Form{.name = "OperandsTurned", .operands_turned = true},
        Form{.name = "HardSigmoid", .gate = UnaryFunction::kHardSigmoid, .other_gate = UnaryFunction::kHardSigmoid},
        Form{.name = "AllTanh", .gate = UnaryFunction::kTanh, .other_gate = UnaryFunction::kTanh},
        Form{.name = "OtherOutputFunction", .other_gate = UnaryFunction::kRelu, .becomes_lstm = false},
        Form{.name = "FunctionThatTheOperatorLacks",
             .gate = UnaryFunction::kExp,
             .other_gate = UnaryFunction::kExp,
             .becomes_lstm = false},
        Form{.name = "GatesThatOthersRead", .gates_read = true, .becomes_lstm = false},
        Form{.name = "GatesThatOverlap", .overlapping = true, .becomes_lstm = false}),
    [](const auto& test) { return test.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Forms, FuseGru,
    ::testing::Values(GruForm{.name = "Torch", .transposed = true},
                      GruForm{.name = "Keras", .order = {0, 1, 2}, .weighted_sum = true},
                      GruForm{.name = "OtherOrder", .order = {2, 1, 0}}, GruForm{.name = "Batch", .rows = {2, 3}},
                      GruForm{.name = "OperandsTurned", .operands_turned = true},
                      GruForm{.name = "WeightedSumTurned", .weighted_sum = true, .operands_turned = true},
                      GruForm{.name = "OtherStateIsMixed", .other_state = true, .becomes_gru = false},
                      GruForm{.name = "BothSharesOfOneProduct", .one_product = true, .becomes_gru = false},
                      GruForm{.name = "OtherResetFunction", .other_gate = UnaryFunction::kTanh, .becomes_gru = false}),
    [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace bantam::passes
