// Runs a model once on a grey picture and prints its first output: the smallest useful program.
// Usage: classify MODEL.onnx
#include <algorithm>
#include <cstdio>

#include "bantam/open_fleet.h"

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "usage: classify MODEL.onnx\n"), 2;
  bantam::FleetSpec spec;
  spec.models.push_back({.name = "model", .path = argv[1], .dims = {{"batch", 1}}});
  auto fleet = bantam::OpenFleet::compile(spec);
  if (!fleet) return std::fprintf(stderr, "%s\n%s\n", fleet.error().message.c_str(), fleet.error().remedy.c_str()), 1;
  std::printf("arena: %llu bytes\n", static_cast<unsigned long long>(fleet->requirements().arena_bytes));

  bantam::Session& session = fleet->session(0);
  const bantam::Tensor input = session.input(0);
  std::fill_n(input.as<float>(), input.desc->elements(), 0.5F);
  if (const bantam::Status status = session.invoke(); !status.ok())
    return std::fprintf(stderr, "%s\n", status.message), 1;
  const bantam::Tensor output = session.output(0);
  for (int i = 0; i < output.desc->elements(); ++i) std::printf("%.4f ", static_cast<double>(output.as<float>()[i]));
  std::printf("\n");
}
