// ONNX signal operators: windows and filter banks, which are constants, and Fourier transforms.
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <numbers>

#include "import/onnx/lowering.h"
#include "ops/signal/dft/dft.h"

namespace bantam::import::onnx {
namespace {

/// The element type that an attribute names, float by default.
ElementType read_output_type(NodeLowering& n) {
  const auto code = n.attr_int32("output_datatype", 1);
  const ElementType type = compute_type(element_type(code));
  if (type == ElementType::kNone || type == ElementType::kI4 || type == ElementType::kBool)
    n.fail(fmt::format("attribute 'output_datatype' = {} ({}) is not supported", code, data_type_name(code)));
  return type;
}

/// The largest table that is worth making; a model that asks for more is damaged.
constexpr std::int64_t kMaxElements = std::int64_t{1} << 26;

/// a0 - a1 cos(2 pi n / N) + a2 cos(4 pi n / N), N the size, or one less for a symmetric window.
struct CosineSum {
  double a0, a1, a2;
};
constexpr CosineSum kHann{0.5, 0.5, 0.0};
constexpr CosineSum kHamming{25.0 / 46.0, 21.0 / 46.0, 0.0};
constexpr CosineSum kBlackman{0.42, 0.5, 0.08};

template <const CosineSum& window>
void lower_window(NodeLowering& n) {
  const std::int64_t size = n.integer(0, "size");
  const bool periodic = n.attr_int("periodic", 1) != 0;
  const ElementType type = read_output_type(n);
  if (!n.failed() && (size < 0 || size > kMaxElements))
    n.fail(fmt::format("a window of {} elements is not valid", size), StatusCode::kInvalidModel);
  if (n.failed()) return;
  const auto period = static_cast<double>(periodic ? size : size - 1);
  std::vector<float> values(static_cast<std::size_t>(size));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double phase = 2 * std::numbers::pi * static_cast<double>(i) / period;
    values[i] = static_cast<float>(window.a0 - window.a1 * std::cos(phase) + window.a2 * std::cos(2 * phase));
  }
  n.set_output(0, n.cast(n.builder().constant<float>("", std::array{size}, std::span<const float>(values)), type));
}

double read_number(NodeLowering& n, int i, std::string_view what) {
  const auto values = n.floats(i, what);
  if (n.failed()) return 0;
  if (values.size() == 1) return static_cast<double>(values.front());
  n.fail(fmt::format("operand {} ({}) has {} elements, expected 1", i, what, values.size()), StatusCode::kInvalidModel);
  return 0;
}

struct MelBank {
  std::int64_t bins = 0;    ///< mel bins, columns
  std::int64_t length = 0;  ///< of the transform
  std::int64_t rate = 0;
  double low = 0;
  double high = 0;
};

/// The spectrum's bin at which each triangle begins: bins + 2 of them, equally spaced on the mel scale.
std::vector<std::int64_t> triangle_edges(const MelBank& bank) {
  const auto mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  const auto count = static_cast<std::size_t>(bank.bins + 2);
  const double step = (mel(bank.high) - mel(bank.low)) / static_cast<double>(count);
  std::vector<std::int64_t> edges(count);
  for (std::size_t i = 0; i < count; ++i) {
    const double hertz = 700 * (std::pow(10.0, (static_cast<double>(i) * step + mel(bank.low)) / 2595) - 1);
    edges[i] = static_cast<std::int64_t>(
        std::floor(static_cast<double>(bank.length + 1) * hertz / static_cast<double>(bank.rate)));
  }
  return edges;
}

void lower_mel_weight_matrix(NodeLowering& n) {
  const MelBank bank{n.integer(0, "num_mel_bins"), n.integer(1, "dft_length"), n.integer(2, "sample_rate"),
                     read_number(n, 3, "lower_edge_hertz"), read_number(n, 4, "upper_edge_hertz")};
  const ElementType type = read_output_type(n);
  if (n.failed()) return;
  if (bank.bins < 1 || bank.length < 1 || bank.rate < 1 || !(bank.low >= 0) || !(bank.high > bank.low) ||
      bank.high * 2 > static_cast<double>(bank.rate) || bank.bins > kMaxElements / (bank.length / 2 + 1))
    return n.fail(fmt::format("{} bins from {} to {} Hz of a transform of length {} at {} Hz are not valid", bank.bins,
                              bank.low, bank.high, bank.length, bank.rate),
                  StatusCode::kInvalidModel);
  const std::int64_t rows = bank.length / 2 + 1;
  const auto edges = triangle_edges(bank);
  std::vector<float> weights(static_cast<std::size_t>(rows * bank.bins), 0.0F);
  for (std::int64_t bin = 0; bin < bank.bins; ++bin) {
    const auto* edge = &edges[static_cast<std::size_t>(bin)];
    const auto rising = static_cast<float>(edge[1] - edge[0]);
    const auto falling = static_cast<float>(edge[2] - edge[1]);
    const auto set = [&](std::int64_t row, float weight) {
      if (row >= 0 && row < rows) weights[static_cast<std::size_t>(row * bank.bins + bin)] = weight;
    };
    for (std::int64_t row = edge[0]; row <= edge[1]; ++row)
      set(row, edge[0] == edge[1] ? 1.0F : static_cast<float>(row - edge[0]) / rising);
    for (std::int64_t row = edge[1]; row < edge[2]; ++row) set(row, static_cast<float>(edge[2] - row) / falling);
  }
  const std::array dims{rows, bank.bins};
  n.set_output(0, n.cast(n.builder().constant<float>("", dims, std::span<const float>(weights)), type));
}

/// The table that the transform needs: cos(2 pi k / size), -sin(2 pi k / size).
ValueId twiddles(NodeLowering& n, std::int64_t size, ElementType type) {
  if (n.failed()) return kNone;
  std::vector<double> table;
  for (std::int64_t k = 0; k < size; ++k) {
    const double phase = 2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(size);
    table.push_back(std::cos(phase));
    table.push_back(-std::sin(phase));
  }
  return n.cast(n.builder().constant<double>("", std::array{size, std::int64_t{2}}, std::span<const double>(table)),
                type);
}

/// Emits the transform of x [B,L,1 or 2], in frames when step > 0.
ValueId emit_dft(NodeLowering& n, ValueId x, std::int64_t length, std::int64_t step, ValueId window, bool inverse,
                 bool onesided) {
  if (!n.failed() && (length < 1 || length > kMaxElements || step < 0 || step > kMaxElements))
    n.fail(fmt::format("a transform of length {} with frames {} apart is not valid", length, step),
           StatusCode::kInvalidModel);
  if (n.failed()) return kNone;
  const ops::DftParams params{static_cast<std::int32_t>(length), static_cast<std::int32_t>(step), inverse ? 1 : 0,
                              onesided ? 1 : 0};
  return n.emit(ops::kDft, params, {x, twiddles(n, length, n.type(x)), window});
}

/// The axis is an attribute up to operator set 19, an operand since.
void lower_dft(NodeLowering& n) {
  const ValueId x = n.input(0);
  const bool inverse = n.attr_int("inverse", 0) != 0;
  const bool onesided = n.attr_int("onesided", 0) != 0;
  const std::int64_t axis_value = n.opset() < 20 ? n.attr_int("axis", 1) : n.has(2) ? n.integer(2, "axis") : -2;
  const int rank = n.rank(x);
  const int axis = n.axis(axis_value, rank);
  if (n.failed()) return;
  if (rank < 2 || axis == rank - 1)
    return n.fail(fmt::format("axis {} of {} is that of real and imaginary parts", axis_value, format_desc(n.desc(x))),
                  StatusCode::kInvalidModel);
  const std::int64_t samples = n.desc(x).dims[axis];
  const bool half = inverse && onesided;
  const std::int64_t length = n.has(1) ? n.integer(1, "dft_length") : half ? 2 * (samples - 1) : samples;
  std::vector<int> last(static_cast<std::size_t>(rank));  // the axis comes just before the parts
  for (int i = 0; i < rank; ++i) last[static_cast<std::size_t>(i)] = i;
  std::swap(last[static_cast<std::size_t>(axis)], last[static_cast<std::size_t>(rank - 2)]);
  const ValueId turned = n.transpose(x, last);
  auto dims = n.dims(turned);
  if (n.failed()) return;
  std::int64_t signals = 1;
  for (int i = 0; i < rank - 2; ++i) signals *= dims[static_cast<std::size_t>(i)];
  const ValueId rows = n.reshape(turned, {signals, samples, n.desc(x).last(0)});
  const ValueId y = emit_dft(n, rows, length, 0, kNone, inverse, onesided);
  if (n.failed()) return;
  dims[static_cast<std::size_t>(rank - 2)] = n.desc(y).dims[2];
  dims[static_cast<std::size_t>(rank - 1)] = n.desc(y).dims[3];
  n.set_output(0, n.transpose(n.reshape(y, dims), last));
}

void lower_stft(NodeLowering& n) {
  ValueId x = n.input(0);
  const std::int64_t step = n.integer(1, "frame_step");
  const ValueId window = n.optional(2);
  const bool onesided = n.attr_int("onesided", 1) != 0;
  if (n.failed()) return;
  if (n.rank(x) == 2) x = n.reshape(x, {n.desc(x).dims[0], n.desc(x).dims[1], 1});
  const std::int64_t length = n.has(3)          ? n.integer(3, "frame_length")
                              : window != kNone ? n.desc(window).elements()
                              : n.rank(x) == 3  ? n.desc(x).dims[1]
                                                : 0;
  if (!n.failed() && step < 1) n.fail(fmt::format("frame_step = {} must be positive", step), StatusCode::kInvalidModel);
  n.set_output(0, emit_dft(n, x, length, step, window, false, onesided));
}

constexpr OperatorRow kSignalOperators[] = {
    {"", "BlackmanWindow", 17, kNewest, lower_window<kBlackman>},  {"", "DFT", 17, kNewest, lower_dft},
    {"", "HammingWindow", 17, kNewest, lower_window<kHamming>},    {"", "HannWindow", 17, kNewest, lower_window<kHann>},
    {"", "MelWeightMatrix", 17, kNewest, lower_mel_weight_matrix}, {"", "STFT", 17, kNewest, lower_stft},
};

}  // namespace

std::span<const OperatorRow> signal_operators() { return kSignalOperators; }

}  // namespace bantam::import::onnx
