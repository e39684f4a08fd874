// x sigmoid(x) = max(x, 0) + s(|x|), s(a) = -a sigmoid(-a), by polynomials for s, for results of 8 bits. Constants
// only, computed while compiling. Freestanding.
#pragma once

namespace bantam::ops {

/// Pieces of equal width: piece k holds for the a that are nearest to k * kWidth, the last one beyond, too.
struct EqualPieces {
  static constexpr int kPieces = 32;
  static constexpr double kWidth = 12.8 / kPieces;
  static constexpr auto kLast = static_cast<float>((kPieces - 0.51) * kWidth);  ///< belongs to the last one

  static constexpr double middle(int k) noexcept { return k * kWidth; }
  static constexpr double reach(int /*k*/) noexcept { return kWidth / 2; }
};

/// Pieces of 1, 2, 4 and 8: piece k holds for the a with 2^k <= a + 1 < 2^(k + 1).
struct DoublingPieces {
  static constexpr int kPieces = 4;
  static constexpr float kLast = 14.99F;  ///< belongs to the last one

  static constexpr double middle(int k) noexcept { return 1.5 * (1 << k) - 1; }
  static constexpr double reach(int k) noexcept { return 0.5 * (1 << k); }
};

/// Halves of those of DoublingPieces: piece k holds for the a + 1 whose exponent's last two bits and first bit behind
/// the point are k.
struct HalvedDoublingPieces {
  static constexpr int kPieces = 8;
  static constexpr float kLast = 14.99F;  ///< belongs to the last one

  static constexpr double middle(int k) noexcept { return (1.25 + 0.5 * (k & 1)) * first(k) - 1; }
  static constexpr double reach(int k) noexcept { return 0.25 * first(k); }

 private:
  /// The power of 2 that a float's biased exponent stands for: 127, whose last bits are 3, for 1.
  static constexpr int first(int k) noexcept { return 1 << (((k >> 1) + 1) & 3); }
};

/// Piece k of s is the sum of c[i][k] a^i. Beyond kLast s changes by less than kError. Absolute errors are below
/// kError.
template <class Pieces, int kHighest>
struct SiluTable : Pieces {
  static constexpr int kDegree = kHighest;
  static constexpr float kError = 1.1e-4F;

  alignas(64) float c[kDegree + 1][Pieces::kPieces];
};

namespace detail {

/// e^x for -20 <= x <= 20: a Taylor polynomial of x / 1024, squared ten times.
constexpr double exponential(double x) noexcept {
  const double t = x / 1024;
  double y = 1 + t * (1 + t / 2 * (1 + t / 3 * (1 + t / 4)));
  for (int i = 0; i < 10; ++i) y *= y;
  return y;
}

constexpr double silu_of_negative(double a) noexcept { return -a / (1 + exponential(a)); }

/// Zeros of the Chebyshev polynomials of degree 3, 4 and 6.
template <int kCount>
inline constexpr double kChebyshevNodes[kCount] = {};
template <>
inline constexpr double kChebyshevNodes<3>[3] = {-0.86602540378443865, 0, 0.86602540378443865};
template <>
inline constexpr double kChebyshevNodes<4>[4] = {-0.92387953251128676, -0.38268343236508977, 0.38268343236508977,
                                                 0.92387953251128676};
template <>
inline constexpr double kChebyshevNodes<6>[6] = {-0.96592582628906829, -0.70710678118654752, -0.25881904510252076,
                                                 0.25881904510252076,  0.70710678118654752,  0.96592582628906829};

/// Polynomials through the values at the Chebyshev nodes of each piece.
template <class Table>
constexpr Table make_silu_table() noexcept {
  constexpr int kCount = Table::kDegree + 1;
  Table table{};
  for (int k = 0; k < Table::kPieces; ++k) {
    double at[kCount] = {};
    double differences[kCount] = {};
    for (int i = 0; i < kCount; ++i) {
      at[i] = Table::middle(k) + kChebyshevNodes<kCount>[i] * Table::reach(k);
      differences[i] = silu_of_negative(at[i]);
    }
    // Newton's divided differences, then Horner's scheme of (a - at[i]).
    for (int order = 1; order < kCount; ++order)
      for (int i = kCount - 1; i >= order; --i)
        differences[i] = (differences[i] - differences[i - 1]) / (at[i] - at[i - order]);
    double c[kCount] = {};
    for (int i = kCount - 1; i >= 0; --i) {
      for (int power = kCount - 1; power > 0; --power) c[power] = c[power - 1] - at[i] * c[power];
      c[0] = differences[i] - at[i] * c[0];
    }
    for (int i = 0; i < kCount; ++i) table.c[i][k] = static_cast<float>(c[i]);
  }
  return table;
}

}  // namespace detail

template <class Table>
inline constexpr Table kSiluTable = detail::make_silu_table<Table>();

}  // namespace bantam::ops
