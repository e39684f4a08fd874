// Bilinear enlargements as segmentation networks and decoders have them, one thread.
#include "ops/nn/resize_bilinear_q/resize_bilinear_q.h"
#include "ops/testing/register_benchmark.h"

namespace bantam::ops {
namespace {

struct Enlargement {
  const char* name;
  std::int32_t from, to;  ///< rows, and as many columns
  std::int64_t channels;
  bool half_pixel;
};

constexpr Enlargement kEnlargements[] = {
    {"65-257x21", 65, 257, 21, false}, {"32-64x64", 32, 64, 64, true}, {"14-28x256", 14, 28, 256, true},
    {"64-128x8", 64, 128, 8, true},    {"64-256x4", 64, 256, 4, true}, {"128-256x1", 128, 256, 1, true},
};

testing::OpCase enlargement(const Enlargement& e) {
  testing::Random random(1);
  const std::int32_t scale = (1024 * e.from + e.to / 2) / e.to;
  const ResizeBilinearQParams p{e.to, e.to, scale, scale, e.half_pixel ? 1 : 0};
  return testing::make_case(
      kResizeBilinearQ, p,
      {testing::random_tensor(ElementType::kI8, {1, e.from, e.from, e.channels}, random, -128, 127)});
}

const int kRegistered = [] {
  for (const Enlargement& e : kEnlargements)
    testing::register_benchmark(std::string("resize_bilinear_q/") + e.name, [&e] { return enlargement(e); });
  return 0;
}();

}  // namespace
}  // namespace bantam::ops
