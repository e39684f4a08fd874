#include "package/verify.h"

#include <cstdint>
#include <type_traits>

#include "base/shape.h"
#include "ops/narrowing.h"
#include "ops/op.h"
#include "package/control_flow.h"
#include "package/size_patches.h"

namespace bantam::format {
namespace {

/// No region of a plan may be larger: keeps sums of sizes within int64 and, below, within the target's size_t.
constexpr std::uint64_t kMaxRegionBytes = sizeof(std::size_t) == 4 ? 0x40000000ULL : (std::uint64_t{1} << 40);

constexpr TensorDesc kAbsentDesc{};

Status bad(const char* message, std::uint64_t found = 0, std::uint64_t expected = 0) {
  return failure(StatusCode::kInvalidPackage, message, static_cast<std::int64_t>(found),
                 static_cast<std::int64_t>(expected));
}

/// True when [offset, offset + bytes) lies in [0, limit). No overflow for any arguments.
bool within(std::uint64_t offset, std::uint64_t bytes, std::uint64_t limit) {
  return bytes <= limit && offset <= limit - bytes;
}

/// True when the elements of a vector, numbers or structs, lie as their alignment demands: FlatBuffers' verifier looks
/// at the vector's length only, and its builder aligns no empty vector.
template <typename Element>
bool is_aligned(const flatbuffers::Vector<Element>& elements) {
  using Stored = std::remove_cv_t<std::remove_pointer_t<Element>>;
  return elements.size() == 0 || reinterpret_cast<std::uintptr_t>(elements.Data()) % alignof(Stored) == 0;
}

/// A stretch of memory by region; two stretches of different slots never overlap.
struct Stretch {
  std::uint32_t slot;
  std::uint64_t first;
  std::uint64_t bytes;

  bool overlaps(const Stretch& other) const {
    return slot == other.slot && bytes != 0 && other.bytes != 0 && first < other.first + other.bytes &&
           other.first < first + bytes;
  }
};

class ModelVerifier {
 public:
  /// The model's tables as the package has them.
  ModelVerifier(const Model& model, std::uint64_t weights_bytes, const std::byte* weights)
      : ModelVerifier(model, model.values()->data(), model.params()->data(), weights_bytes, weights) {}
  /// The same model with other values and parameters, as many as it has.
  ModelVerifier(const Model& model, const void* values, const std::uint32_t* params, std::uint64_t weights_bytes,
                const std::byte* weights)
      : model_(model),
        values_(static_cast<const Value*>(values)),
        params_(params),
        weights_bytes_(weights_bytes),
        weights_(weights) {}

  Status verify_layout() const {
    if (!is_aligned(*model_.steps()) || !is_aligned(*model_.values()) || !is_aligned(*model_.state_init()))
      return bad("a table is misaligned");
    if (model_.state_bytes() > kMaxRegionBytes || model_.swap_bytes() > kMaxRegionBytes ||
        model_.activation_bytes() > kMaxRegionBytes)
      return bad("a region is larger than this target can address");
    BANTAM_RETURN_IF_ERROR(verify_tiers());
    if (model_.threads() == 0) return bad("planned for no threads");
    if (model_.step_names() != nullptr && model_.step_names()->size() != model_.steps()->size())
      return bad("step names do not match the steps", model_.step_names()->size(), model_.steps()->size());
    for (const auto* by_step : {model_.step_work(), model_.step_outputs()}) {
      if (by_step == nullptr) continue;
      if (by_step->size() != model_.steps()->size())
        return bad("a table by step does not match the steps", by_step->size(), model_.steps()->size());
      if (!is_aligned(*by_step)) return bad("a table is misaligned");
    }
    // Values first: what is checked about a port relies on the shape of its value.
    for (std::uint32_t i = 0; i < model_.values()->size(); ++i)
      BANTAM_RETURN_IF_ERROR(verify_value(value(i)).at(static_cast<std::int32_t>(i)));
    for (std::uint32_t i = 0; i < port_count(model_); ++i)
      BANTAM_RETURN_IF_ERROR(verify_port(port_at(model_, i), i).at(static_cast<std::int32_t>(i)));
    BANTAM_RETURN_IF_ERROR(verify_patches(model_));
    BANTAM_RETURN_IF_ERROR(verify_measures());
    BANTAM_RETURN_IF_ERROR(verify_streamed());
    for (std::uint32_t i = 0; i < model_.state_init()->size(); ++i) {
      const StateInit& init = *model_.state_init()->Get(i);
      if (init.slot() != kState && init.slot() != kSwapRead) return bad("initial state outside the state memory");
      if (!within(init.offset(), init.bytes(), region_bytes(init.slot())) ||
          !within(init.weights_offset(), init.bytes(), weights_bytes_))
        return bad("initial state is out of bounds").at(static_cast<std::int32_t>(i));
    }
    return ok_status();
  }

