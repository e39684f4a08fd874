// Published quantised models in both engines.
#include "support/models.h"

#include <gtest/gtest.h>

#include "peer_case.h"

namespace bantam::testing {
namespace {

/// Inputs of one recorded case: "in.<tensor>.<case>".
Result<Arrays> recorded_inputs(const std::filesystem::path& file, const std::string& tensor, const std::string& name) {
  const auto npz = io::NpzReader::open(file.string());
  if (!npz) return fail(npz.error());
  auto array = npz->read("in." + tensor + "." + name);
  if (!array) return fail(std::move(array.error()));
  return Arrays{{tensor, std::move(*array)}};
}

// The recorded outputs of this detector are those of float operators between quantisers, from which ONNX Runtime's own
// integer kernels depart by up to a third of an output's largest magnitude: single steps in the first layers, which 59
// convolutions carry on. From these kernels Bantam departs by one step of an output's grid: where a convolution's
// result is read as a real number too, ONNX Runtime keeps the float operator, whose rounded sums fall to the other side
// of a tie.
TEST(QuantizedModels, DetectorInQdqFormIsWithinOneStepOfThePeersIntegerKernels) {
  if (peer_library() == nullptr) GTEST_SKIP() << kNoPeer;
  if (!have_shared_models()) GTEST_SKIP() << kNoSharedModels;
  if (peer_limits_sums()) GTEST_SKIP() << kPeerLimitsSums;
  constexpr double kOneStep = 0.0125;  // of the coarsest output, relative to its largest magnitude
  const auto model = shared_folder() / "yunet-n-320-qdq-int8.onnx";
  for (const char* name : {"astronaut", "rand0", "const"}) {
    const auto inputs = recorded_inputs(shared_folder() / "reference" / "yunet-n-320-qdq-int8.npz", "input", name);
    ASSERT_TRUE(inputs) << inputs.error().message;
    const auto here = run_here(model, *inputs);
    ASSERT_TRUE(here) << here.error().message;
    const auto peer = run_in_peer(model, *inputs, true);
    ASSERT_TRUE(peer) << peer.error().message;
    const auto differences = compare_outputs(*peer, *here);
    ASSERT_TRUE(differences) << differences.error().message;
    for (const OutputDifference& d : *differences)
      EXPECT_LE(d.largest, kOneStep * d.largest_expected) << name << ", output " << d.name;
  }
}

}  // namespace
}  // namespace bantam::testing
