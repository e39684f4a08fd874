#include "io/raw.h"

#include "gmock/gmock.h"
#include "io/file.h"
#include "io/testing/arrays.h"
#include "io/testing/temporary_folder.h"

namespace bantam::io {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Raw, BytesBecomeElements) {
  const auto array =
      parse_raw(bytes_of(std::string_view("\1\0\xff\xff", 4)), testing::desc_of(ElementType::kI16, {1, 2}));
  ASSERT_TRUE(array.has_value());
  EXPECT_THAT(testing::values_of<std::int16_t>(*array), ElementsAre(1, -1));
}

TEST(Raw, SizeMustMatchExactly) {
  const TensorDesc desc = testing::desc_of(ElementType::kF32, {2});
  for (const std::size_t size : {0, 7, 9, 16}) {
    const auto array = parse_raw(std::vector<std::byte>(size), desc);
    ASSERT_FALSE(array.has_value());
    EXPECT_THAT(array.error().message, HasSubstr("f32[2] takes 8"));
  }
  EXPECT_TRUE(parse_raw({}, testing::desc_of(ElementType::kF32, {0})).has_value());
}

TEST(Raw, HugeShapeIsRefusedWithoutAllocation) {
  EXPECT_FALSE(parse_raw(std::vector<std::byte>(1), testing::desc_of(ElementType::kU8, {2})).has_value());
  TensorDesc desc;
  desc.type = ElementType::kF64;
  desc.rank = 1;
  desc.dims[0] = 0x7fffffff;
  EXPECT_FALSE(parse_raw(std::vector<std::byte>(8), desc).has_value());
}

TEST(Raw, BoolsBecomeZeroOrOne) {
  const auto array =
      parse_raw(std::vector<std::byte>{std::byte{0}, std::byte{7}}, testing::desc_of(ElementType::kBool, {2}));
  EXPECT_EQ(array->data[1], std::byte{1});
}

TEST(Raw, FilesAreNamedInErrors) {
  const testing::TemporaryFolder folder;
  ASSERT_TRUE(write_file(folder.file("x.raw"), std::string_view("abc")).has_value());
  EXPECT_TRUE(read_raw(folder.file("x.raw"), testing::desc_of(ElementType::kU8, {3})).has_value());
  EXPECT_THAT(read_raw(folder.file("x.raw"), testing::desc_of(ElementType::kU8, {4})).error().message,
              HasSubstr("x.raw"));
}

}  // namespace
}  // namespace bantam::io
