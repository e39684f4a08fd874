#include "ops/testing/prepared_run.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace bantam::ops::testing {
namespace {

void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "PreparedRun: %s\n", what);
  std::abort();
}

}  // namespace

PreparedRun::PreparedRun(const OpCase& op_case, std::string_view variant) : case_(op_case) {
  require(infer_case(case_, &output_descs_).ok(), "infer refuses the case");
  std::vector<Tensor> compile_inputs;
  for (const Operand& operand : case_.inputs) {
    compile_inputs.push_back(operand.constant ? operand.tensor.tensor() : operand.tensor.shape_only());
    inputs_.push_back(operand.tensor.tensor());
  }
  for (const TensorDesc& desc : output_descs_) outputs_.emplace_back(desc, Placement::kAligned);
  for (const TestTensor& output : outputs_) results_.push_back(output.tensor());
  const OpCall call{case_.params.data(), compile_inputs, results_};
  for (const KernelVariant& candidate : case_.op->variants)
    if (variant_ == nullptr && (variant.empty() || variant == candidate.name) && supports(candidate, call))
      variant_ = &candidate;
  require(variant_ != nullptr, "no such variant supports the case");
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    const int index = static_cast<int>(i);
    const std::int64_t bytes = case_.inputs[i].constant ? packed_bytes(*variant_, call, index) : 0;
    if (bytes == 0) continue;
    packed_.emplace_back(static_cast<std::size_t>(bytes), kAlignment);
    variant_->pack(call, index, packed_.back().data());
    inputs_[i].data = packed_.back().data();
  }
  const Footprint needs = footprint(*variant_, call, 1);
  scratch_ =
      GuardedMemory(static_cast<std::size_t>(std::max(needs.scratch_bytes, needs.useful_scratch_bytes)), kAlignment);
  work_ = case_.op->work != nullptr ? case_.op->work(call) : 0;
}

void PreparedRun::run() const {
  const Threads serial;
  require(variant_
              ->run({case_.params.data(), inputs_, results_, scratch_.data(), &serial,
                     static_cast<std::int64_t>(scratch_.size())})
              .ok(),
          "the kernel failed");
}

}  // namespace bantam::ops::testing
