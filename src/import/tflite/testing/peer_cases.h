// Small TensorFlow Lite files, one operator each, with pseudo-random inputs: what TensorFlow Lite Micro computes for
// them is recorded in peer_golden.inc, what Bantam computes is compared (peer_test.cpp).
//
// Every case depends on its name only, so that adding one changes no other. Test code.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace bantam::import::tflite::testing {

struct PeerCase {
  std::string name;
  std::vector<std::uint8_t> file;
  int steps = 1;                                  ///< invokes, one after another on one instance
  std::vector<std::vector<std::uint8_t>> inputs;  ///< per input, all steps
};

std::vector<PeerCase> peer_cases();

// The families, for peer_cases.
void add_elementwise_cases(std::vector<PeerCase>& cases);
void add_reduction_cases(std::vector<PeerCase>& cases);
void add_matrix_cases(std::vector<PeerCase>& cases);
void add_movement_cases(std::vector<PeerCase>& cases);
void add_custom_cases(std::vector<PeerCase>& cases);

}  // namespace bantam::import::tflite::testing