  /// The values that patches changed, and the ports, which may hold less than they have room for.
  Status verify_resized() const {
    if (model_.patches() != nullptr) {
      for (const SizePatch* patch : *model_.patches()) {
        if (patch->field() == kParamField) continue;
        BANTAM_RETURN_IF_ERROR(verify_value(value(patch->index())).at(static_cast<std::int32_t>(patch->index())));
      }
    }
    for (std::uint32_t i = 0; i < port_count(model_); ++i)
      BANTAM_RETURN_IF_ERROR(verify_port_value(port_at(model_, i)).at(static_cast<std::int32_t>(i)));
    return verify_measured_values();
  }

  Status verify_step(const Step& step, const ops::OpDef& op, const ops::KernelVariant& variant) const {
    Tensor inputs[ops::kMaxInputs];
    Tensor outputs[ops::kMaxOutputs];
    if (step.inputs() > ops::kMaxInputs || step.outputs() > ops::kMaxOutputs) return bad("too many operands");
    if (!within(step.first_operand(), std::uint64_t{step.inputs()} + step.outputs(), model_.operands()->size()))
      return bad("operands are out of bounds");
    if (!within(step.first_param(), op.params_bytes / 4, model_.params()->size()))
      return bad("parameters are out of bounds");
    for (int i = 0; i < step.inputs(); ++i) {
      const std::uint32_t index = operand(step, i);
      if (index == kAbsent) {
        inputs[i].desc = &kAbsentDesc;
        continue;
      }
      if (index >= model_.values()->size()) return bad("operand index is out of bounds", index);
      inputs[i] = compile_time_tensor(index);
    }
    for (int i = 0; i < step.outputs(); ++i) {
      const std::uint32_t index = operand(step, step.inputs() + i);
      if (index >= model_.values()->size()) return bad("result index is out of bounds", index);
      if (value(index).slot() == kWeights || value(index).slot() == kSwapRead)
        return bad("a step writes to read-only memory");
      outputs[i].desc = desc_of(value(index));
    }
    return verify_call(step, op, variant, {inputs, step.inputs()}, {outputs, step.outputs()});
  }

  /// Steps without a kernel: their parameters and operands first, then how they lie within one another.
  Status verify_control() const {
    bool any = false;
    for (std::uint32_t s = 0; s < model_.steps()->size(); ++s) {
      const Step& step = *model_.steps()->Get(s);
      if (step.kernel() != kControl) continue;
      any = true;
      BANTAM_RETURN_IF_ERROR(verify_control_step(step).at(static_cast<std::int32_t>(s)));
    }
    if (!any) return ok_status();
    // Sizes are taken once per step, in order; steps that jump would take them again.
    if (measure_count(model_) != 0) return bad("a model with measured sizes has steps that jump");
    return verify_control_flow(model_, params_);
  }

 private:
  Status verify_call(const Step& step, const ops::OpDef& op, const ops::KernelVariant& variant,
                     std::span<const Tensor> inputs, std::span<const Tensor> outputs) const {
    TensorDesc inferred[ops::kMaxOutputs];
    const void* params = params_ + step.first_param();
    BANTAM_RETURN_IF_ERROR(verify_readable(step, ops::find_narrowing(op, variant)));
    BANTAM_RETURN_IF_ERROR(ops::infer(op, params, inputs, {inferred, outputs.size()}));
    for (std::size_t i = 0; i < outputs.size(); ++i)
      if (!same_shape_and_type(inferred[i], *outputs[i].desc))
        return bad("a result has not the shape or type that its operator gives");
    if (is_idle(step)) return ok_status();
    const ops::OpCall call{params, inputs, outputs};
    if (!ops::supports(variant, call)) return bad("the kernel variant does not support its operands");
    BANTAM_RETURN_IF_ERROR(verify_constants(step, variant, call));
    return verify_memory(step, op, call, ops::footprint(variant, call, model_.threads()));
  }

