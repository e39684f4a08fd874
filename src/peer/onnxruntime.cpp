#include "peer/onnxruntime.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace bantam::peer {
namespace {

/// ONNX's codes of element types (TensorProto.DataType), which the C API uses too.
constexpr std::array<std::pair<int, ElementType>, 13> kElementTypes = {{
    {1, ElementType::kF32},
    {2, ElementType::kU8},
    {3, ElementType::kI8},
    {4, ElementType::kU16},
    {5, ElementType::kI16},
    {6, ElementType::kI32},
    {7, ElementType::kI64},
    {9, ElementType::kBool},
    {10, ElementType::kF16},
    {11, ElementType::kF64},
    {12, ElementType::kU32},
    {13, ElementType::kU64},
    {16, ElementType::kBF16},
}};

ElementType element_type(int code) {
  for (const auto& [onnx, type] : kElementTypes)
    if (onnx == code) return type;
  return ElementType::kNone;
}

int onnx_code(ElementType wanted) {
  for (const auto& [onnx, type] : kElementTypes)
    if (type == wanted) return onnx;
  return 0;
}

Error missing(const char* kind, const std::string& name) {
  return {StatusCode::kInvalidArgument,
          fmt::format("ONNX Runtime wants {} '{}', which Bantam's plan lacks", kind, name),
          "leave out --state, which binds ports to each other in Bantam only"};
}

Result<Pointer<ort::OrtSessionOptions>> make_options(const Library& library, const Model::Options& options) {
  const ort::Api& api = library.api();
  ort::OrtSessionOptions* raw = nullptr;
  if (auto ok = library.check(api[ort::kCreateSessionOptions](&raw), "creating options"); !ok) return fail(ok.error());
  Pointer<ort::OrtSessionOptions> made(raw, {&api});
  const auto set = [&](ort::OrtStatus* status) { return library.check(status, "setting an option"); };
  if (auto ok = set(api[ort::kSetSessionExecutionMode](raw, ort::kExecutionSequential)); !ok) return fail(ok.error());
  if (auto ok = set(api[ort::kSetSessionGraphOptimizationLevel](
          raw, options.optimize ? ort::kOptimizeAll : ort::kOptimizeNothing));
      !ok)
    return fail(ok.error());
  if (auto ok = set(api[ort::kSetIntraOpNumThreads](raw, options.threads)); !ok) return fail(ok.error());
  for (const auto& [name, value] : options.dims)
    if (auto ok = set(api[ort::kAddFreeDimensionOverrideByName](raw, name.c_str(), value)); !ok)
      return fail(ok.error());
  return made;
}

const BoundTensor* find_tensor(const std::vector<BoundTensor>& tensors, const std::string& name) {
  const auto it = std::ranges::find(tensors, name, &BoundTensor::name);
  return it == tensors.end() ? nullptr : &*it;
}

}  // namespace

std::filesystem::path Library::find(const std::filesystem::path& folder) {
#if defined(__aarch64__)
  constexpr const char* kArchitecture = "arm64";
#else
  constexpr const char* kArchitecture = "x64";
#endif
  std::error_code none;
  for (std::filesystem::recursive_directory_iterator it(folder, none), end; it != end; it.increment(none))
    if (it->path().filename() == "libonnxruntime.so.1" && it->path().parent_path().filename() == kArchitecture)
      return it->path();
  return {};
}

Result<void> Library::check(ort::OrtStatus* status, const char* what) const {
  if (status == nullptr) return {};
  std::string message = fmt::format("ONNX Runtime, {}: {}", what, api_[ort::kGetErrorMessage](status));
  api_[ort::kReleaseStatus](status);
  return fail(StatusCode::kUnsupported, std::move(message));
}

Result<std::unique_ptr<Library>> Library::open(const std::filesystem::path& path) {
  void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr)
    return fail(StatusCode::kIo, dlerror(), "run bench/fetch_onnxruntime.sh, or name the library with --library");
  const auto entry = reinterpret_cast<ort::OrtGetApiBase*>(dlsym(handle, "OrtGetApiBase"));
  const ort::OrtApiBase* const base = entry != nullptr ? entry() : nullptr;
  const ort::AnyFunction* const table = base != nullptr ? base->get_api(ort::kApiVersion) : nullptr;
  if (table == nullptr)
    return fail(StatusCode::kUnsupported,
                fmt::format("{}: no ONNX Runtime with version {} of its C API", path.string(), ort::kApiVersion),
                "run bench/fetch_onnxruntime.sh");
  std::unique_ptr<Library> library(new Library(table));
  library->version_ = base->get_version_string();
  const ort::Api& api = library->api_;
  ort::OrtEnv* env = nullptr;
  if (auto ok = library->check(api[ort::kCreateEnv](ort::kLoggingLevelError, "bantam", &env), "starting"); !ok)
    return fail(ok.error());
  library->env_ = {env, {&api}};
  ort::OrtMemoryInfo* memory = nullptr;
  if (auto ok = library->check(api[ort::kCreateCpuMemoryInfo](ort::kArenaAllocator, ort::kMemoryDefault, &memory),
                               "describing memory");
      !ok)
    return fail(ok.error());
  library->memory_ = {memory, {&api}};
  if (auto ok = library->check(api[ort::kGetAllocatorWithDefaultOptions](&library->allocator_), "getting an allocator");
      !ok)
    return fail(ok.error());
  return library;
}

