#include "io/npz.h"

#include <algorithm>
#include <filesystem>

#include "gmock/gmock.h"
#include "io/npy.h"
#include "io/testing/arrays.h"
#include "io/testing/corruption.h"
#include "io/testing/temporary_folder.h"

namespace bantam::io {
namespace {

using testing::array_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::values_of;

std::vector<NamedArray> sample() {
  return {{"in.x.rand0", array_of<float>({2, 2}, {1, 2, 3, 4})}, {"out", array_of<std::int8_t>({3}, {-1, 0, 1})}};
}

void put(std::vector<std::byte>* bytes, std::size_t at, std::uint32_t value, int size) {
  for (int i = 0; i < size; ++i) (*bytes)[at + static_cast<std::size_t>(i)] = static_cast<std::byte>(value >> (8 * i));
}

std::size_t find(std::span<const std::byte> bytes, std::string_view text) {
  const auto wanted = bytes_of(text);
  return static_cast<std::size_t>(std::search(bytes.begin(), bytes.end(), wanted.begin(), wanted.end()) -
                                  bytes.begin());
}

TEST(Npz, ArraysSurviveInOrder) {
  const auto bytes = encode_npz(sample());
  ASSERT_TRUE(bytes.has_value()) << bytes.error().message;
  const auto reader = NpzReader::from_memory(*bytes);
  ASSERT_TRUE(reader.has_value()) << reader.error().message;
  EXPECT_THAT(reader->names(), ElementsAre("in.x.rand0", "out"));
  const auto all = reader->read_all();
  ASSERT_TRUE(all.has_value()) << all.error().message;
  EXPECT_THAT(values_of<float>((*all)[0].array), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(values_of<std::int8_t>(*reader->read("out")), ElementsAre(-1, 0, 1));
  EXPECT_TRUE(reader->read("out.npy").has_value());
  EXPECT_TRUE(reader->contains("out"));
  EXPECT_FALSE(reader->contains("ou"));
}

TEST(Npz, MissingEntryIsNamedWithWhatThereIs) {
  const auto bytes = encode_npz(sample());
  const auto result = NpzReader::from_memory(*bytes)->read("y");
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code, StatusCode::kNotFound);
  EXPECT_THAT(result.error().message, HasSubstr("'y'"));
  EXPECT_THAT(result.error().remedy, HasSubstr("in.x.rand0"));
}

TEST(Npz, NamesMayHoldAnyCharacters) {
  std::vector<NamedArray> arrays;
  for (const char* name :
       {"a/b:0", "with space, and comma", "..", "/abs", "\xc3\xa9\xe2\x82\xac", "\xff\xfe raw", "", "*?<>|\\\"\n"})
    arrays.push_back({name, array_of<std::uint8_t>({1}, {static_cast<std::uint8_t>(arrays.size())})});
  const auto bytes = encode_npz(arrays);
  ASSERT_TRUE(bytes.has_value()) << bytes.error().message;
  const auto reader = NpzReader::from_memory(*bytes);
  ASSERT_TRUE(reader.has_value());
  for (const NamedArray& entry : arrays) {
    SCOPED_TRACE(entry.name);
    const auto array = reader->read(entry.name);
    ASSERT_TRUE(array.has_value()) << array.error().message;
    EXPECT_EQ(array->data, entry.array.data);
  }
}

TEST(Npz, RefusesToWriteWhatCannotBeRead) {
  const Array array = array_of<float>({1}, {1});
  EXPECT_FALSE(encode_npz(std::vector<NamedArray>{{"a", array}, {"a", array}}).has_value());
  EXPECT_FALSE(encode_npz(std::vector<NamedArray>{{std::string("a\0b", 3), array}}).has_value());
  EXPECT_FALSE(encode_npz(std::vector<NamedArray>{{"a", *make_array(ElementType::kBF16, std::vector<std::int64_t>{1})}})
                   .has_value());
}

TEST(Npz, EmptyArchiveHasNoEntries) {
  const auto bytes = encode_npz({});
  ASSERT_TRUE(bytes.has_value());
  const auto reader = NpzReader::from_memory(*bytes);
  ASSERT_TRUE(reader.has_value()) << reader.error().message;
  EXPECT_TRUE(reader->names().empty());
}

TEST(Npz, LargeArraysAreCompressed) {
  const std::vector<NamedArray> arrays = {{"z", *make_array(ElementType::kF32, std::vector<std::int64_t>{1 << 20})}};
  const auto bytes = encode_npz(arrays);
  EXPECT_LT(bytes->size(), std::size_t{1} << 16);
  EXPECT_EQ(NpzReader::from_memory(*bytes)->read("z")->data, arrays[0].array.data);
}

TEST(Npz, ForgedShapeBeyondTheDataIsAnError) {
  // A stored entry of a few bytes whose npy header claims 2^30 elements: refused by the limit before any of it is read.
  auto npy = *encode_npy(array_of<double>({1}, {1}));
  const std::string_view shape = "(1, ), }              ";
  const std::string_view forged = "(1000000000, ), }     ";
  std::ranges::copy(bytes_of(forged), npy.begin() + static_cast<std::ptrdiff_t>(find(npy, shape)));
  std::vector<std::byte> zip(30);
  const std::string_view name = "a.npy";
  const auto size = static_cast<std::uint32_t>(npy.size());
  put(&zip, 0, 0x04034b50, 4);
  put(&zip, 18, size, 4);
  put(&zip, 22, size, 4);
  put(&zip, 26, static_cast<std::uint32_t>(name.size()), 2);
  zip.insert(zip.end(), bytes_of(name).begin(), bytes_of(name).end());
  zip.insert(zip.end(), npy.begin(), npy.end());
  const std::size_t directory = zip.size();
  zip.resize(directory + 46);
  put(&zip, directory, 0x02014b50, 4);
  put(&zip, directory + 20, size, 4);
  put(&zip, directory + 24, size, 4);
  put(&zip, directory + 28, static_cast<std::uint32_t>(name.size()), 2);
  zip.insert(zip.end(), bytes_of(name).begin(), bytes_of(name).end());
  const std::size_t end = zip.size();
  zip.resize(end + 22);
  put(&zip, end, 0x06054b50, 4);
  put(&zip, end + 8, 1, 2);
  put(&zip, end + 10, 1, 2);
  put(&zip, end + 12, static_cast<std::uint32_t>(end - directory), 4);
  put(&zip, end + 16, static_cast<std::uint32_t>(directory), 4);

  const auto reader = NpzReader::from_memory(zip);
  ASSERT_TRUE(reader.has_value()) << reader.error().message;
  const auto array = reader->read("a");
  ASSERT_FALSE(array.has_value());
  EXPECT_THAT(array.error().message, HasSubstr("8000000000 bytes"));
}

TEST(Npz, ChecksumIsVerified) {
  auto bytes = *encode_npz(sample());
  const std::size_t directory = find(bytes, std::string_view("PK\x01\x02"));
  bytes[directory + 16] ^= std::byte{1};
  EXPECT_FALSE(NpzReader::from_memory(bytes)->read("in.x.rand0").has_value());
}

TEST(Npz, EveryTruncationIsAnError) {
  const auto file = encode_npz(sample());
  testing::for_each_truncation(*file,
                               [](const auto& bytes) { EXPECT_FALSE(NpzReader::from_memory(bytes).has_value()); });
}

TEST(Npz, DamagedFilesGiveTheArraysOrErrors) {
  const auto arrays = sample();
  const auto file = encode_npz(arrays);
  testing::for_random_damage(*file, 5000, [&](const auto& bytes) {
    const auto reader = NpzReader::from_memory(bytes);
    if (!reader) return;
    const auto all = reader->read_all();
    if (!all) return;
    // Checksums protect the data: what is delivered is what was stored.
    for (std::size_t i = 0; i < all->size(); ++i) EXPECT_EQ((*all)[i].array.data, arrays[i].array.data);
  });
}

TEST(Npz, FilesAreWrittenAndRead) {
  const testing::TemporaryFolder folder;
  const auto arrays = sample();
  ASSERT_TRUE(write_npz(folder.file("a.npz"), arrays).has_value());
  const auto back = read_npz(folder.file("a.npz"));
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(back->size(), arrays.size());
  auto reader = NpzReader::open(folder.file("a.npz"));
  const NpzReader moved = std::move(*reader);
  EXPECT_EQ(moved.read("out")->data, arrays[1].array.data);
  EXPECT_THAT(read_npz(folder.file("b.npz")).error().message, HasSubstr("b.npz"));
}

TEST(Npz, ArchivesWrittenByNumpyAreRead) {
  const std::filesystem::path folder = "../shared/models/reference";
  if (!std::filesystem::is_directory(folder)) GTEST_SKIP() << "no reference files here";
  std::size_t arrays = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    if (file.path().extension() != ".npz") continue;
    const auto all = read_npz(file.path().string());
    ASSERT_TRUE(all.has_value()) << all.error().message;
    arrays += all->size();
  }
  EXPECT_GT(arrays, 0U);
}

}  // namespace
}  // namespace bantam::io
