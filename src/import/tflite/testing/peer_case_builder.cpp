#include "import/tflite/testing/peer_case_builder.h"

#include <limits>

namespace bantam::import::tflite::testing {
namespace {

std::uint32_t seed_of(const std::string& name) {
  std::uint32_t hash = 2166136261U;  // FNV-1a
  for (const char c : name) hash = (hash ^ static_cast<std::uint8_t>(c)) * 16777619U;
  return hash;
}

/// Uniform in [0, 1), from 32 bits of the engine: distributions differ between standard libraries.
double fraction(std::mt19937& random) { return static_cast<double>(random()) / 4294967296.0; }

template <typename T>
void append(std::vector<std::uint8_t>& bytes, std::size_t count, std::mt19937& random, Range range) {
  for (std::size_t i = 0; i < count; ++i) {
    const double value = range.low + (range.high - range.low + (std::is_integral_v<T> ? 1 : 0)) * fraction(random);
    const T element = std::is_integral_v<T> ? static_cast<T>(std::floor(value)) : static_cast<T>(value);
    const auto* raw = reinterpret_cast<const std::uint8_t*>(&element);
    bytes.insert(bytes.end(), raw, raw + sizeof element);
  }
}

template <typename T>
Range all_of(std::optional<Range> range) {
  if (range) return *range;
  if constexpr (std::is_floating_point_v<T>) return {-4, 4};
  if constexpr (sizeof(T) >= 4) return {std::is_signed_v<T> ? -1000.0 : 0.0, 1000000.0};
  return {static_cast<double>(std::numeric_limits<T>::min()), static_cast<double>(std::numeric_limits<T>::max())};
}

}  // namespace

CaseBuilder::CaseBuilder(std::string name, int steps) : random_(seed_of(name)) {
  case_.name = std::move(name);
  case_.steps = steps;
}

int CaseBuilder::input(TensorSpec spec, std::optional<Range> range) {
  spec.name = "in" + std::to_string(inputs_.size());
  std::vector<std::uint8_t> all;
  for (int step = 0; step < case_.steps; ++step) {
    const auto elements = random_elements(spec, range);
    all.insert(all.end(), elements.begin(), elements.end());
  }
  case_.inputs.push_back(std::move(all));
  inputs_.push_back(model_.tensor(spec));
  return inputs_.back();
}

int CaseBuilder::output(TensorSpec spec) {
  spec.name = "out" + std::to_string(outputs_.size());
  outputs_.push_back(model_.tensor(spec));
  return outputs_.back();
}

int CaseBuilder::weights(TensorSpec spec, std::optional<Range> range) {
  spec.data = random_elements(spec, range);
  return model_.tensor(spec);
}

int CaseBuilder::integers(std::vector<std::int32_t> shape, const std::vector<std::int32_t>& values) {
  TensorSpec spec{.type = TensorType::INT32, .shape = std::move(shape)};
  spec.data.resize(values.size() * sizeof(std::int32_t));
  if (!values.empty()) std::memcpy(spec.data.data(), values.data(), spec.data.size());
  return model_.tensor(spec);
}

std::vector<std::uint8_t> CaseBuilder::random_elements(const TensorSpec& spec, std::optional<Range> range) {
  std::size_t count = 1;
  for (const std::int32_t d : spec.shape) count *= static_cast<std::size_t>(d);
  std::vector<std::uint8_t> bytes;
  const auto fill = [&]<typename T>(T) { append<T>(bytes, count, random_, all_of<T>(range)); };
  switch (spec.type) {
    case TensorType::FLOAT32: fill(float{}); break;
    case TensorType::INT8: fill(std::int8_t{}); break;
    case TensorType::UINT8: fill(std::uint8_t{}); break;
    case TensorType::INT16: fill(std::int16_t{}); break;
    case TensorType::INT32: fill(std::int32_t{}); break;
    case TensorType::UINT32: fill(std::uint32_t{}); break;
    case TensorType::INT64: fill(std::int64_t{}); break;
    case TensorType::UINT64: fill(std::uint64_t{}); break;
    case TensorType::BOOL: append<std::uint8_t>(bytes, count, random_, {0, 1}); break;
    default: break;
  }
  return bytes;
}

PeerCase CaseBuilder::finish() {
  case_.file = model_.finish(inputs_, outputs_);
  return std::move(case_);
}

}  // namespace bantam::import::tflite::testing
