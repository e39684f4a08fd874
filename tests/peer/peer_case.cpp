#include "peer_case.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "bantam/open_fleet.h"
#include "compiler/testing/placed_fleet.h"
#include "io/file.h"

namespace bantam::testing {
namespace {

std::vector<double> numbers_of(const io::Array& array) {
  std::vector<double> numbers;
  io::with_element_type(array.desc.type, [&]<typename T>(std::type_identity<T>) {
    for (const T element : io::elements_of<T>(array)) numbers.push_back(static_cast<double>(io::number_of(element)));
  });
  return numbers;
}

io::Array copy_of(const Tensor& tensor) {
  io::Array copy{*tensor.desc, std::vector<std::byte>(static_cast<std::size_t>(tensor.desc->bytes()))};
  if (!copy.data.empty()) std::memcpy(copy.data.data(), tensor.data, copy.data.size());
  return copy;
}

OutputDifference difference(const std::string& name, const io::Array& expected, const io::Array& found) {
  const auto a = numbers_of(expected);
  const auto b = numbers_of(found);
  OutputDifference result{name, 0, 0, 0, a.size()};
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double gap = a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i])) ? 0.0 : std::abs(a[i] - b[i]);
    result.largest = std::isnan(gap) ? INFINITY : std::max(result.largest, gap);
    result.largest_expected = std::max(result.largest_expected, std::abs(a[i]));
    result.different += gap != 0.0 ? 1 : 0;
  }
  return result;
}

/// A file that goes when this does.
class TemporaryModel {
 public:
  explicit TemporaryModel(const std::string& bytes)
      : path_(std::filesystem::temp_directory_path() / fmt::format("bantam_peer_{}.onnx", getpid())),
        written_(io::write_file(path_.string(), std::as_bytes(std::span(bytes)))) {}
  TemporaryModel(const TemporaryModel&) = delete;
  TemporaryModel& operator=(const TemporaryModel&) = delete;
  ~TemporaryModel() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  const std::filesystem::path& path() const { return path_; }
  const Result<void>& written() const { return written_; }

 private:
  std::filesystem::path path_;
  Result<void> written_;
};

}  // namespace

const peer::Library* peer_library() {
  static const std::unique_ptr<peer::Library> library = []() -> std::unique_ptr<peer::Library> {
    const auto path = peer::Library::find("build/onnxruntime");
    if (path.empty()) return nullptr;
    auto opened = peer::Library::open(path);
    return opened ? std::move(*opened) : nullptr;
  }();
  return library.get();
}

Result<std::vector<OutputDifference>> compare_with_peer(const std::string& model, std::uint32_t seed, bool optimize) {
  const TemporaryModel file(model);
  if (!file.written()) return fail(file.written().error());
  FleetSpec spec;
  spec.models.push_back({.name = "model", .path = file.path()});
  auto fleet = OpenFleet::compile(spec);
  if (!fleet) return fail(std::move(fleet.error()));
  Session& session = fleet->session(0);
  compiler::testing::fill_inputs(session, seed);
  std::vector<io::Array> inputs;
  for (std::size_t i = 0; i < session.input_count(); ++i) inputs.push_back(copy_of(session.input(i)));
  if (const Status status = session.invoke(); !status.ok()) return fail(error_from(status));

  peer::Model::Options options;
  options.optimize = optimize;
  auto peer = peer::Model::load(*peer_library(), std::as_bytes(std::span(model)), options);
  if (!peer) return fail(std::move(peer.error()));
  std::vector<peer::BoundTensor> bound;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    bound.push_back({std::string(session.input_info(i).name), inputs[i].desc, inputs[i].data.data()});
  const auto expected = peer->collect(bound);
  if (!expected) return fail(expected.error());

  std::vector<OutputDifference> differences;
  for (const io::NamedArray& output : *expected) {
    const int i = session.find_output(output.name);
    if (i < 0) return fail(StatusCode::kInvalidModel, fmt::format("there is no output '{}'", output.name));
    const io::Array found = copy_of(session.output(static_cast<std::size_t>(i)));
    if (!same_shape_and_type(found.desc, output.array.desc))
      return fail(StatusCode::kInvalidModel, fmt::format("output '{}' is {}, the peer's is {}", output.name,
                                                         io::describe(found.desc), io::describe(output.array.desc)));
    differences.push_back(difference(output.name, output.array, found));
  }
  return differences;
}

}  // namespace bantam::testing
