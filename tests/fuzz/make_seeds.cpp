// Writes the first inputs of every fuzz target: make_fuzz_seeds FOLDER [MODEL ...]
//
// Models (ONNX or TFLite, as files) come from the command line; large ONNX weights are replaced by constants of one
// value, so that a seed is all structure. Small TFLite models are built here. From the models that compile come the
// seeds of the package reader and of the graph text; the other formats are written by the project's own writers.
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "graph/text.h"
#include "io/file.h"
#include "io/image.h"
#include "io/npy.h"
#include "io/npz.h"
#include "io/wav.h"
#include "partition/pack.h"
#include "seeds_tflite.h"
#include "support.h"
#include "thin_onnx.h"

namespace bantam::fuzz {
namespace {

/// Larger seeds only slow a fuzzer down.
constexpr std::size_t kMaxSeedBytes = std::size_t{64} << 10;
/// Seeds of one target that are derived from models.
constexpr std::size_t kMaxDerivedBytes = 8192;

class Corpus {
 public:
  explicit Corpus(std::filesystem::path folder) : folder_(std::move(folder)) {}

  void add(const std::string& target, std::span<const std::byte> bytes) {
    const std::filesystem::path path = folder_ / target;
    std::error_code ignored;
    std::filesystem::create_directories(path, ignored);
    // Not io::write_file, which waits for the disk: thousands of files that anyone can make again.
    std::ofstream file(path / ("seed-" + std::to_string(count_++)), std::ios::binary);
    file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    require(file.good(), "cannot write to " + path.string());
  }
  void add(const std::string& target, const std::string& text) { add(target, io::bytes_of(text)); }

  std::size_t size() const { return count_; }

