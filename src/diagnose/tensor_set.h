// The tensors of one run of a model, by the names that the model file gives them: what a comparison takes for right.
//
// Made by recording a run of the plain reference kernels on the graph as it was imported, by a peer engine, or read
// from an .npz archive. Host only; a set belongs to one thread. Archives are untrusted: only tensors that are wanted,
// of the wanted type and size, are kept.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "bantam/compiler.h"
#include "bantam/runtime.h"
#include "io/npz.h"

namespace bantam::diagnose {

/// As names of tensors are written in reference files: every character outside [A-Za-z0-9_] replaced by `_`.
std::string sanitized(std::string_view name);

class TensorSet {
 public:
  /// A second, different tensor of one name makes the name ambiguous: then neither is found.
  void add(const std::string& name, const io::Array& array);
  /// Null when there is none. Looks for the name as it is, then sanitized.
  const io::Array* find(const std::string& name) const;
  std::size_t size() const noexcept { return arrays_.size(); }
  /// All of them, their names sanitized, ready to be written as .npz.
  std::vector<io::NamedArray> named_arrays() const;

 private:
  std::map<std::string, io::Array> arrays_;
  std::set<std::string> ambiguous_;
};

/// A dense copy.
io::Array copy_of(const Tensor& tensor);

/// One invoke of `model` on `inputs` from fresh states, by the plain reference kernels, without any pass that rewrites
/// the graph. Every tensor that a kernel reads or writes is recorded.
Result<TensorSet> record_plain_run(const ModelSpec& model, const std::vector<io::NamedArray>& inputs);

/// Name -> shape of all tensors of the source model that the session's steps and ports still know.
std::map<std::string, TensorDesc> known_tensors(const Session& session, const ModelReport& report);

/// The wanted tensors of an archive. Entries are called as tensors are, sanitized or not, or in.<tensor>.<case> and
/// out.<tensor>.<case>, of which `case_name` (empty: the first) is read. Fails when none is wanted.
Result<TensorSet> read_tensor_set(const std::filesystem::path& archive, const std::string& case_name,
                                  const std::map<std::string, TensorDesc>& wanted);

}  // namespace bantam::diagnose
