// ONNX Runtime as a peer: the library loaded at run time, and one model of it over memory that the caller owns.
//
// A PeerModel must not outlive its PeerLibrary, nor the memory bound to it. Objects belong to one thread at a time.
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
#include "ort_api.h"

namespace bantam::bench {

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
using PeerPointer = std::unique_ptr<T, PeerDeleter>;

class PeerLibrary {
 public:
  /// Loads libonnxruntime.so.1 from `path`. Stays loaded until the process ends: its threads may outlive a session.
  static Result<std::unique_ptr<PeerLibrary>> open(const std::filesystem::path& path);

  const std::string& version() const { return version_; }
  const ort::Api& api() const { return api_; }
  const ort::OrtEnv* env() const { return env_.get(); }
  const ort::OrtMemoryInfo* memory() const { return memory_.get(); }
  ort::OrtAllocator* allocator() const { return allocator_; }

  /// Consumes a status: nothing when it is null.
  Result<void> check(ort::OrtStatus* status, const char* what) const;

 private:
  explicit PeerLibrary(const ort::AnyFunction* table) : api_(table) {}

  ort::Api api_;
  std::string version_;
  PeerPointer<ort::OrtEnv> env_;
  PeerPointer<ort::OrtMemoryInfo> memory_;
  ort::OrtAllocator* allocator_ = nullptr;
};

/// A tensor in the caller's memory, dense, in the model's own layout.
struct PeerTensor {
  std::string name;
  TensorDesc desc;
  void* data = nullptr;
};

/// What the model file declares about an input; -1 for dynamic dimensions, whose names may be empty.
struct PeerInput {
  std::string name;
  ElementType type = ElementType::kNone;
  std::vector<std::int64_t> dims;
  std::vector<std::string> symbols;
};

class PeerModel {
 public:
  struct Options {
    int threads = 1;
    std::map<std::string, std::int64_t> dims;  ///< symbolic dimension -> value, so that the peer plans for it too
  };

  /// All graph optimisations, sequential execution, thread spinning as the library has it by default.
  static Result<PeerModel> load(const PeerLibrary& library, const std::filesystem::path& file, const Options& options);
  static Result<PeerModel> load(const PeerLibrary& library, std::span<const std::byte> model, const Options& options);

  const std::vector<PeerInput>& inputs() const { return inputs_; }
  const std::vector<std::string>& outputs() const { return outputs_; }
  /// Initializers that callers may override, which therefore are not constants to the optimiser.
  std::size_t overridable_initializers() const { return overridable_; }

  /// Runs read `inputs` and write `outputs` from now on; every input and output of the model must be there.
  Result<void> bind(const std::vector<PeerTensor>& inputs, const std::vector<PeerTensor>& outputs);
  Result<void> run();

 private:
  explicit PeerModel(const PeerLibrary& library) : library_(&library) {}

  Result<void> adopt(ort::OrtStatus* created, ort::OrtSession* session);
  Result<void> describe();
  Result<PeerInput> describe_input(std::size_t index) const;
  Result<PeerPointer<ort::OrtValue>> wrap(const PeerTensor& tensor) const;
  Result<std::string> take_name(ort::OrtStatus* status, char* name) const;

  const PeerLibrary* library_;
  PeerPointer<ort::OrtSession> session_;
  std::vector<PeerInput> inputs_;
  std::vector<std::string> outputs_;
  std::size_t overridable_ = 0;
  std::vector<PeerPointer<ort::OrtValue>> values_;
  std::vector<const char*> input_names_, output_names_;
  std::vector<const ort::OrtValue*> input_values_;
  std::vector<ort::OrtValue*> output_values_;
};

}  // namespace bantam::bench