  /// Will the session leave the step out, because its results have no elements (Session::invoke)?
  bool is_idle(const Step& step) const {
    if (dimension_count(model_) == 0) return false;
    for (int i = 0; i < step.outputs(); ++i)
      if (!is_empty(*desc_of(value(operand(step, step.inputs() + i))))) return false;
    return true;
  }

  Status verify_tiers() const {
    if (tier_count(model_) > kMaxTiers) return bad("activations in too many tiers", tier_count(model_), kMaxTiers);
    if (model_.tier_bytes() != nullptr && !is_aligned(*model_.tier_bytes())) return bad("a table is misaligned");
    for (std::uint32_t tier = 0; tier < tier_count(model_); ++tier)
      if (activation_bytes(model_, tier) > kMaxRegionBytes)
        return bad("a region is larger than this target can address");
    if (model_.scratch_tiers() == nullptr) return ok_status();
    if (model_.scratch_tiers()->size() != model_.steps()->size())
      return bad("a table by step does not match the steps", model_.scratch_tiers()->size(), model_.steps()->size());
    for (std::uint32_t s = 0; s < model_.scratch_tiers()->size(); ++s)
      if (model_.scratch_tiers()->Get(s) >= tier_count(model_))
        return bad("scratch lies in no tier", model_.scratch_tiers()->Get(s)).at(static_cast<std::int32_t>(s));
    return ok_status();
  }

  Status verify_measures() const {
    if (measure_count(model_) == 0) return ok_status();
    if (!is_aligned(*model_.measures())) return bad("a table is misaligned");
    // Bits of the dimensions so far, which are fewer than a word has (verify_patches).
    std::uint32_t measured = 0;
    std::uint32_t last_step = 0;
    for (std::uint32_t i = 0; i < measure_count(model_); ++i) {
      const Measure& measure = *model_.measures()->Get(i);
      const auto place = static_cast<std::int32_t>(i);
      if (measure.step() > model_.steps()->size() || measure.step() < last_step)
        return bad("a size is measured at no step, or out of order", measure.step(), model_.steps()->size()).at(place);
      if (measure.dimension() >= dimension_count(model_))
        return bad("a measured size belongs to no dimension", measure.dimension(), dimension_count(model_)).at(place);
      if (((measured >> measure.dimension()) & 1U) != 0)
        return bad("a dimension is measured twice", measure.dimension()).at(place);
      if (measure.value() >= model_.values()->size())
        return bad("a measured size names no value", measure.value(), model_.values()->size()).at(place);
      measured |= 1U << measure.dimension();
      last_step = measure.step();
    }
    return verify_measured_values();
  }

  /// Values in the arena that are presented to kernels as constants: what is known of one holds for the other,
  /// but for the contents. Those nobody looks at before the step runs, because only packed operands may be such values
  /// (verify_constants).
  Status verify_streamed() const {
    if (model_.streamed() == nullptr) return ok_status();
    if (!is_aligned(*model_.streamed())) return bad("a table is misaligned");
    if (dimension_count(model_) != 0) return bad("a model whose sizes change has streamed constants");
    for (std::uint32_t i = 0; i < model_.streamed()->size(); ++i) {
      const StreamedConstant& streamed = *model_.streamed()->Get(i);
      const auto place = static_cast<std::int32_t>(i);
      if (streamed.value() >= model_.values()->size() || streamed.source() >= model_.values()->size())
        return bad("a streamed constant names no value", streamed.value(), model_.values()->size()).at(place);
      if (i > 0 && model_.streamed()->Get(i - 1)->value() >= streamed.value())
        return bad("streamed constants are out of order", streamed.value()).at(place);
      const Value& copy = value(streamed.value());
      const Value& source = value(streamed.source());
      const bool writable = copy.slot() == kState || tier_of(model_, copy.slot()) != tier_count(model_);
      if (source.slot() != kWeights || !writable)
        return bad("a streamed constant leads not from the weights to the arena", copy.slot()).at(place);
      if (copy.offset() % ops::kAlignment != 0)
        return bad("a streamed constant is misaligned", copy.offset()).at(place);
      if (copy.bytes() != source.bytes() || !same_shape_and_type(*desc_of(copy), *desc_of(source)) ||
          !desc_of(copy)->is_dense())
        return bad("a streamed constant differs from its source", copy.bytes(), source.bytes()).at(place);
    }
    return ok_status();
  }

