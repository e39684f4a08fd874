// Operators with memory: resource variables and initialisation.
#include <fmt/format.h>

#include "base/shape.h"
#include "import/tflite/importer.h"
#include "import/tflite/operators.h"

namespace bantam::import::tflite {
namespace {

void lower_var_handle(Lowering& op) {
  const auto& o = op.options<schema::VarHandleOptions>();
  if (op.out_tensor().type() != schema::TensorType::RESOURCE)
    return op.invalid(fmt::format("a result of type {}", type_name(op.out_tensor().type())), "RESOURCE");
  const std::string container = text(o.container());
  const std::string name = text(o.shared_name());
  op.importer().bind_resource(op.out_index(0), container.empty() ? name : container + "/" + name);
}

void lower_read_variable(Lowering& op) {
  const auto variable = op.importer().resource(op.in_index(0));
  if (!variable) return op.fail_with(variable.error());
  TensorDesc desc;
  const Dims shape = integers(op.out_tensor().shape());
  const Status status = make_desc(op.out_type(), shape.data(), static_cast<int>(shape.size()), &desc);
  if (!status.ok()) return op.fail_with(error_from(status));
  const auto value = op.importer().read_variable(**variable, desc);
  if (!value) return op.fail_with(value.error());
  op.result(0, *value);
}

void lower_assign_variable(Lowering& op) {
  const auto variable = op.importer().resource(op.in_index(0));
  if (!variable) return op.fail_with(variable.error());
  if (const auto written = op.importer().write_variable(**variable, op.in(1)); !written) op.fail_with(written.error());
}

void lower_call_once(Lowering& op) {
  const auto called = op.importer().call_once(op.options<schema::CallOnceOptions>().init_subgraph_index());
  if (!called) op.fail_with(called.error());
}

using enum schema::BuiltinOperator;

constexpr OperatorRow kStateOperators[] = {
    {VAR_HANDLE, 0, 0, 1, lower_var_handle},
    {READ_VARIABLE, 1, 1, 1, lower_read_variable},
    {ASSIGN_VARIABLE, 2, 2, 0, lower_assign_variable},
    {CALL_ONCE, 0, 0, 0, lower_call_once},
};

}  // namespace

std::span<const OperatorRow> state_operators() noexcept { return kStateOperators; }

}  // namespace bantam::import::tflite
