#include "zeus/base/csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace zeus {
namespace csv_test {

using ::testing::ElementsAre;

TEST(CsvTest, PlainFieldsStayAsTheyAre) { EXPECT_EQ(CsvField("epoch 1"), "epoch 1"); }

TEST(CsvTest, SeparatorsAndQuotationMarksAreQuoted) {
  EXPECT_EQ(CsvField("a,b"), "\"a,b\"");
  EXPECT_EQ(CsvField("say \"hi\""), "\"say \"\"hi\"\"\"");
}

TEST(CsvTest, ARecordStaysALine) { EXPECT_EQ(CsvField("a\r\nb"), "\"a  b\""); }

TEST(CsvTest, EmptyFieldsKeepTheirPlace) {
  EXPECT_EQ(CsvRow(std::vector<std::string>{"", "x", ""}), ",x,");
}

TEST(CsvTest, BlanksAtTheEndsAreQuoted) { EXPECT_EQ(CsvField(" a"), "\" a\""); }

// All records of a text, fields joined by |.
std::vector<std::string> Records(std::string_view text) {
  std::vector<std::string> records;
  CsvText csv(text);
  for (;;) {
    const auto found = csv.Next();
    if (!found.ok()) records.push_back("error: " + found.error().message);
    if (!found.ok() || !found.value()) return records;
    std::string record = std::to_string(csv.line()) + ":";
    for (const std::string_view field : csv.fields()) record += std::string(field) + "|";
    records.push_back(record);
  }
}

TEST(CsvTest, RecordsAreReadByRfc4180) {
  EXPECT_THAT(Records("a,b\r\n1,\"x,\"\"y\"\"\"\n"), ElementsAre("1:a|b|", "2:1|x,\"y\"|"));
  EXPECT_THAT(Records("\"one\ntwo\",3\nlast"), ElementsAre("1:one\ntwo|3|", "3:last|"));
  EXPECT_THAT(Records("\"\",,\"\"\"\"\n"), ElementsAre("1:||\"|"));
}

TEST(CsvTest, BlanksAroundFieldsAreNoPartOfThem) {
  EXPECT_THAT(Records(" a , \" b \" ,c\t\n"), ElementsAre("1:a| b |c|"));
}

TEST(CsvTest, EmptyLinesCommentsAndByteOrderMarksArePassedOver) {
  EXPECT_THAT(Records("\xef\xbb\xbf# \"made by hand\n\n  \r\na\n"), ElementsAre("4:a|"));
}

TEST(CsvTest, AQuotationMarkNeedsItsPartner) {
  EXPECT_THAT(Records("a\n\"b,c\n"),
              ElementsAre("1:a|", "error: a quotation mark without its partner"));
  CsvText csv("\"a\nb\nc\n");
  EXPECT_FALSE(csv.Next().ok());
  EXPECT_EQ(csv.line(), 1U);
  EXPECT_TRUE(csv.finished());
  EXPECT_TRUE(csv.Next().ok());
  EXPECT_EQ(csv.line(), 2U);
}

TEST(CsvTest, FieldsAreReadAsTheyWereWritten) {
  const std::vector<std::string> fields = {"", " x", "a,b", "say \"hi\"", "\"", "#", "y\t"};
  const std::string row = CsvRow(fields) + "\n";
  CsvText csv(row);
  const auto found = csv.Next();
  ASSERT_TRUE(found.ok() && found.value());
  EXPECT_TRUE(csv.finished());
  EXPECT_EQ(std::vector<std::string>(csv.fields().begin(), csv.fields().end()), fields);
}

TEST(CsvTest, TheLastRecordMayBeUnfinished) {
  CsvText csv("a,b\n1,2");
  ASSERT_TRUE(csv.Next().ok());
  EXPECT_TRUE(csv.finished());
  ASSERT_TRUE(csv.Next().ok());
  EXPECT_FALSE(csv.finished());
}

}  // namespace csv_test
}  // namespace zeus