  Status verify_measured_values() const {
    for (std::uint32_t i = 0; i < measure_count(model_); ++i) {
      const Value& v = value(model_.measures()->Get(i)->value());
      const TensorDesc& desc = *desc_of(v);
      const bool counts = desc.type == ElementType::kI32 || desc.type == ElementType::kI64;
      if (!counts || desc.elements() != 1 || v.slot() == kWeights)
        return bad("a measured size is not one integer that a step writes").at(static_cast<std::int32_t>(i));
    }
    return ok_status();
  }

  Status verify_control_step(const Step& step) const {
    if (!within(step.first_param(), kControlWords, model_.params()->size())) return bad("parameters are out of bounds");
    const StepControl kind = control_params(step, params_).kind;
    if (kind >= StepControl::kCount) return bad("unknown control step", static_cast<std::uint64_t>(kind));
    if (step.inputs() != control_inputs(kind) || step.outputs() != control_outputs(kind))
      return bad("a control step has other operands than it needs", step.inputs(), control_inputs(kind));
    if (!within(step.first_operand(), std::uint64_t{step.inputs()} + step.outputs(), model_.operands()->size()))
      return bad("operands are out of bounds");
    const bool is_branch = kind == StepControl::kBranch;
    for (int i = 0; i < step.inputs(); ++i) {
      if (operand(step, i) == kAbsent && !is_branch) continue;
      const bool is_count = !is_branch && i == 0;
      BANTAM_RETURN_IF_ERROR(verify_scalar(operand(step, i), is_count ? ElementType::kI64 : ElementType::kBool));
    }
    for (int o = 0; o < step.outputs(); ++o) {
      const std::uint32_t index = operand(step, step.inputs() + o);
      BANTAM_RETURN_IF_ERROR(verify_scalar(index, ElementType::kI64));
      if (value(index).slot() == kWeights || value(index).slot() == kSwapRead)
        return bad("a step writes to read-only memory");
    }
    return ok_status();
  }

  Status verify_scalar(std::uint32_t index, ElementType type) const {
    if (index >= model_.values()->size()) return bad("operand index is out of bounds", index);
    const Value& v = value(index);
    const TensorDesc& desc = *desc_of(v);
    if (desc.type != type || desc.elements() != 1 || v.bytes() < static_cast<std::uint64_t>(element_size(type)))
      return bad("an operand of a control step is not one element of its type");
    return ok_status();
  }

  const Value& value(std::uint32_t index) const { return values_[index]; }
  std::uint32_t operand(const Step& step, int i) const {
    return model_.operands()->Get(step.first_operand() + static_cast<std::uint32_t>(i));
  }

  Tensor compile_time_tensor(std::uint32_t index) const {
    const Value* v = &value(index);
    Tensor t{nullptr, desc_of(*v)};
    if (const StreamedConstant* streamed = streamed_constant(model_, index)) v = &value(streamed->source());
    // Kernels never write through a constant operand.
    if (v->slot() == kWeights) t.data = const_cast<std::byte*>(weights_ + v->offset());
    return t;
  }

  bool is_port(std::uint32_t slot) const { return slot >= kFirstPort && slot - kFirstPort < port_count(model_); }

  std::uint32_t index_of(const Step& step) const { return static_cast<std::uint32_t>(&step - model_.steps()->Get(0)); }

  /// Of a slot that the model has.
  std::uint64_t region_bytes(std::uint32_t slot) const {
    switch (slot) {
      case kWeights: return weights_bytes_;
      case kState: return model_.state_bytes();
      case kActivations: return model_.activation_bytes();
      case kSwapRead:
      case kSwapWrite: return model_.swap_bytes();
      default: break;
    }
    const std::uint32_t port = slot - kFirstPort;
    return port < port_count(model_) ? port_at(model_, port).bytes() : activation_bytes(model_, tier_of(model_, slot));
  }

