#include "ops/signal/dft/dft.h"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <numbers>

#include "ops/testing/harness.h"

namespace bantam::ops {
namespace {

using namespace testing;  // NOLINT: the harness is the vocabulary of operator tests

template <typename T>
TestTensor twiddles(std::int64_t n) {
  std::vector<T> table;
  for (std::int64_t k = 0; k < n; ++k) {
    const double phase = 2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(n);
    table.push_back(static_cast<T>(std::cos(phase)));
    table.push_back(static_cast<T>(-std::sin(phase)));
  }
  return tensor_of<T>({n, 2}, table);
}

/// The definition, in double: the sum for frequency k of `signal`, which is zero from its end on.
std::complex<double> sum_at(const std::vector<std::complex<double>>& signal, std::int64_t n, std::int64_t k,
                            bool inverse) {
  std::complex<double> sum = 0;
  for (std::size_t i = 0; i < signal.size() && static_cast<std::int64_t>(i) < n; ++i)
    sum += signal[i] *
           std::polar(1.0, (inverse ? 2 : -2) * std::numbers::pi *
                               static_cast<double>(k * static_cast<std::int64_t>(i) % n) / static_cast<double>(n));
  return inverse ? sum / static_cast<double>(n) : sum;
}

std::vector<std::complex<double>> complex_of(const TestTensor& tensor) {
  const auto numbers = tensor.to_doubles();
  const std::size_t width = static_cast<std::size_t>(tensor.desc().dims[tensor.desc().rank - 1]);
  std::vector<std::complex<double>> result;
  for (std::size_t i = 0; i < numbers.size(); i += width)
    result.emplace_back(numbers[i], width == 2 ? numbers[i + 1] : 0.0);
  return result;
}

template <typename T>
void expect_definition(std::int64_t n, std::int64_t samples, std::int64_t width, bool inverse, bool onesided) {
  Random random(static_cast<std::uint64_t>(n * 10 + width));
  const TestTensor x = random_tensor(kElementTypeOf<T>, {1, samples, width}, random);
  const DftParams params{.length = static_cast<std::int32_t>(n), .inverse = inverse, .onesided = onesided};
  const Outcome y = run_reference(make_case(kDft, params, {x, twiddles<T>(n)}));
  ASSERT_TRUE(y.status.ok()) << y.status.message;
  const auto signal = complex_of(x);
  const auto found = complex_of(y.outputs[0]);
  ASSERT_EQ(static_cast<std::int64_t>(found.size()), onesided ? n / 2 + 1 : n);
  const double tolerance = sizeof(T) == 4 ? 1e-6 * static_cast<double>(n) : 1e-13 * static_cast<double>(n);
  for (std::size_t k = 0; k < found.size(); ++k)
    EXPECT_LT(std::abs(found[k] - sum_at(signal, n, static_cast<std::int64_t>(k), inverse)), tolerance)
        << "length " << n << ", width " << width << ", frequency " << k;
}

TEST(Dft, FollowsItsDefinitionForAnyLength) {
  for (const std::int64_t n : {1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 15, 16, 30, 31, 49, 64, 97, 100, 400, 512, 1024}) {
    expect_definition<float>(n, n, 1, false, false);
    expect_definition<float>(n, n, 1, false, true);
    expect_definition<float>(n, n, 2, false, false);
    expect_definition<float>(n, n, 2, true, false);
    expect_definition<double>(n, n, 1, true, false);
    expect_definition<double>(n, n, 2, false, false);
  }
}

TEST(Dft, CutsAndPadsTheSignal) {
  for (const std::int64_t n : {7, 16}) {
    expect_definition<float>(n, 3, 1, false, true);
    expect_definition<float>(n, 3, 2, true, false);
    expect_definition<float>(n, 40, 1, false, false);
    expect_definition<float>(n, 0, 2, false, false);
  }
}

TEST(Dft, HalfASpectrumGivesTheRealSignalBack) {
  for (const std::int64_t n : {1, 2, 5, 12, 30}) {
    Random random(7);
    const TestTensor x = random_tensor(ElementType::kF32, {2, n, 1}, random);
    const TestTensor table = twiddles<float>(n);
    const auto length = static_cast<std::int32_t>(n);
    const Outcome spectrum = run_reference(make_case(kDft, DftParams{.length = length, .onesided = 1}, {x, table}));
    TestTensor half(dense_desc(ElementType::kF32, {2, n / 2 + 1, 2}));
    half.set_packed(spectrum.outputs[0].packed());
    const Outcome y =
        run_reference(make_case(kDft, DftParams{.length = length, .inverse = 1, .onesided = 1}, {half, table}));
    ASSERT_TRUE(y.status.ok());
    const auto expected = x.values<float>();
    const auto found = y.outputs[0].values<float>();
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-5) << n;
  }
}

TEST(Dft, TransformsOverlappingFramesThroughAWindow) {
  // Frames of 3 samples, 2 apart; frequency 0 of each is the sum of its samples times the window.
  const Outcome y = run_reference(make_case(kDft, DftParams{.length = 4, .step = 2, .onesided = 1},
                                            {tensor_of<float>({1, 8, 1}, {1, 2, 3, 4, 5, 6, 7, 8}), twiddles<float>(4),
                                             tensor_of<float>({3}, {1, 10, 100})}));
  ASSERT_TRUE(y.status.ok());
  EXPECT_EQ(y.outputs[0].desc().dims[1], 3);
  const auto found = complex_of(y.outputs[0]);
  EXPECT_EQ(found[0], std::complex<double>(321, 0));
  EXPECT_EQ(found[3], std::complex<double>(543, 0));
  EXPECT_EQ(found[6], std::complex<double>(765, 0));
  EXPECT_EQ(found[1], std::complex<double>(1 - 300, -20));
}

TEST(Dft, VariantsMatchReference) {
  expect_variants_match_reference(
      [](Random& random) {
        DftParams params{.length = static_cast<std::int32_t>(random_int(random, 1, 40)),
                         .step = static_cast<std::int32_t>(random_int(random, 0, 5)),
                         .inverse = static_cast<std::int32_t>(random_int(random, 0, 1)),
                         .onesided = static_cast<std::int32_t>(random_int(random, 0, 1))};
        const std::int64_t width = params.onesided == 0 ? random_int(random, 1, 2) : params.inverse != 0 ? 2 : 1;
        const bool window = params.step > 0 && random_int(random, 0, 1) == 0;
        return make_case(
            kDft, params,
            {random_tensor(ElementType::kF32, {random_int(random, 0, 2), random_int(random, 0, 90), width}, random),
             twiddles<float>(params.length),
             window ? Operand(random_tensor(ElementType::kF32, {random_int(random, 1, params.length)}, random))
                    : absent()});
      },
      {.cases = 60});
}

TEST(Dft, RefusesHostileShapesAndParameters) {
  std::vector<TensorDesc> outputs;
  const auto accepted = [&](const DftParams& p, std::vector<Operand> operands) {
    return infer_case(make_case(kDft, p, std::move(operands)), &outputs).ok();
  };
  const auto of = [](const std::vector<std::int64_t>& dims) { return TestTensor(dense_desc(ElementType::kF32, dims)); };
  EXPECT_TRUE(accepted({.length = 4}, {of({1, 4, 2}), of({4, 2})}));
  EXPECT_FALSE(accepted({.length = 0}, {of({1, 4, 2}), of({0, 2})}));
  EXPECT_FALSE(accepted({.length = -1}, {of({1, 4, 2}), of({4, 2})}));
  EXPECT_FALSE(accepted({.length = 4, .step = -1}, {of({1, 4, 2}), of({4, 2})}));
  EXPECT_FALSE(accepted({.length = 4, .onesided = 1}, {of({1, 4, 2}), of({4, 2})}));
  EXPECT_FALSE(accepted({.length = 4, .inverse = 1, .onesided = 1}, {of({1, 4, 1}), of({4, 2})}));
  EXPECT_FALSE(accepted({.length = 4}, {of({1, 4, 3}), of({4, 2})}));
  EXPECT_FALSE(accepted({.length = 4}, {of({1, 4, 0}), of({4, 2})}));
  EXPECT_FALSE(accepted({.length = 4}, {of({1, 4, 2}), of({5, 2})}));
  EXPECT_FALSE(accepted({.length = 4}, {of({1, 4, 2}), twiddles<double>(4)}));
  EXPECT_FALSE(accepted({.length = 4}, {of({1, 4, 2}), of({4, 2}), of({4})}));
  EXPECT_FALSE(accepted({.length = 4, .step = 1}, {of({1, 4, 2}), of({4, 2}), of({5})}));
  EXPECT_FALSE(accepted({.length = 4, .step = 1}, {of({1, 4, 2}), of({4, 2}), of({0})}));
  EXPECT_FALSE(accepted({.length = 1 << 30}, {of({1, 4, 2}), of({4, 2})}));
}

}  // namespace
}  // namespace bantam::ops
