// One TensorFlow Lite operator while it is lowered to core operators.
//
// Handlers (one per operator family, see operators.h) receive a Lowering, read operands and options, emit core
// operators and set results. The first failure sticks: later emissions do nothing and return kNoValue, whose desc is an
// absent scalar, so a handler runs straight through and only has to check `failed()` before it indexes dimensions it
// has not checked. Failures become findings of the import. Single-threaded.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/builder.h"
#include "import/tflite/custom_options.h"
#include "import/tflite/model_file.h"
#include "import/tflite/quantization.h"
#include "ops/elementwise/unary/function.h"

namespace bantam::import::tflite {

class Importer;
struct Variable;

inline constexpr graph::ValueId kNoValue = graph::kNone;
using graph::ValueId;
using Dims = std::vector<std::int64_t>;

/// A table without fields: every option has its default. Stands in for options that a file leaves out.
const std::uint8_t* empty_table() noexcept;

class Lowering {
 public:
  /// `op` belongs to the importer's current subgraph; its operand indices are valid.
  Lowering(Importer& importer, const schema::Operator& op, std::string name, std::string operator_name);

  // Operands. An index beyond the operand list is an absent operand.
  int operands() const noexcept { return static_cast<int>(inputs_.size()); }
  int results() const noexcept { return static_cast<int>(count(op_.outputs())); }
  bool has(int i) const noexcept { return i < operands() && op_.inputs()->Get(static_cast<std::uint32_t>(i)) >= 0; }
  ValueId in(int i) const noexcept { return has(i) ? inputs_[static_cast<std::size_t>(i)] : kNoValue; }
  const TensorDesc& desc(ValueId id) const noexcept;
  const TensorDesc& in_desc(int i) const noexcept { return desc(in(i)); }
  ElementType in_type(int i) const noexcept { return in_desc(i).type; }
  ElementType out_type(int i = 0) const noexcept;
  int rank(int i) const noexcept { return in_desc(i).rank; }
  Dims dims(ValueId id) const;
  const schema::Tensor& in_tensor(int i) const noexcept;  ///< requires has(i)
  const schema::Tensor& out_tensor(int i = 0) const noexcept;
  std::int32_t in_index(int i) const noexcept { return has(i) ? op_.inputs()->Get(static_cast<std::uint32_t>(i)) : -1; }
  std::int32_t out_index(int i) const noexcept { return op_.outputs()->Get(static_cast<std::uint32_t>(i)); }
  template <typename Options>
  const Options& options() const {
    const auto* o = op_.builtin_options_as<Options>();
    return o != nullptr ? *o : *reinterpret_cast<const Options*>(empty_table());
  }

  /// The options of a custom operator. A finding when they are damaged or one is not in `known`.
  CustomOptions custom_options(std::initializer_list<std::string_view> known);
  /// Option `name`, an integer within [lowest, highest]; a finding and `lowest` when it is absent or anything else.
  std::int32_t integer_option(const CustomOptions& options, std::string_view name, std::int32_t lowest,
                              std::int32_t highest = std::numeric_limits<std::int32_t>::max());
  /// Option `name`, zero or one; absent: zero.
  bool flag_option(const CustomOptions& options, std::string_view name);

  /// Elements of a constant integer operand; a finding and nothing when it is not constant.
  Dims constant_operand(int i, std::string_view role);
  /// The same, of exactly `n` elements.
  Dims constant_operand(int i, std::string_view role, std::size_t n);
  /// `axis` counted from the front of `rank` dimensions; a finding and 0 when it is outside.
  int axis(std::int64_t axis, int rank);
  /// Ascending, without repetition.
  std::vector<int> axes(const Dims& axes, int rank);

  // Quantisation of operands and results, with findings.
  bool is_quantized_in(int i) const noexcept;
  Affine in_affine(int i) { return affine(in_tensor(i), "operand " + std::to_string(i)); }
  Affine out_affine(int i = 0) { return affine(out_tensor(i), "result " + std::to_string(i)); }
  /// Scales of symmetric weights: one, or one per index of dimension `axis`, which has `channels` entries.
  std::vector<float> weight_scales(int i, int axis, std::int64_t channels, std::int32_t* zero_point = nullptr);
  FixedMultiplier multiplier(double real);
  /// Bounds of the stored result under a fused activation.
  IntegerRange activation_range(schema::Activation activation);
  /// The fused activation of a float operator.
  ops::Activation float_activation(schema::Activation activation);

