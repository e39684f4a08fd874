// The part of ONNX Runtime's C ABI that the comparison uses. The library is loaded at run time, so nothing of it is
// needed to build; its entry point OrtGetApiBase hands out a table of function pointers.
//
// The table is append-only: a function keeps its position in all later versions (onnxruntime_c_api.h says so, and its
// implementation asserts that version 1 ends with ReleaseCustomOpDomain at 101 and version 2 with ReleaseModelMetadata
// at 118). The indices below are the positions of the functions in `struct OrtApi`, counted from 0; the function types
// are those of the header with opaque objects. Every function that returns OrtStatus* returns null on success, and
// otherwise an object for ReleaseStatus.
#pragma once

#include <cstddef>
#include <cstdint>

namespace bantam::peer::ort {

struct OrtEnv;
struct OrtStatus;
struct OrtMemoryInfo;
struct OrtSession;
struct OrtValue;
struct OrtRunOptions;
struct OrtTypeInfo;
struct OrtTensorTypeAndShapeInfo;
struct OrtSessionOptions;
struct OrtAllocator;

using AnyFunction = void (*)();

/// What OrtGetApiBase returns. get_api gives the table for a version of the API, or null if the library is older.
struct OrtApiBase {
  const AnyFunction* (*get_api)(std::uint32_t version);
  const char* (*get_version_string)();
};
using OrtGetApiBase = const OrtApiBase*();

/// The first version whose table has all entries below.
inline constexpr std::uint32_t kApiVersion = 4;

enum : int {
  kLoggingLevelError = 3,
  kExecutionSequential = 0,
  kOptimizeNothing = 0,
  kOptimizeAll = 99,
  kArenaAllocator = 1,
  kMemoryDefault = 0,
};

/// Position of a function of type F in the table.
template <typename F>
struct Entry {
  std::size_t index;
};

inline constexpr Entry<const char*(const OrtStatus*)> kGetErrorMessage{2};
inline constexpr Entry<OrtStatus*(int level, const char* id, OrtEnv**)> kCreateEnv{3};
inline constexpr Entry<OrtStatus*(const OrtEnv*, const char* path, const OrtSessionOptions*, OrtSession**)>
    kCreateSession{7};
inline constexpr Entry<OrtStatus*(const OrtEnv*, const void* data, std::size_t bytes, const OrtSessionOptions*,
                                  OrtSession**)>
    kCreateSessionFromArray{8};
inline constexpr Entry<OrtStatus*(OrtSession*, const OrtRunOptions*, const char* const* input_names,
                                  const OrtValue* const* inputs, std::size_t input_count,
                                  const char* const* output_names, std::size_t output_count, OrtValue** outputs)>
    kRun{9};
inline constexpr Entry<OrtStatus*(OrtSessionOptions**)> kCreateSessionOptions{10};
inline constexpr Entry<OrtStatus*(OrtSessionOptions*, int mode)> kSetSessionExecutionMode{13};
inline constexpr Entry<OrtStatus*(OrtSessionOptions*, int level)> kSetSessionGraphOptimizationLevel{23};
inline constexpr Entry<OrtStatus*(OrtSessionOptions*, int threads)> kSetIntraOpNumThreads{24};
inline constexpr Entry<OrtStatus*(const OrtSession*, std::size_t*)> kSessionGetInputCount{30};
inline constexpr Entry<OrtStatus*(const OrtSession*, std::size_t*)> kSessionGetOutputCount{31};
inline constexpr Entry<OrtStatus*(const OrtSession*, std::size_t*)> kSessionGetOverridableInitializerCount{32};
inline constexpr Entry<OrtStatus*(const OrtSession*, std::size_t index, OrtTypeInfo**)> kSessionGetInputTypeInfo{33};
inline constexpr Entry<OrtStatus*(const OrtSession*, std::size_t index, OrtAllocator*, char**)> kSessionGetInputName{
    36};
inline constexpr Entry<OrtStatus*(const OrtSession*, std::size_t index, OrtAllocator*, char**)> kSessionGetOutputName{
    37};
inline constexpr Entry<OrtStatus*(const OrtMemoryInfo*, void* data, std::size_t bytes, const std::int64_t* dims,
                                  std::size_t rank, int element_type, OrtValue**)>
    kCreateTensorWithDataAsOrtValue{49};
inline constexpr Entry<OrtStatus*(OrtValue*, void**)> kGetTensorMutableData{51};
inline constexpr Entry<OrtStatus*(const OrtTypeInfo*, const OrtTensorTypeAndShapeInfo**)> kCastTypeInfoToTensorInfo{55};
inline constexpr Entry<OrtStatus*(const OrtTensorTypeAndShapeInfo*, int*)> kGetTensorElementType{60};
inline constexpr Entry<OrtStatus*(const OrtTensorTypeAndShapeInfo*, std::size_t*)> kGetDimensionsCount{61};
inline constexpr Entry<OrtStatus*(const OrtTensorTypeAndShapeInfo*, std::int64_t*, std::size_t)> kGetDimensions{62};
inline constexpr Entry<OrtStatus*(const OrtTensorTypeAndShapeInfo*, const char**, std::size_t)> kGetSymbolicDimensions{
    63};
inline constexpr Entry<OrtStatus*(const OrtValue*, OrtTensorTypeAndShapeInfo**)> kGetTensorTypeAndShape{65};
inline constexpr Entry<OrtStatus*(int allocator_type, int memory_type, OrtMemoryInfo**)> kCreateCpuMemoryInfo{69};
inline constexpr Entry<OrtStatus*(OrtAllocator*, void*)> kAllocatorFree{76};
inline constexpr Entry<OrtStatus*(OrtAllocator**)> kGetAllocatorWithDefaultOptions{78};
inline constexpr Entry<void(OrtEnv*)> kReleaseEnv{92};
inline constexpr Entry<void(OrtStatus*)> kReleaseStatus{93};
inline constexpr Entry<void(OrtMemoryInfo*)> kReleaseMemoryInfo{94};
inline constexpr Entry<void(OrtSession*)> kReleaseSession{95};
inline constexpr Entry<void(OrtValue*)> kReleaseValue{96};
inline constexpr Entry<void(OrtTypeInfo*)> kReleaseTypeInfo{98};
inline constexpr Entry<void(OrtTensorTypeAndShapeInfo*)> kReleaseTensorTypeAndShapeInfo{99};
inline constexpr Entry<void(OrtSessionOptions*)> kReleaseSessionOptions{100};
inline constexpr Entry<OrtStatus*(OrtSessionOptions*, const char* name, std::int64_t value)>
    kAddFreeDimensionOverrideByName{124};

/// The table of one loaded library.
class Api {
 public:
  explicit Api(const AnyFunction* table) : table_(table) {}

  template <typename F>
  F* operator[](Entry<F> entry) const {
    return reinterpret_cast<F*>(table_[entry.index]);
  }

 private:
  const AnyFunction* table_;
};

}  // namespace bantam::peer::ort
