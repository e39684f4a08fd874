#include "differential/random_graph.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>

#include "graph/builder.h"
#include "ops/testing/sampling.h"

namespace bantam::testing {
namespace {

using graph::ValueId;
using graph::testing::HostTensor;
using ops::testing::Random;
using ops::testing::Range;
using ops::testing::SampledOperand;
using ops::testing::Sampling;
using ops::testing::TestTensor;

constexpr std::size_t kRounds = 3;
constexpr std::int64_t kFreeDim = 13;  // hardly met by chance, also as a factor
constexpr double kLargestNumber = 1e5;
constexpr std::int64_t kLargestValue = 1 << 14;  // bytes

HostTensor random_tensor(const TensorDesc& desc, Range range, Random& random) {
  TestTensor tensor(desc);
  ops::testing::fill_random(tensor, random, range.low, range.high);
  return {desc, tensor.packed()};
}

/// Numbers that arithmetic can go on with.
bool is_tame(const HostTensor& tensor) {
  TestTensor copy(tensor.desc);
  copy.set_packed(tensor.bytes);
  if (!is_float(tensor.desc.type)) return true;
  return std::ranges::all_of(copy.to_doubles(), [](double x) { return std::abs(x) <= kLargestNumber; });
}

class Generator {
 public:
  explicit Generator(std::uint64_t seed) : random_(seed), builder_(sample_.graph) {
    sample_.graph.name = "random";
    sample_.rounds.resize(kRounds);
    if (random_int(0, 3) == 0) sample_.free_dim = kFreeDim;
  }

  Sample run() {
    for (auto n = random_int(0, 2); n > 0; --n) add_state();
    const auto wanted = static_cast<std::size_t>(random_int(1, 12));
    for (int attempt = 0; sample_.graph.nodes.size() < wanted && attempt < 60; ++attempt) add_node();
    if (values_.empty()) add_input(ops::testing::dense_desc(ElementType::kF32, {3}), {-1.0, 1.0});
    choose_outputs();
    choose_next_states();
    return std::move(sample_);
  }

 private:
  std::int64_t random_int(std::int64_t low, std::int64_t high) { return ops::testing::random_int(random_, low, high); }

  void keep(ValueId id, HostTensor data) {
    values_.push_back(id);
    descs_.push_back(data.desc);
    data_.push_back(std::move(data));
  }

  std::size_t add_input(const TensorDesc& desc, Range range) {
    const std::string name = "x" + std::to_string(sample_.graph.inputs.size());
    const ValueId id = builder_.input(name, desc);
    for (Tensors& round : sample_.rounds) round[name] = random_tensor(desc, range, random_);
    keep(id, sample_.rounds.front().at(name));
    return values_.size() - 1;
  }

  void add_state() {
    Sampling s(random_);
    const TensorDesc desc = s.any(0, 4);
    if (desc.bytes() > kLargestValue) return;
    HostTensor data{desc, std::vector<std::byte>(static_cast<std::size_t>(desc.bytes()))};
    std::optional<graph::Constant> initial;
    if (s.one_in(2)) {
      data = random_tensor(desc, ops::testing::usual_range(desc.type), random_);
      initial = own(data.bytes);
    }
    const ValueId id = builder_.state("s" + std::to_string(sample_.graph.states.size()), desc, std::move(initial));
    keep(id, std::move(data));
  }

  static graph::Constant own(const std::vector<std::byte>& bytes) {
    auto owner = std::make_shared<std::vector<std::byte>>(bytes);
    const std::span<const std::byte> view(*owner);
    return {view, std::move(owner)};
  }

  const ops::OpDef& random_op() {
    const auto ops = ops::all_ops();
    return *ops[static_cast<std::size_t>(random_int(0, std::ssize(ops) - 1))];
  }