  Status verify_port(const Port& port, std::uint32_t index) const {
    if (port.slot() != kFirstPort + index) return bad("a port is not in its own slot", port.slot(), kFirstPort + index);
    if (port.value() >= model_.values()->size()) return bad("a port names no value", port.value());
    const Value& v = value(port.value());
    if (v.slot() != port.slot()) return bad("a port's value is not in the port's slot");
    BANTAM_RETURN_IF_ERROR(verify_port_value(port));
    if (port.bytes() > kMaxRegionBytes || v.bytes() != port.bytes())
      return bad("a port's value does not fill the port", v.bytes(), port.bytes());
    if (port.default_slot() == kUnplaced) return ok_status();
    const std::uint32_t tier = tier_of(model_, port.default_slot());
    if (tier == tier_count(model_)) return bad("a port lies outside the activations");
    if (port.default_offset() % kBufferAlignment != 0) return bad("a port is misaligned", port.default_offset());
    if (!within(port.default_offset(), port.bytes(), activation_bytes(model_, tier)))
      return bad("a port is out of bounds");
    return ok_status();
  }

  /// Whoever fills or reads a port sees one dense tensor from the port's first byte on.
  Status verify_port_value(const Port& port) const {
    const Value& v = value(port.value());
    if (v.offset() != 0) return bad("a port's value is not at the port's first byte", v.offset());
    return desc_of(v)->is_dense() ? ok_status() : bad("a port's value is not dense");
  }

  Status verify_value(const Value& v) const {
    if (v.slot() >= slot_count(model_)) return bad("a value names no region", v.slot());
    const TensorDesc& desc = *desc_of(v);
    BANTAM_RETURN_IF_ERROR(check_shape(desc));
    if (!within(v.offset(), v.bytes(), region_bytes(v.slot()))) return bad("a value is out of bounds");
    if (v.slot() == kWeights) {
      // Whether the bytes are packed depends on the reader: see verify_constants.
      return v.offset() % kWeightAlignment == 0 ? ok_status() : bad("a constant is misaligned", v.offset());
    }
    const auto size = static_cast<std::uint64_t>(element_size(desc.type));
    if (size == 0) return bad("only constants may have elements smaller than a byte");
    if (v.offset() % size != 0) return bad("a value is misaligned", v.offset());
    // The caller binds memory that is aligned for the port's own elements.
    if (is_port(v.slot())) {
      const std::uint32_t port = port_at(model_, v.slot() - kFirstPort).value();
      if (port >= model_.values()->size() ||
          size > static_cast<std::uint64_t>(element_size(desc_of(value(port))->type)))
        return bad("a value in a port has larger elements than the port");
    }
    return check_strides(desc, static_cast<std::int64_t>(v.bytes() / size));
  }

  /// `infer` may read the elements of any constant but those that the kernel narrows: no others are packed smaller.
  Status verify_readable(const Step& step, const ops::Narrowing* narrowing) const {
    for (int i = 0; i < step.inputs(); ++i) {
      if (operand(step, i) == kAbsent) continue;
      if (narrowing != nullptr && narrowing->narrows(static_cast<std::size_t>(i))) continue;
      const Value& v = value(operand(step, i));
      if (v.slot() != kWeights && streamed_constant(model_, operand(step, i)) == nullptr) continue;
      if (v.bytes() < static_cast<std::uint64_t>(desc_of(v)->bytes()))
        return bad("a constant has the wrong size", v.bytes(), static_cast<std::uint64_t>(desc_of(v)->bytes()));
    }
    return ok_status();
  }

  /// Constant operands have exactly the bytes that this variant reads.
  Status verify_constants(const Step& step, const ops::KernelVariant& variant, const ops::OpCall& call) const {
    for (int i = 0; i < step.inputs(); ++i) {
      if (!call.has(i) || call.inputs[static_cast<std::size_t>(i)].data == nullptr) continue;
      const Value& v = value(operand(step, i));
      const std::int64_t packed = ops::packed_bytes(variant, call, i);
      if (packed <= 0 && streamed_constant(model_, operand(step, i)) != nullptr)
        return bad("a streamed constant is not packed for its kernel").at(i);
      const auto needed = static_cast<std::uint64_t>(packed > 0 ? packed : desc_of(v)->bytes());
      if (v.bytes() != needed) return bad("a constant has the wrong size", v.bytes(), needed);
      if (!desc_of(v)->is_dense()) return bad("a constant is not dense");
    }
    return ok_status();
  }

