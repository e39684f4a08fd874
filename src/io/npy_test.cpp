#include "io/npy.h"

#include "gmock/gmock.h"
#include "io/file.h"
#include "io/testing/arrays.h"
#include "io/testing/corruption.h"
#include "io/testing/temporary_folder.h"

namespace bantam::io {
namespace {

using testing::array_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::values_of;

/// A file of that version with that header text, followed by the data.
std::vector<std::byte> file_of(int version, const std::string& header, const std::string& data) {
  std::string file = "\x93NUMPY";
  file += static_cast<char>(version);
  file += '\0';
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i) file += static_cast<char>(header.size() >> (8 * i) & 0xff);
  file += header + data;
  const auto bytes = bytes_of(file);
  return {bytes.begin(), bytes.end()};
}

std::string header_of(const std::string& descr, const std::string& order, const std::string& shape) {
  return "{'descr': '" + descr + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }\n";
}

TEST(Npy, EveryElementTypeSurvives) {
  for (int t = 1; t < static_cast<int>(ElementType::kCount); ++t) {
    const auto type = static_cast<ElementType>(t);
    if (type == ElementType::kBF16 || type == ElementType::kI4) continue;
    SCOPED_TRACE(element_type_name(type));
    const auto array = convert(array_of<float>({2, 3}, {0, 1, 2, 3, 4, 5}), type);
    ASSERT_TRUE(array.has_value());
    const auto back = parse_npy(*encode_npy(*array));
    ASSERT_TRUE(back.has_value()) << back.error().message;
    EXPECT_TRUE(same_shape_and_type(back->desc, array->desc));
    EXPECT_EQ(back->data, array->data);
  }
}

TEST(Npy, DataStartAtAMultipleOf64) {
  for (const std::int64_t n : {1, 10, 100, 100000}) {
    const auto bytes = encode_npy(*make_array(ElementType::kU8, std::vector<std::int64_t>{n}));
    EXPECT_EQ((bytes->size() - static_cast<std::size_t>(n)) % 64, 0U);
  }
}

TEST(Npy, ScalarsEmptyAndDeepShapesSurvive) {
  for (const auto& dims : {std::vector<std::int64_t>{}, {0}, {3, 0, 2}, {1, 1, 2, 1, 1, 1, 3, 1}}) {
    const auto array = make_array(ElementType::kF32, dims);
    const auto back = parse_npy(*encode_npy(*array));
    ASSERT_TRUE(back.has_value()) << back.error().message;
    EXPECT_TRUE(same_shape_and_type(back->desc, array->desc));
    EXPECT_TRUE(back->desc.is_dense());
  }
}

TEST(Npy, ReadsAllVersionsAndSpellings) {
  const std::string data("\x01\x00\x02\x00", 4);
  for (const int version : {1, 2, 3}) {
    const auto array = parse_npy(file_of(version, header_of("<i2", "False", "(2,)"), data));
    ASSERT_TRUE(array.has_value()) << array.error().message;
    EXPECT_THAT(values_of<std::int16_t>(*array), ElementsAre(1, 2));
  }
  EXPECT_TRUE(parse_npy(file_of(1, "{\"shape\":(2L,),\"descr\":\"i2\",\"fortran_order\":False}", data)).has_value());
  EXPECT_TRUE(parse_npy(file_of(1, header_of("=i2", "True", "( 2 , 1 )"), data)).has_value());
}

