#include "zeus/export/sample_csv.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "zeus/export/testing/records.h"

namespace zeus {
namespace sample_csv_test {

TEST(SampleCsvTest, ARowPerDeviceWithEmptyCellsForWhatIsNotKnown) {
  const auto rows = SampleCsvRows(zeus::testing::ASample());
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0],
            "1700000000.250000,4.000000,gpu:0,A100,GPU-1,250,1.5,1000,3,counter,40,0.9,1410000000,"
            "300,280,,");
  EXPECT_EQ(rows[1], "1700000000.250000,4.000000,gpu:1,A100,GPU-2,,,,,,,,,,,,GPU fell off the bus");
}

TEST(SampleCsvTest, RowsHaveAsManyCellsAsTheHeader) {
  const auto commas = std::ranges::count(SampleCsvHeader(), ',');
  for (const std::string& row : SampleCsvRows(zeus::testing::ASample()))
    EXPECT_EQ(std::ranges::count(row, ','), commas) << row;
}

}  // namespace sample_csv_test
}  // namespace zeus