  void add_node() {
    const ops::OpDef& op = random_op();
    Sampling s(random_, descs_);
    s.prefer_dim(sample_.free_dim);
    if (!sample(op, s)) return;
    // Nothing enters the graph before the node is known to be good.
    std::vector<HostTensor> operands;
    for (const SampledOperand& operand : s.operands) operands.push_back(data_for(operand));
    graph::Params params(op);
    std::ranges::copy(s.params, params.data());
    const auto results = evaluate(op, params, operands);
    if (results.empty() || !std::ranges::all_of(results, is_tame)) return;
    std::vector<ValueId> inputs;
    for (std::size_t i = 0; i < operands.size(); ++i) inputs.push_back(operand_value(s.operands[i], operands[i]));
    const auto outputs = builder_.emit(op, std::move(params), std::move(inputs));
    if (!outputs) return;
    ++sample_.operators[std::string(op.name)];
    for (std::size_t o = 0; o < results.size(); ++o) keep((*outputs)[o], results[o]);
  }

  HostTensor data_for(const SampledOperand& operand) {
    switch (operand.kind) {
      case SampledOperand::Kind::kPool: return data_[operand.in_pool];
      case SampledOperand::Kind::kConstant: return {operand.desc, operand.tensor.packed()};
      case SampledOperand::Kind::kFresh: return random_tensor(operand.desc, operand.range, random_);
      case SampledOperand::Kind::kAbsent: break;
    }
    return {};
  }

  ValueId operand_value(const SampledOperand& operand, const HostTensor& data) {
    switch (operand.kind) {
      case SampledOperand::Kind::kPool: return values_[operand.in_pool];
      case SampledOperand::Kind::kConstant: {
        const graph::Constant constant = own(data.bytes);
        return builder_.constant("", data.desc, constant.bytes, constant.owner);
      }
      case SampledOperand::Kind::kFresh: {
        const std::size_t i = add_input(operand.desc, operand.range);
        // The first round's data are those that the node was tried with.
        data_[i] = sample_.rounds.front()[sample_.graph.inputs.back().name] = data;
        return values_[i];
      }
      case SampledOperand::Kind::kAbsent: break;
    }
    return graph::kNone;
  }

  /// Empty when the node faults or its results are too large.
  static std::vector<HostTensor> evaluate(const ops::OpDef& op, const graph::Params& params,
                                          std::vector<HostTensor>& operands) {
    std::vector<Tensor> inputs;
    for (HostTensor& operand : operands)
      inputs.push_back({operand.desc.present() ? operand.bytes.data() : nullptr, &operand.desc});
    std::vector<TensorDesc> descs(static_cast<std::size_t>(op.outputs));
    if (!ops::infer(op, params.data(), inputs, descs).ok()) return {};
    for (const TensorDesc& desc : descs)
      if (desc.bytes() > kLargestValue) return {};
    const auto constants = graph::evaluate(op, params, inputs, descs);
    if (!constants) return {};
    std::vector<HostTensor> results;
    for (std::size_t o = 0; o < descs.size(); ++o)
      results.push_back({descs[o], {(*constants)[o].bytes.begin(), (*constants)[o].bytes.end()}});
    return results;
  }

  void choose_outputs() {
    const graph::Uses uses(sample_.graph);
    const auto add = [&](ValueId id) { builder_.output("o" + std::to_string(sample_.graph.outputs.size()), id); };
    for (const ValueId id : values_)
      if (sample_.graph.value(id).producer != graph::kNone && uses.of(id).empty() && random_int(0, 5) != 0) add(id);
    for (auto n = random_int(0, 1); n > 0 || sample_.graph.outputs.empty(); --n)
      add(values_[static_cast<std::size_t>(random_int(0, std::ssize(values_) - 1))]);
  }

  void choose_next_states() {
    for (graph::State& state : sample_.graph.states) {
      std::vector<ValueId> fitting;
      for (std::size_t i = 0; i < values_.size(); ++i)
        if (same_shape_and_type(descs_[i], sample_.graph.value(state.in).desc)) fitting.push_back(values_[i]);
      state.out = fitting[static_cast<std::size_t>(random_int(0, std::ssize(fitting) - 1))];
    }
  }

  Random random_;
  Sample sample_;
  graph::Builder builder_;
  // What operands may be taken from.
  std::vector<ValueId> values_;
  std::vector<TensorDesc> descs_;
  std::vector<HostTensor> data_;  ///< in the first round
};

}  // namespace

Sample random_sample(std::uint64_t seed) { return Generator(seed).run(); }

}  // namespace bantam::testing
