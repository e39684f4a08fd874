#include "ops/testing/sampling.h"

#include <algorithm>

#include "ops/testing/samplers.h"

namespace bantam::ops::testing {
namespace {

/// Integers that mean the same wherever a field has that name.
std::int32_t draw_integer(std::string_view name, Sampling& s) {
  if (name.ends_with("multiplier")) return s.pick(1 << 30, 0x7fffffff);
  if (name.ends_with("right_shift")) return s.pick(0, 3);
  if (name.ends_with("shift")) return s.pick(-9, 0);
  if (name.ends_with("zero_point")) return s.one_in(2) ? 0 : s.pick(-128, 127);
  return s.pick(0, s.one_in(4) ? 3 : 1);
}

/// Parameters of an operator that has no sampler of its own.
void draw_field(const ParamField& field, Sampling& s, int rank) {
  const auto put = [&](std::size_t offset, const auto& value) {
    std::memcpy(s.params.data() + offset, &value, sizeof(value));
  };
  for (std::uint32_t k = 0; k < field.count; ++k) {
    switch (field.kind) {
      case ParamField::Kind::kF32: put(field.offset + 4 * k, s.real(-1.0, 1.0)); break;
      case ParamField::Kind::kI32: put(field.offset + 4 * k, draw_integer(field.name, s)); break;
      case ParamField::Kind::kBool: put(field.offset + 4 * k, s.pick(0, 1)); break;
      case ParamField::Kind::kEnum:
        put(field.offset + 4 * k, s.pick(0, static_cast<std::int64_t>(field.enumerators.size()) - 1));
        break;
      case ParamField::Kind::kElementType: put(field.offset + 4 * k, ElementType32(s.type())); break;
      case ParamField::Kind::kIntList: {
        IntList list;
        list.size = s.one_in(2) ? rank : s.pick(0, 3);
        for (int i = 0; i < list.size; ++i) list.v[i] = s.one_in(2) ? i : s.pick(0, 3);
        put(field.offset + k * sizeof(IntList), list);
        break;
      }
    }
  }
}

void sample_by_fields(const OpDef& op, Sampling& s) {
  const TensorDesc x = op.max_inputs > 0 ? s.any(0, 4) : TensorDesc{};
  const std::int64_t most = std::min<std::int64_t>(op.max_inputs, op.min_inputs + 3);
  for (std::int64_t i = s.pick(op.min_inputs, most); i > 1; --i) {
    TensorDesc other = x;
    if (s.one_in(3)) other.rank = static_cast<std::uint8_t>(s.pick(0, x.rank));
    if (s.one_in(4)) other.type = s.type();
    other.set_dense_strides();
    s.like(other);
  }
  s.params.assign(static_cast<const std::byte*>(op.default_params),
                  static_cast<const std::byte*>(op.default_params) + op.params_bytes);
  for (const ParamField& field : op.fields)
    if (!s.one_in(3)) draw_field(field, s, x.rank);
}

bool accepted(const OpDef& op, const Sampling& s) {
  if (s.params.size() != op.params_bytes) return false;
  std::vector<Tensor> inputs;
  for (const SampledOperand& operand : s.operands) inputs.push_back({operand.tensor.data(), &operand.desc});
  std::vector<TensorDesc> descs(static_cast<std::size_t>(op.outputs));
  return infer(op, s.params.data(), inputs, descs).ok() &&
         std::ranges::all_of(descs, [](const TensorDesc& d) { return d.bytes() < (1 << 16); });
}

}  // namespace

Range usual_range(ElementType type) {
  switch (type) {
    case ElementType::kI8: return {-128.0, 127.0};
    case ElementType::kU8: return {0.0, 255.0};
    case ElementType::kI16: return {-30000.0, 30000.0};
    default: return is_float(type) ? Range{-2.0, 2.0} : Range{-200.0, 200.0};
  }
}

void Sampling::clear() {
  params.clear();
  operands.clear();
}

ElementType Sampling::type() {
  if (forced_type_ != ElementType::kNone) return forced_type_;
  if (!one_in(4)) return one_of({ElementType::kF32, ElementType::kF32, ElementType::kF32, ElementType::kI8});
  return static_cast<ElementType>(pick(1, static_cast<std::int64_t>(ElementType::kBool)));
}

ElementType Sampling::type(std::initializer_list<ElementType> choices) {
  if (forced_type_ != ElementType::kNone) return forced_type_;
  return one_in(2) ? *choices.begin() : one_of(choices);
}

Activation Sampling::activation() {
  if (one_in(2)) return {};
  return one_of<Activation>({{UnaryFunction::kRelu},
                             {UnaryFunction::kClip, 0.0F, 6.0F},
                             {UnaryFunction::kTanh},
                             {UnaryFunction::kLeakyRelu, 0.1F},
                             {UnaryFunction::kHardSwish}});
}

std::int64_t Sampling::dim() {
  if (preferred_dim_ != 0 && one_in(3)) return preferred_dim_;
  if (one_in(40)) return 0;
  return one_in(6) ? pick(9, 21) : pick(1, 7);
}

IntList Sampling::axes(const TensorDesc& desc) {
  IntList list;
  for (int i = 0; i < desc.rank; ++i)
    if (one_in(2)) list.v[list.size++] = i;
  return list;
}

IntList Sampling::permutation(int rank) {
  IntList list;
  list.size = rank;
  for (int i = 0; i < rank; ++i) list.v[i] = i;
  std::shuffle(list.v, list.v + rank, random_);
  return list;
}

TensorDesc Sampling::any(ElementType type, int low_rank, int high_rank) {
  std::vector<std::size_t> fitting;
  for (std::size_t i = 0; i < pool_.size(); ++i)
    if (pool_[i].type == type && pool_[i].rank >= low_rank && pool_[i].rank <= high_rank) fitting.push_back(i);
  if (!fitting.empty() && !one_in(8)) {
    // The latest values often, so that chains grow long.
    const std::size_t from = one_in(2) ? fitting.size() / 2 : 0;
    const auto i = fitting[static_cast<std::size_t>(pick(static_cast<std::int64_t>(from), std::ssize(fitting) - 1))];
    operands.push_back({SampledOperand::Kind::kPool, pool_[i], {}, {}, i});
    return pool_[i];
  }
  std::vector<std::int64_t> dims(static_cast<std::size_t>(pick(low_rank, high_rank)));
  for (std::int64_t& d : dims) d = dim();
  if (dims.size() > 4)
    for (std::int64_t& d : dims) d = std::min<std::int64_t>(d, 3);
  const TensorDesc desc = dense_desc(type, dims);
  fresh(desc, usual_range(type));
  return desc;
}

void Sampling::like(const TensorDesc& desc, Range range) {
  std::vector<std::size_t> fitting;
  for (std::size_t i = 0; i < pool_.size(); ++i)
    if (same_shape_and_type(pool_[i], desc)) fitting.push_back(i);
  if (!fitting.empty() && !one_in(3)) {
    const auto i = fitting[static_cast<std::size_t>(pick(0, std::ssize(fitting) - 1))];
    operands.push_back({SampledOperand::Kind::kPool, desc, {}, {}, i});
  } else if (one_in(2)) {
    constant(desc, range);
  } else {
    fresh(desc, range);
  }
}

void Sampling::fresh(const TensorDesc& desc, Range range) {
  operands.push_back({SampledOperand::Kind::kFresh, desc, {}, range, 0});
}

void Sampling::constant(const TensorDesc& desc, Range range) {
  TestTensor tensor(desc, Placement::kAligned);
  fill_random(tensor, random_, range.low, range.high);
  constant(std::move(tensor));
}

void Sampling::constant(TestTensor tensor) {
  const TensorDesc desc = tensor.desc();
  operands.push_back({SampledOperand::Kind::kConstant, desc, std::move(tensor), {}, 0});
}

bool sample(const OpDef& op, Sampling& sampling, int attempts) {
  const SamplerRow* row = find_sampler(op);
  for (; attempts > 0; --attempts) {
    sampling.clear();
    if (row != nullptr) {
      row->draw(sampling);
    } else {
      sample_by_fields(op, sampling);
    }
    if (accepted(op, sampling)) return true;
  }
  return false;
}

OpCase to_case(const OpDef& op, const Sampling& sampling) {
  std::vector<Operand> operands;
  Random random(sampling.operands.size());
  for (const SampledOperand& operand : sampling.operands) {
    const bool data = operand.kind == SampledOperand::Kind::kFresh || operand.kind == SampledOperand::Kind::kPool;
    if (data) {
      TestTensor tensor(operand.desc);
      const Range range = operand.kind == SampledOperand::Kind::kFresh ? operand.range : usual_range(operand.desc.type);
      fill_random(tensor, random, range.low, range.high);
      operands.emplace_back(std::move(tensor));
    } else {
      operands.emplace_back(operand.tensor, operand.kind == SampledOperand::Kind::kConstant);
    }
  }
  OpCase result = make_case(op, std::move(operands));
  result.params = sampling.params;
  return result;
}

}  // namespace bantam::ops::testing
