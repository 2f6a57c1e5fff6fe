#include "zeus/base/quantity_text.h"

#include <gtest/gtest.h>

#include <chrono>
#include <limits>

namespace zeus {
namespace quantity_text_test {

using namespace literals;
using namespace std::chrono_literals;

TEST(QuantityTextTest, DigitsFollowTheUncertainty) {
  EXPECT_EQ(WithSigma(708_J, 22_J), "708 ± 22 J");
  EXPECT_EQ(WithSigma(231.16_W, 0.52_W), "231.16 ± 0.52 W");
  EXPECT_EQ(WithSigma(0.52_J, 0.08_J), "520 ± 80 mJ");
}

TEST(QuantityTextTest, ValueAndUncertaintyShareAPrefix) {
  EXPECT_EQ(WithSigma(61123_J, 14092_J), "61 ± 14 kJ");
  EXPECT_EQ(WithSigma(61123_J, 1409_J), "61.1 ± 1.4 kJ");
  EXPECT_EQ(WithSigma(Seconds(4213us), Seconds(12us)), "4.213 ± 0.012 ms");
  EXPECT_EQ(WithSigma(2.5e9, 4e7, "J"), "2.500 ± 0.040 GJ");
}

TEST(QuantityTextTest, FourDigitsNeedNoPrefix) {
  EXPECT_EQ(WithSigma(9999_J, 31_J), "9999 ± 31 J");
  EXPECT_EQ(WithSigma(10000_J, 31_J), "10.000 ± 0.031 kJ");
}

TEST(QuantityTextTest, APrefixLeavesTwoDigitsOfTheUncertainty) {
  EXPECT_EQ(WithSigma(2473_J, 1735_J), "2.5 ± 1.7 kJ");
  EXPECT_EQ(WithSigma(2899_J, 437_J), "2.90 ± 0.44 kJ");
  EXPECT_EQ(WithSigma(800_J, 1735_J), "0.8 ± 1.7 kJ");
  EXPECT_EQ(WithSigma(2899_J, 99_J), "2899 ± 99 J");
  EXPECT_EQ(WithSigma(954_J, 348_J), "954 ± 348 J");  // A kilojoule would be a fraction.
}

TEST(QuantityTextTest, ALargeUncertaintyChoosesThePrefix) {
  EXPECT_EQ(WithSigma(0.001_J, 5_J), "0.0 ± 5.0 J");
  EXPECT_EQ(WithSigma(0_J, 31_J), "0 ± 31 J");
}

TEST(QuantityTextTest, AnUnknownUncertaintyIsLeftOut) {
  EXPECT_EQ(WithSigma(708_J, 0_J), "708 J");
  EXPECT_EQ(WithSigma(708.0, std::numeric_limits<double>::quiet_NaN(), "J"), "708 J");
}

TEST(QuantityTextTest, NumbersWithoutAUnitHaveNoPrefix) {
  EXPECT_EQ(WithSigma(0.9987, 0.0012, ""), "0.9987 ± 0.0012");
  EXPECT_EQ(WithSigma(123456, 789, ""), "123456 ± 789");
  EXPECT_EQ(WithSigma(0.001234, 0, ""), "0.00123");
  EXPECT_EQ(WithSigma(0.7364, 0.0022, "/s"), "0.7364 ± 0.0022 /s");
}

TEST(QuantityTextTest, EnergiesHaveThreeDigits) {
  EXPECT_EQ(EnergyText(812_J), "812 J");
  EXPECT_EQ(EnergyText(12345_J), "12.3 kJ");
  EXPECT_EQ(EnergyText(4.56e6_J), "4.56 MJ");
  EXPECT_EQ(EnergyText(0_J), "0.00 J");
}

TEST(QuantityTextTest, LongTimesAreMinutesAndHours) {
  EXPECT_EQ(TimeText(8.4s), "8.40 s");
  EXPECT_EQ(TimeText(738s), "12.3 min");
  EXPECT_EQ(TimeText(4.1h), "4.10 h");
  EXPECT_EQ(WithSigma(Seconds(738s), Seconds(24s)), "12.30 ± 0.40 min");
}

TEST(QuantityTextTest, PercentagesShareTheirSign) {
  EXPECT_EQ(PercentText(0.1234), "12.3 %");
  EXPECT_EQ(PercentWithSigma(17.21, 0.9), "17.21 ± 0.90 %");
  EXPECT_EQ(ChangeWithSigma(-12.14, 0.041), "-12.14 ± 0.04 %");
  EXPECT_EQ(ChangeWithSigma(3.1, 14.2), "+3 ± 14 %");
  EXPECT_EQ(ChangeWithSigma(-0.0, 0), "+0.0 %");
  EXPECT_EQ(ChangeText(88, 100), "-12.0 %");
  EXPECT_EQ(ChangeText(1, 0), "-");
}

}  // namespace quantity_text_test
}  // namespace zeus
