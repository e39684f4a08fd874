#include "compiler/testing/placed_fleet.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "io/array.h"

namespace bantam::compiler::testing {
namespace {

template <typename T>
T random_element(std::mt19937& random) {
  if constexpr (std::is_same_v<T, io::Bool8>) {
    return {static_cast<std::uint8_t>(random() & 1U)};
  } else if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(static_cast<double>(random()) / 0x1p31 - 1.0);
  } else if constexpr (std::is_integral_v<T> && sizeof(T) < 8) {
    return static_cast<T>(random());
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(random() & 1U);
  } else {
    return io::element_from<T>(static_cast<float>(static_cast<double>(random()) / 0x1p31 - 1.0));
  }
}

}  // namespace

std::optional<PlacedFleet> place_fleet(const FleetSpec& spec, const CompileOptions& options, std::byte fill) {
  auto compiled = bantam::compile(spec, options);
  if (!compiled) {
    ADD_FAILURE() << compiled.error().message;
    return std::nullopt;
  }
  auto placed = place_package(compiled->package(), options.threads, fill);
  if (placed) placed->compiled = std::move(*compiled);
  return placed;
}

std::optional<PlacedFleet> place_package(std::span<const std::byte> package, int threads, std::byte fill) {
  PlacedFleet placed;
  if (const Status s = Package::open(package, &placed.package); !s.ok()) {
    ADD_FAILURE() << s.message;
    return std::nullopt;
  }
  const Requirements need = placed.need();
  placed.arena =
      ops::testing::GuardedMemory(static_cast<std::size_t>(need.arena_bytes), static_cast<std::size_t>(need.alignment));
  std::ranges::fill(placed.arena.bytes(), fill);
  if (const Status s = Fleet::place(placed.package, placed.arena.bytes(), &placed.fleet); !s.ok()) {
    ADD_FAILURE() << s.message;
    return std::nullopt;
  }
  auto pool = ThreadPool::create(threads);
  if (!pool) {
    ADD_FAILURE() << pool.error().message;
    return std::nullopt;
  }
  placed.threads.emplace(std::move(*pool));
  for (std::size_t i = 0; i < placed.fleet->size(); ++i)
    EXPECT_TRUE(placed.fleet->session(i)->set_threads(placed.threads->threads()).ok());
  return placed;
}

void fill_inputs(Session& session, std::uint32_t seed, const std::vector<bool>& linked) {
  for (std::size_t i = 0; i < session.input_count(); ++i) {
    if (i < linked.size() && linked[i]) continue;
    const Tensor t = session.input(i);
    std::mt19937 random(seed + static_cast<std::uint32_t>(i));
    io::with_element_type(t.desc->type, [&]<typename T>(std::type_identity<T>) {
      std::generate_n(t.as<T>(), t.desc->elements(), [&] { return random_element<T>(random); });
    });
  }
}

std::vector<std::vector<std::byte>> outputs_of(const Session& session) {
  std::vector<std::vector<std::byte>> outputs;
  for (std::size_t o = 0; o < session.output_count(); ++o) {
    const Tensor t = session.output(o);
    const auto* bytes = static_cast<const std::byte*>(t.data);
    outputs.emplace_back(bytes, bytes + t.desc->bytes());
  }
  return outputs;
}

std::vector<std::vector<std::byte>> run(Session& session, std::uint32_t seed, const std::vector<bool>& linked) {
  fill_inputs(session, seed, linked);
  const Status status = session.invoke();
  EXPECT_TRUE(status.ok()) << session.name() << ", step " << status.index << ": " << status.message;
  return outputs_of(session);
}

void expect_close(const std::vector<std::byte>& expected, const std::vector<std::byte>& actual, ElementType type) {
  ASSERT_EQ(expected.size(), actual.size());
  if (type != ElementType::kF32) {
    EXPECT_EQ(expected, actual);
    return;
  }
  float largest = 1;
  float difference = 0;
  for (std::size_t i = 0; i < expected.size(); i += sizeof(float)) {
    float a = 0;
    float b = 0;
    std::memcpy(&a, &expected[i], sizeof a);
    std::memcpy(&b, &actual[i], sizeof b);
    largest = std::max(largest, std::abs(a));
    difference = std::max(difference, std::abs(a - b));
  }
  EXPECT_LE(difference, 1e-5F * largest);
}

}  // namespace bantam::compiler::testing
