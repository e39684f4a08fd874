// Damaged copies of a valid file, for tests of readers of untrusted bytes.
//
// Every copy is a heap block of exactly its size, so that AddressSanitizer sees a read beyond it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "gtest/gtest.h"

namespace bantam::io::testing {

/// Calls check(bytes) with every proper prefix of `file`.
template <typename Check>
void for_each_truncation(std::span<const std::byte> file, Check check) {
  for (std::size_t size = 0; size < file.size(); ++size) {
    SCOPED_TRACE(::testing::Message() << "truncated to " << size << " of " << file.size() << " bytes");
    const std::vector<std::byte> bytes(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(size));
    check(bytes);
  }
}

/// Calls check(bytes) with `rounds` copies in which one to four random bytes have other values.
template <typename Check>
void for_random_damage(std::span<const std::byte> file, int rounds, Check check) {
  const auto seed = static_cast<unsigned>(::testing::UnitTest::GetInstance()->random_seed());
  std::mt19937 random(seed);
  for (int round = 0; round < rounds; ++round) {
    SCOPED_TRACE(::testing::Message() << "round " << round << ", rerun with --gtest_random_seed=" << seed);
    std::vector<std::byte> bytes(file.begin(), file.end());
    const auto flips = 1 + random() % 4;
    for (std::size_t i = 0; i < flips; ++i)
      bytes[random() % bytes.size()] ^= static_cast<std::byte>(1 + random() % 255);
    check(bytes);
  }
}

}  // namespace bantam::io::testing
