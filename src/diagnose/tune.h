// Finds the fastest kernel of every layer by running the models on this machine: what `bantam tune` does.
//
// A compiler takes the kernel that its operator lists first. Where others support the same call, each is measured where
// it will run, in the model, between its neighbours; the fastest becomes a rule of the model (ModelSpec::kernels),
// which compiling then follows. Belongs to one thread; the fleet's own threads run beside it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bantam/compiler.h"

namespace bantam::diagnose {

struct TuneOptions {
  int rounds = 5;        ///< in which all kernels take turns; the best time of a layer counts
  double seconds = 0.2;  ///< of one kernel in one round, about
  double margin = 0.03;  ///< by which a kernel must be faster to replace the one that is listed first
  std::function<Result<void>(Session&)> fill;          ///< gives the inputs values; required
  std::function<void(const std::string&)> progress{};  ///< one line about what is measured
};

/// A layer that got another kernel.
struct TunedLayer {
  std::string model;
  std::string layer;
  std::string op;
  std::string before;  ///< kernel
  std::string after;
  double before_us = 0;  ///< best of the rounds
  double after_us = 0;
};

struct Tuning {
  FleetSpec fleet;                 ///< with the rules that were found
  std::vector<TunedLayer> layers;  ///< empty: what the compiler takes by itself is fastest
  std::size_t compared = 0;        ///< layers that have more than one kernel
  double before_us = 0;            ///< of one invoke of every model, measured in turn with `after_us`
  double after_us = 0;
};

/// Each model is compiled and measured by itself, without links. A model whose rules together do not make it faster
/// keeps those that it had.
Result<Tuning> tune(const FleetSpec& fleet, const CompileOptions& compile, const TuneOptions& options);

}  // namespace bantam::diagnose
