#include "import/tflite/testing/peer_cases.h"

namespace bantam::import::tflite::testing {

std::vector<PeerCase> peer_cases() {
  std::vector<PeerCase> cases;
  add_elementwise_cases(cases);
  add_reduction_cases(cases);
  add_matrix_cases(cases);
  add_movement_cases(cases);
  add_custom_cases(cases);
  return cases;
}

}  // namespace bantam::import::tflite::testing
