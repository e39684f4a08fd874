#include "ops/testing/harness.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <set>
#include <thread>

#include "base/shape.h"
#include "base/testing/sanitizers.h"
#include "hwy/targets.h"
#include "ops/common/box.h"
#include "ops/common/byte_products.h"
#include "ops/narrowing.h"
#include "ops/nn/gemm/half_products.h"

namespace bantam::ops::testing {
namespace {

/// Operands and results of a case as the compile-time functions see them. Points into the case and into itself.
class CallView {
 public:
  CallView(const OpCase& op_case, const std::vector<TensorDesc>& output_descs) : output_descs_(output_descs) {
    for (const Operand& operand : op_case.inputs)
      inputs_.push_back(operand.constant ? operand.tensor.tensor() : operand.tensor.shape_only());
    for (const TensorDesc& desc : output_descs_) outputs_.push_back({nullptr, &desc});
    call_ = {op_case.params.data(), inputs_, outputs_};
  }
  CallView(const CallView&) = delete;
  CallView& operator=(const CallView&) = delete;

  const OpCall& call() const { return call_; }

 private:
  std::vector<TensorDesc> output_descs_;
  std::vector<Tensor> inputs_;
  std::vector<Tensor> outputs_;
  OpCall call_;
};

/// Threads as the options ask for; lives as long as the run.
class TestThreads {
 public:
  explicit TestThreads(const RunOptions& options) : random_(options.seed) {
    if (options.threading == Threading::kSerial) return;
    threads_.pool = this;
    threads_.count = options.threading == Threading::kPermuted ? 7 : 3;
    threads_.run = options.threading == Threading::kPermuted ? run_permuted : run_threads;
  }
  TestThreads(const TestThreads&) = delete;
  TestThreads& operator=(const TestThreads&) = delete;

  const Threads& get() const { return threads_; }

 private:
  using Task = void (*)(void*, std::size_t);

  static void run_permuted(void* pool, Task task, void* argument, std::size_t n) {
    std::vector<std::size_t> order(n);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::shuffle(order, static_cast<TestThreads*>(pool)->random_);
    for (const std::size_t i : order) task(argument, i);
  }

  static void run_threads(void*, Task task, void* argument, std::size_t n) {
    const auto worker = [=](std::size_t first) {
      for (std::size_t i = first; i < n; i += 3) task(argument, i);
    };
    std::thread second(worker, 1);
    std::thread third(worker, 2);
    worker(0);
    second.join();
    third.join();
  }

