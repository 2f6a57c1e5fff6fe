#include "zeus/replay/input/csv_reader.h"

#include <gmock/gmock.h>

#include "zeus/base/testing/temporary_directory.h"

namespace zeus::replay {
namespace csv_reader_test {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class CsvReaderTest : public ::testing::Test {
 protected:
  Result<CsvReader> Make(std::string text, CsvColumns columns = {.required = {"name", "time"}}) {
    return CsvReader::Make(TextSource("jobs.csv", ReadFromMemory(std::move(text))), columns,
                           problems_);
  }

  // Returns "name=time" of every row.
  std::vector<std::string> Rows(std::string text) {
    auto reader = Make(std::move(text));
    EXPECT_TRUE(reader.ok());
    std::vector<std::string> rows;
    while (reader.value().Next().value())
      rows.push_back(std::string(reader.value().Text(0)) + "=" +
                     std::string(reader.value().Text(1)));
    return rows;
  }

  std::string FirstReason() const {
    return problems_.first().empty() ? "" : problems_.first().front().reason;
  }

  RowProblems problems_{};
};

TEST_F(CsvReaderTest, FindsColumnsByNameWhereverTheyAre) {
  EXPECT_THAT(Rows("time,colour,name\n1,red,a\n2,blue,b\n"), ElementsAre("a=1", "b=2"));
  EXPECT_TRUE(problems_.empty());
}

TEST_F(CsvReaderTest, WhatProgramsAddAroundFieldsIsNoPartOfThem) {
  EXPECT_THAT(Rows("\xef\xbb\xbfname, time\r\n a ,\t1\r\n\r\n\nb,2"), ElementsAre("a=1", "b=2"));
  EXPECT_TRUE(problems_.empty());
}

TEST_F(CsvReaderTest, QuotationMarksKeepCommasAndThemselves) {
  EXPECT_THAT(Rows("\"name\",time\n\"a,b\",1\n\"say \"\"hi\"\"\",\"2\"\n\"\",3\n"),
              ElementsAre("a,b=1", "say \"hi\"=2", "=3"));
}

TEST_F(CsvReaderTest, EmptyFieldsAreFields) {
  EXPECT_THAT(Rows("name,time\n,\na,\n,1\n"), ElementsAre("=", "a=", "=1"));
}

TEST_F(CsvReaderTest, RowsOfAnotherLengthAreReportedWithTheirLine) {
  EXPECT_THAT(Rows("name,time\na\nb,2\nc,3,4\n"), ElementsAre("b=2"));
  ASSERT_EQ(problems_.left_out(), 2);
  EXPECT_EQ(problems_.first()[0].line, 2);
  EXPECT_EQ(problems_.first()[0].reason, "1 fields instead of 2");
  EXPECT_EQ(problems_.first()[1].line, 4);
  EXPECT_EQ(problems_.first()[1].file, "jobs.csv");
}

TEST_F(CsvReaderTest, AnOpenQuotationMarkSpoilsItsLineOnly) {
  EXPECT_THAT(Rows("name,time\n\"a,1\nb,2\n"), ElementsAre("b=2"));
  EXPECT_EQ(FirstReason(), "a quotation mark without its partner");
}

TEST_F(CsvReaderTest, MissingColumnsAreNamed) {
  const auto reader = Make("colour,when\nred,1\n");
  ASSERT_FALSE(reader.ok());
  EXPECT_EQ(reader.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(reader.error().message,
            "jobs.csv: no column name, time; the first line has \"colour,when\"");
}

TEST_F(CsvReaderTest, AColumnThatIsThereTwiceIsRefused) {
  EXPECT_THAT(Make("name,time,name\n").error().message, HasSubstr("column name is there twice"));
}

TEST_F(CsvReaderTest, AnEmptyFileIsRefusedWithWhatItNeeds) {
  for (const char* text : {"", "\n\n", "\xef\xbb\xbf"})
    EXPECT_THAT(Make(text).error().message,
                AllOf(HasSubstr("jobs.csv: the file is empty"), HasSubstr("name, time")));
}

TEST_F(CsvReaderTest, OptionalColumnsMayBeMissing) {
  const CsvColumns columns{.required = {"name"}, .optional = {"time", "colour"}};
  auto reader = Make("name,colour\na,red\n", columns);
  ASSERT_TRUE(reader.value().Next().value());
  EXPECT_FALSE(reader.value().Has(1));
  EXPECT_EQ(reader.value().Text(1), "");
  EXPECT_TRUE(reader.value().Has(2));
  EXPECT_EQ(reader.value().Text(2), "red");
}

TEST_F(CsvReaderTest, TheColumnsOfATableWithoutHeaderAreGiven) {
  const CsvColumns columns{.required = {"name", "time"}, .header = {"time", "colour", "name"}};
  auto reader = Make("1,red,a\n", columns);
  ASSERT_TRUE(reader.value().Next().value());
  EXPECT_EQ(reader.value().Text(0), "a");
  EXPECT_EQ(reader.value().line(), 1);
}

TEST_F(CsvReaderTest, NumbersAreFiniteOrReported) {
  auto reader = Make("name,time\na,1.5e3\nb,nan\nc,inf\nd,12x\ne,\nf,-2\n");
  std::vector<std::optional<double>> numbers;
  while (reader.value().Next().value()) numbers.push_back(reader.value().Number(1));
  EXPECT_THAT(numbers,
              ElementsAre(1500.0, std::nullopt, std::nullopt, std::nullopt, std::nullopt, -2.0));
  EXPECT_EQ(problems_.left_out(), 4);
  EXPECT_EQ(FirstReason(), "time is not a finite number: \"nan\"");
}

TEST_F(CsvReaderTest, WholeNumbersAreWholeOrReported) {
  auto reader = Make("name,time\na,12\nb,1.5\nc,99999999999999999999\n");
  std::vector<std::optional<std::int64_t>> numbers;
  while (reader.value().Next().value()) numbers.push_back(reader.value().Integer(1));
  EXPECT_THAT(numbers, ElementsAre(12, std::nullopt, std::nullopt));
}

TEST_F(CsvReaderTest, RowsAcrossBlocksAreWhole) {
  std::string text = "name,time\n";
  for (int i = 0; i < 200000; ++i)
    text += "job" + std::to_string(i) + "," + std::to_string(i) + "\n";
  auto reader = Make(text);
  std::int64_t rows = 0;
  for (; reader.value().Next().value(); ++rows)
    ASSERT_EQ(reader.value().Text(0), "job" + std::to_string(reader.value().Integer(1).value()));
  EXPECT_EQ(rows, 200000);
  EXPECT_EQ(reader.value().line(), 200001);
  EXPECT_EQ(reader.value().bytes_read(), static_cast<std::int64_t>(text.size()));
}

TEST_F(CsvReaderTest, AMissingFileIsNotFound) {
  EXPECT_EQ(CsvReader::Open("absent.csv", {}, problems_).error().code, ErrorCode::kNotFound);
}

}  // namespace csv_reader_test
}  // namespace zeus::replay
