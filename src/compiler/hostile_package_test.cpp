// Packages from outside: whatever the bytes are, opening one gives an error or something that stays within its memory.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "base/hash.h"
#include "base/shape.h"
#include "compiler/emit.h"
#include "compiler/testing/compile_text.h"
#include "compiler/testing/placed_fleet.h"
#include "compiler/weight_streams.h"
#include "package/format.h"
#include "package/writer/package_data.h"

namespace bantam::compiler {
namespace {

using format::Header;
using format::PackageBytes;
using testing::fill_inputs;

/// A small model with everything that a package can hold: weights, streamed ones and narrowed ones too, both kinds of
/// state, scratch, views, a gather.
constexpr const char* kAllTables = R"(graph "all" {
  %x "x" = input : f32[1,8]
  %at "at" = input : i64[2]
  %h "h" = state : f32[1,8] splat(0.5)
  %s "s" = state : f32[1,8]
  %w = const : f32[8,8] splat(0.25)
  %b = const : f32[8] {1, 2, 3, 4, 5, 6, 7, 8}
  %m = matmul(%x, %w, %b)
  %z "narrow" = matmul(%m, %w)
  %n = binary(%z, %h)
  %c = concat(%n, %s) {axis=0}
  %g = gather(%c, %at)
  %k = softmax(%g)
  %u = binary(%s, %m)
  %v = unary(%u) {function="exp"}
  %y = binary(%v, %s)
  output "rows" %k
  output "y" %y
  next "h" %n
  next "s" %u
})";

class HostilePackage : public ::testing::Test {
 protected:
  void SetUp() override {
    auto planned = plan_model(testing::parse(kAllTables), {.stores = {{"narrow", ElementType::kI4}}});
    ASSERT_TRUE(planned) << planned.error().message;
    stream_weights(*planned);
    format::PackageData data;
    ASSERT_TRUE(emit_model(*planned, "all", data));
    data.fleet.emplace_back("all", std::uint16_t{0});
    good_ = format::write_package(data);
  }

  /// The product's weights, behind everything else.
  static void stream_weights(PlannedModel& model) {
    std::vector<PlannedStream> reads = weight_reads(model);
    reads.resize(1);
    set_streams(model, reads);
    model.blocks.back().offset = align_up(model.activation_bytes, ops::kAlignment);
    model.activation_bytes = model.blocks.back().offset + model.blocks.back().bytes;
    insert_copies(model);
  }

  static PackageBytes copy(std::span<const std::byte> bytes) {
    PackageBytes result(bytes.size());
    if (!bytes.empty()) std::memcpy(result.data(), bytes.data(), bytes.size());
    return result;
  }

  static Header header_of(const PackageBytes& package) {
    Header header;
    std::memcpy(&header, package.bytes().data(), sizeof header);
    return header;
  }

  static void set_header(PackageBytes& package, Header header) {
    header.header_hash = hash64(&header, sizeof header - sizeof header.header_hash);
    std::memcpy(package.data(), &header, sizeof header);
  }

  /// Makes all hashes agree with the bytes, so that only structural verification can object.
  static void fix_hashes(PackageBytes& package) {
    Header header = header_of(package);
    header.meta_hash = hash64(package.data() + sizeof header, static_cast<std::size_t>(header.meta_bytes));
    header.weights_hash = hash64(package.data() + header.weights_offset,
                                 package.bytes().size() - static_cast<std::size_t>(header.weights_offset));
    set_header(package, header);
  }

  static Status open(std::span<const std::byte> bytes) {
    Package package;
    return Package::open(bytes, &package);
  }