  Random random_;
  Threads threads_;
};

/// Everything a kernel touches during one run, in guarded memory.
struct RunMemory {
  std::vector<TestTensor> inputs;
  std::vector<GuardedMemory> packed;  ///< empty where the operand is used as it is
  std::vector<TestTensor> outputs;
  GuardedMemory scratch;
  GuardedMemory shared;  ///< of output 0 and input 0, when they overlap
};

/// The scratch that a plan may give: no less than the least.
std::int64_t scratch_bytes(const Footprint& footprint, bool useful) {
  return useful ? std::max(footprint.scratch_bytes, footprint.useful_scratch_bytes) : footprint.scratch_bytes;
}

RunMemory make_memory(const OpCase& op_case, const KernelVariant& variant, const OpCall& call,
                      const std::vector<TensorDesc>& output_descs, int threads, const RunOptions& options) {
  RunMemory memory;
  for (std::size_t i = 0; i < op_case.inputs.size(); ++i) {
    const Operand& operand = op_case.inputs[i];
    memory.inputs.push_back(operand.constant ? operand.tensor.with_placement(Placement::kAligned) : operand.tensor);
    memory.packed.emplace_back();
    const std::int64_t bytes = packed_bytes(variant, call, static_cast<int>(i));
    if (bytes == 0) continue;
    EXPECT_TRUE(operand.constant) << variant.name << " packs operand " << i << ", which is not constant";
    memory.packed.back() = GuardedMemory(static_cast<std::size_t>(bytes), kAlignment);
    variant.pack(call, static_cast<int>(i), memory.packed.back().data());
    EXPECT_TRUE(memory.packed.back().intact()) << variant.name << ": packing operand " << i << " wrote too far";
  }
  for (const TensorDesc& desc : output_descs) memory.outputs.emplace_back(desc);
  const Footprint needs = footprint(variant, call, threads);
  const std::int64_t scratch = scratch_bytes(needs, options.useful_scratch);
  memory.scratch = GuardedMemory(static_cast<std::size_t>(scratch), kAlignment);
  if (options.overlapping) {
    const std::int64_t lead = needs.lead_bytes;
    const std::int64_t bytes = std::max(call.out().bytes(), lead + call.in(0).bytes());
    memory.shared = GuardedMemory(static_cast<std::size_t>(bytes), kAlignment);
    const std::vector<std::byte> operand = op_case.inputs[0].tensor.packed();
    std::copy(operand.begin(), operand.end(), memory.shared.data() + lead);
  }
  return memory;
}

void check_intact(const OpCase& op_case, const KernelVariant& variant, const RunMemory& memory, int overwritten) {
  for (std::size_t i = 0; i < memory.inputs.size(); ++i) {
    EXPECT_TRUE(memory.inputs[i].intact()) << variant.name << " wrote around operand " << i;
    if (static_cast<int>(i) == overwritten || !memory.inputs[i].present()) continue;
    EXPECT_TRUE(memory.inputs[i].has_elements_of(op_case.inputs[i].tensor)) << variant.name << " changed operand " << i;
    EXPECT_TRUE(memory.packed[i].intact()) << variant.name << " wrote around packed operand " << i;
  }
  for (std::size_t o = 0; o < memory.outputs.size(); ++o)
    EXPECT_TRUE(memory.outputs[o].intact())
        << variant.name << " wrote around result " << o << " " << describe(memory.outputs[o].desc());
  EXPECT_TRUE(memory.scratch.intact()) << variant.name << " wrote around its scratch";
  EXPECT_TRUE(memory.shared.intact()) << variant.name << " wrote around overlapping operands";
}

/// Moves an operand, which has the strides for it, to its place within the result.
void put_within(const OpCase& op_case, int i, const Tensor& output, std::vector<Tensor>* inputs) {
  TensorDesc view;
  std::int64_t offset = 0;
  Tensor& input = (*inputs)[static_cast<std::size_t>(i)];
  const OpCall call{op_case.params.data(), *inputs, {&output, 1}};
  ASSERT_TRUE(op_case.op->input_view(call, i, &view, &offset));
  const std::int64_t bytes = element_size(view.type);
  void* place = advance(output.data, offset, bytes);
  copy_box(make_box(view, *input.desc, view), bytes, input.data, place);
  input.data = place;
}

}  // namespace

OpCase make_case(const OpDef& op, std::vector<Operand> inputs) {
  OpCase result;
  result.op = &op;
  result.inputs = std::move(inputs);
  result.params.resize(op.params_bytes);
  if (op.params_bytes > 0) std::memcpy(result.params.data(), op.default_params, op.params_bytes);
  return result;
}

IntList int_list(const std::vector<std::int32_t>& values) {
  IntList result;
  for (const std::int32_t value : values) result.v[result.size++] = value;
  return result;
}

Status infer_case(const OpCase& op_case, std::vector<TensorDesc>* outputs) {
  outputs->assign(static_cast<std::size_t>(op_case.op->outputs), TensorDesc{});
  std::vector<Tensor> inputs;
  for (const Operand& operand : op_case.inputs)
    inputs.push_back(operand.constant ? operand.tensor.tensor() : operand.tensor.shape_only());
  return infer(*op_case.op, op_case.params.data(), inputs, *outputs);
}

Outcome run_variant(const OpCase& op_case, const KernelVariant& variant, const RunOptions& options) {
  Outcome outcome;
  std::vector<TensorDesc> descs;
  outcome.status = infer_case(op_case, &descs);
  if (!outcome.status.ok()) return outcome;
  if (!options.outputs.empty()) descs = options.outputs;
  const CallView view(op_case, descs);
  const TestThreads threads(options);
  RunMemory memory = make_memory(op_case, variant, view.call(), descs, threads.get().count, options);

  std::vector<Tensor> inputs;
  for (std::size_t i = 0; i < memory.inputs.size(); ++i) {
    inputs.push_back(memory.inputs[i].tensor());
    if (memory.packed[i].size() > 0) inputs.back().data = memory.packed[i].data();
  }
  std::vector<Tensor> outputs;
  for (const TestTensor& output : memory.outputs) outputs.push_back(output.tensor());
  const auto in_place_output = static_cast<std::size_t>(options.in_place_output);
  if (options.in_place_input >= 0)
    outputs[in_place_output].data = memory.inputs[static_cast<std::size_t>(options.in_place_input)].data();

  if (options.within_input >= 0) put_within(op_case, options.within_input, outputs[0], &inputs);

  if (options.overlapping) {
    inputs[0].data = memory.shared.data() + footprint(variant, view.call(), 1).lead_bytes;
    outputs[0].data = memory.shared.data();
  }

  outcome.status = variant.run({op_case.params.data(), inputs, outputs, memory.scratch.data(), &threads.get(),
                                static_cast<std::int64_t>(memory.scratch.size())});
  check_intact(op_case, variant, memory, options.in_place_input);
  if (options.in_place_input >= 0) {
    // Elements of the result lie in the input's storage: read them through the result's desc.
    TestTensor& target = memory.outputs[in_place_output];
    if (target.desc().elements() > 0) {
      const auto span = target.desc().is_dense()
                            ? static_cast<std::size_t>(target.desc().bytes())
                            : static_cast<std::size_t>(storage_span(target.desc()) * element_size(target.desc().type));
      std::memcpy(target.data(), outputs[in_place_output].data, span);
    }
  }
  if (options.overlapping)
    std::memcpy(memory.outputs[0].data(), outputs[0].data, static_cast<std::size_t>(view.call().out().bytes()));
  outcome.outputs = std::move(memory.outputs);
  return outcome;
}

Outcome run_reference(const OpCase& op_case) { return run_variant(op_case, reference_variant(*op_case.op)); }

bool variant_supports(const OpCase& op_case, const KernelVariant& variant) {
  std::vector<TensorDesc> descs;
  if (!infer_case(op_case, &descs).ok()) return false;
  return supports(variant, CallView(op_case, descs).call());
}

std::vector<std::byte> packed_operand(const OpCase& op_case, const KernelVariant& variant, int input) {
  std::vector<TensorDesc> descs;
  if (!infer_case(op_case, &descs).ok()) return {};
  const CallView view(op_case, descs);
  const RunMemory memory = make_memory(op_case, variant, view.call(), descs, 1, {});
  const GuardedMemory& packed = memory.packed[static_cast<std::size_t>(input)];
  return {packed.data(), packed.data() + packed.size()};
}

/// Bounds are relative to this where all of a result is smaller: kernels' exponentials end within the normal numbers,
/// where the reference's go on to denormal ones and 0.
constexpr double kSmallestMagnitude = 1e-30;

std::string compare(const TestTensor& actual, const TestTensor& expected, const Accuracy& accuracy) {
  if (!same_shape_and_type(actual.desc(), expected.desc()))
    return "found " + describe(actual.desc()) + ", expected " + describe(expected.desc());
  if (actual.has_elements_of(expected)) return {};
  const std::vector<double> a = actual.to_doubles();
  const std::vector<double> e = expected.to_doubles();
  double magnitude = kSmallestMagnitude;
  for (const double x : e)
    if (std::isfinite(x)) magnitude = std::max(magnitude, std::abs(x));
  const bool exact = accuracy.kind == Accuracy::Kind::kExact;
  const double tolerance = exact ? 0.0 : static_cast<double>(accuracy.bound) * magnitude;
  for (std::size_t i = 0; i < e.size(); ++i) {
    if (std::isnan(a[i]) && std::isnan(e[i])) continue;
    if (a[i] == e[i] && (!exact || std::signbit(a[i]) == std::signbit(e[i]))) continue;
    if (!exact && std::abs(a[i] - e[i]) <= tolerance) continue;
    return "element " + std::to_string(i) + " of " + describe(expected.desc()) + ": found " + std::to_string(a[i]) +
           ", expected " + std::to_string(e[i]) + ", difference " + ::testing::PrintToString(a[i] - e[i]) +
           ", tolerance " + ::testing::PrintToString(tolerance);
  }
  return {};
}

namespace {

/// The instruction set whose kernels ask byte_products().
constexpr std::int64_t kAsksForByteProducts = HWY_ARCH_X86 ? HWY_AVX2 : HWY_NEON;

/// Compares one case, in all forms, between the variants of its operator.
class CaseComparison {
 public:
  CaseComparison(const OpCase& op_case, Random& random, std::set<std::string_view>& covered)
      : case_(op_case), random_(random), covered_(covered) {}