Result<Model> Model::load(const Library& library, const std::filesystem::path& file, const Options& options) {
  auto made = make_options(library, options);
  if (!made) return fail(made.error());
  Model model(library);
  ort::OrtSession* session = nullptr;
  ort::OrtStatus* const status = library.api()[ort::kCreateSession](library.env(), file.c_str(), made->get(), &session);
  if (auto ok = model.adopt(status, session); !ok) return fail(ok.error());
  return model;
}

Result<Model> Model::load(const Library& library, std::span<const std::byte> bytes, const Options& options) {
  auto made = make_options(library, options);
  if (!made) return fail(made.error());
  Model model(library);
  ort::OrtSession* session = nullptr;
  ort::OrtStatus* const status =
      library.api()[ort::kCreateSessionFromArray](library.env(), bytes.data(), bytes.size(), made->get(), &session);
  if (auto ok = model.adopt(status, session); !ok) return fail(ok.error());
  return model;
}

Result<void> Model::adopt(ort::OrtStatus* created, ort::OrtSession* session) {
  if (auto ok = library_->check(created, "loading the model"); !ok) return ok;
  session_ = {session, {&library_->api()}};
  return describe();
}

Result<std::string> Model::take_name(ort::OrtStatus* status, char* name) const {
  if (auto ok = library_->check(status, "reading a name"); !ok) return fail(ok.error());
  std::string text = name;
  if (auto ok = library_->check(library_->api()[ort::kAllocatorFree](library_->allocator(), name), "freeing"); !ok)
    return fail(ok.error());
  return text;
}

Result<DeclaredInput> Model::describe_input(std::size_t index) const {
  const ort::Api& api = library_->api();
  const auto check = [&](ort::OrtStatus* status) { return library_->check(status, "describing an input"); };
  DeclaredInput input;
  char* raw_name = nullptr;
  ort::OrtStatus* const named = api[ort::kSessionGetInputName](session_.get(), index, library_->allocator(), &raw_name);
  auto name = take_name(named, raw_name);
  if (!name) return fail(name.error());
  input.name = std::move(*name);
  ort::OrtTypeInfo* raw = nullptr;
  if (auto ok = check(api[ort::kSessionGetInputTypeInfo](session_.get(), index, &raw)); !ok) return fail(ok.error());
  const Pointer<ort::OrtTypeInfo> type(raw, {&api});
  const ort::OrtTensorTypeAndShapeInfo* tensor = nullptr;
  if (auto ok = check(api[ort::kCastTypeInfoToTensorInfo](raw, &tensor)); !ok) return fail(ok.error());
  if (tensor == nullptr) return fail(StatusCode::kUnsupported, "input '" + input.name + "' is no tensor");
  int code = 0;
  std::size_t rank = 0;
  if (auto ok = check(api[ort::kGetTensorElementType](tensor, &code)); !ok) return fail(ok.error());
  if (auto ok = check(api[ort::kGetDimensionsCount](tensor, &rank)); !ok) return fail(ok.error());
  input.type = element_type(code);
  input.dims.resize(rank);
  std::vector<const char*> symbols(rank);
  if (auto ok = check(api[ort::kGetDimensions](tensor, input.dims.data(), rank)); !ok) return fail(ok.error());
  if (auto ok = check(api[ort::kGetSymbolicDimensions](tensor, symbols.data(), rank)); !ok) return fail(ok.error());
  for (const char* symbol : symbols) input.symbols.emplace_back(symbol != nullptr ? symbol : "");
  return input;
}

Result<void> Model::describe() {
  const ort::Api& api = library_->api();
  const auto check = [&](ort::OrtStatus* status) { return library_->check(status, "describing the model"); };
  std::size_t inputs = 0;
  std::size_t outputs = 0;
  if (auto ok = check(api[ort::kSessionGetInputCount](session_.get(), &inputs)); !ok) return ok;
  if (auto ok = check(api[ort::kSessionGetOutputCount](session_.get(), &outputs)); !ok) return ok;
  if (auto ok = check(api[ort::kSessionGetOverridableInitializerCount](session_.get(), &overridable_)); !ok) return ok;
  for (std::size_t i = 0; i < inputs; ++i) {
    auto input = describe_input(i);
    if (!input) return fail(input.error());
    inputs_.push_back(std::move(*input));
  }
  for (std::size_t i = 0; i < outputs; ++i) {
    char* raw = nullptr;
    ort::OrtStatus* const status = api[ort::kSessionGetOutputName](session_.get(), i, library_->allocator(), &raw);
    auto name = take_name(status, raw);
    if (!name) return fail(name.error());
    outputs_.push_back(std::move(*name));
  }
  return {};
}

