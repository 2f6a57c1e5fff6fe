#include "zeus/base/csv.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace zeus {
namespace csv_test {

TEST(CsvTest, PlainFieldsStayAsTheyAre) { EXPECT_EQ(CsvField("epoch 1"), "epoch 1"); }

TEST(CsvTest, SeparatorsAndQuotationMarksAreQuoted) {
  EXPECT_EQ(CsvField("a,b"), "\"a,b\"");
  EXPECT_EQ(CsvField("say \"hi\""), "\"say \"\"hi\"\"\"");
}

TEST(CsvTest, ARecordStaysALine) { EXPECT_EQ(CsvField("a\r\nb"), "\"a  b\""); }

TEST(CsvTest, EmptyFieldsKeepTheirPlace) {
  EXPECT_EQ(CsvRow(std::vector<std::string>{"", "x", ""}), ",x,");
}

}  // namespace csv_test
}  // namespace zeus