  void run() {
    const Status status = infer_case(case_, &descs_);
    char text[256];
    format_status(status, text, sizeof text);
    if (!status.ok()) {
      ADD_FAILURE() << case_.op->name << ": infer refused the case: " << text << operands();
      return;
    }
    const OpCase strided = strided_case();
    const std::vector<TensorDesc> strided_outputs = strided_descs();
    const Outcome expected = run_variant(case_, reference_variant(*case_.op));
    // Kernels that narrow weights take turns: they differ in how a weight is read only.
    unsigned turn = static_cast<unsigned>(random_());
    for (const KernelVariant& variant : case_.op->variants) {
      if (find_narrowing(*case_.op, variant) != nullptr && turn++ % 4 != 0) continue;
      narrowed_.reset();
      compare_form(case_, descs_, variant, expected);
      compare_form(strided, descs_, variant, expected);
      compare_form(strided, strided_outputs, variant, expected);
    }
  }

 private:
  std::string operands() const {
    std::string text = "; operands";
    for (const Operand& operand : case_.inputs) text += " " + describe(operand.tensor.desc());
    return text;
  }

  OpCase strided_case() {
    OpCase result = case_;
    for (Operand& operand : result.inputs)
      if (!operand.constant && operand.tensor.present() && operand.tensor.desc().type != ElementType::kI4)
        operand.tensor = operand.tensor.with_strides(random_strides(operand.tensor.desc(), random_));
    return result;
  }