Result<Pointer<ort::OrtValue>> Model::wrap(const BoundTensor& tensor) const {
  std::vector<std::int64_t> dims(tensor.desc.dims, tensor.desc.dims + tensor.desc.rank);
  ort::OrtValue* value = nullptr;
  ort::OrtStatus* const status = library_->api()[ort::kCreateTensorWithDataAsOrtValue](
      library_->memory(), tensor.data, static_cast<std::size_t>(tensor.desc.bytes()), dims.data(), dims.size(),
      onnx_code(tensor.desc.type), &value);
  if (auto ok = library_->check(status, "wrapping a tensor"); !ok) return fail(ok.error());
  return Pointer<ort::OrtValue>(value, {&library_->api()});
}

Result<void> Model::bind_inputs(const std::vector<BoundTensor>& inputs) {
  for (const DeclaredInput& input : inputs_) {
    const BoundTensor* tensor = find_tensor(inputs, input.name);
    if (tensor == nullptr) return fail(missing("input", input.name));
    auto value = wrap(*tensor);
    if (!value) return fail(value.error());
    input_names_.push_back(input.name.c_str());
    input_values_.push_back(value->get());
    values_.push_back(std::move(*value));
  }
  return {};
}

Result<void> Model::bind(const std::vector<BoundTensor>& inputs, const std::vector<BoundTensor>& outputs) {
  if (auto bound = bind_inputs(inputs); !bound) return bound;
  for (const std::string& name : outputs_) {
    const BoundTensor* tensor = find_tensor(outputs, name);
    if (tensor == nullptr) return fail(missing("output", name));
    auto value = wrap(*tensor);
    if (!value) return fail(value.error());
    output_names_.push_back(name.c_str());
    output_values_.push_back(value->get());
    values_.push_back(std::move(*value));
  }
  return {};
}

Result<io::Array> Model::copy_of(ort::OrtValue* value) const {
  const ort::Api& api = library_->api();
  const auto check = [&](ort::OrtStatus* status) { return library_->check(status, "reading a tensor"); };
  ort::OrtTensorTypeAndShapeInfo* raw = nullptr;
  if (auto ok = check(api[ort::kGetTensorTypeAndShape](value, &raw)); !ok) return fail(ok.error());
  const Pointer<ort::OrtTensorTypeAndShapeInfo> info(raw, {&api});
  int code = 0;
  std::size_t rank = 0;
  if (auto ok = check(api[ort::kGetTensorElementType](raw, &code)); !ok) return fail(ok.error());
  if (auto ok = check(api[ort::kGetDimensionsCount](raw, &rank)); !ok) return fail(ok.error());
  std::vector<std::int64_t> dims(rank);
  if (auto ok = check(api[ort::kGetDimensions](raw, dims.data(), rank)); !ok) return fail(ok.error());
  auto array = io::make_array(element_type(code), dims);
  if (!array) return array;
  void* data = nullptr;
  if (auto ok = check(api[ort::kGetTensorMutableData](value, &data)); !ok) return fail(ok.error());
  if (!array->data.empty()) std::memcpy(array->data.data(), data, array->data.size());
  return array;
}

Result<std::vector<io::NamedArray>> Model::collect(const std::vector<BoundTensor>& inputs) {
  if (auto bound = bind_inputs(inputs); !bound) return fail(std::move(bound.error()));
  std::vector<const char*> names;
  for (const std::string& name : outputs_) names.push_back(name.c_str());
  std::vector<ort::OrtValue*> raw(names.size(), nullptr);
  ort::OrtStatus* const status =
      library_->api()[ort::kRun](session_.get(), nullptr, input_names_.data(), input_values_.data(),
                                 input_values_.size(), names.data(), names.size(), raw.data());
  std::vector<Pointer<ort::OrtValue>> owned;
  for (ort::OrtValue* value : raw) owned.emplace_back(value, PeerDeleter{&library_->api()});
  if (auto ok = library_->check(status, "running"); !ok) return fail(ok.error());
  std::vector<io::NamedArray> results;
  for (std::size_t i = 0; i < owned.size(); ++i) {
    // Sequences, optional values and element types that Bantam lacks have no counterpart to compare with.
    if (owned[i] == nullptr) continue;
    if (auto array = copy_of(owned[i].get())) results.push_back({outputs_[i], std::move(*array)});
  }
  return results;
}

Result<void> Model::run() {
  return library_->check(library_->api()[ort::kRun](session_.get(), nullptr, input_names_.data(), input_values_.data(),
                                                    input_values_.size(), output_names_.data(), output_values_.size(),
                                                    output_values_.data()),
                         "running");
}

}  // namespace bantam::peer
