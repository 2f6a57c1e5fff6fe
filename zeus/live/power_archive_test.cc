#include "zeus/live/power_archive.h"

#include <gtest/gtest.h>

namespace zeus::live::power_archive_test {
namespace {

using namespace zeus::literals;

constexpr std::size_t kSeconds = 0;
constexpr std::size_t kTens = 1;
constexpr std::size_t kMinutes = 2;

TEST(PowerArchiveTest, StepsHaveTheMeanAndTheExtremesOfTheirSeconds) {
  PowerArchive archive(1);
  for (int second = 0; second < 20; ++second)
    archive.Add(0, second, second < 10 ? 100_W : Watts(200.0 + second), second < 5);
  const auto tens = archive.Read(0, kTens, 0, 2);
  ASSERT_EQ(tens.size(), 2U);
  EXPECT_FLOAT_EQ(tens[0].mean, 100);
  EXPECT_FLOAT_EQ(tens[0].idle, 50);
  EXPECT_EQ(tens[0].seconds, 10);
  EXPECT_FLOAT_EQ(tens[1].mean, 214.5);
  EXPECT_FLOAT_EQ(tens[1].lowest, 210);
  EXPECT_FLOAT_EQ(tens[1].highest, 219);
  EXPECT_FLOAT_EQ(tens[1].idle, 0);
  EXPECT_FLOAT_EQ(archive.Read(0, kSeconds, 11, 12)[0].mean, 211);
  EXPECT_EQ(archive.Read(0, kMinutes, 0, 1)[0].seconds, 20);
}

TEST(PowerArchiveTest, TimeWithoutValuesStaysEmpty) {
  PowerArchive archive(2);
  archive.Add(0, 5, 100_W, false);
  archive.Add(0, 35, 300_W, false);
  const auto tens = archive.Read(0, kTens, 0, 5);
  EXPECT_EQ(tens[0].seconds, 1);
  EXPECT_EQ(tens[1].seconds, 0);
  EXPECT_EQ(tens[2].seconds, 0);
  EXPECT_EQ(tens[3].seconds, 1);
  EXPECT_EQ(tens[4].seconds, 0);
  for (const PowerBin& bin : archive.Read(1, kSeconds, 0, 40)) EXPECT_EQ(bin.seconds, 0);
}

TEST(PowerArchiveTest, OldStepsGiveWayAndNeverComeBackAsNewOnes) {
  PowerArchive archive(1);
  const std::int64_t bins = static_cast<std::int64_t>(PowerArchive::kLevels[kSeconds].bins);
  for (std::int64_t second = 0; second < bins; ++second) archive.Add(0, second, 1_W, false);
  archive.Add(0, bins + 10, 2_W, false);
  const auto all = archive.Read(0, kSeconds, 0, bins + 11);
  EXPECT_EQ(all[10].seconds, 0);
  EXPECT_EQ(all[11].seconds, 1);
  for (std::int64_t second = bins; second < bins + 10; ++second)
    EXPECT_EQ(all[static_cast<std::size_t>(second)].seconds, 0) << second;
  // Longer than the whole archive.
  archive.Add(0, 10 * bins, 3_W, false);
  int known = 0;
  for (const PowerBin& bin : archive.Read(0, kSeconds, 9 * bins, 10 * bins + 1))
    known += bin.seconds;
  EXPECT_EQ(known, 1);
}

TEST(PowerArchiveTest, ASecondCountsOnce) {
  PowerArchive archive(1);
  archive.Add(0, 7, 100_W, false);
  archive.Add(0, 7, 900_W, false);
  archive.Add(0, 6, 900_W, false);
  archive.Add(0, -1, 900_W, false);
  EXPECT_FLOAT_EQ(archive.Read(0, kTens, 0, 1)[0].mean, 100);
}

TEST(PowerArchiveTest, StepsOutsideOfTheArchiveAreEmpty) {
  PowerArchive archive(1);
  archive.Add(0, 100, 100_W, false);
  EXPECT_EQ(archive.Read(0, kSeconds, -50, 0).size(), 50U);
  EXPECT_EQ(archive.Read(0, kSeconds, 50, 40).size(), 0U);
  EXPECT_EQ(archive.Read(0, kSeconds, 101, 200)[0].seconds, 0);
  EXPECT_FALSE(PowerArchive::LevelOf(7));
  EXPECT_EQ(PowerArchive::LevelOf(60), kMinutes);
}

}  // namespace
}  // namespace zeus::live::power_archive_test
