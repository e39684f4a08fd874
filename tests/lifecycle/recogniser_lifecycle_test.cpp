// Recognisers opened and closed, with streams that hear sounds between: scripts/valgrind.sh sees that not one byte is
// lost, and sanitizers that nothing is read beyond its end.
#include <gtest/gtest.h>

#include <filesystem>

#include "bantam/recognizer.h"
#include "support/models.h"

namespace bantam::testing {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> recogniser_folders() {
  std::vector<fs::path> folders;
  for (const fs::path& folder : {fs::path("models/recogniser"), shared_folder() / "wenet-tiny"})
    if (fs::is_directory(folder / "test")) folders.push_back(folder);
  return folders;
}

TEST(RecogniserLifecycle, HearsTenUtterancesBetweenOpeningAndClosing) {
  for (const fs::path& folder : recogniser_folders()) {
    SCOPED_TRACE(folder.string());
    std::vector<std::vector<std::int16_t>> sounds;
    for (const auto& entry : fs::directory_iterator(folder / "test")) {
      if (entry.path().extension() != ".wav") continue;
      auto sound = read_speech(entry.path());
      ASSERT_TRUE(sound) << sound.error().message;
      sounds.push_back(std::move(*sound));
    }
    ASSERT_FALSE(sounds.empty());
    auto recognizer = Recognizer::open({.model = folder, .max_seconds = 9.0, .max_tokens = 80});
    ASSERT_TRUE(recognizer) << recognizer.error().message;
    auto stream = recognizer->open_stream();
    ASSERT_TRUE(stream) << stream.error().message;
    int finals = 0;
    (*stream)->set_listener({&finals, [](void* count, const speech::Recognition& result) {
                               if (result.end == speech::SegmentEnd::kInput) ++*static_cast<int*>(count);
                             }});
    for (std::size_t i = 0; i < 10; ++i) {
      (*stream)->reset();
      ASSERT_TRUE((*stream)->feed(sounds[i % sounds.size()]).ok());
      ASSERT_TRUE((*stream)->finish().ok());
    }
    EXPECT_EQ(finals, 10);
  }
}

}  // namespace
}  // namespace bantam::testing