 private:
  std::filesystem::path folder_;
  std::size_t count_ = 0;
};

/// The model as a seed, and what the compiler makes of it.
void add_model(Corpus& corpus, std::span<const std::byte> model) {
  const import::Source source{"model", model, nullptr, {}};
  const auto declaration = import::declare_model(source);
  if (!declaration) return;
  const bool onnx = declaration->format == "ONNX";
  const std::string thin = onnx ? thin_onnx(model) : std::string();
  const std::span<const std::byte> seed = onnx ? io::bytes_of(thin) : model;
  if (seed.size() > kMaxSeedBytes) return;
  corpus.add(onnx ? "onnx" : "tflite", seed);
  if (seed.size() > kMaxDerivedBytes) return;
  auto graph = import::import_model({"model", seed, nullptr, {}}, options_for(*declaration));
  if (!graph) return;
  const std::string text = graph::to_text(*graph);
  if (text.size() <= kMaxDerivedBytes) corpus.add("graph_text", text);
  const format::PackageBytes package = compile_graph(std::move(*graph));
  if (!package.bytes().empty() && package.bytes().size() <= kMaxSeedBytes) corpus.add("package", package.bytes());
}

/// A graph as text, and its package.
void add_graph(Corpus& corpus, const std::string& text) {
  auto graph = graph::from_text(text);
  require(graph.has_value(), graph ? "" : graph.error().message);
  corpus.add("graph_text", text);
  corpus.add("package", compile_graph(std::move(*graph)).bytes());
}

/// Branches and loops inside one another.
void add_control(Corpus& corpus) {
  add_graph(corpus, R"(graph "control" {
  %c "c" = input : bool[]
  %n "n" = input : i64[]
  %x "x" = input : f32[4]
  %y = if(%c, %n, %x) : f32[4]
    body "then" {
      %n = input : i64[]
      %x = input : f32[4]
      %r = loop(%n, _, %x) {limit=5} : f32[4]
        body "body" {
          %i = input : i64[]
          %v = input : f32[4]
          %two = const : i64[] {2}
          %go = binary(%i, %two) {function="less"}
          %w = binary(%v, %v)
          output "go" %go
          output "v" %w
        }
      output "r" %r
    }
    body "else" {
      %n = input : i64[]
      %x = input : f32[4]
      %r = unary(%x) {function="neg"}
      output "r" %r
    }
  output "y" %y
})");
}

void add_arrays(Corpus& corpus) {
  std::vector<io::NamedArray> arrays;
  for (int t = 1; t < static_cast<int>(ElementType::kCount); ++t) {
    for (const std::vector<std::int64_t>& dims : {std::vector<std::int64_t>{}, {3}, {2, 0}, {1, 8, 8}}) {
      const auto array = io::make_array(static_cast<ElementType>(t), dims);
      if (!array) continue;
      const auto npy = io::encode_npy(*array);
      if (!npy) continue;
      corpus.add("npy", *npy);
      arrays.push_back({std::to_string(arrays.size()), *array});
    }
  }
  for (const std::size_t count : {std::size_t{0}, std::size_t{1}, arrays.size()})
    if (const auto npz = io::encode_npz({arrays.data(), count})) corpus.add("npz", *npz);
}

void add_media(Corpus& corpus) {
  for (const int channels : {1, 2}) {
    const io::Sound sound{16000, channels, std::vector<float>(static_cast<std::size_t>(channels) * 40, 0.25F)};
    if (const auto wav = io::encode_wav(sound)) corpus.add("sound", *wav);
  }
  for (const int channels : {1, 3, 4}) {
    io::Image image{6, 5, channels, std::vector<std::uint8_t>(static_cast<std::size_t>(channels) * 30)};
    for (std::size_t i = 0; i < image.pixels.size(); ++i) image.pixels[i] = static_cast<std::uint8_t>(i * 11);
    if (const auto png = io::encode_png(image)) corpus.add("image", *png);
  }
}

void add_partitions(Corpus& corpus) {
  const auto file = [](const char* name, const char* text) {
    const auto bytes = io::bytes_of(text);
    return partition::PackedFile{name, {bytes.begin(), bytes.end()}};
  };
  const std::vector<partition::PackedModel> models = {
      {"wn9_hello", {file("_MODEL_INFO_", "# words\nwakenet9_v1_hello_3_0.6_0.7\n"), file("wn9_data", "weights")}},
      {"nsnet2", {file("data", "more weights"), file("empty", "")}},
      {"fst", {file("tokens", "a b c")}},
  };
  for (std::size_t count = 1; count <= models.size(); ++count)
    for (const std::uint32_t alignment : {1U, 16U})
      if (const auto image =
              partition::build_image({models.begin(), models.begin() + static_cast<int>(count)}, alignment))
        corpus.add("partition", *image);
}

void add_texts(Corpus& corpus) {
  for (const char* text : {"a.jpg,resize=32x24,color=bgr,mean=127,scale=0.0078125,layout=nchw,fit=crop", "zeros",
                           "fill:0.5,quantize=no", "random:17", "set.npz:entry,offset=1,samples=2",
                           "a.wav,type=i16,offset=3,samples=64,pad=error", "a.raw,type=f32,mean=1/2/3,scale=4/5/6"})
    corpus.add("input_spec", text);
  for (const char* text : {"id,lower,upper,size\na,0,3,4\nb,2,5,8\nc,3,9,1\n",
                           "id,lower,upper,size,alignment,offset\n\"a,b\",0,3,40,64,\nb,2,5,8,16,128\nc,4,5,0,1,\n"})
    corpus.add("problem_csv", text);
  for (const char* text : {"# Name, Type, SubType, Offset, Size, Flags\nnvs,data,nvs,0x9000,0x6000,\n"
                           "factory,app,factory,,1M,encrypted\nmodel,data,spiffs,,7900K,\n",
                           "a,0x40,7,,-16M,encrypted:readonly\r\nb,data,,0x1000000,0b1000000000000\n"})
    corpus.add("flash_table", text);
  for (const char* text : {"<blank> 0\n<unk> 1\n\xE2\x96\x81 2\na 3\n\xE2\x96\x81the 4\n", "a\t1\r\n\nb  0\r\n"})
    corpus.add("units", text);
  corpus.add("fleet_file", R"(budget = "512 KiB"
[[model]]
name = "denoise"
path = "models/denoise.onnx"
dims = { batch = 1 }
shapes = { frame = [1, 256] }
values = { sr = 16000 }
states = { state_in = "state_out" }
inputs = { frame = "mix.wav,samples=256" }
step = { frame = 256 }
labels = { output = "labels.txt" }
[[model]]
path = "voice.tflite"
[[session]]
name = "left"
model = "denoise"
inputs = { frame = "zeros" }
[[session]]
name = "voice"
model = "voice"
[[link]]
from = "left.enhanced"
to = "voice.frame"
)");
}

int make_seeds(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "usage: make_fuzz_seeds FOLDER [MODEL ...]\n";
    return 2;
  }
  Corpus corpus(argv[1]);
  for (const std::vector<std::uint8_t>& model : tflite_seeds()) add_model(corpus, std::as_bytes(std::span(model)));
  for (int i = 2; i < argc; ++i) {
    const auto model = io::read_file(argv[i]);
    if (model) add_model(corpus, *model);
  }
  add_control(corpus);
  add_arrays(corpus);
  add_media(corpus);
  add_partitions(corpus);
  add_texts(corpus);
  std::cout << corpus.size() << " seeds\n";
  return 0;
}

}  // namespace
}  // namespace bantam::fuzz

int main(int argc, char** argv) { return bantam::fuzz::make_seeds(argc, argv); }
