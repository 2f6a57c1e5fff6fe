#include "examples/training/dataset.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace zeus::examples {
namespace dataset_test {

TEST(DatasetTest, TheSameStreamGivesTheSameImages) {
  const Images first = RenderDigits(50, Random(1));
  EXPECT_EQ(first.pixels, RenderDigits(50, Random(1)).pixels);
  EXPECT_NE(first.pixels, RenderDigits(50, Random(2)).pixels);
  ASSERT_EQ(first.pixels.size(), 50U * kImageSide * kImageSide);
}

TEST(DatasetTest, EveryDigitAppearsAndIsBrighterThanTheBackground) {
  const Images images = RenderDigits(500, Random(3));
  const std::set<std::int64_t> labels(images.labels.begin(), images.labels.end());
  EXPECT_EQ(labels.size(), static_cast<std::size_t>(kDigits));
  double sum = 0;
  for (const float pixel : images.pixels) sum += pixel;
  EXPECT_GT(sum / static_cast<double>(images.pixels.size()), 0.05);
}

TEST(DatasetTest, TheLabelOfASequenceFollowsItsOnlyMarker) {
  const Sequences sequences = WriteSequences(200, Random(4));
  ASSERT_EQ(sequences.tokens.size(), 200U * kSequenceLength);
  for (std::size_t i = 0; i < sequences.labels.size(); ++i) {
    const auto begin = sequences.tokens.begin() + static_cast<std::ptrdiff_t>(i * kSequenceLength);
    const auto end = begin + kSequenceLength;
    ASSERT_EQ(std::count(begin, end, kMarker), 1);
    EXPECT_EQ(*(std::find(begin, end, kMarker) + 1), sequences.labels[i]);
    EXPECT_LT(sequences.labels[i], kLetters);
  }
}

}  // namespace dataset_test
}  // namespace zeus::examples