  std::vector<TensorDesc> strided_descs() {
    std::vector<TensorDesc> result = descs_;
    for (TensorDesc& desc : result) desc = random_strides(desc, random_);
    return result;
  }

  /// The case with weights as a variant that narrows them computes with.
  OpCase restored_case(const KernelVariant& variant, const Narrowing& narrowing, const OpCall& call) const {
    OpCase result = case_;
    for (std::size_t i = 0; i < result.inputs.size(); ++i) {
      if (!narrowing.narrows(i)) continue;
      GuardedMemory packed(static_cast<std::size_t>(packed_bytes(variant, call, static_cast<int>(i))), kAlignment);
      variant.pack(call, static_cast<int>(i), packed.data());
      std::vector<float> elements(static_cast<std::size_t>(call.in(static_cast<int>(i)).elements()));
      narrowing.restore(call, static_cast<int>(i), narrowing.form.type, packed.data(), elements.data());
      const auto bytes = std::as_bytes(std::span(elements));
      result.inputs[i].tensor.set_packed({bytes.begin(), bytes.end()});
    }
    return result;
  }

  /// What the reference makes of the weights that the variant computes with; `plain`: of those of the case.
  const Outcome& expected_of(const KernelVariant& variant, const OpCall& call, const Outcome& plain) {
    const Narrowing* narrowing = find_narrowing(*case_.op, variant);
    if (narrowing == nullptr) return plain;
    if (!narrowed_) narrowed_ = run_reference(restored_case(variant, *narrowing, call));
    return *narrowed_;
  }

