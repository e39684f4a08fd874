#include "peer_case.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "bantam/open_fleet.h"
#include "compiler/testing/placed_fleet.h"
#include "import/testing/onnx_writer.h"
#include "io/array.h"
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

namespace {

Result<OpenFleet> open(const std::filesystem::path& model) {
  FleetSpec spec;
  spec.models.push_back({.name = "model", .path = model});
  return OpenFleet::compile(spec);
}

}  // namespace

Result<Arrays> run_here(const std::filesystem::path& model, const Arrays& inputs) {
  auto fleet = open(model);
  if (!fleet) return fail(std::move(fleet.error()));
  Session& session = fleet->session(0);
  for (const io::NamedArray& input : inputs) {
    const int i = session.find_input(input.name);
    if (i < 0) return fail(StatusCode::kNotFound, fmt::format("there is no input '{}'", input.name));
    const Tensor to = session.input(static_cast<std::size_t>(i));
    if (!same_shape_and_type(*to.desc, input.array.desc))
      return fail(StatusCode::kInvalidArgument, fmt::format("input '{}' is {}", input.name, io::describe(*to.desc)));
    if (!input.array.data.empty()) std::memcpy(to.data, input.array.data.data(), input.array.data.size());
  }
  if (const Status status = session.invoke(); !status.ok()) return fail(error_from(status));
  Arrays outputs;
  for (std::size_t i = 0; i < session.output_count(); ++i)
    outputs.push_back({std::string(session.output_info(i).name), copy_of(session.output(i))});
  return outputs;
}

Result<Arrays> run_in_peer(const std::filesystem::path& model, const Arrays& inputs, bool optimize) {
  peer::Model::Options options;
  options.optimize = optimize;
  auto peer = peer::Model::load(*peer_library(), model, options);
  if (!peer) return fail(std::move(peer.error()));
  Arrays copies = inputs;
  std::vector<peer::BoundTensor> bound;
  for (io::NamedArray& input : copies) bound.push_back({input.name, input.array.desc, input.array.data.data()});
  return peer->collect(bound);
}

Result<std::vector<OutputDifference>> compare_outputs(const Arrays& expected, const Arrays& found) {
  std::vector<OutputDifference> differences;
  for (const io::NamedArray& output : expected) {
    const auto same = std::ranges::find(found, output.name, &io::NamedArray::name);
    if (same == found.end()) return fail(StatusCode::kNotFound, fmt::format("there is no output '{}'", output.name));
    if (!same_shape_and_type(same->array.desc, output.array.desc))
      return fail(StatusCode::kInvalidModel,
                  fmt::format("output '{}' is {}, the peer's is {}", output.name, io::describe(same->array.desc),
                              io::describe(output.array.desc)));
    differences.push_back(difference(output.name, output.array, same->array));
  }
  return differences;
}

Result<std::vector<OutputDifference>> compare_with_peer(const std::string& model, std::uint32_t seed) {
  const TemporaryModel file(model);
  if (!file.written()) return fail(file.written().error());
  auto fleet = open(file.path());
  if (!fleet) return fail(std::move(fleet.error()));
  Session& session = fleet->session(0);
  compiler::testing::fill_inputs(session, seed);
  Arrays inputs;
  for (std::size_t i = 0; i < session.input_count(); ++i)
    inputs.push_back({std::string(session.input_info(i).name), copy_of(session.input(i))});
  const auto found = run_here(file.path(), inputs);
  if (!found) return fail(found.error());
  const auto expected = run_in_peer(file.path(), inputs, true);
  if (!expected) return fail(expected.error());
  return compare_outputs(*expected, *found);
}

bool peer_limits_sums() {
  static const bool limits = [] {
    constexpr std::int64_t kLength = 64;
    const std::string largest_left(kLength, static_cast<char>(255));
    const std::string largest_right(kLength, 127);
    import::testing::GraphWriter g;
    g.input("x", {1}, ElementType::kF32)
        .initializer(import::testing::raw_tensor("a", ElementType::kU8, {1, kLength}, largest_left))
        .initializer(import::testing::raw_tensor("b", ElementType::kI8, {kLength, 1}, largest_right))
        .node("MatMulInteger", {"a", "b"}, {"y"})
        .node("Relu", {"x"}, {"z"})
        .output("y", ElementType::kI32)
        .output("z", ElementType::kF32);
    const auto differences = compare_with_peer(g.model(13), 1);
    return differences && std::ranges::any_of(*differences, [](const OutputDifference& d) { return d.largest > 0; });
  }();
  return limits;
}

}  // namespace bantam::testing
