// ONNX Runtime as a peer: the library loaded at run time, and one model of it over memory that the caller owns.
//
// A Model must not outlive its Library, nor the memory bound to it. Objects belong to one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "bantam/error.h"
#include "bantam/tensor.h"
#include "io/npz.h"
#include "peer/ort_api.h"

namespace bantam::peer {

/// Releases an object of the library through its own function.
struct PeerDeleter {
  const ort::Api* api = nullptr;
  void operator()(ort::OrtSession* p) const { (*api)[ort::kReleaseSession](p); }
  void operator()(ort::OrtValue* p) const { (*api)[ort::kReleaseValue](p); }
  void operator()(ort::OrtEnv* p) const { (*api)[ort::kReleaseEnv](p); }
  void operator()(ort::OrtMemoryInfo* p) const { (*api)[ort::kReleaseMemoryInfo](p); }
  void operator()(ort::OrtTypeInfo* p) const { (*api)[ort::kReleaseTypeInfo](p); }
  void operator()(ort::OrtTensorTypeAndShapeInfo* p) const { (*api)[ort::kReleaseTensorTypeAndShapeInfo](p); }
  void operator()(ort::OrtSessionOptions* p) const { (*api)[ort::kReleaseSessionOptions](p); }
};
template <typename T>
using Pointer = std::unique_ptr<T, PeerDeleter>;

class Library {
 public:
  /// Loads libonnxruntime.so.1 from `path`. Stays loaded until the process ends: its threads may outlive a session.
  static Result<std::unique_ptr<Library>> open(const std::filesystem::path& path);
  /// The library for this processor in a folder into which bench/fetch_onnxruntime.sh fetched it; empty if none.
  static std::filesystem::path find(const std::filesystem::path& folder);

  const std::string& version() const { return version_; }
  const ort::Api& api() const { return api_; }
  const ort::OrtEnv* env() const { return env_.get(); }
  const ort::OrtMemoryInfo* memory() const { return memory_.get(); }
  ort::OrtAllocator* allocator() const { return allocator_; }

  /// Consumes a status: nothing when it is null.
  Result<void> check(ort::OrtStatus* status, const char* what) const;

 private:
  explicit Library(const ort::AnyFunction* table) : api_(table) {}

  ort::Api api_;
  std::string version_;
  Pointer<ort::OrtEnv> env_;
  Pointer<ort::OrtMemoryInfo> memory_;
  ort::OrtAllocator* allocator_ = nullptr;
};

/// A tensor in the caller's memory, dense, in the model's own layout.
struct BoundTensor {
  std::string name;
  TensorDesc desc;
  void* data = nullptr;
};

/// What the model file declares about an input; -1 for dynamic dimensions, whose names may be empty.
struct DeclaredInput {
  std::string name;
  ElementType type = ElementType::kNone;
  std::vector<std::int64_t> dims;
  std::vector<std::string> symbols;
};

class Model {
 public:
  struct Options {
    int threads = 1;
    std::map<std::string, std::int64_t> dims;  ///< symbolic dimension -> value, so that the peer plans for it too
    bool optimize = true;                      ///< false: the graph as it is in the file
  };

  /// Sequential execution, thread spinning as the library has it by default.
  static Result<Model> load(const Library& library, const std::filesystem::path& file, const Options& options);
  static Result<Model> load(const Library& library, std::span<const std::byte> model, const Options& options);

  const std::vector<DeclaredInput>& inputs() const { return inputs_; }
  const std::vector<std::string>& outputs() const { return outputs_; }
  /// Initializers that callers may override, which therefore are not constants to the optimiser.
  std::size_t overridable_initializers() const { return overridable_; }

  /// Runs read `inputs` and write `outputs` from now on; every input and output of the model must be there.
  Result<void> bind(const std::vector<BoundTensor>& inputs, const std::vector<BoundTensor>& outputs);
  Result<void> run();

  /// One run on `inputs`, all of which the model must have; copies of all outputs that are tensors with memory.
  Result<std::vector<io::NamedArray>> collect(const std::vector<BoundTensor>& inputs);

 private:
  explicit Model(const Library& library) : library_(&library) {}

  Result<void> adopt(ort::OrtStatus* created, ort::OrtSession* session);
  Result<void> describe();
  Result<DeclaredInput> describe_input(std::size_t index) const;
  Result<void> bind_inputs(const std::vector<BoundTensor>& inputs);
  Result<io::Array> copy_of(ort::OrtValue* value) const;
  Result<Pointer<ort::OrtValue>> wrap(const BoundTensor& tensor) const;
  Result<std::string> take_name(ort::OrtStatus* status, char* name) const;

  const Library* library_;
  Pointer<ort::OrtSession> session_;
  std::vector<DeclaredInput> inputs_;
  std::vector<std::string> outputs_;
  std::size_t overridable_ = 0;
  std::vector<Pointer<ort::OrtValue>> values_;
  std::vector<const char*> input_names_, output_names_;
  std::vector<const ort::OrtValue*> input_values_;
  std::vector<ort::OrtValue*> output_values_;
};

}  // namespace bantam::peer