  void compare_form(const OpCase& form, const std::vector<TensorDesc>& descs, const KernelVariant& variant,
                    const Outcome& plain) {
    const CallView view(form, descs);
    if (!supports(variant, view.call())) {
      EXPECT_FALSE(&variant == &reference_variant(*case_.op) && &form == &case_)
          << "the reference does not support a call that infer accepts" << operands();
      return;
    }
    covered_.insert(variant.name);
    const Outcome& expected = expected_of(variant, view.call(), plain);
    RunOptions options;
    options.outputs = descs;
    const Outcome serial = run_variant(form, variant, options);
    check(variant, serial, expected, variant.accuracy, "serial");
    for (const Threading threading : {Threading::kPermuted, Threading::kThreads}) {
      options.threading = threading;
      options.seed = random_();
      check(variant, run_variant(form, variant, options), serial, Accuracy{}, "threaded");
    }
    options.threading = Threading::kSerial;
    const Footprint needs = footprint(variant, view.call(), 1);
    if (needs.useful_scratch_bytes > needs.scratch_bytes) check_useful_scratch(form, variant, options, serial);
    if (needs.lead_bytes != Footprint::kNoOverlap) {
      RunOptions overlapping = options;
      overlapping.overlapping = true;
      check(variant, run_variant(form, variant, overlapping), serial, Accuracy{}, "overlapping");
      overlapping.useful_scratch = true;
      check(variant, run_variant(form, variant, overlapping), serial, Accuracy{}, "overlapping, more scratch");
    }
    check_instruction_sets(form, variant, options, expected, needs);
    check_in_place(form, descs, variant, view.call(), serial);
    if (needs.within != 0) check_within(form, variant, options, view.call(), needs.within, serial);
  }

  /// Operands that lie in their places within the result.
  void check_within(const OpCase& form, const KernelVariant& variant, RunOptions options, const OpCall& call,
                    std::uint64_t within, const Outcome& serial) {
    for (std::size_t i = 0; i < form.inputs.size(); ++i) {
      if ((within >> i & 1U) == 0 || form.inputs[i].constant) continue;
      TensorDesc view;
      std::int64_t offset = 0;
      ASSERT_TRUE(case_.op->input_view(call, static_cast<int>(i), &view, &offset));
      OpCase inside = form;
      inside.inputs[i].tensor = inside.inputs[i].tensor.with_strides(view);
      options.within_input = static_cast<int>(i);
      check(variant, run_variant(inside, variant, options), serial, Accuracy{}, "operand within the result");
    }
  }

  /// Results do not depend on how much scratch there is.
  void check_useful_scratch(const OpCase& form, const KernelVariant& variant, RunOptions options,
                            const Outcome& serial) {
    options.useful_scratch = true;
    check(variant, run_variant(form, variant, options), serial, Accuracy{}, "more scratch");
    options.threading = Threading::kPermuted;
    options.seed = random_();
    check(variant, run_variant(form, variant, options), serial, Accuracy{}, "more scratch, threaded");
  }

  /// The instruction sets below the machine's best one, which ran already: with the least memory, and with all that
  /// the variant can use of it.
  void check_instruction_sets(const OpCase& form, const KernelVariant& variant, const RunOptions& options,
                              const Outcome& expected, const Footprint& needs) {
    if (!variant.name.ends_with("__simd")) return;
    const std::vector<std::int64_t> targets = hwy::SupportedAndGeneratedTargets();
    const std::int64_t best = *std::ranges::min_element(targets);  // Highway numbers better targets lower
    RunOptions full = options;
    full.useful_scratch = needs.useful_scratch_bytes > needs.scratch_bytes;
    full.overlapping = needs.lead_bytes != Footprint::kNoOverlap;
    for (const std::int64_t target : targets) {
      if (target == best) continue;
      hwy::SetSupportedTargetsForTest(target);
      hwy::GetChosenTarget().Update(target);
      const Outcome least = run_variant(form, variant, options);
      check(variant, least, expected, variant.accuracy, hwy::TargetName(target));
      if (full.useful_scratch || full.overlapping)
        check(variant, run_variant(form, variant, full), least, Accuracy{}, hwy::TargetName(target));
      if (target == kAsksForByteProducts) check_byte_products(form, variant, options, expected);
    }
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    check_without_half_products(form, variant, options, expected);
    if (best == kAsksForByteProducts) check_byte_products(form, variant, options, expected);
  }

  void check_without_half_products(const OpCase& form, const KernelVariant& variant, const RunOptions& options,
                                   const Outcome& expected) {
    if (!narrow_form(*case_.op, variant).half_arithmetic || !gemm::half_products()) return;
    gemm::allow_half_products(false);
    check(variant, run_variant(form, variant, options), expected, variant.accuracy, "without 16-bit arithmetic");
    gemm::allow_half_products(true);
  }

  /// With less than the best byte products of the processor.
  void check_byte_products(const OpCase& form, const KernelVariant& variant, const RunOptions& options,
                           const Outcome& expected) {
    for (int products = 0; products < static_cast<int>(best_byte_products()); ++products) {
      limit_byte_products(static_cast<ByteProducts>(products));
      check(variant, run_variant(form, variant, options), expected, variant.accuracy,
            ("byte products " + std::to_string(products)).c_str());
    }
    limit_byte_products(best_byte_products());
  }