  /// The memory of a value, with ports at the place the plan gives them.
  Stretch stretch(const Value& v) const {
    if (!is_port(v.slot())) return {v.slot(), v.offset(), v.bytes()};
    const Port& port = port_at(model_, v.slot() - kFirstPort);
    if (port.default_slot() == kUnplaced) return {v.slot(), v.offset(), v.bytes()};
    return {port.default_slot(), port.default_offset() + v.offset(), v.bytes()};
  }

  Status verify_memory(const Step& step, const ops::OpDef& op, const ops::OpCall& call,
                       const ops::Footprint& footprint) const {
    if (footprint.scratch_bytes < 0 || static_cast<std::uint64_t>(footprint.scratch_bytes) > step.scratch_bytes())
      return bad("too little scratch", step.scratch_bytes(), static_cast<std::uint64_t>(footprint.scratch_bytes));
    const std::uint32_t slot = scratch_slot(model_, index_of(step));
    if (!within(step.scratch_offset(), step.scratch_bytes(), region_bytes(slot)))
      return bad("scratch is out of bounds");
    if (step.scratch_bytes() != 0 && step.scratch_offset() % ops::kAlignment != 0)
      return bad("scratch is misaligned", step.scratch_offset());
    const Stretch scratch{slot, step.scratch_offset(), step.scratch_bytes()};
    for (int o = 0; o < step.outputs(); ++o) {
      const Stretch out = stretch(value(operand(step, step.inputs() + o)));
      if (out.overlaps(scratch)) return bad("a result overlaps the scratch");
      for (int other = 0; other < o; ++other)
        if (out.overlaps(stretch(value(operand(step, step.inputs() + other))))) return bad("two results overlap");
      for (int i = 0; i < step.inputs(); ++i) {
        if (operand(step, i) == kAbsent) continue;
        const Stretch in = stretch(value(operand(step, i)));
        const bool permitted = (((footprint.overwrites[o] >> i) & 1U) != 0 && in.first == out.first) ||
                               (o == 0 && i == 0 && leads(out, in, footprint.lead_bytes)) ||
                               (o == 0 && ((footprint.within >> i) & 1U) != 0 && lies_within(op, call, i, out, in));
        if (out.overlaps(in) && !permitted) return bad("a result overlaps an operand that it must not overwrite");
        if (in.overlaps(scratch)) return bad("an operand overlaps the scratch");
      }
    }
    return ok_status();
  }

  /// Does `out` begin early enough before `in` for a kernel that permits overlapping with this lead?
  static bool leads(const Stretch& out, const Stretch& in, std::int64_t lead_bytes) {
    // Places are below 2^41, leads may be anything.
    return lead_bytes <= static_cast<std::int64_t>(in.first) - static_cast<std::int64_t>(out.first);
  }

  /// Is operand i, at `in`, where its operator places it within the result at `out`?
  static bool lies_within(const ops::OpDef& op, const ops::OpCall& call, int i, const Stretch& out, const Stretch& in) {
    TensorDesc view;
    std::int64_t offset = 0;
    if (op.input_view == nullptr || !op.input_view(call, i, &view, &offset)) return false;
    for (int d = 0; d < view.rank; ++d)
      if (view.dims[d] > 1 && view.strides[d] != call.in(i).strides[d]) return false;
    return in.first == out.first + static_cast<std::uint64_t>(offset * element_size(view.type));
  }

