// x sigmoid(x) = max(x, 0) + s(|x|), s(a) = -a sigmoid(-a), by parabolas for s, for results of 8 bits. Constants only,
// computed while compiling. Freestanding.
#pragma once

namespace bantam::ops {

/// Piece k of s holds for the a that are nearest to k * kWidth: c[0][k] + c[1][k] a + c[2][k] a^2. The last one, 0,
/// holds for all further a. Absolute errors are below kError.
struct SiluTable {
  static constexpr int kPieces = 32;
  static constexpr double kWidth = 0.4;
  static constexpr float kError = 1.1e-4F;

  alignas(64) float c[3][kPieces];
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

/// Parabolas through the values at the Chebyshev nodes of each piece.
constexpr SiluTable make_silu_table() noexcept {
  SiluTable table{};
  for (int k = 0; k + 1 < SiluTable::kPieces; ++k) {
    const double middle = k * SiluTable::kWidth;
    const double reach = SiluTable::kWidth / 2 * 0.86602540378443865;  // cos(pi / 6)
    const double low = silu_of_negative(middle - reach);
    const double centre = silu_of_negative(middle);
    const double high = silu_of_negative(middle + reach);
    const double slope = (high - low) / (2 * reach);
    const double bend = (high - 2 * centre + low) / (2 * reach * reach);
    table.c[0][k] = static_cast<float>(centre - slope * middle + bend * middle * middle);
    table.c[1][k] = static_cast<float>(slope - 2 * bend * middle);
    table.c[2][k] = static_cast<float>(bend);
  }
  return table;
}

}  // namespace detail

inline constexpr SiluTable kSiluTable = detail::make_silu_table();

}  // namespace bantam::ops
