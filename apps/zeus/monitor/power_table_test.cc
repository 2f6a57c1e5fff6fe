#include "apps/zeus/monitor/power_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zeus/export/testing/records.h"

namespace zeus::cli {
namespace power_table_test {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using zeus::testing::ASample;

const std::vector<Absence> kLost = {{.what = "gpu:2", .reason = "fell off the bus", .fix = ""},
                                    {.what = "AMD GPUs", .reason = "none", .fix = ""}};

TEST(PowerTableTest, ARowPerDeviceWithItsUncertainty) {
  EXPECT_THAT(
      PowerTable({}).Rows(ASample(), std::nullopt),
      ElementsAre(
          "4.0 s      model            power            energy   temp   util   limit     clock",
          "gpu:0      A100     250.0 ± 1.5 W    1000.0 ± 3.0 J  40 °C   90 %   280 W  1410 MHz",
          "gpu:1      A100                 -                 -      -      -       -         -  "
          "GPU fell off the bus",
          "cpu:0      EPYC     250.0 ± 1.5 W      50.0 ± 3.0 J      -      -       -         -"));
}

TEST(PowerTableTest, AGpuThatWasLostBeforeTheStartSaysWhy) {
  const auto rows = PowerTable(kLost).Rows(ASample(), std::nullopt);
  ASSERT_EQ(rows.size(), 5U);
  EXPECT_THAT(rows.back(), HasSubstr("gpu:2"));
  EXPECT_THAT(rows.back(), EndsWith("fell off the bus"));
}

TEST(PowerTableTest, ANarrowTerminalLosesColumnsByImportance) {
  const auto rows = PowerTable({}).Rows(ASample(), 60);
  EXPECT_THAT(rows[0], Not(HasSubstr("model")));
  EXPECT_THAT(rows[0], HasSubstr("energy"));
  EXPECT_THAT(rows[1], HasSubstr("1000.0 ± 3.0 J"));
}

TEST(PowerTableTest, NoRowIsWiderThanTheTerminal) {
  for (std::size_t width = 1; width < 140; ++width) {
    for (const std::string& row : PowerTable(kLost).Rows(ASample(), width))
      EXPECT_EQ(Cut(row, width), row) << width;
  }
}

TEST(PowerTableTest, TextIsCutBetweenCharacters) {
  EXPECT_EQ(Cut("1 ± 2", 3), "1 ±");
  EXPECT_EQ(Cut("1 ±", 3), "1 ±");
  EXPECT_EQ(Cut("", 3), "");
}

TEST(PowerTableTest, TheSummaryNamesEveryDevice) {
  EXPECT_EQ(Summary(ASample()),
            "4.0 s: gpu:0 1000.0 ± 3.0 J, gpu:1 unknown: GPU fell off the bus, cpu:0 50.0 ± "
            "3.0 J");
}

}  // namespace power_table_test
}  // namespace zeus::cli