  // Results.
  void result(int i, ValueId value);

  // What the operator keeps from invoke to invoke: at first zeros, or the constant `initial`.
  ValueId read_state(std::string_view role, ElementType type, const Dims& dims, ValueId initial = kNoValue);
  void write_state(std::string_view role, ValueId value);

  // Emission.
  ValueId emit(const ops::OpDef& op, graph::Params params, std::vector<ValueId> inputs);
  template <typename P>
  ValueId emit(const ops::OpDef& op, const P& params, std::vector<ValueId> inputs) {
    return emit(op, graph::Params::of(params), std::move(inputs));
  }
  ValueId emit(const ops::OpDef& op, std::vector<ValueId> inputs) {
    return emit(op, graph::Params{}, std::move(inputs));
  }
  template <typename P>
  std::vector<ValueId> emit_all(const ops::OpDef& op, const P& params, std::vector<ValueId> inputs) {
    return emit_all(op, graph::Params::of(params), std::move(inputs));
  }
  std::vector<ValueId> emit_all(const ops::OpDef& op, graph::Params params, std::vector<ValueId> inputs);
  /// Constants keep their bytes: reshaping weights copies nothing.
  ValueId reshape(ValueId x, const Dims& dims);
  ValueId transpose(ValueId x, std::initializer_list<int> perm) { return transpose(x, std::vector<int>(perm)); }
  ValueId transpose(ValueId x, const std::vector<int>& perm);
  ValueId cast(ValueId x, ElementType to);
  ValueId concat(std::vector<ValueId> parts, int axis);
  ValueId slice(ValueId x, const Dims& starts, const Dims& sizes, const Dims& steps = {});
  /// The elements [start, start + size) of one axis.
  ValueId slice_axis(ValueId x, int axis, std::int64_t start, std::int64_t size);
  ValueId unary(ops::UnaryFunction function, ValueId x, float a = 0.0F, float b = 0.0F);
  ValueId lookup(ValueId x, ElementType result, const Table8& table);
  ValueId apply(ValueId x, const ops::Activation& activation);
  /// Integer `sum` of numbers on the scale of `input`, less `zero_points`, on the scale of result 0: as the format adds
  /// several operands or runs along an axis, with 19 bits of fraction.
  ValueId rescale_sum(ValueId sum, std::int64_t zero_points, Affine input);
  /// A constant scalar of any numeric type with `value` converted by value.
  ValueId scalar(ElementType type, double value);
  template <typename T>
  ValueId constant(const Dims& dims, std::span<const T> elements) {
    return failed() ? kNoValue : builder().constant<T>({}, dims, elements);
  }
  ValueId integers(const Dims& elements, ElementType type);

  // Findings. `found` and `supported` complete "...: <found> is not supported; supported: <supported>".
  void unsupported(const std::string& found, const std::string& supported);
  void invalid(const std::string& message, const std::string& expected);
  /// A finding unless the type of operand `i` is one of `types`.
  bool require_type(int i, std::initializer_list<ElementType> types);
  bool require_rank(int i, int lowest, int highest);
  /// A finding unless operand `a` and result 0 have the same per-tensor quantisation.
  bool require_same_quantization(int a);
  bool failed() const noexcept { return error_.has_value(); }
  const std::optional<Error>& error() const noexcept { return error_; }
  void fail_with(Error error);
  const std::string& name() const noexcept { return name_; }

  Importer& importer() noexcept { return importer_; }
  graph::Builder& builder() noexcept;
  const graph::Graph& graph() const noexcept;

 private:
  Affine affine(const schema::Tensor& tensor, const std::string& role);
  std::string prefix() const;

  Importer& importer_;
  const schema::Operator& op_;
  std::string name_;
  std::string operator_name_;
  std::vector<ValueId> inputs_;
  std::optional<Error> error_;
};

ops::IntList int_list(std::span<const int> values);
ops::IntList int_list(const Dims& values);  ///< values within int32; at most kMaxRank entries

}  // namespace bantam::import::tflite
