// Random valid applications of every operator: what graph generators and whole-table tests are made of.
//
//   Sampling s(random, pool);                   // pool: descs of values that operands may be taken from
//   if (sample(kConv2d, s)) ...                 // s.params, s.operands: infer accepts them
//
// One function per operator draws parameters and operands; operators without one get parameters drawn from their
// ParamFields and operands of like shapes. Either way drawing is repeated until infer accepts, so a sampler need not
// know every rule. Sizes are small, odd ones, 1 and 0 included. Test code only.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <utility>
#include <vector>

#include "ops/elementwise/unary/function.h"
#include "ops/testing/harness.h"

namespace bantam::ops::testing {

/// Elements of an operand are uniform in it.
struct Range {
  double low = 0.0;
  double high = 0.0;
};

/// What arithmetic of that type is happy with: [-2, 2] for floats, all of i8 and u8, a few hundred for others.
Range usual_range(ElementType type);

struct SampledOperand {
  enum class Kind : std::uint8_t { kAbsent, kConstant, kFresh, kPool };

  Kind kind = Kind::kAbsent;
  TensorDesc desc{};        ///< dense
  TestTensor tensor{};      ///< kConstant: the elements
  Range range{};            ///< kFresh: what they should be within
  std::size_t in_pool = 0;  ///< kPool
};

class Sampling {
 public:
  explicit Sampling(Random& random, std::span<const TensorDesc> pool = {}) : random_(random), pool_(pool) {}

  /// Makes `any` draw no type but this one; kNone: all.
  void force_type(ElementType type) { forced_type_ = type; }
  /// Makes `dim` draw this one often; 0: none.
  void prefer_dim(std::int64_t dim) { preferred_dim_ = dim; }
  void clear();

  // Drawing numbers.
  Random& random() { return random_; }
  std::int32_t pick(std::int64_t low, std::int64_t high) {
    return static_cast<std::int32_t>(random_int(random_, low, high));
  }
  bool one_in(std::int64_t n) { return random_int(random_, 1, n) == 1; }
  float real(double low, double high) {
    return static_cast<float>(std::uniform_real_distribution<double>(low, high)(random_));
  }
  template <typename T>
  T one_of(std::initializer_list<T> choices) {
    return choices.begin()[random_int(random_, 0, static_cast<std::int64_t>(choices.size()) - 1)];
  }
  template <typename E>
  E enumerator() {
    return static_cast<E>(random_int(random_, 0, static_cast<std::int64_t>(E::kCount) - 1));
  }
  /// Floats often, the rest sometimes.
  ElementType type();
  /// One of these, of which the first is the most frequent; the forced type where one is.
  ElementType type(std::initializer_list<ElementType> choices);
  Activation activation();
  /// A dimension: mostly small, 1 and odd sizes often, 0 now and then.
  std::int64_t dim();
  /// An axis of a tensor, which has one.
  std::int32_t axis(const TensorDesc& desc) { return pick(0, desc.rank - 1); }
  /// Some axes, ascending.
  IntList axes(const TensorDesc& desc);
  /// All axes in random order.
  IntList permutation(int rank);

  // Operands, in order.
  /// A value of any shape within these ranks.
  TensorDesc any(int low_rank, int high_rank) { return any(type(), low_rank, high_rank); }
  TensorDesc any(ElementType type, int low_rank, int high_rank);
  /// A value or a constant of this shape and type.
  void like(const TensorDesc& desc) { like(desc, usual_range(desc.type)); }
  void like(const TensorDesc& desc, Range range);
  /// A new value with elements in a range that matters: indices, lengths, scales.
  void fresh(const TensorDesc& desc, Range range);
  void constant(const TensorDesc& desc, Range range);
  void constant(TestTensor tensor);
  void absent() { operands.emplace_back(); }

  template <typename P>
  void set_params(const P& p) {
    params.resize(sizeof(P));
    std::memcpy(params.data(), &p, sizeof(P));
  }

  std::vector<std::byte> params;
  std::vector<SampledOperand> operands;

 private:
  Random& random_;
  std::span<const TensorDesc> pool_;
  ElementType forced_type_ = ElementType::kNone;
  std::int64_t preferred_dim_ = 0;
};

/// Draws an application that infer accepts; false when `attempts` of them were refused.
bool sample(const OpDef& op, Sampling& sampling, int attempts = 300);

/// The same as a case with data.
OpCase to_case(const OpDef& op, const Sampling& sampling);

}  // namespace bantam::ops::testing
