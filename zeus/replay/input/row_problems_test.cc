#include "zeus/replay/input/row_problems.h"

#include <gmock/gmock.h>

#include "zeus/base/json.h"

namespace zeus::replay {
namespace row_problems_test {

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

}  // namespace row_problems_test
}  // namespace zeus::replay
