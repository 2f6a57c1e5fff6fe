#include "zeus/replay/input/csv_reader.h"

#include <gmock/gmock.h>

#include "zeus/base/json.h"
#include "zeus/base/testing/temporary_directory.h"

namespace zeus::replay {
namespace csv_reader_test {

using ::testing::HasSubstr;

TEST(RowProblemsTest, NothingIsWrongAtFirst) {
  const RowProblems problems;
  EXPECT_TRUE(problems.empty());
  EXPECT_EQ(problems.Summary(), "");
  EXPECT_TRUE(problems.Refuse().ok());
}

TEST(RowProblemsTest, AllAreCountedAndTheFirstAreNamed) {
  RowProblems problems(2);
  for (int line = 5; line < 10; ++line)
    problems.Add("jobs.csv", line, "end_time is not a number", "soon");
  problems.Add("jobs.csv", 10, "starts before the job above it", {}, RowFate::kKept);

  EXPECT_EQ(problems.left_out(), 5);
  EXPECT_EQ(problems.put_right(), 1);
  EXPECT_EQ(problems.Summary(),
            "5 rows left out, 1 put right\n"
            "  5 rows: end_time is not a number\n"
            "  1 rows: starts before the job above it\n"
            "  jobs.csv:5: end_time is not a number: \"soon\"\n"
            "  jobs.csv:6: end_time is not a number: \"soon\"\n"
            "  and 4 more\n");
  EXPECT_EQ(problems.ToJson()["kinds"]["end_time is not a number"], 5);
  EXPECT_EQ(problems.ToJson()["first"][1]["line"], 6);
}

TEST(RowProblemsTest, WhoWantsGoodRowsOnlyHearsOfTheFirst) {
  RowProblems problems;
  problems.Add("jobs.csv", 3, "dataset is unknown", "mnist");
  problems.Add("jobs.csv", 4, "dataset is unknown", "mnist");
  const Status refused = problems.Refuse();
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(refused.error().message, "jobs.csv:3: dataset is unknown: \"mnist\" (and 1 more)");
}

TEST(RowProblemsTest, KindsComeToAnEnd) {
  RowProblems problems;
  for (int i = 0; i < 3000; ++i)
    problems.Add("jobs.csv", i, std::to_string(i) + " fields instead of 5");
  const Json kinds = problems.ToJson()["kinds"];
  EXPECT_EQ(kinds.size(), 21u);
  EXPECT_EQ(kinds["other problems"], 2980);
  EXPECT_EQ(problems.left_out(), 3000);
}

TEST(RowProblemsTest, AFileThatIsReadTwiceIsToldOfOnce) {
  RowProblems of_file;
  of_file.Add("jobs.csv", 3, "dataset is unknown", "mnist");
  RowProblems problems;
  problems.AddFile("jobs.csv", of_file);
  problems.AddFile("jobs.csv", of_file);
  EXPECT_EQ(problems.left_out(), 1);
  problems.AddFile("others.csv", of_file);
  EXPECT_EQ(problems.left_out(), 2);
  EXPECT_EQ(problems.first().size(), 2U);
}

TEST(RowProblemsTest, ATerminalSurvivesWhatRowsHold) {
  RowProblems problems;
  problems.Add("jobs.csv", 1, "dataset is unknown", "\x1b[2J");
  EXPECT_THAT(problems.Summary(), HasSubstr("\"\\x1b[2J\""));
}

using ::testing::AllOf;
using ::testing::ElementsAre;

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
