#include "compiler/kernel_list.h"

#include <fmt/format.h>

#include "package/tables.h"

namespace bantam::compiler {

std::string kernel_list(const Package& package) {
  std::string rows;
  for (const format::Kernel* kernel : *package.meta()->kernels())
    rows += fmt::format("{{\"{}\", \"{}\"}},\n", format::view(kernel->op()), format::view(kernel->variant()));
  return rows;
}

}  // namespace bantam::compiler
