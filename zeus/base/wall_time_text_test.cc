#include "zeus/base/wall_time_text.h"

#include <gtest/gtest.h>

#include <chrono>

namespace zeus {
namespace wall_time_text_test {

using namespace std::chrono_literals;

WallTime At(const char* text) { return ParseWallTime(text).value(); }

TEST(WallTimeTextTest, TakesOffsetsFractionsAndSeconds) {
  EXPECT_EQ(At("1970-01-01T00:00:00Z"), WallTime());
  EXPECT_EQ(At("2024-03-31T03:30:00.250+02:00"),
            At("2024-03-31T01:30:00Z") + std::chrono::milliseconds(250));
  EXPECT_EQ(At("2023-12-31T19:00:00-05:00"), At("2024-01-01T00:00:00Z"));
  EXPECT_EQ(At("1711848600"), At("2024-03-31T01:30:00Z"));
  EXPECT_EQ(At("2024-02-29T00:00:00.000Z"), At("1709164800"));
}

TEST(WallTimeTextTest, RefusesWhatIsNoMoment) {
  for (const char* text : {"", "now", "2024-03-31", "2024-03-31T01:30:00", "2023-02-29T00:00:00Z",
                           "2024-03-31T24:00:00Z", "2024-03-31T01:60:00Z", "nan", "1e300",
                           "2024-03-31T01:30:00.Z", "2024-03-31T01:30:00Zz"})
    EXPECT_FALSE(ParseWallTime(text).ok()) << text;
}

TEST(WallTimeTextTest, IsReadBackAsWritten) {
  for (const char* text : {"2024-02-29T23:59:59Z", "1969-12-31T23:00:00Z"})
    EXPECT_EQ(ToText(At(text)), text);
}

TEST(WallTimeTextTest, ExactTextKeepsMicroseconds) {
  EXPECT_EQ(ToExactText(WallTime(1700000000s + 1234us)), "2023-11-14T22:13:20.001234Z");
  EXPECT_EQ(At(ToExactText(WallTime(1700000000s + 1234us)).c_str()),
            WallTime(1700000000s + 1234us));
}

}  // namespace wall_time_text_test
}  // namespace zeus