  const Model& model_;
  const Value* values_;
  const std::uint32_t* params_;
  std::uint64_t weights_bytes_;
  const std::byte* weights_;
};

Status verify_tiers(const Package& package) {
  if (tier_count(package) == 0 || tier_count(package) > kMaxTiers)
    return bad("planned for no tiers, or too many", tier_count(package), kMaxTiers);
  if (package.link_tier() >= tier_count(package)) return bad("the links lie in no tier", package.link_tier());
  for (std::uint32_t m = 0; m < package.models()->size(); ++m)
    if (tier_count(*package.models()->Get(m)) > tier_count(package))
      return bad("a model has activations in no tier").at(static_cast<std::int32_t>(m));
  return ok_status();
}

/// Every group has a part of each tier, and none of them overlap.
Status verify_groups(const Package& package) {
  if (package.groups() == nullptr || package.areas() == nullptr || package.lanes() == nullptr) {
    if (package.groups() != nullptr || package.areas() != nullptr || package.lanes() != nullptr)
      return bad("lanes, groups and areas come together or not at all");
    return ok_status();
  }
  if (!is_aligned(*package.groups()) || !is_aligned(*package.areas())) return bad("a table is misaligned");
  const std::uint32_t tiers = tier_count(package);
  if (package.areas()->size() != std::uint64_t{package.groups()->size()} * tiers)
    return bad("not every group has an area in every tier", package.areas()->size(), package.groups()->size());
  std::uint64_t end[kMaxTiers] = {};
  for (std::uint32_t g = 0; g < package.groups()->size(); ++g) {
    const auto place = static_cast<std::int32_t>(g);
    if (package.groups()->Get(g)->lane() >= package.lanes()->size())
      return bad("a group names no lane", package.groups()->Get(g)->lane()).at(place);
    for (std::uint32_t t = 0; t < tiers; ++t) {
      const Area& area = *package.areas()->Get(g * tiers + t);
      if (area.offset() % kArenaAlignment != 0) return bad("an area is misaligned", area.offset()).at(place);
      if (area.offset() < end[t]) return bad("two areas overlap", area.offset(), end[t]).at(place);
      if (!within(area.offset(), area.bytes(), kMaxRegionBytes))
        return bad("the areas are larger than this target can address").at(place);
      end[t] = area.offset() + area.bytes();
    }
  }
  return ok_status();
}

/// A session names what there is, and its activations fit the area of its group.
Status verify_session(const Package& package, const FleetEntry& entry) {
  if (entry.model() >= package.models()->size()) return bad("a session names no model");
  if (entry.state_tier() >= tier_count(package)) return bad("a state lies in no tier", entry.state_tier());
  if (entry.group() >= (package.groups() != nullptr ? package.groups()->size() : 1))
    return bad("a session names no group", entry.group());
  if (package.areas() == nullptr) return ok_status();
  const Model& model = *package.models()->Get(entry.model());
  for (std::uint32_t t = 0; t < tier_count(model); ++t) {
    const std::uint64_t room = package.areas()->Get(entry.group() * tier_count(package) + t)->bytes();
    if (activation_bytes(model, t) > room)
      return bad("a session does not fit the area of its group", activation_bytes(model, t), room);
  }
  return ok_status();
}

Status verify_fleet(const Package& package) {
  BANTAM_RETURN_IF_ERROR(verify_groups(package));
  if (!is_aligned(*package.links())) return bad("a table is misaligned");
  if (package.link_bytes() > kMaxRegionBytes) return bad("the links are larger than this target can address");
  std::uint64_t state_bytes = 0;
  for (std::uint32_t i = 0; i < package.fleet()->size(); ++i) {
    BANTAM_RETURN_IF_ERROR(verify_session(package, *package.fleet()->Get(i)).at(static_cast<std::int32_t>(i)));
    const Model& model = *package.models()->Get(package.fleet()->Get(i)->model());
    state_bytes += model.state_bytes() + 2 * model.swap_bytes();  // at most three regions more than the bound
    if (state_bytes > kMaxRegionBytes) return bad("the states are larger than this target can address");
  }
  std::uint64_t end = 0;
  for (std::uint32_t i = 0; i < package.links()->size(); ++i) {
    const Link& link = *package.links()->Get(i);
    if (link.producer() >= package.fleet()->size() || link.consumer() >= package.fleet()->size())
      return bad("a link names no session").at(static_cast<std::int32_t>(i));
    const Model& from = *package.models()->Get(package.fleet()->Get(link.producer())->model());
    const Model& to = *package.models()->Get(package.fleet()->Get(link.consumer())->model());
    if (link.output() >= from.outputs()->size() || link.input() >= to.inputs()->size())
      return bad("a link names no port").at(static_cast<std::int32_t>(i));
    const Port& output = *from.outputs()->Get(link.output());
    const Port& input = *to.inputs()->Get(link.input());
    const std::uint64_t bytes = output.bytes() > input.bytes() ? output.bytes() : input.bytes();
    if (link.offset() % kBufferAlignment != 0 || !within(link.offset(), bytes, package.link_bytes()))
      return bad("a link is out of bounds").at(static_cast<std::int32_t>(i));
    if (!same_shape_and_type(*desc_of(*from.values()->Get(output.value())), *desc_of(*to.values()->Get(input.value()))))
      return bad("a link joins ports of different shape or type").at(static_cast<std::int32_t>(i));
    // In the order of their places: a link begins where those before it end, or carries the same output as the last.
    const Link* last = i > 0 ? package.links()->Get(i - 1) : nullptr;
    const bool same_output = last != nullptr && last->producer() == link.producer() &&
                             last->output() == link.output() && last->offset() == link.offset();
    if (!same_output && link.offset() < end) return bad("two links overlap").at(static_cast<std::int32_t>(i));
    end = link.offset() + bytes;
  }
  return ok_status();
}

}  // namespace

Status verify_tables(const Package& package, std::uint64_t weights_bytes, const std::byte* weights, OpTable table) {
  BANTAM_RETURN_IF_ERROR(verify_tiers(package));
  // Each kernel is listed once, so that looking for its steps takes time in proportion to the file.
  std::size_t known = 0;
  for (const ops::OpDef* op : table.ops) known += op->variants.size();
  if (package.kernels()->size() > known)
    return bad("more kernels than this build has", package.kernels()->size(), known);
  // Placing resolves every kernel, also one that no step calls.
  for (std::uint32_t k = 0; k < package.kernels()->size(); ++k) {
    ResolvedKernel kernel;
    BANTAM_RETURN_IF_ERROR(resolve_kernel(*package.kernels()->Get(k), table, &kernel).at(static_cast<std::int32_t>(k)));
  }
  for (std::uint32_t m = 0; m < package.models()->size(); ++m) {
    const Model& model = *package.models()->Get(m);
    const ModelVerifier verifier(model, weights_bytes, weights);
    BANTAM_RETURN_IF_ERROR(verifier.verify_layout());
    for (std::uint32_t s = 0; s < model.steps()->size(); ++s)
      if (model.steps()->Get(s)->kernel() >= package.kernels()->size() && model.steps()->Get(s)->kernel() != kControl)
        return bad("a step names no kernel").at(static_cast<std::int32_t>(s));
    BANTAM_RETURN_IF_ERROR(verifier.verify_control());
    // Kernels outside, steps inside: each name is looked up once.
    for (std::uint32_t k = 0; k < package.kernels()->size(); ++k) {
      ResolvedKernel kernel;
      BANTAM_RETURN_IF_ERROR(
          resolve_kernel(*package.kernels()->Get(k), table, &kernel).at(static_cast<std::int32_t>(k)));
      for (std::uint32_t s = 0; s < model.steps()->size(); ++s) {
        const Step& step = *model.steps()->Get(s);
        if (step.kernel() != k) continue;
        BANTAM_RETURN_IF_ERROR(
            verifier.verify_step(step, *kernel.op, *kernel.variant).at(static_cast<std::int32_t>(s)));
      }
    }
  }
  return verify_fleet(package);
}

Status verify_sizes(const Model& model, const Value* values, const std::uint32_t* params, const ResolvedKernel* kernels,
                    const std::byte* weights) {
  // Patches leave constants alone, so how many weights there are was settled when the package was opened.
  const ModelVerifier verifier(model, values, params, 0, weights);
  BANTAM_RETURN_IF_ERROR(verifier.verify_resized());
  BANTAM_RETURN_IF_ERROR(verifier.verify_control());
  for (std::uint32_t s = 0; s < model.steps()->size(); ++s) {
    const Step& step = *model.steps()->Get(s);
    if (step.kernel() == kControl) continue;
    const ResolvedKernel& kernel = kernels[step.kernel()];
    BANTAM_RETURN_IF_ERROR(verifier.verify_step(step, *kernel.op, *kernel.variant).at(static_cast<std::int32_t>(s)));
  }
  return ok_status();
}

}  // namespace bantam::format
