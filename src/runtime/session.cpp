#include <cstring>
#include <utility>

#include "bantam/runtime.h"
#include "ops/op.h"
#include "package/control_flow.h"
#include "package/tables.h"
#include "runtime/kernel.h"

namespace bantam {
namespace {

constexpr TensorDesc kAbsentDesc{};
constexpr Threads kOneThread{};

const format::Step& step_at(const void* steps, std::size_t i) { return static_cast<const format::Step*>(steps)[i]; }

const format::Value& value_at(const void* values, std::uint32_t i) {
  return static_cast<const format::Value*>(values)[i];
}

bool all_empty(std::span<const Tensor> tensors) {
  for (const Tensor& tensor : tensors)
    if (!format::is_empty(*tensor.desc)) return false;
  return true;
}

}  // namespace

std::string_view Session::name() const noexcept { return {name_, name_length_}; }

Tensor Session::tensor(std::uint32_t value) const noexcept {
  if (value == format::kAbsent) return {nullptr, &kAbsentDesc};
  const format::Value& v = value_at(values_, value);
  return {bases_[v.slot()] + v.offset(), format::desc_of(v)};
}

bool Session::step_needed(std::size_t step, OutputSet outputs) const noexcept {
  const auto* table = model_->step_outputs();
  if (table == nullptr) return true;
  const std::uint64_t marks = table->Get(static_cast<std::uint32_t>(step));
  return marks == OutputSet::all().marks() || (marks & outputs.marks()) != 0;
}

struct Session::Iterations {
  std::uint32_t done[format::kMaxLoopDepth] = {};  ///< by the depth of the loop
};

Status Session::follow(std::uint32_t* s, Iterations* iterations) const noexcept {
  const format::Step& step = step_at(steps_, *s);
  const std::uint32_t* operands = operands_ + step.first_operand();
  const format::ControlParams& p = format::control_params(step, params_);
  const auto holds = [&](std::uint32_t operand) {
    return operand == format::kAbsent || *static_cast<const std::uint8_t*>(tensor(operand).data) != 0;
  };
  if (p.kind == format::StepControl::kBranch || p.kind == format::StepControl::kJump) {
    const bool on = p.kind == format::StepControl::kBranch && holds(operands[0]);
    *s = on ? *s + 1 : p.target;
    return ok_status();
  }
  const bool begins = p.kind == format::StepControl::kLoopBegin;
  std::uint32_t& done = iterations->done[p.depth];
  done = begins ? 0 : done + 1;
  std::int64_t trips = std::int64_t{p.limit} + 1;  // without a count only the condition ends the loop
  if (operands[0] != format::kAbsent) std::memcpy(&trips, tensor(operands[0]).data, sizeof trips);
  const bool more = done < trips && holds(operands[1]);
  if (more && (done >= p.limit || (operands[0] != format::kAbsent && trips > p.limit)))
    return failure(StatusCode::kOutOfRange, "a loop would run more often than it was compiled for",
                   operands[0] != format::kAbsent ? trips : std::int64_t{done} + 1, p.limit);
  const std::int64_t iteration = done;
  std::memcpy(tensor(operands[2]).data, &iteration, sizeof iteration);
  *s = begins == more ? *s + 1 : p.target;
  return ok_status();
}

Status Session::run_step(std::uint32_t s, Tensor* operands, bool resizable) const noexcept {
  const format::Step& step = step_at(steps_, s);
  const std::uint32_t* indices = operands_ + step.first_operand();
  const std::uint32_t count = std::uint32_t{step.inputs()} + step.outputs();
  for (std::uint32_t i = 0; i < count; ++i) operands[i] = tensor(indices[i]);
  const bool skipped = observer_ != nullptr && observer_->before != nullptr &&
                       observer_->before(observer_->context, *this, s) == StepDecision::kSkip;
  const bool idle = resizable && all_empty({operands + step.inputs(), step.outputs()});
  if (!skipped && !idle)
    BANTAM_RETURN_IF_ERROR(
        kernels_[step.kernel()].run({params_ + step.first_param(),
                                     {operands, step.inputs()},
                                     {operands + step.inputs(), step.outputs()},
                                     bases_[format::scratch_slot(*model_, s)] + step.scratch_offset(),
                                     threads_ != nullptr ? threads_ : &kOneThread,
                                     static_cast<std::int64_t>(step.scratch_bytes())}));
  if (observer_ == nullptr || observer_->after == nullptr) return ok_status();
  return observer_->after(observer_->context, *this, s);
}

Status Session::invoke(OutputSet outputs) noexcept {
  for (std::uint32_t p = 0; p < input_count_ + output_count_; ++p)
    if (bases_[format::kFirstPort + p] == nullptr)
      return failure(StatusCode::kInvalidArgument, "a port has no memory: bind it first")
          .at(static_cast<std::int32_t>(p));
  // Made once: small models run steps of less than a microsecond.
  Tensor operands[ops::kMaxInputs + ops::kMaxOutputs];
  Iterations iterations;
  const bool resizable = format::dimension_count(*model_) != 0;
  const bool measures = format::measure_count(*model_) != 0;
  for (std::uint32_t s = 0; s < step_count_;) {
    if (measures) BANTAM_RETURN_IF_ERROR(take_sizes(s));
    const auto number = static_cast<std::int32_t>(s);
    if (!step_needed(s, outputs)) {
      ++s;
    } else if (step_jumps(s)) {
      BANTAM_RETURN_IF_ERROR(follow(&s, &iterations).at(number));
    } else {
      BANTAM_RETURN_IF_ERROR(run_step(s++, operands, resizable).at(number));
    }
  }
  if (measures) BANTAM_RETURN_IF_ERROR(take_sizes(step_count_));
  std::swap(bases_[format::kSwapRead], bases_[format::kSwapWrite]);
  return ok_status();
}

void Session::reset() noexcept {
  const auto clear = [](std::byte* memory, std::uint64_t bytes) {
    if (bytes != 0) std::memset(memory, 0, static_cast<std::size_t>(bytes));
  };
  clear(bases_[format::kState], model_->state_bytes());
  clear(bases_[format::kSwapRead], model_->swap_bytes());
  clear(bases_[format::kSwapWrite], model_->swap_bytes());
  for (const format::StateInit* init : *model_->state_init())
    if (init->bytes() != 0)
      std::memcpy(bases_[init->slot()] + init->offset(), weights_ + init->weights_offset(),
                  static_cast<std::size_t>(init->bytes()));
}

PortInfo Session::input_info(std::size_t i) const noexcept {
  return format::port_info(*model_, static_cast<std::uint32_t>(i), values_);
}

PortInfo Session::output_info(std::size_t i) const noexcept { return input_info(input_count_ + i); }

int Session::find_input(std::string_view name) const noexcept {
  for (std::uint32_t i = 0; i < input_count_; ++i)
    if (format::view(model_->inputs()->Get(i)->name()) == name) return static_cast<int>(i);
  return -1;
}

int Session::find_output(std::string_view name) const noexcept {
  for (std::uint32_t i = 0; i < output_count_; ++i)
    if (format::view(model_->outputs()->Get(i)->name()) == name) return static_cast<int>(i);
  return -1;
}

Tensor Session::input(std::size_t i) const noexcept {
  return tensor(format::port_at(*model_, static_cast<std::uint32_t>(i)).value());
}

Tensor Session::output(std::size_t i) const noexcept { return input(input_count_ + i); }

Status Session::bind(std::size_t port, void* memory, std::size_t bytes) noexcept {
  const PortInfo info = input_info(port);
  const std::uint64_t needed = format::port_at(*model_, static_cast<std::uint32_t>(port)).bytes();
  if (memory == nullptr) return failure(StatusCode::kInvalidArgument, "a port cannot be bound to a null address");
  if (bytes < needed)
    return failure(StatusCode::kInvalidArgument, "the bound memory is smaller than the port",
                   static_cast<std::int64_t>(bytes), static_cast<std::int64_t>(needed));
  const auto alignment = static_cast<std::uintptr_t>(element_size(info.desc->type));
  // Ports have an element type, so its size is not zero: the package verifier has seen to it.
  const auto offset = reinterpret_cast<std::uintptr_t>(memory) % alignment;  // NOLINT(clang-analyzer-core.DivideZero)
  if (offset != 0)
    return failure(StatusCode::kMisaligned, "bound memory", static_cast<std::int64_t>(offset),
                   static_cast<std::int64_t>(alignment));
  bases_[format::kFirstPort + port] = static_cast<std::byte*>(memory);
  return ok_status();
}

Status Session::bind_input(std::size_t i, void* memory, std::size_t bytes) noexcept {
  if (i >= input_count_)
    return failure(StatusCode::kNotFound, "no such input", static_cast<std::int64_t>(i), input_count_);
  return bind(i, memory, bytes);
}

Status Session::bind_output(std::size_t i, void* memory, std::size_t bytes) noexcept {
  if (i >= output_count_)
    return failure(StatusCode::kNotFound, "no such output", static_cast<std::int64_t>(i), output_count_);
  return bind(input_count_ + i, memory, bytes);
}

Status Session::set_threads(const Threads* threads) noexcept {
  if (threads != nullptr && (threads->count < 1 || threads->count > model_->threads()))
    return failure(StatusCode::kInvalidArgument, "more threads than the package was planned for", threads->count,
                   model_->threads());
  threads_ = threads;
  return ok_status();
}

bool Session::step_jumps(std::size_t step) const noexcept { return step_at(steps_, step).kernel() == format::kControl; }

std::string_view Session::step_operator(std::size_t step) const noexcept {
  constexpr std::string_view kNames[] = {"branch", "jump", "loop_begin", "loop_end"};
  if (step_jumps(step))
    return kNames[static_cast<std::size_t>(format::control_params(step_at(steps_, step), params_).kind)];
  return format::view(package_->kernels()->Get(step_at(steps_, step).kernel())->op());
}

std::string_view Session::step_variant(std::size_t step) const noexcept {
  if (step_jumps(step)) return {};
  return format::view(package_->kernels()->Get(step_at(steps_, step).kernel())->variant());
}

std::string_view Session::step_name(std::size_t step) const noexcept {
  if (model_->step_names() == nullptr) return {};
  return format::view(model_->step_names()->Get(static_cast<std::uint32_t>(step)));
}

std::uint64_t Session::step_work(std::size_t step) const noexcept {
  const auto* work = model_->step_work();
  return work != nullptr ? work->Get(static_cast<std::uint32_t>(step)) : 0;
}

std::size_t Session::step_inputs(std::size_t step) const noexcept { return step_at(steps_, step).inputs(); }
std::size_t Session::step_outputs(std::size_t step) const noexcept { return step_at(steps_, step).outputs(); }

Tensor Session::step_operand(std::size_t step, std::size_t i) const noexcept {
  return tensor(operands_[step_at(steps_, step).first_operand() + i]);
}

bool Session::step_operand_is_constant(std::size_t step, std::size_t i) const noexcept {
  const std::uint32_t index = operands_[step_at(steps_, step).first_operand() + i];
  return index != format::kAbsent &&
         (value_at(values_, index).slot() == format::kWeights || format::streamed_constant(*model_, index) != nullptr);
}

}  // namespace bantam
