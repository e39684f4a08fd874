#include "import/onnx/lowering.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/shape.h"
#include "import/onnx/importer.h"
#include "ops/data/concat/concat.h"
#include "ops/data/expand/expand.h"
#include "ops/data/pad/pad.h"
#include "ops/data/slice/slice.h"
#include "ops/elementwise/unary/unary.h"

namespace bantam::import::onnx {
namespace {

constexpr TensorDesc kAbsent{};
constexpr std::int64_t kMaxFindings = 200;
/// Elements of an operand that are looked at one by one, because they are sizes that are computed at run time.
constexpr std::int64_t kMostSizes = 4 * kMaxRank;

std::string_view kind_name(AttributeProto::Kind kind) {
  switch (kind) {
    case AttributeProto::Kind::kFloat: return "a float";
    case AttributeProto::Kind::kInt: return "an int";
    case AttributeProto::Kind::kString: return "a string";
    case AttributeProto::Kind::kTensor: return "a tensor";
    case AttributeProto::Kind::kGraph: return "a graph";
    case AttributeProto::Kind::kFloats: return "a list of floats";
    case AttributeProto::Kind::kInts: return "a list of ints";
    case AttributeProto::Kind::kStrings: return "a list of strings";
    case AttributeProto::Kind::kNone:
    case AttributeProto::Kind::kOther: break;
  }
  return "of another kind";
}

template <typename T>
graph::ValueId scalar_constant(graph::Builder& builder, double value) {
  const T element = static_cast<T>(value);
  return builder.constant<T>("", {}, std::span<const T>(&element, 1));
}

}  // namespace

void Findings::add(StatusCode code, const std::string& line) {
  ++count_;
  // What is merely unsupported must not hide that a model is broken.
  if (code_ == StatusCode::kOk || code == StatusCode::kInvalidModel) code_ = code;
  if (count_ > kMaxFindings) return;
  if (!text_.empty()) text_ += '\n';
  text_ += line;
}

void Findings::add(const Error& error) {
  add(error.code, error.message);
  if (remedy_.empty()) remedy_ = error.remedy;
}

Error Findings::error() const {
  Error error{code_, text_, remedy_};
  if (count_ > kMaxFindings) error.message += fmt::format("\n... and {} more", count_ - kMaxFindings);
  return error;
}

NodeLowering::NodeLowering(Importer& importer, const NodeProto& proto, const Scope& scope,
                           const std::unordered_set<std::string_view>& used)
    : importer_(importer),
      proto_(proto),
      scope_(scope),
      used_(used),
      opset_(importer.model().opset(proto.domain)),
      attribute_seen_(proto.attributes.size(), false),
      results_(proto.outputs.size(), kNone) {}

void NodeLowering::report(StatusCode code, const std::string& line) { importer_.findings().add(code, line); }

void NodeLowering::fail(std::string message, StatusCode code) {
  if (failed_) return;
  failed_ = true;
  report(code, fmt::format("node '{}' ({}): {}", node_label(proto_), printable(proto_.op_type), message));
}

std::optional<Findings> NodeLowering::attempt(const std::function<void()>& f) {
  const Findings before = importer_.findings();
  f();
  if (!failed_) return std::nullopt;
  failed_ = false;
  return std::exchange(importer_.findings(), before);
}

void NodeLowering::fail_with(const Findings& findings) {
  importer_.findings() = findings;
  failed_ = true;
}

ValueId NodeLowering::take(Result<ValueId> result) {
  if (result) return *result;
  if (!failed_) report(result.error().code, std::move(result.error().message));  // the builder names the node itself
  failed_ = true;
  return kNone;
}

ValueId NodeLowering::input(int i) {
  if (failed_) return kNone;
  if (!has(i)) {
    fail(fmt::format("operand {} is missing", i), StatusCode::kInvalidModel);
    return kNone;
  }
  // The driver has checked that every name is known before it called the handler.
  return scope_.find(proto_.inputs[static_cast<std::size_t>(i)]).value_or(kNone);
}

const TensorDesc& NodeLowering::desc(ValueId id) const noexcept {
  return id < 0 ? kAbsent : importer_.builder().desc(id);
}

std::vector<std::int64_t> NodeLowering::dims(ValueId id) const {
  const TensorDesc& d = desc(id);
  return {d.dims, d.dims + d.rank};
}

bool NodeLowering::is_constant(ValueId id) const { return id >= 0 && importer_.builder().graph().is_constant(id); }

ValueId NodeLowering::size_of(ValueId id) {
  if (failed_) return id;
  const ValueId largest = importer_.counts().resolve(id);
  return largest == kNone ? id : largest;
}

std::vector<std::int64_t> NodeLowering::integers(int i, std::string_view what, std::optional<std::int64_t> most) {
  const ValueId id = size_of(input(i));
  if (failed_) return {};
  if (auto values = graph::constant_integers(importer_.builder().graph(), id)) return std::move(*values);
  const std::string name = printable(proto_.inputs[static_cast<std::size_t>(i)]);
  const bool counts = type(id) == ElementType::kI32 || type(id) == ElementType::kI64;
  if (is_constant(id)) {
    fail(fmt::format("operand {} ({}) '{}' must hold integers, it is {}", i, what, name, format_desc(desc(id))));
    return {};
  }
  if (!counts || desc(id).elements() > kMostSizes) {
    fail(
        fmt::format("operand {} ({}) '{}' must be known when the model is imported; if it depends on an input, give "
                    "that input a fixed value, or this one: --set {}=...",
                    i, what, name, name));
    return {};
  }
  std::vector<std::int64_t> values;
  for (std::int64_t k = 0; k < desc(id).elements() && !failed_; ++k)
    values.push_back(size_element(i, what, id, k, most));
  return failed_ ? std::vector<std::int64_t>() : values;
}

std::int64_t NodeLowering::size_element(int i, std::string_view what, ValueId id, std::int64_t index,
                                        std::optional<std::int64_t> most) {
  if (failed_) return 0;
  MeasuredSizes& measured = importer_.measured();
  const MeasuredSizes::Element element = measured.trace(id, index);
  if (element.base == kNone) return element.offset;
  const std::string name = size_name(i, element.base, index);
  // The bound is that of the base; the element is larger by the offset.
  if (most) most = std::max<std::int64_t>(*most - element.offset, 1);
  const auto bound = measured.bound(name, most);
  if (!bound) {
    const std::string operand = printable(proto_.inputs[static_cast<std::size_t>(i)]);
    fail(
        fmt::format("operand {} ({}) '{}' must be known when the model is imported, or have a bound: --bound {}=N; if "
                    "it depends on an input, give that input a fixed value, or this one: --set {}=...; if an input "
                    "counts what it is computed from, say how much at most: --count INPUT=...",
                    i, what, operand, printable(name), operand));
    return 0;
  }
  return measured.measure(name, element.base, *bound) + element.offset;
}

bool NodeLowering::measures_sizes() const { return !importer_.builder().graph().measured.empty(); }

std::string NodeLowering::size_name(int i, ValueId base, std::int64_t index) {
  const std::string& source = importer_.builder().graph().value(base).name;
  const std::string operand(proto_.inputs[static_cast<std::size_t>(i)]);
  return importer_.measured().name_of(base,
                                      (source.empty() ? fmt::format("{}[{}]", operand, index) : source) + ".size");
}

std::optional<std::int64_t> NodeLowering::known_size(int i, ValueId id, std::int64_t index) {
  if (failed_) return std::nullopt;
  MeasuredSizes& measured = importer_.measured();
  const MeasuredSizes::Element element = measured.trace(id, index);
  if (element.base == kNone) return element.offset;
  const std::string name = size_name(i, element.base, index);
  const auto bound = measured.known_bound(name);
  return bound ? std::optional(measured.measure(name, element.base, *bound) + element.offset) : std::nullopt;
}

std::pair<ValueId, std::int64_t> NodeLowering::trace_element(ValueId id, std::int64_t index) {
  if (failed_) return {kNone, 0};
  const MeasuredSizes::Element element = importer_.measured().trace(id, index);
  return {element.base, element.offset};
}

std::pair<std::string, std::int64_t> NodeLowering::announce(const ops::OpDef& op, const graph::Params& params,
                                                            const std::vector<ValueId>& inputs, std::int64_t most) {
  if (failed_) return {};
  MeasuredSizes& measured = importer_.measured();
  const auto first = std::ranges::find_if(proto_.outputs, [](std::string_view name) { return !name.empty(); });
  const std::string output(first == proto_.outputs.end() ? std::string_view("found") : *first);
  const std::string name = measured.name_of(op, params, inputs, output + ".count");
  return {name, std::min(measured.bound(name, most).value_or(most), kMaxElements - kSpareCapacity)};
}

NodeLowering::Found NodeLowering::found(const std::string& name, std::int64_t bound, std::vector<ValueId> results) {
  if (failed_) return {std::move(results), 0};
  const ValueId count = results.back();
  if (const auto known = graph::constant_integers(importer_.builder().graph(), count))
    return {std::move(results), known->front()};
  if (bound == 0) return {std::move(results), 0};
  return {std::move(results), importer_.measured().measure(name, count, bound)};
}

std::int64_t NodeLowering::integer(int i, std::string_view what, std::optional<std::int64_t> most) {
  const auto values = integers(i, what, most);
  if (failed_) return 0;
  if (values.size() != 1) {
    fail(fmt::format("operand {} ({}) has {} elements, expected 1", i, what, values.size()), StatusCode::kInvalidModel);
    return 0;
  }
  return values.front();
}

std::vector<float> NodeLowering::floats(int i, std::string_view what) {
  const ValueId id = input(i);
  if (failed_) return {};
  auto values = graph::constant_floats(importer_.builder().graph(), id);
  if (!values) {
    fail(fmt::format("operand {} ({}) must be a constant of type float, it is {}{}", i, what, format_desc(desc(id)),
                     is_constant(id) ? "" : " computed at run time"));
    return {};
  }
  return std::move(*values);
}

const AttributeProto* NodeLowering::find(std::string_view name, AttributeProto::Kind kind) {
  for (std::size_t i = 0; i < proto_.attributes.size(); ++i) {
    const AttributeProto& a = proto_.attributes[i];
    if (a.name != name) continue;
    attribute_seen_[i] = true;
    if (a.is_reference) {
      fail(fmt::format("attribute '{}' refers to an attribute of a function; inline functions before", name));
      return nullptr;
    }
    // A list without elements looks like any other empty attribute in files that omit the kind.
    if (a.kind != kind) {
      fail(fmt::format("attribute '{}' is {}, expected {}", name, kind_name(a.kind), kind_name(kind)),
           StatusCode::kInvalidModel);
      return nullptr;
    }
    return &a;
  }
  return nullptr;
}

bool NodeLowering::has_attr(std::string_view name) const {
  return std::any_of(proto_.attributes.begin(), proto_.attributes.end(), [&](const auto& a) { return a.name == name; });
}

std::int64_t NodeLowering::attr_int(std::string_view name, std::int64_t otherwise) {
  const AttributeProto* a = find(name, AttributeProto::Kind::kInt);
  return a != nullptr ? a->i : otherwise;
}

std::int32_t NodeLowering::attr_int32(std::string_view name, std::int32_t otherwise) {
  const std::int64_t value = attr_int(name, otherwise);
  if (value < std::numeric_limits<std::int32_t>::min() || value > std::numeric_limits<std::int32_t>::max()) {
    fail(fmt::format("attribute '{}' is out of range: {}", name, value), StatusCode::kInvalidModel);
    return otherwise;
  }
  return static_cast<std::int32_t>(value);
}

float NodeLowering::attr_float(std::string_view name, float otherwise) {
  const AttributeProto* a = find(name, AttributeProto::Kind::kFloat);
  return a != nullptr ? a->f : otherwise;
}

std::string_view NodeLowering::attr_string(std::string_view name, std::string_view otherwise) {
  const AttributeProto* a = find(name, AttributeProto::Kind::kString);
  return a != nullptr ? a->s : otherwise;
}

std::vector<std::int64_t> NodeLowering::attr_ints(std::string_view name) {
  const AttributeProto* a = find(name, AttributeProto::Kind::kInts);
  return a != nullptr ? a->ints : std::vector<std::int64_t>();
}

std::vector<float> NodeLowering::attr_floats(std::string_view name) {
  const AttributeProto* a = find(name, AttributeProto::Kind::kFloats);
  return a != nullptr ? a->floats : std::vector<float>();
}

std::vector<std::string_view> NodeLowering::attr_strings(std::string_view name) {
  const AttributeProto* a = find(name, AttributeProto::Kind::kStrings);
  return a != nullptr ? a->strings : std::vector<std::string_view>();
}

ValueId NodeLowering::attr_tensor(std::string_view name) {
  const AttributeProto* a = find(name, AttributeProto::Kind::kTensor);
  if (a == nullptr || !a->tensor) {
    fail(fmt::format("attribute '{}' is missing", name), StatusCode::kInvalidModel);
    return kNone;
  }
  auto constant = importer_.constants().read(*a->tensor).map(in_compute_type);
  if (!constant) {
    fail(fmt::format("attribute '{}': {}", name, constant.error().message), constant.error().code);
    return kNone;
  }
  return importer_.add_constant("", *constant);
}

bool NodeLowering::is_nibbles(ValueId id) const { return importer_.is_nibbles(id); }

const GraphProto* NodeLowering::attr_graph(std::string_view name) {
  const AttributeProto* a = find(name, AttributeProto::Kind::kGraph);
  if (a != nullptr && a->graph) return a->graph.get();
  fail(fmt::format("attribute '{}' is missing", name), StatusCode::kInvalidModel);
  return nullptr;
}

void NodeLowering::ignore(std::initializer_list<std::string_view> names) {
  for (std::size_t i = 0; i < proto_.attributes.size(); ++i)
    if (std::find(names.begin(), names.end(), proto_.attributes[i].name) != names.end()) attribute_seen_[i] = true;
}

void NodeLowering::require(std::string_view name, std::int64_t supported) {
  const std::int64_t value = attr_int(name, supported);
  if (value != supported) fail(fmt::format("attribute '{}' = {} is not supported, only {}", name, value, supported));
}

int NodeLowering::axis(std::int64_t value, int rank) {
  if (failed_) return 0;
  const int result = normalize_axis(value, rank);
  if (result >= 0) return result;
  fail(fmt::format("axis {} is outside a tensor of rank {}", value, rank), StatusCode::kInvalidModel);
  return 0;
}

std::vector<int> NodeLowering::axes(std::span<const std::int64_t> values, int rank) {
  std::vector<int> result;
  if (values.size() > static_cast<std::size_t>(rank)) {
    fail(fmt::format("{} axes are given for a tensor of rank {}", values.size(), rank), StatusCode::kInvalidModel);
    return result;
  }
  for (const std::int64_t value : values) result.push_back(axis(value, rank));
  std::sort(result.begin(), result.end());
  if (!failed_ && std::adjacent_find(result.begin(), result.end()) != result.end())
    fail(fmt::format("axes [{}] name the same axis twice", fmt::join(values, ",")), StatusCode::kInvalidModel);
  return failed_ ? std::vector<int>() : result;
}

graph::Builder& NodeLowering::builder() noexcept { return importer_.builder(); }

std::vector<ValueId> NodeLowering::emit_all(const ops::OpDef& op, graph::Params params, std::vector<ValueId> inputs) {
  std::vector<ValueId> none(static_cast<std::size_t>(std::max(op.outputs, 1)), kNone);
  if (failed_) return none;
  auto outputs = builder().emit(op, params, inputs);
  if (outputs) return std::move(*outputs);
  if (auto narrowed = emit_in_float(op, std::move(params), std::move(inputs))) return std::move(*narrowed);
  take(bantam::fail(std::move(outputs.error())));
  return none;
}

std::optional<std::vector<ValueId>> NodeLowering::emit_in_float(const ops::OpDef& op, graph::Params params,
                                                                std::vector<ValueId> inputs) {
  bool is_double = false;
  for (ValueId& id : inputs) {
    if (type(id) != ElementType::kF64) continue;
    is_double = true;
    auto narrow = builder().cast(id, ElementType::kF32);
    if (!narrow) return std::nullopt;
    id = *narrow;
  }
  if (!is_double) return std::nullopt;
  auto outputs = builder().emit(op, std::move(params), std::move(inputs));
  if (!outputs) return std::nullopt;
  for (ValueId& id : *outputs) {
    if (type(id) != ElementType::kF32) continue;
    auto wide = builder().cast(id, ElementType::kF64);
    if (!wide) return std::nullopt;
    id = *wide;
  }
  return std::move(*outputs);
}

std::vector<ValueId> NodeLowering::emit_control(const ops::OpDef& op, graph::Params params, std::vector<ValueId> inputs,
                                                std::vector<graph::Graph> bodies) {
  std::vector<ValueId> none(bodies.front().outputs.size(), kNone);
  if (failed_) return none;
  builder().set_source(node_label(proto_), printable(proto_.op_type));
  auto outputs = builder().emit_control(op, std::move(params), std::move(inputs), std::move(bodies));
  if (outputs) return std::move(*outputs);
  take(bantam::fail(std::move(outputs.error())));
  return none;
}

ValueId NodeLowering::transpose(ValueId x, std::span<const int> perm) {
  return failed_ ? kNone : take(builder().transpose(x, perm));
}

ValueId NodeLowering::reshape(ValueId x, std::span<const std::int64_t> dims) {
  return failed_ ? kNone : take(builder().reshape(x, dims));
}

ValueId NodeLowering::cast(ValueId x, ElementType to) { return failed_ ? kNone : take(builder().cast(x, to)); }

ValueId NodeLowering::unary(ops::UnaryFunction function, ValueId x, float a, float b) {
  return emit(ops::kUnary, ops::UnaryParams{function, a, b}, {x});
}

ValueId NodeLowering::binary(ops::BinaryFunction function, ValueId a, ValueId b) {
  return emit(ops::kBinary, ops::BinaryParams{function, {}}, {a, b});
}

ValueId NodeLowering::reduce(ops::ReduceFunction function, ValueId x, std::span<const int> axes, bool keep_dims) {
  ops::ReduceParams params;
  params.function = function;
  params.axes.size = static_cast<std::int32_t>(axes.size());
  std::copy(axes.begin(), axes.end(), params.axes.v);
  params.keep_dims = keep_dims ? 1 : 0;
  return emit(ops::kReduce, params, {x});
}

ValueId NodeLowering::slice(ValueId x, int axis, std::int64_t start, std::int64_t size, std::int32_t step) {
  if (failed_) return kNone;
  const TensorDesc& d = desc(x);
  if (start == 0 && size == d.dims[axis] && (step == 1 || size <= 1) && !measures_sizes()) return x;
  ops::SliceParams params;
  params.starts.size = params.steps.size = params.sizes.size = d.rank;
  for (int i = 0; i < d.rank; ++i) {
    params.steps.v[i] = 1;
    params.sizes.v[i] = d.dims[i];
  }
  params.starts.v[axis] = static_cast<std::int32_t>(start);
  params.steps.v[axis] = step;
  params.sizes.v[axis] = static_cast<std::int32_t>(size);
  return emit(ops::kSlice, params, {x});
}

ValueId NodeLowering::pad(ValueId x, int axis, std::int64_t before, std::int64_t after) {
  if (failed_ || (before == 0 && after == 0)) return failed_ ? kNone : x;
  constexpr std::int64_t kLimit = std::numeric_limits<std::int32_t>::max();
  if (std::max(std::abs(before), std::abs(after)) > kLimit) {
    fail(fmt::format("pads of {} and {} are out of range", before, after), StatusCode::kInvalidModel);
    return kNone;
  }
  ops::PadParams params;
  params.before.size = params.after.size = rank(x);
  params.before.v[axis] = static_cast<std::int32_t>(before);
  params.after.v[axis] = static_cast<std::int32_t>(after);
  return emit(ops::kPad, params, {x, kNone});
}

ValueId NodeLowering::expand(ValueId x, std::span<const std::int64_t> dims) {
  if (failed_) return kNone;
  TensorDesc wanted;
  const int rank = static_cast<int>(std::min<std::size_t>(dims.size(), kMaxRank + 1));
  if (const Status status = make_desc(type(x), dims.data(), rank, &wanted); !status.ok()) {
    fail(error_from(status).message, status.code);
    return kNone;
  }
  if (same_shape_and_type(wanted, desc(x))) return x;
  ops::ExpandParams params;
  params.shape.size = wanted.rank;
  std::copy_n(wanted.dims, wanted.rank, params.shape.v);
  return emit(ops::kExpand, params, {x});
}

ValueId NodeLowering::concat(std::vector<ValueId> parts, int axis) {
  // The operator takes at most kMaxInputs operands: join groups first.
  while (!failed_ && parts.size() > static_cast<std::size_t>(ops::kMaxInputs)) {
    std::vector<ValueId> joined;
    for (std::size_t i = 0; i < parts.size(); i += ops::kMaxInputs) {
      const auto first = parts.begin() + static_cast<std::ptrdiff_t>(i);
      const auto last = parts.begin() + static_cast<std::ptrdiff_t>(std::min(i + ops::kMaxInputs, parts.size()));
      joined.push_back(concat({first, last}, axis));
    }
    parts = std::move(joined);
  }
  if (parts.size() == 1) return parts.front();
  return emit(ops::kConcat, ops::ConcatParams{axis}, std::move(parts));
}

ValueId NodeLowering::scalar(ElementType type, double value) {
  if (failed_) return kNone;
  switch (type) {
    case ElementType::kF64: return scalar_constant<double>(builder(), value);
    case ElementType::kI8: return scalar_constant<std::int8_t>(builder(), value);
    case ElementType::kU8: return scalar_constant<std::uint8_t>(builder(), value);
    case ElementType::kI16: return scalar_constant<std::int16_t>(builder(), value);
    case ElementType::kU16: return scalar_constant<std::uint16_t>(builder(), value);
    case ElementType::kI32: return scalar_constant<std::int32_t>(builder(), value);
    case ElementType::kU32: return scalar_constant<std::uint32_t>(builder(), value);
    case ElementType::kI64: return scalar_constant<std::int64_t>(builder(), value);
    case ElementType::kU64: return scalar_constant<std::uint64_t>(builder(), value);
    default: return cast(scalar_constant<float>(builder(), value), type);
  }
}

ValueId NodeLowering::integers_constant(std::span<const std::int64_t> values) {
  return failed_ ? kNone : builder().integers(values);
}

std::vector<ValueId> NodeLowering::nested(const GraphProto& graph) { return nested(graph, {}); }

std::vector<ValueId> NodeLowering::nested_body(const GraphProto& graph, Frame& frame, std::span<const ValueId> inputs) {
  return importer_.lower_body(graph, scope_, frame, inputs);
}

Frame& NodeLowering::frame() noexcept { return importer_.frame(); }
const Options& NodeLowering::options() const noexcept { return importer_.options(); }

bool NodeLowering::spend_unrolling(std::int64_t nodes) { return importer_.spend_unrolling(nodes); }

std::optional<std::int64_t> NodeLowering::given_iterations() { return importer_.given_iterations(node_label(proto_)); }

std::vector<ValueId> NodeLowering::nested(const GraphProto& graph, std::span<const ValueId> inputs) {
  auto outputs = importer_.lower_graph(graph, &scope_, inputs);
  // Nodes emitted from here on belong to this node again.
  builder().set_source(node_label(proto_), printable(proto_.op_type));
  return outputs;
}

bool NodeLowering::wants(int i) const {
  if (i >= outputs()) return false;
  const std::string_view name = proto_.outputs[static_cast<std::size_t>(i)];
  return !name.empty() && used_.contains(name);
}

void NodeLowering::set_output(int i, ValueId id) {
  if (i >= outputs() || failed_) return;
  results_[static_cast<std::size_t>(i)] = id;
}

void NodeLowering::finish() {
  if (failed_) return;
  for (std::size_t i = 0; i < proto_.attributes.size(); ++i) {
    if (attribute_seen_[i]) continue;
    report(StatusCode::kUnsupported, fmt::format("node '{}' ({}): attribute '{}' is not supported", node_label(proto_),
                                                 printable(proto_.op_type), printable(proto_.attributes[i].name)));
  }
  for (int i = 0; i < outputs(); ++i) {
    if (results_[static_cast<std::size_t>(i)] != kNone || !wants(i)) continue;
    report(StatusCode::kUnsupported,
           fmt::format("node '{}' ({}): result {} '{}' is not supported", node_label(proto_), printable(proto_.op_type),
                       i, printable(proto_.outputs[static_cast<std::size_t>(i)])));
  }
}

}  // namespace bantam::import::onnx
