#include "compiler/cost_model.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>
#include <utility>

#include "ops/elementwise/lookup8/line.h"
#include "ops/narrowing.h"
#include "ops/nn/conv2d/conv2d.h"
#include "ops/nn/conv2d/few_outputs.h"
#include "ops/nn/conv2d/winograd.h"
#include "ops/nn/conv2d_affine/conv2d_affine.h"
#include "ops/nn/conv2d_affine/kernels.h"
#include "ops/nn/depthwise_conv2d/pixel_run.h"
#include "ops/nn/gemm/half_products.h"
#include "schedule/processor/instruction_sets.h"

namespace bantam::compiler {
namespace {

/// What one run of a step costs, in the machine's terms.
struct Load {
  double macs = 0;         ///< really computed: padding of panels and tiles included
  double pairs = 0;        ///< multiply-accumulates of 16-bit integers
  double dots = 0;         ///< of bytes that lie side by side
  double halves = 0;       ///< of 16-bit floats
  double share = 1;        ///< of the machine's multiply-accumulates that the kernel reaches in registers
  double taps = 0;         ///< multiply-accumulates of which each has a channel of its own
  double moved = 0;        ///< bytes
  double weights = 0;      ///< bytes
  double waits = 1;        ///< share of the time that these take to arrive in which nothing is multiplied
  double results = 0;      ///< that are rescaled, where sums are integers
  double fixed = 0;        ///< of these, by TensorFlow Lite's arithmetic
  double others = 0;       ///< multiply-accumulates of f32 that would take as long as what else is computed
  double plain = 0;        ///< multiply-accumulates of plain code
  double products = 0;     ///< of matrices, each of which begins like a step
  std::int64_t tiles = 0;  ///< of one item, whose transforms meet the weights block by block
};

/// In what a step computes.
enum class Numbers { kFloats, kBytes };

bool is_byte(ElementType type) { return type == ElementType::kI8 || type == ElementType::kU8; }

bool is_integer(const ops::OpCall& call) {
  return call.has(0) &&
         (is_byte(call.in(0).type) || (call.in(0).type == ElementType::kF32 && is_byte(call.out().type)));
}

Numbers numbers_of(const ops::OpCall& call) { return is_integer(call) ? Numbers::kBytes : Numbers::kFloats; }

double elements(const ops::OpCall& call) { return static_cast<double>(call.out().elements()); }

/// Of a convolution of either operator.
ops::Conv2dParams window_of(const ops::OpDef& op, const ops::OpCall& call) {
  return &op == &ops::kConv2dAffine ? ops::conv2d_affine::window_of(call.as<ops::Conv2dAffineParams>())
                                    : call.as<ops::Conv2dParams>();
}

/// Load::others of a convolution's activation.
double activation_macs(const ops::OpDef& op, const ops::OpCall& call, Numbers numbers) {
  constexpr double kExponential = 24;
  constexpr double kTable = 12;
  const ops::Activation& activation = &op == &ops::kConv2dAffine ? call.as<ops::Conv2dAffineParams>().form.activation
                                                                 : call.as<ops::Conv2dParams>().activation;
  switch (activation.function) {
    case ops::UnaryFunction::kSilu: return (numbers == Numbers::kBytes ? kTable : kExponential) * elements(call);
    case ops::UnaryFunction::kSigmoid:
    case ops::UnaryFunction::kTanh:
    case ops::UnaryFunction::kGelu:
    case ops::UnaryFunction::kElu: return kExponential * elements(call);
    default: return 0;
  }
}

/// Results that TensorFlow Lite's arithmetic rescales.
double fixed_results(const ops::OpDef& op, const ops::OpCall& call) {
  return &op == &ops::kConv2dAffine ? 0 : elements(call);
}

double weight_bytes(const ops::KernelVariant& variant, const ops::OpCall& call) {
  double bytes = 0;
  for (int i = 0; i < static_cast<int>(call.inputs.size()); ++i) {
    if (call.inputs[static_cast<std::size_t>(i)].data == nullptr) continue;
    const std::int64_t packed = ops::packed_bytes(variant, call, i);
    bytes += static_cast<double>(packed > 0 ? packed : call.in(i).bytes());
  }
  return bytes;
}

/// Operands and results, if they consist of such numbers.
double moved_bytes(const ops::OpCall& call, Numbers numbers) {
  const double bytes = static_cast<double>(value_bytes(call));
  return is_integer(call) && numbers == Numbers::kFloats ? sizeof(float) * bytes : bytes;
}

/// Packed weights, if they consist of such numbers.
double weight_bytes(const ops::KernelVariant& variant, const ops::OpCall& call, Numbers numbers) {
  const double bytes = weight_bytes(variant, call);
  return is_integer(call) && numbers == Numbers::kFloats ? sizeof(float) * bytes : bytes;
}

/// Columns of which a product has so few keep fewer sums in registers than hide the latency of their additions.
constexpr int kNarrow = 16;

/// A product of matrices whose left one is gathered, window by window, unless a window is one pixel.
Load gemm_load(const ops::OpDef& op, const ops::KernelVariant& variant, const ops::OpCall& call, Numbers numbers) {
  const TensorDesc& w = call.in(1);
  const double pixels = static_cast<double>(call.out().elements()) / std::max(call.out().dims[3], 1);
  const double window = static_cast<double>(w.dims[1]) * w.dims[2] * w.dims[3];
  // Half a panel takes half the time.
  const int panel = call.out().dims[3] <= kNarrow / 2 ? kNarrow / 2 : kNarrow;
  const double columns = std::ceil(static_cast<double>(call.out().dims[3]) / panel) * panel;
  // First layers of floats go another way, which gathers nothing.
  const bool few_inputs = numbers == Numbers::kFloats && call.in(0).dims[3] <= 4;
  const double gathered = w.dims[1] * w.dims[2] == 1 || few_inputs ? 0.0 : 1.0;
  const double element = numbers == Numbers::kBytes ? 1 : 4;
  return {.macs = pixels * window * columns,
          .share = columns <= kNarrow ? 0.7 : 0.9,
          .moved = moved_bytes(call, numbers) + gathered * pixels * window * element,
          .weights = weight_bytes(variant, call, numbers),
          .results = elements(call),
          .fixed = fixed_results(op, call),
          .others = activation_macs(op, call, numbers)};
}

/// A convolution by dot products of vectors (nn/conv2d/few_outputs.h): to load vectors, which some outputs share, and
/// to add up the numbers of each sum take time, too.
Load dot_products_load(const ops::OpDef& op, const ops::KernelVariant& variant, const ops::OpCall& call,
                       Numbers numbers) {
  constexpr double kVector = ops::conv2d::few_outputs::kVector;
  constexpr double kTogether = ops::conv2d::few_outputs::kTogether;
  constexpr double kPixel = 0.45;  // in the time of so many multiply-accumulates of plain code, here and below
  constexpr double kSum = 0.9;
  constexpr double kOperand = 0.07;
  const TensorDesc& w = call.in(1);
  const double outputs = call.out().dims[3];
  const double turns = std::ceil(outputs / kTogether);
  const double pixels = elements(call) / std::max(outputs, 1.0);
  const double vectors = static_cast<double>(w.dims[1]) * w.dims[2] * w.dims[3] / kVector;
  return {.dots = static_cast<double>(op.work(call)),
          .share = 0.85,
          .moved = moved_bytes(call, numbers),
          .weights = weight_bytes(variant, call, numbers),
          .plain = pixels * (turns * (kPixel + vectors * kOperand) + kSum * outputs)};
}

/// A product of matrices whose weights are packed just before: written, and read once more.
Load computed_gemm_load(const ops::OpDef& op, const ops::KernelVariant& variant, const ops::OpCall& call,
                        Numbers numbers) {
  Load load = gemm_load(op, variant, call, numbers);
  load.moved += 2 * static_cast<double>(call.in(1).bytes());
  return load;
}

/// Tiles whose products Winograd kernels compute in one go, at least.
constexpr std::int64_t kWinogradTiles = 6;

/// Of one item, of so many rows and columns.
std::int64_t winograd_tiles(const ops::OpDef& op, const ops::OpCall& call, int results) {
  return ops::conv2d::winograd::tiles_of_item(window_of(op, call), call.out().dims[1], call.out().dims[2], results);
}

/// In tiles that take more products than they give results, and are transformed, there and back.
template <int kResults>
Load winograd_load(const ops::OpDef& op, const ops::KernelVariant& variant, const ops::OpCall& call, Numbers numbers) {
  const bool integer = numbers == Numbers::kBytes;
  const TensorDesc& x = call.in(0);
  const TensorDesc& y = call.out();
  const std::int64_t tiles = winograd_tiles(op, call, kResults);
  const double tile_products = ops::conv2d::winograd::Form{kResults, window_of(op, call).stride_h}.products();
  const std::int64_t computed = (tiles + kWinogradTiles - 1) / kWinogradTiles * kWinogradTiles;
  const double items = y.dims[0];
  const double sums = items * static_cast<double>(computed) * tile_products * y.dims[3];
  const double transformed = items * static_cast<double>(tiles) * tile_products;  // of a channel
  // What a transformed number is read, computed and written for, in its bytes; a sum of integers takes the time of so
  // many products, too.
  const double bytes_in = integer ? 3 * sizeof(std::int16_t) : 2.5 * sizeof(float);
  const double bytes_out = (integer ? 1 : 2.5) * sizeof(float);
  constexpr double kSum = 16;
  return {.macs = integer ? 0 : sums * x.dims[3],
          .pairs = integer ? sums * (x.dims[3] + kSum) : 0,
          .share = integer || y.dims[3] > kNarrow ? 0.9 : 0.35,
          .moved = transformed * (bytes_in * x.dims[3] + bytes_out * y.dims[3]),
          .weights = weight_bytes(variant, call) * (is_integer(call) && !integer ? 2 : 1),
          .waits = integer ? 0.3 : 1,
          .results = elements(call),
          .fixed = fixed_results(op, call),
          .others = activation_macs(op, call, numbers),
          .products = tile_products,
          .tiles = tiles};
}

/// A product of matrices that lie where they are read.
Load product_load(const ops::OpDef& op, const ops::KernelVariant& variant, const ops::OpCall& call, Numbers numbers) {
  const double columns = call.out().rank > 0 ? std::max(call.out().last(0), 1) : 1;
  const double padded = std::ceil(columns / kNarrow) * kNarrow;
  return {.macs = static_cast<double>(op.work(call)) * padded / columns,
          .share = columns <= kNarrow ? 0.7 : 0.9,
          .moved = moved_bytes(call, numbers),
          .weights = weight_bytes(variant, call, numbers),
          .results = elements(call)};
}

/// A product of that many rows that is computed in 16 bits: rows are rounded, and sums added up in f32. A single row is
/// not.
Load half_load(Load load, double rows, double k, double results) {
  constexpr double kRow = 200;  // as long as to move so many bytes
  constexpr double kNumber = 5;
  constexpr double kResult = 2.5;
  load.moved += rows * (kRow + k * kNumber) + results * kResult;
  if (rows > 1) load.halves = std::exchange(load.macs, 0);
  return load;
}

/// Windows are gathered one by one, row by row, unless a window is one pixel.
Load half_gemm_load(const ops::OpDef& op, const ops::KernelVariant& variant, const ops::OpCall& call, Numbers numbers) {
  constexpr double kWindow = 400;  // as long as to move so many bytes
  constexpr double kWindowRow = 120;
  const TensorDesc& w = call.in(1);
  const double results = elements(call);
  const double pixels = results / std::max(call.out().dims[3], 1);
  Load load = half_load(gemm_load(op, variant, call, numbers), pixels,
                        static_cast<double>(op.work(call)) / std::max(results, 1.0), results);
  if (w.dims[1] * w.dims[2] > 1) load.moved += pixels * (kWindow + w.dims[1] * kWindowRow);
  return load;
}

Load half_product_load(const ops::OpDef& op, const ops::KernelVariant& variant, const ops::OpCall& call,
                       Numbers numbers) {
  const double results = elements(call);
  const double columns = call.out().rank > 0 ? std::max(call.out().last(0), 1) : 1;
  return half_load(product_load(op, variant, call, numbers), results / columns,
                   static_cast<double>(op.work(call)) / std::max(results, 1.0), results);
}

/// To load numbers and to put them in order takes longer than to multiply them, of large windows as long as in pairs,
/// and most windows are so small that to bring sums of integers to results takes as long again.
Load depthwise_load(const ops::OpDef& op, const ops::KernelVariant& variant, const ops::OpCall& call, Numbers numbers) {
  constexpr double kFloatTaps = 0.65;  // of the machine's multiply-accumulates
  constexpr double kShare = 0.4;
  constexpr double kResult = 1.5;
  const bool integer = numbers == Numbers::kBytes;
  const double work = static_cast<double>(op.work(call));
  const TensorDesc& w = call.in(1);
  const bool is_large = ops::depthwise::is_large_window(
      ops::conv_geometry(window_of(op, call), call.in(0), call.out(), w.dims[1], w.dims[2]));
  return {.pairs = integer && is_large ? work : 0,
          .dots = integer && !is_large ? work : 0,
          .share = kShare,
          .taps = integer ? 0 : work / kFloatTaps,
          .moved = moved_bytes(call, numbers),
          .weights = weight_bytes(variant, call, numbers),
          .results = kResult * elements(call),
          .fixed = fixed_results(op, call),
          .others = activation_macs(op, call, numbers)};
}

/// Gates of an integer LSTM are computed one by one, those of floats in vectors.
Load lstm_load(const ops::OpDef& op, const ops::KernelVariant& variant, const ops::OpCall& call, Numbers numbers) {
  const double gates = numbers == Numbers::kBytes ? 54 : 18;
  return {.macs = static_cast<double>(op.work(call)),
          .share = 0.5,
          .moved = moved_bytes(call, numbers),
          .weights = weight_bytes(variant, call, numbers),
          .plain = gates * elements(call)};
}

/// Elements of bytes of which each takes kMacs, and those of floats kFloatMacs besides being moved.
template <int kMacs, int kFloatMacs = 0>
Load element_load(const ops::OpDef& /*op*/, const ops::KernelVariant& /*variant*/, const ops::OpCall& call,
                  Numbers numbers) {
  return {.moved = moved_bytes(call, numbers),
          .others = (numbers == Numbers::kBytes ? kMacs : kFloatMacs) * elements(call)};
}

/// Of kernels without a load of their own: what the operator computes, at the share that vector kernels reach in the
/// middle.
Load plain_load(const ops::OpDef& op, const ops::KernelVariant& variant, const ops::OpCall& call, Numbers numbers) {
  return {.macs = op.work != nullptr ? static_cast<double>(op.work(call)) : 0,
          .share = 0.5,
          .moved = moved_bytes(call, numbers),
          .weights = weight_bytes(variant, call, numbers)};
}

/// Of a convolution in groups of few channels, which do not fill vectors.
Load narrow_groups_load(const ops::OpDef& op, const ops::KernelVariant& variant, const ops::OpCall& call,
                        Numbers numbers) {
  Load load = plain_load(op, variant, call, numbers);
  load.share = numbers == Numbers::kBytes ? 0.4 : 0.65;
  return load;
}

/// Bytes that are looked up: of floats, which the step before would give its result as, a line costs nothing, and
/// another function some products at least.
Load lookup_load(const ops::OpDef& /*op*/, const ops::KernelVariant& /*variant*/, const ops::OpCall& call,
                 Numbers numbers) {
  constexpr double kLookup = 5;
  constexpr double kFunction = 5;
  if (numbers == Numbers::kBytes) return {.moved = moved_bytes(call, numbers), .others = kLookup * elements(call)};
  const auto* table = static_cast<const std::uint8_t*>(call.inputs[1].data);
  const auto flip = [&](int i) { return static_cast<std::uint8_t>(ops::sign_flip(call.in(i).type) ^ 0x80); };
  const bool is_line = table == nullptr || ops::find_line(table, flip(0), flip(1)).exists();
  return {.others = is_line ? 0 : kFunction * elements(call)};
}

/// Instead of a name: all kernels of an operator that narrow weights (ops/narrowing.h), without and with 16-bit
/// arithmetic.
constexpr std::string_view kNarrowing = "narrow";
constexpr std::string_view kHalves = "half";

/// What a model of floats has in place of a step on bytes.
enum class InFloats {
  kStep,
  kPartOfStep,  ///< the step before computes it, too
  kNothing,
};

/// What is known of kernels beyond their operator's work.
struct Row {
  std::string_view op;
  std::string_view kernel;
  Load (*load)(const ops::OpDef&, const ops::KernelVariant&, const ops::OpCall&, Numbers);
  bool competes = false;  ///< with others of its operator; else the order in which they are listed decides
  InFloats in_floats = InFloats::kStep;
};

constexpr Row kRows[] = {
    {"conv2d", "f32_few_inputs__simd", gemm_load},
    {"conv2d", "f32_few_inputs_dynamic__simd", computed_gemm_load},
    {"conv2d", "f32_gemm_dynamic__simd", computed_gemm_load},
    {"planar_conv2d", "f32_few_inputs__simd", gemm_load},
    {"conv2d", "f32_winograd__simd", winograd_load<ops::conv2d::winograd::kResults>, true},
    {"conv2d", "f32_winograd_2x2__simd", winograd_load<ops::conv2d::winograd::kFewResults>, true},
    {"conv2d", "f32_gemm__simd", gemm_load, true},
    {"conv2d", kHalves, half_gemm_load, true},
    {"conv2d", kNarrowing, gemm_load, true},
    {"conv2d", "i8_few_outputs__simd", dot_products_load, true},
    {"conv2d", "i8_winograd__simd", winograd_load<ops::conv2d::winograd::kResults>, true},
    {"conv2d", "i8_gemm__simd", gemm_load, true},
    {"conv2d_affine", "i8_few_outputs__simd", dot_products_load, true},
    {"conv2d_affine", "i8_winograd__simd", winograd_load<ops::conv2d::winograd::kResults>, true},
    {"conv2d_affine", "i8_gemm__simd", gemm_load, true},
    {"matmul", "f32_packed__simd", product_load},
    {"matmul", kHalves, half_product_load, true},
    {"matmul", kNarrowing, product_load, true},
    {"matmul", "i8_packed__simd", product_load},
    {"matmul_affine", "i8_packed__simd", product_load},
    {"conv2d_affine", "i8_depthwise__simd", depthwise_load},
    {"depthwise_conv2d", "i8_channels__simd", depthwise_load},
    {"lstm_q", "i8_packed__simd", lstm_load},
    {"conv2d_affine", "i8_narrow_groups__simd", narrow_groups_load},
    {"conv_transpose2d_affine", "i8_gemm__simd", plain_load},
    {"matmul_affine", "i8_dynamic__simd", plain_load},
    {"resize_affine", "i8_rows__simd", element_load<7, 3>},
    {"binary_affine", "i8__simd", element_load<11>},
    {"binary_q", "i8__simd", element_load<60>},
    {"lookup8", "any__simd", lookup_load, false, InFloats::kPartOfStep},
    {"quantize", "f32_i8__simd", element_load<8>, false, InFloats::kNothing},
    {"dequantize", "i8_f32__simd", element_load<0>, false, InFloats::kNothing},
};

const Row* find_row(const ops::OpDef& op, const ops::KernelVariant& variant) {
  const ops::Narrowing* narrowing = ops::find_narrowing(op, variant);
  const std::string_view kernel = narrowing == nullptr              ? variant.name
                                  : narrowing->form.half_arithmetic ? kHalves
                                                                    : kNarrowing;
  const auto* row = std::ranges::find_if(kRows, [&](const Row& r) { return r.op == op.name && r.kernel == kernel; });
  return row != std::end(kRows) ? row : nullptr;
}

/// Weights of one kernel, of all sizes alike.
double packed_weights(const ops::KernelVariant& kernel, std::span<const ops::OpCall> calls) {
  return calls.empty() ? 0 : weight_bytes(kernel, calls.front());
}

Load load_of(const ops::OpDef& op, const ops::KernelVariant& variant, const ops::OpCall& call, Numbers numbers) {
  const Row* row = find_row(op, variant);
  return (row != nullptr ? row->load : plain_load)(op, variant, call, numbers);
}

/// Multiply-accumulates of bytes that lie side by side, per ns: by quads where the processor multiplies these as it
/// does floats, else by pairs of 16 bits.
double dot_macs(const Machine& machine) {
  constexpr double kQuad = 4;
  const bool has_quads = machine.i8_macs >= 0.75 * kQuad * machine.f32_macs;
  return has_quads ? std::min(machine.i8_macs, kQuad * machine.f32_macs) : machine.i16_macs;
}

/// Of what is multiplied and moved.
double values_ns(const Load& load, const ops::KernelVariant& variant, Numbers numbers, const Machine& machine) {
  const bool vectors = variant.name.ends_with("__simd");
  const bool integer = numbers == Numbers::kBytes;
  const double macs = vectors ? (integer ? machine.i8_macs : machine.f32_macs) : machine.plain_macs;
  return load.macs / (load.share * macs) + (load.taps + load.others) / machine.f32_macs +
         load.pairs / (load.share * machine.i16_macs) + load.dots / (load.share * dot_macs(machine)) +
         load.halves / (load.share * (machine.f16_macs > 0 ? machine.f16_macs : machine.f32_macs)) +
         load.plain / machine.plain_macs + load.moved / machine.moved_bytes + load.products * machine.step_ns +
         (integer ? load.results * machine.i8_result_ns + load.fixed * machine.fixed_ns : 0);
}

/// One run of the step by one thread, if it computes in such numbers.
double step_ns(const ops::OpDef& op, const ops::KernelVariant& variant, const ops::OpCall& call, Numbers numbers,
               const Machine& machine) {
  const Load load = load_of(op, variant, call, numbers);
  return machine.step_ns + values_ns(load, variant, numbers, machine) +
         load.waits * load.weights / machine.weight_bytes;
}

/// Bytes of weights that a Winograd kernel fetches for one item: all of them, and for every further block of tiles
/// those that the second-level cache does not keep. `room` bytes of scratch are to be had, or what the kernel needs at
/// least.
double winograd_fetched(const Load& load, const ops::Footprint& footprint, std::int64_t room) {
  constexpr double kCacheBytes = 1 << 20;
  const double scratch = static_cast<double>(std::clamp(room, footprint.scratch_bytes, footprint.useful_scratch_bytes));
  const double least = static_cast<double>(std::max<std::int64_t>(footprint.scratch_bytes, 1));
  const double at_once = scratch / least * static_cast<double>(std::min(load.tiles, kWinogradTiles));
  const double blocks = std::ceil(static_cast<double>(load.tiles) / at_once);
  return load.weights + (blocks - 1) * std::max(load.weights - kCacheBytes, 0.0);
}

/// Time for one item of a batch with the weights fetched for it alone. Plans for several batch sizes, which share their
/// weights, so mostly get the same kernels where each is made for itself.
double weighed_ns(const ops::OpDef& op, const ops::KernelVariant& kernel, const ops::OpCall& call,
                  const Setting& setting) {
  const std::int64_t items = std::max(call.out().dims[0], 1);
  const std::int64_t room = (setting.room_bytes - value_bytes(call)) / items;
  const Load load = load_of(op, kernel, call, numbers_of(call));
  const double fetched = load.tiles > 0 ? winograd_fetched(load, ops::footprint(kernel, call, 1), room) : load.weights;
  return values_ns(load, kernel, numbers_of(call), setting.machine) / static_cast<double>(items) +
         load.waits * fetched / setting.machine.weight_bytes;
}

/// Bytes by which the scratch of the whole batch would enlarge the plan.
std::int64_t enlarging_bytes(const ops::KernelVariant& kernel, const ops::OpCall& call, const Setting& setting) {
  const std::int64_t items = std::max(call.out().dims[0], 1);
  const std::int64_t values = value_bytes(call);
  const std::int64_t room = std::max(values / items, setting.room_bytes - values);
  return std::max<std::int64_t>(ops::footprint(kernel, call, 1).scratch_bytes - room, 0);
}

/// What speaks against a kernel, the weightier first.
using Price = std::pair<std::int64_t, double>;

/// Of a kernel that does not pack more weights than another.
Price price_of(const ops::OpDef& op, const ops::KernelVariant& kernel, std::span<const ops::OpCall> calls,
               const Setting& setting) {
  Price price;
  for (const ops::OpCall& call : calls) {
    price.first = std::max(price.first, enlarging_bytes(kernel, call, setting));
    price.second += weighed_ns(op, kernel, call, setting);
  }
  return price;
}

/// The host's, with the 16-bit arithmetic that it has.
Machine with_halves(Machine machine) {
  machine.f16_macs = ops::gemm::half_products() ? 2 * machine.f32_macs : 0;
  return machine;
}

}  // namespace

Machine machine_of(const Target& target) {
  if (!target.instruction_sets.empty()) return target.machine;
  struct Set {
    std::string_view name;
    Machine machine;
  };
  constexpr Set kSets[] = {{"avx512-amx", kAvx512AmxMachine},
                           {"avx512", kAvx512Machine},
                           {"avx2-vnni", kAvx2VnniMachine},
                           {"avx2", kAvx2Machine},
                           {"sse4", kSse4Machine}};
  for (const schedule::InstructionSet& used : schedule::instruction_sets())
    for (const Set& set : kSets) {
      if (!used.used || !used.name.starts_with(set.name)) continue;
      const bool halved = set.name == "avx512" && schedule::halves_wide_vectors();
      const bool amd = set.name == "avx512" && schedule::is_amd();
      return with_halves(halved ? kAvx512HalvesMachine : amd ? kAvx512AmdMachine : set.machine);
    }
  return with_halves(kNeonMachine);
}

Machine machine_of(const Target& target, std::int64_t weight_bytes) {
  Machine machine = machine_of(target);
  if (static_cast<double>(weight_bytes) <= machine.cache_bytes)
    machine.weight_bytes = std::max(machine.weight_bytes, machine.near_weight_bytes);
  return machine;
}

std::int64_t value_bytes(const ops::OpCall& call) {
  std::int64_t bytes = 0;
  for (const Tensor& input : call.inputs)
    if (input.data == nullptr && input.desc->present()) bytes += input.desc->bytes();
  for (const Tensor& output : call.outputs)
    if (output.desc->present()) bytes += output.desc->bytes();
  return bytes;
}

double predicted_ns(const ops::OpDef& op, const ops::KernelVariant& variant, const ops::OpCall& call,
                    const Machine& machine) {
  return step_ns(op, variant, call, numbers_of(call), machine);
}

double short_scratch_ns(const ops::OpDef& op, const ops::KernelVariant& variant, const ops::OpCall& call,
                        std::int64_t scratch_bytes, const Machine& machine) {
  Load load = load_of(op, variant, call, numbers_of(call));
  if (load.tiles == 0) return 0;
  load.tiles *= std::max(call.out().dims[0], 1);  // blocks go on from item to item
  const ops::Footprint footprint = ops::footprint(variant, call, 1);
  const double again = winograd_fetched(load, footprint, scratch_bytes) -
                       winograd_fetched(load, footprint, footprint.useful_scratch_bytes);
  return load.waits * again / machine.weight_bytes;
}

IntegerTimes integer_times(const ops::OpDef& op, const ops::KernelVariant& variant, const ops::OpCall& call,
                           const Machine& machine) {
  const Row* row = find_row(op, variant);
  if (row == nullptr || !is_integer(call)) return {};
  const double integer_ns = predicted_ns(op, variant, call, machine);
  if (row->in_floats == InFloats::kNothing) return {integer_ns, 0};
  double float_ns = step_ns(op, variant, call, Numbers::kFloats, machine);
  if (row->in_floats == InFloats::kPartOfStep) float_ns -= machine.step_ns;
  // A kernel of floats competes where one of bytes does that goes the same way.
  for (const ops::KernelVariant& other : op.variants) {
    const Row* way = find_row(op, other);
    if (!row->competes || way == nullptr || !way->competes || !ops::supports(other, call)) continue;
    float_ns = std::min(float_ns, step_ns(op, other, call, Numbers::kFloats, machine));
  }
  return {integer_ns, float_ns};
}

const ops::KernelVariant* cheapest(const ops::OpDef& op, std::span<const ops::KernelVariant* const> kernels,
                                   std::span<const ops::OpCall> calls, const Setting& setting) {
  constexpr double kPriceOfRoom = 1.25;
  constexpr double kSmallPart = 1.0 / 64;
  const auto competes = [&](const ops::KernelVariant* kernel) {
    const Row* row = find_row(op, *kernel);
    return row != nullptr && row->competes;
  };
  if (!competes(kernels.front())) return kernels.front();
  double leanest = std::numeric_limits<double>::infinity();
  for (const ops::KernelVariant* kernel : kernels)
    if (competes(kernel)) leanest = std::min(leanest, packed_weights(*kernel, calls));
  const double small = calls.empty() ? 0 : kSmallPart * static_cast<double>(value_bytes(calls.front()));
  const ops::KernelVariant* best = nullptr;
  Price least;
  for (const ops::KernelVariant* kernel : kernels) {
    if (!competes(kernel)) continue;
    Price price = price_of(op, *kernel, calls, setting);
    if (packed_weights(*kernel, calls) > leanest + small) price.second *= kPriceOfRoom;
    if (best != nullptr && price >= least) continue;
    best = kernel;
    least = price;
  }
  return best;
}

}  // namespace bantam::compiler
