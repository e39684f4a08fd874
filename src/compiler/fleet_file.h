// Fleet files: which models run together, what feeds them, and in how much memory. TOML.
//
//   budget = "512 KiB"              # optional; bytes as an integer, or with KiB, MiB, GiB, kB, MB, GB
//
//   [[memory]]                      # optional: memories of different speed, in which the plan puts what is used most
//   name = "sram"                   # into the cheapest one
//   size = "512 KiB"                # that the fleet may have there; none: it only holds the package
//   cost = 1                        # of an access, relative to the other memories
//   [[memory]]
//   name = "psram"
//   size = "8 MiB"
//   cost = 6
//   # before the first table: weights = "psram", the memory that holds the package, and resident = true, if weights
//   shall # be kept in what the faster memories have left
//
//   [[model]]
//   name = "denoise"                # default: the file's stem
//   path = "models/denoise.onnx"    # relative to the fleet file
//   dims = { batch = 1 }            # symbolic dimension = value
//   bounds = { T = 500 }            # symbolic dimension = largest size, which may change at run time
//   sizes = { T = [160, 320] }      # a plan for each: models "denoise@T:160" and "denoise@T:320", weights once
//   formulas = { M = "T / 4 + 64" } # symbolic dimension that follows others
//   shapes = { frame = [1, 256] }   # input = whole shape
//   values = { sr = 16000 }         # input = constant; it stops being an input
//   counts = { lengths = "L" }                     # what an input counts at most, for sizes computed from it
//   states = { state_in = "state_out" }            # input = output that carries its next value
//   outputs = ["enhanced"]          # only what these need is planned; other tensors of the model may stand here too
//   keep = ["mask_raw"]             # intermediate tensors that become outputs
//   backend = "reference"           # who computes it: fast (default) or reference ...
//   backends = { enhanced = "fast", "*/lstm*" = "reference" }  # ... and parts: outputs' branches, or nodes by pattern
//   kernels = { "/front/Conv" = "f32_gemm__simd" } # node = kernel, where it serves; `bantam tune` finds such
//   inputs = { frame = "mix.wav,samples=256" }     # what `bantam run` feeds; see `bantam run --help`
//   step = { frame = 256 }          # frames by which the window of that input moves between invokes
//   labels = { output = "labels.txt" }             # one class name a line
//   lane = "sound"                  # one thread: its sessions share activations, those of other lanes run beside them
//   priority = 1                    # within the lane; a higher one may interrupt between two steps; default 0
//
//   [[session]]                     # optional: default is one session per model, of its name; keys inputs, step,
//   name = "left"                   # labels, lane and priority may stand here instead
//   model = "denoise"
//
//   [[link]]
//   from = "denoise.enhanced"       # session.output
//   to = "voice.frame"              # session.input
//
// Every unknown key, wrong type and bad reference is an Error with its line; all findings are reported together.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "bantam/compiler.h"

namespace bantam {

/// What a session is fed with and how its outputs are read, for `bantam run` and the demo.
struct SessionFeed {
  std::string session;
  std::map<std::string, std::string> inputs;  ///< input -> specification (io/input_spec.h), paths made absolute
  std::map<std::string, std::int64_t> steps;  ///< input -> frames between windows; absent: one window
  std::map<std::string, std::filesystem::path> labels;  ///< output -> file of class names
};

struct FleetFile {
  FleetSpec spec;
  std::vector<SessionFeed> feeds;  ///< one per session, in the sessions' order
};

Result<FleetFile> read_fleet_file(const std::filesystem::path& path);

/// `directory`: what relative paths are relative to. `name`: for messages.
Result<FleetFile> parse_fleet_file(std::string_view text, const std::string& name,
                                   const std::filesystem::path& directory);

/// The same fleet with a model, a session and its feed for each size of a family (ModelSpec::sizes).
Result<FleetFile> expand_families(FleetFile file);

/// "512 KiB", "64kB", "1048576" -> bytes. Units: B, KiB, MiB, GiB (1024), kB, MB, GB (1000).
Result<std::uint64_t> parse_bytes(std::string_view text);

}  // namespace bantam