  /// Opens the package; when that succeeds, placing and invoking it must stay within guarded memory, ports included.
  /// True when it was opened.
  static bool survives(const PackageBytes& bytes) {
    constexpr std::uint64_t kMostArena = 1 << 24;
    Package package;
    if (!Package::open(bytes.bytes(), &package).ok()) return false;
    const Requirements need = package.requirements();
    if (need.arena_bytes > kMostArena) return true;
    const ops::testing::GuardedMemory arena(static_cast<std::size_t>(need.arena_bytes),
                                            static_cast<std::size_t>(need.alignment));
    Fleet* fleet = nullptr;
    EXPECT_TRUE(Fleet::place(package, arena.bytes(), &fleet).ok());
    for (std::size_t i = 0; fleet != nullptr && i < fleet->size(); ++i) {
      Session& session = *fleet->session(i);
      std::vector<ops::testing::GuardedMemory> ports;
      for (std::size_t p = 0; p < session.input_count() + session.output_count(); ++p) {
        const bool input = p < session.input_count();
        const std::size_t index = input ? p : p - session.input_count();
        const PortInfo info = input ? session.input_info(index) : session.output_info(index);
        ports.emplace_back(static_cast<std::size_t>(info.bytes),
                           static_cast<std::size_t>(element_size(info.desc->type)));
        const Status bound = input ? session.bind_input(index, ports.back().data(), ports.back().size())
                                   : session.bind_output(index, ports.back().data(), ports.back().size());
        EXPECT_TRUE(bound.ok()) << bound.message;
      }
      fill_inputs(session, 1);
      // Nonsense results and data-dependent faults are fine; leaving the memory is not.
      for (int round = 0; round < 2; ++round) static_cast<void>(session.invoke());
      for (const auto& port : ports) EXPECT_TRUE(port.intact());
    }
    EXPECT_TRUE(arena.intact());
    return true;
  }

  PackageBytes good_;
};

TEST_F(HostilePackage, TheGoodOneOpensAndRuns) { EXPECT_TRUE(survives(good_)); }

TEST_F(HostilePackage, TruncatedAtAnyLength) {
  for (std::size_t size = 0; size < good_.bytes().size(); ++size) {
    const PackageBytes cut = copy(good_.bytes().first(size));
    ASSERT_EQ(open(cut.bytes()).code, StatusCode::kInvalidPackage) << size;
  }
}

TEST_F(HostilePackage, TruncatedWithAHeaderThatAgrees) {
  for (std::size_t size = sizeof(Header); size < good_.bytes().size(); ++size) {
    PackageBytes cut = copy(good_.bytes().first(size));
    Header header = header_of(cut);
    header.file_bytes = size;
    header.weights_offset = std::min<std::uint64_t>(header.weights_offset, size / 64 * 64);
    header.meta_bytes = std::min<std::uint64_t>(header.meta_bytes, header.weights_offset - sizeof header);
    set_header(cut, header);
    fix_hashes(cut);
    // The last byte of the weights may be padding that no value needs; everything else is missed.
    survives(cut);
  }
}

TEST_F(HostilePackage, EveryFlippedByteOfTheHeaderIsFound) {
  for (std::size_t at = 0; at < sizeof(Header); ++at) {
    for (const auto flip : {std::byte{1}, std::byte{0x80}, std::byte{0xff}}) {
      PackageBytes bytes = copy(good_.bytes());
      bytes.data()[at] ^= flip;
      EXPECT_FALSE(open(bytes.bytes()).ok()) << "byte " << at;
    }
  }
}

TEST_F(HostilePackage, EveryFlippedByteBehindTheHeaderIsFound) {
  for (std::size_t at = sizeof(Header); at < good_.bytes().size(); ++at) {
    const Header header = header_of(good_);
    const bool padding = at >= sizeof header + header.meta_bytes && at < header.weights_offset;
    PackageBytes bytes = copy(good_.bytes());
    bytes.data()[at] ^= std::byte{0x10};
    EXPECT_EQ(open(bytes.bytes()).code, padding ? StatusCode::kOk : StatusCode::kInvalidPackage) << "byte " << at;
  }
}

TEST_F(HostilePackage, EveryFlippedBitBehindRightHashesStaysWithinMemory) {
  const Header header = header_of(good_);
  int opened = 0;
  for (std::size_t at = sizeof header; at < sizeof header + header.meta_bytes; ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      PackageBytes bytes = copy(good_.bytes());
      bytes.data()[at] ^= static_cast<std::byte>(1 << bit);
      fix_hashes(bytes);
      SCOPED_TRACE(::testing::Message() << "byte " << at << ", bit " << bit);
      opened += survives(bytes) ? 1 : 0;
    }
  }
  EXPECT_GT(opened, 0) << "no flip was harmless: the test does not reach the runtime";
}