TEST(Npy, TurnsBigEndianAndFortranOrder) {
  // [[1, 2, 3], [4, 5, 6]] listed column by column, high byte first.
  const std::string data("\0\1\0\4\0\2\0\5\0\3\0\6", 12);
  const auto array = parse_npy(file_of(1, header_of(">u2", "True", "(2, 3)"), data));
  ASSERT_TRUE(array.has_value()) << array.error().message;
  EXPECT_THAT(values_of<std::uint16_t>(*array), ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST(Npy, TurnsFortranOrderOfThreeDimensions) {
  const auto array = parse_npy(file_of(1, header_of("|u1", "True", "(2, 2, 2)"), std::string("\0\1\2\3\4\5\6\7", 8)));
  ASSERT_TRUE(array.has_value()) << array.error().message;
  EXPECT_THAT(values_of<std::uint8_t>(*array), ElementsAre(0, 4, 2, 6, 1, 5, 3, 7));
}

TEST(Npy, BoolsBecomeZeroOrOne) {
  const auto array = parse_npy(file_of(1, header_of("|b1", "False", "(3,)"), std::string("\0\1\x80", 3)));
  ASSERT_TRUE(array.has_value());
  EXPECT_THAT(values_of<std::int32_t>(*convert(*array, ElementType::kI32)), ElementsAre(0, 1, 1));
  EXPECT_EQ(array->data[2], std::byte{1});
}

TEST(Npy, NamesWhatIsWrong) {
  const auto message = [](const std::string& header) {
    const auto array = parse_npy(file_of(1, header, ""));
    return array ? "accepted" : array.error().message;
  };
  EXPECT_THAT(message(header_of("|O", "False", "(1,)")), HasSubstr("'|O'"));
  EXPECT_THAT(message(header_of("<c8", "False", "(1,)")), HasSubstr("'<c8'"));
  EXPECT_THAT(message(header_of("", "False", "(1,)")), HasSubstr("element type"));
  EXPECT_THAT(message(header_of("<f4", "Maybe", "(1,)")), HasSubstr("fortran_order"));
  EXPECT_THAT(message(header_of("<f4", "False", "(-1,)")), HasSubstr("shape"));
  EXPECT_THAT(message(header_of("<f4", "False", "(99999999999999999999,)")), HasSubstr("shape"));
  EXPECT_THAT(message(header_of("<f4", "False", "(4294967296, 4294967296)")), HasSubstr("shape"));
  EXPECT_THAT(message(header_of("<f4", "False", "(1,1,1,1,1,1,1,1,1)")), HasSubstr("9 dimensions"));
  EXPECT_THAT(message(header_of("<f4", "False", "(2, 3)")), HasSubstr("f32[2,3] has 0 bytes of data, expected 24"));
  EXPECT_THAT(message("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': ()}"), HasSubstr("'descr'"));
  EXPECT_THAT(message("{'descr': '<f4', 'shape': ()}"), HasSubstr("lacks"));
  EXPECT_THAT(message("{'x': '<f4'}"), HasSubstr("'x'"));
  EXPECT_THAT(message("{} {}"), HasSubstr("goes on"));
  EXPECT_THAT(message(""), HasSubstr("dictionary"));
}

TEST(Npy, RefusesBytesAfterTheData) {
  EXPECT_FALSE(parse_npy(file_of(1, header_of("|u1", "False", "(1,)"), "ab")).has_value());
}

TEST(Npy, RefusesTypesWithoutAName) {
  EXPECT_FALSE(encode_npy(*make_array(ElementType::kBF16, std::vector<std::int64_t>{1})).has_value());
}

TEST(Npy, EveryTruncationIsAnError) {
  const auto file = encode_npy(array_of<float>({2, 2}, {1, 2, 3, 4}));
  testing::for_each_truncation(*file, [](const auto& bytes) { EXPECT_FALSE(parse_npy(bytes).has_value()); });
}

TEST(Npy, DamagedFilesGiveAConsistentArrayOrAnError) {
  const auto file = encode_npy(array_of<float>({2, 3, 1}, {1, 2, 3, 4, 5, 6}));
  testing::for_random_damage(*file, 5000, [](const auto& bytes) {
    const auto array = parse_npy(bytes);
    if (array) {
      EXPECT_EQ(static_cast<std::int64_t>(array->data.size()), array->desc.bytes());
    } else {
      EXPECT_FALSE(array.error().message.empty());
    }
  });
}

TEST(Npy, FilesAreWrittenAndRead) {
  const testing::TemporaryFolder folder;
  const Array array = array_of<std::int64_t>({2}, {-1, 1});
  ASSERT_TRUE(write_npy(folder.file("a.npy"), array).has_value());
  EXPECT_EQ(read_npy(folder.file("a.npy"))->data, array.data);
  ASSERT_TRUE(write_file(folder.file("b.npy"), std::string_view("junk")).has_value());
  EXPECT_THAT(read_npy(folder.file("b.npy")).error().message, HasSubstr("b.npy"));
}

}  // namespace
}  // namespace bantam::io
