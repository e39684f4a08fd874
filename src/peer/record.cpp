#include "peer/record.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "io/file.h"
#include "peer/onnx_rewrite.h"

namespace bantam::peer {
namespace {

/// The shape of an input that the caller does not give: what the model declares, with `dims` for its symbols.
Result<std::vector<std::int64_t>> declared_dims(const DeclaredInput& input,
                                                const std::map<std::string, std::int64_t>& dims) {
  std::vector<std::int64_t> result = input.dims;
  for (std::size_t i = 0; i < result.size(); ++i) {
    const auto known = dims.find(input.symbols[i]);
    if (result[i] < 0 && known != dims.end()) result[i] = known->second;
    if (result[i] < 0)
      return fail(StatusCode::kInvalidArgument,
                  fmt::format("input '{}' of ONNX Runtime has an open dimension '{}'", input.name, input.symbols[i]),
                  "give it a value with --dim");
  }
  return result;
}

/// Zeros, or the fixed elements.
Result<io::Array> made_up(const DeclaredInput& input, const std::map<std::string, std::vector<double>>& fixed,
                          const std::map<std::string, std::int64_t>& dims) {
  const auto shape = declared_dims(input, dims);
  if (!shape) return fail(shape.error());
  auto array = io::make_array(ElementType::kF64, *shape);
  if (!array) return array;
  const std::span<double> elements = io::elements_of<double>(*array);
  if (const auto values = fixed.find(input.name); values != fixed.end()) {
    const bool one = values->second.size() == 1;
    if (!one && values->second.size() != elements.size())
      return fail(StatusCode::kInvalidArgument, fmt::format("input '{}' has {} elements, {} are fixed", input.name,
                                                            elements.size(), values->second.size()));
    for (std::size_t i = 0; i < elements.size(); ++i) elements[i] = values->second[one ? 0 : i];
  }
  return io::convert(*array, input.type);
}

}  // namespace

Result<std::vector<io::NamedArray>> record_all_tensors(const Library& library, const std::filesystem::path& model,
                                                       const std::vector<io::NamedArray>& inputs,
                                                       const std::map<std::string, std::vector<double>>& fixed,
                                                       const std::map<std::string, std::int64_t>& dims) {
  const auto file = io::MappedFile::open(model.string());
  if (!file) return fail(file.error());
  const auto rewritten = with_exposed_tensors(file->bytes());
  if (!rewritten) return fail(Error(rewritten.error()).in(model.string()));
  Model::Options options;
  options.dims = dims;
  options.optimize = false;
  auto peer = Model::load(library, std::as_bytes(std::span(*rewritten)), options);
  if (!peer) return fail(std::move(peer.error()));
  std::vector<io::Array> arrays;
  for (const DeclaredInput& input : peer->inputs()) {
    const auto given = std::ranges::find(inputs, input.name, &io::NamedArray::name);
    auto array = given != inputs.end() ? Result<io::Array>(given->array) : made_up(input, fixed, dims);
    if (!array) return fail(std::move(array.error()));
    arrays.push_back(std::move(*array));
  }
  std::vector<BoundTensor> tensors;
  for (std::size_t i = 0; i < arrays.size(); ++i)
    tensors.push_back({peer->inputs()[i].name, arrays[i].desc, arrays[i].data.data()});
  return peer->collect(tensors);
}

}  // namespace bantam::peer