  void check_in_place(const OpCase& form, const std::vector<TensorDesc>& descs, const KernelVariant& variant,
                      const OpCall& call, const Outcome& serial) {
    const Footprint needs = footprint(variant, call, 1);
    for (std::size_t o = 0; o < descs.size(); ++o) {
      for (std::size_t i = 0; i < form.inputs.size(); ++i) {
        if ((needs.overwrites[o] >> i & 1U) == 0) continue;
        const Operand& operand = form.inputs[i];
        ASSERT_TRUE(operand.tensor.present()) << variant.name << " overwrites an absent operand";
        EXPECT_GE(operand.tensor.desc().bytes(), descs[o].bytes()) << variant.name << " overwrites a smaller operand";
        if (operand.constant) continue;
        RunOptions options;
        options.outputs = descs;
        // In place, the result has the layout of the operand it replaces.
        const bool same_shape = std::equal(descs[o].dims, descs[o].dims + kMaxRank, operand.tensor.desc().dims);
        if (!operand.tensor.desc().is_dense() && same_shape)
          std::copy_n(operand.tensor.desc().strides, kMaxRank, options.outputs[o].strides);
        else if (!operand.tensor.desc().is_dense() || !descs[o].is_dense())
          continue;
        const CallView in_place(form, options.outputs);
        if (!supports(variant, in_place.call())) continue;
        options.in_place_input = static_cast<int>(i);
        options.in_place_output = static_cast<int>(o);
        check(variant, run_variant(form, variant, options), serial, Accuracy{}, "in place");
      }
    }
  }

  void check(const KernelVariant& variant, const Outcome& actual, const Outcome& expected, const Accuracy& accuracy,
             const char* how) {
    EXPECT_EQ(actual.status.code, expected.status.code) << variant.name << ", " << how << operands();
    if (!actual.status.ok() || !expected.status.ok()) return;
    for (std::size_t o = 0; o < expected.outputs.size(); ++o) {
      const std::string difference = compare(actual.outputs[o], expected.outputs[o], accuracy);
      EXPECT_TRUE(difference.empty()) << case_.op->name << " " << variant.name << ", " << how << ", result " << o
                                      << ": " << difference << operands();
    }
  }

  const OpCase& case_;
  Random& random_;
  std::set<std::string_view>& covered_;
  std::vector<TensorDesc> descs_;
  std::optional<Outcome> narrowed_;  ///< what is expected of a variant that narrows weights
};

}  // namespace

void expect_variants_match_reference(const CaseGenerator& generate, const CompareOptions& options) {
  std::set<std::string_view> covered;
  const auto complete = [&] {
    return std::ranges::all_of(options.must_cover, [&](std::string_view name) { return covered.contains(name); });
  };
  const int enough = bantam::testing::kSanitized ? options.cases / 5 : options.cases;
  for (int i = 0; i < options.cases && (i < enough || !complete()); ++i) {
    const std::uint64_t seed = options.seed + static_cast<std::uint64_t>(i);
    SCOPED_TRACE("case seed " + std::to_string(seed));
    Random random(seed);
    const OpCase op_case = generate(random);
    CaseComparison(op_case, random, covered).run();
    if (::testing::Test::HasFailure()) return;
  }
  for (const std::string_view name : options.must_cover)
    EXPECT_TRUE(covered.contains(name)) << "no case was run by variant " << name;
}

void expect_packing_variants_match_reference(const CaseGenerator& generate, std::string_view kernel, int cases) {
  const std::string constant = std::string(kernel) + "__simd";
  const std::string computed = std::string(kernel) + "_dynamic__simd";
  expect_variants_match_reference(generate, {.cases = cases, .must_cover = {constant}});
  const auto without_constants = [&](Random& random) {
    OpCase result = generate(random);
    for (Operand& operand : result.inputs) operand.constant = false;
    return result;
  };
  expect_variants_match_reference(without_constants, {.cases = cases, .must_cover = {computed}});
}

}  // namespace bantam::ops::testing
