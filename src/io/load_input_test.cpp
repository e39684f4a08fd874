#include "io/load_input.h"

#include "gmock/gmock.h"
#include "io/file.h"
#include "io/npy.h"
#include "io/npz.h"
#include "io/testing/arrays.h"
#include "io/testing/temporary_folder.h"

namespace bantam::io {
namespace {

using testing::array_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::values_of;

class LoadInput : public ::testing::Test {
 protected:
  /// The values of `file` with its options in a target of two floats, or the message.
  std::string load(const std::string& file) const {
    const auto array = load_input(folder_.file(file), {"x", testing::desc_of(ElementType::kF32, {1, 2}), {}});
    if (!array) return array.error().message + " | " + array.error().remedy;
    const auto values = values_of<float>(*array);
    return std::to_string(values[0]) + " " + std::to_string(values[1]);
  }

  testing::TemporaryFolder folder_;
  const Array array_ = array_of<float>({2}, {1.0F, -2.0F});
  const std::string expected_ = "1.000000 -2.000000";
};

TEST_F(LoadInput, ReadsArraysWhateverTheirFileIsCalled) {
  ASSERT_TRUE(write_npy(folder_.file("a.npy"), array_).has_value());
  ASSERT_TRUE(write_npy(folder_.file("b.dat"), array_).has_value());
  EXPECT_EQ(load("a.npy"), expected_);
  EXPECT_EQ(load("b.dat,scale=1"), expected_);
}

TEST_F(LoadInput, ReadsEntriesOfArchives) {
  ASSERT_TRUE(write_npz(folder_.file("one.npz"), std::vector<NamedArray>{{"a", array_}}).has_value());
  ASSERT_TRUE(write_npz(folder_.file("two.npz"), std::vector<NamedArray>{{"a:0", array_}, {"b", array_}}).has_value());
  EXPECT_EQ(load("one.npz"), expected_);
  EXPECT_EQ(load("two.npz:a:0"), expected_);
  EXPECT_THAT(load("two.npz"), HasSubstr("entries are: a:0, b"));
  EXPECT_THAT(load("two.npz:c"), HasSubstr("no entry 'c'"));
}

TEST_F(LoadInput, ReadsRawDataByName) {
  const auto bytes = std::as_bytes(elements_of<float>(array_));
  ASSERT_TRUE(write_file(folder_.file("a.raw"), bytes).has_value());
  EXPECT_EQ(load("a.raw"), expected_);
}

TEST_F(LoadInput, ReadsSoundsAndPictures) {
  ASSERT_TRUE(write_wav(folder_.file("a.wav"), {8000, 1, {0.5F, -0.25F, 0.0F}}).has_value());
  EXPECT_EQ(load("a.wav"), "0.500000 -0.250000");
  ASSERT_TRUE(write_png(folder_.file("a.png"), {2, 1, 1, {3, 4}}).has_value());
  EXPECT_EQ(load("a.png"), "3.000000 4.000000");
}

TEST_F(LoadInput, GeneratesWithoutAFile) {
  const auto array = load_input("fill:2", {"x", testing::desc_of(ElementType::kI32, {2}), {}});
  ASSERT_TRUE(array.has_value());
  EXPECT_THAT(values_of<std::int32_t>(*array), ElementsAre(2, 2));
}

TEST_F(LoadInput, ErrorsNameInputAndFile) {
  ASSERT_TRUE(write_file(folder_.file("junk"), std::string_view("junk")).has_value());
  EXPECT_THAT(load("junk"),
              ::testing::AllOf(HasSubstr("input 'x'"), HasSubstr("junk"), HasSubstr("name raw data .raw")));
  EXPECT_THAT(load("missing"), HasSubstr("missing"));
  ASSERT_TRUE(write_npy(folder_.file("a.npy"), array_of<float>({1}, {0})).has_value());
  EXPECT_THAT(load("a.npy"), ::testing::AllOf(HasSubstr("input 'x'"), HasSubstr("a.npy")));
  EXPECT_FALSE(load_input("", {"x", array_.desc, {}}).has_value());
}

}  // namespace
}  // namespace bantam::io