TEST_F(HostilePackage, RandomDamageBehindRightHashesStaysWithinMemory) {
  const auto seed = static_cast<unsigned>(::testing::UnitTest::GetInstance()->random_seed());
  std::mt19937 random(seed);
  const Header header = header_of(good_);
  for (int round = 0; round < 4000; ++round) {
    SCOPED_TRACE(::testing::Message() << "round " << round << ", rerun with --gtest_random_seed=" << seed);
    PackageBytes bytes = copy(good_.bytes());
    for (unsigned flips = 1 + random() % 4; flips > 0; --flips) {
      // Whole words as often as bytes: offsets, sizes and indices with extreme values.
      const std::size_t at = sizeof header + random() % (header.meta_bytes - 4);
      const std::uint32_t words[] = {0, 1, 0xffffffff, 0x7fffffff, 0x80000000, static_cast<std::uint32_t>(random())};
      if (random() % 2 == 0) {
        std::memcpy(bytes.data() + at / 4 * 4, &words[random() % 6], 4);
      } else {
        bytes.data()[at] ^= static_cast<std::byte>(1 + random() % 255);
      }
    }
    fix_hashes(bytes);
    survives(bytes);
  }
}

TEST_F(HostilePackage, ForeignFiles) {
  PackageBytes text(1000);
  std::memset(text.data(), 'x', 1000);
  const Status status = open(text.bytes());
  EXPECT_EQ(status.code, StatusCode::kInvalidPackage);
  EXPECT_STREQ(status.message, "not a Bantam package");
  EXPECT_EQ(open({}).code, StatusCode::kInvalidPackage);
}

TEST_F(HostilePackage, WrongVersion) {
  PackageBytes bytes = copy(good_.bytes());
  Header header = header_of(bytes);
  header.version = 7;
  set_header(bytes, header);
  const Status status = open(bytes.bytes());
  EXPECT_EQ(status.code, StatusCode::kUnsupported);
  EXPECT_EQ(status.found, 7);
  EXPECT_EQ(status.expected, format::kVersion);
}

TEST_F(HostilePackage, MisalignedAddress) {
  PackageBytes bytes(good_.bytes().size() + 64);
  for (std::size_t shift = 1; shift < 64; ++shift) {
    std::memcpy(bytes.data() + shift, good_.bytes().data(), good_.bytes().size());
    EXPECT_EQ(open(bytes.bytes().subspan(shift, good_.bytes().size())).code, StatusCode::kMisaligned) << shift;
  }
}

TEST_F(HostilePackage, PaddedFile) {
  PackageBytes longer(good_.bytes().size() + 1);
  std::memcpy(longer.data(), good_.bytes().data(), good_.bytes().size());
  EXPECT_EQ(open(longer.bytes()).code, StatusCode::kInvalidPackage);
}

TEST_F(HostilePackage, UnknownKernel) {
  for (const auto& [known, unknown] :
       {std::pair<std::string, std::string>{"gather", "gatler"}, {"softmax", "softmix"}}) {
    PackageBytes bytes = copy(good_.bytes());
    const std::string_view all(reinterpret_cast<const char*>(bytes.data()), bytes.bytes().size());
    const std::size_t at = all.find(known);
    ASSERT_NE(at, std::string_view::npos);
    std::memcpy(bytes.data() + at, unknown.data(), unknown.size());
    fix_hashes(bytes);
    EXPECT_EQ(open(bytes.bytes()).code, StatusCode::kUnsupported) << unknown;
  }
}

TEST_F(HostilePackage, OperatorsThatTheFirmwareLeftOut) {
  Package package;
  Package::Options options;
  options.ops = {};
  EXPECT_FALSE(Package::open(good_.bytes(), options, &package).ok());
}

TEST_F(HostilePackage, WeightsAreTakenOnTrustOnlyWhenAskedTo) {
  PackageBytes bytes = copy(good_.bytes());
  bytes.data()[bytes.bytes().size() - 1] ^= std::byte{1};
  Package package;
  EXPECT_EQ(Package::open(bytes.bytes(), &package).code, StatusCode::kInvalidPackage);
  Package::Options trusting;
  trusting.verify_weights = false;
  EXPECT_TRUE(Package::open(bytes.bytes(), trusting, &package).ok());
}

}  // namespace
}  // namespace bantam::compiler
