#include "zeus/replay/cluster/cluster_trace.h"

#include <gmock/gmock.h>

namespace zeus::replay {
namespace cluster_trace_test {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr const char* kHeader = "group,start_time,end_time,dataset,runtime_ratio\n";

class GroupTraceTest : public ::testing::Test {
 protected:
  Result<ClusterTrace> Read(const std::string& rows) { return ReadText(kHeader + rows); }
  Result<ClusterTrace> ReadText(std::string text) {
    return ReadGroupTrace(TextSource("groups.csv", ReadFromMemory(std::move(text))), problems_);
  }
  static std::string Written(const ClusterTrace& trace) {
    std::string text;
    const Status written = WriteGroupTrace(trace, [&text](std::string_view part) {
      text += part;
      return Ok();
    });
    EXPECT_TRUE(written.ok());
    return text;
  }

  RowProblems problems_{};
};

TEST_F(GroupTraceTest, ReadsTheExampleOfTheFormat) {
  const auto trace = Read("0001086788b7, 1427642.0, 1446915.0, squad, 1.1779405764729405\n");
  ASSERT_TRUE(trace.ok());
  ASSERT_EQ(trace.value().groups.size(), 1U);
  EXPECT_EQ(trace.value().groups[0].id, "0001086788b7");
  EXPECT_EQ(trace.value().groups[0].workload, "bert_qa");
  ASSERT_EQ(trace.value().jobs.size(), 1U);
  EXPECT_EQ(trace.value().jobs[0].start, Seconds(1427642));
  EXPECT_EQ(trace.value().jobs[0].end, Seconds(1446915));
  EXPECT_EQ(trace.value().jobs[0].runtime_ratio, 1.1779405764729405);
  EXPECT_TRUE(problems_.empty());
}

TEST_F(GroupTraceTest, GroupsMayBeMixedInTheFile) {
  const auto trace = Read(
      "b,1,2,squad,1\n"
      "a,1,3,neumf,1\n"
      "b,2,5,squad,2\n"
      "a,4,6,neumf,3\n");
  ASSERT_TRUE(trace.ok());
  ASSERT_EQ(trace.value().groups.size(), 2U);
  const auto jobs = trace.value().GroupJobs(trace.value().groups[0]);
  EXPECT_EQ(trace.value().groups[0].id, "b");
  ASSERT_EQ(jobs.size(), 2U);
  EXPECT_EQ(jobs[1].runtime_ratio, 2);
  EXPECT_EQ(trace.value().GroupJobs(trace.value().groups[1])[1].runtime_ratio, 3);
  EXPECT_TRUE(problems_.empty());
}

TEST_F(GroupTraceTest, AGroupOutOfOrderIsPutInOrderAndReported) {
  const auto trace = Read("a,5,6,squad,1\na,1,2,squad,1\na,3,4,squad,1\n");
  ASSERT_TRUE(trace.ok());
  EXPECT_EQ(trace.value().jobs[0].start, Seconds(1));
  EXPECT_EQ(trace.value().jobs[2].start, Seconds(5));
  EXPECT_EQ(problems_.put_right(), 2);
  EXPECT_EQ(problems_.left_out(), 0);
  EXPECT_THAT(problems_.Refuse().error().message, StartsWith("groups.csv:3: starts before"));
}

struct BadRow {
  const char* name;
  const char* row;
  const char* reason;
};

class BadRowTest : public GroupTraceTest, public ::testing::WithParamInterface<BadRow> {};

TEST_P(BadRowTest, IsLeftOutAndReportedWithItsLine) {
  const auto trace = Read(std::string("a,0,1,squad,1\n") + GetParam().row + "\na,2,3,squad,1\n");
  ASSERT_TRUE(trace.ok());
  EXPECT_EQ(trace.value().jobs.size(), 2U);
  ASSERT_EQ(problems_.left_out(), 1);
  EXPECT_EQ(problems_.first()[0].line, 3);
  EXPECT_EQ(problems_.first()[0].reason, GetParam().reason);
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, BadRowTest,
    ::testing::Values(
        BadRow{"NoNumber", "a,nan,1,squad,1", "start_time is not a finite number: \"nan\""},
        BadRow{"Endless", "a,1,inf,squad,1", "end_time is not a finite number: \"inf\""},
        BadRow{"Negative", "a,-1,1,squad,1", "start_time is negative: \"-1\""},
        BadRow{"Backwards", "a,2,1,squad,1", "end_time is before start_time: \"1\""},
        BadRow{"NegativeRatio", "a,1,2,squad,-0.5", "runtime_ratio is negative: \"-0.5\""},
        BadRow{"FarRatio", "a,1,2,squad,1e300", "runtime_ratio is above 1e9: \"1e300\""},
        BadRow{"FarTime", "a,1,1e300,squad,1", "end_time is above 1e15 seconds: \"1e300\""},
        BadRow{"UnknownDataset", "a,1,2,mnist,1", "dataset is unknown: \"mnist\""},
        BadRow{"OtherDataset", "a,1,2,imagenet,1",
               "dataset is not that of the group's first row: \"imagenet\""},
        BadRow{"NoGroup", ",1,2,squad,1", "group is empty"},
        BadRow{"Short", "a,1,2,squad", "4 fields instead of 5"}),
    [](const auto& tested) { return std::string(tested.param.name); });

TEST_F(GroupTraceTest, AFileWithoutJobsIsRefused) {
  EXPECT_THAT(ReadText("").error().message, HasSubstr("groups.csv: the file is empty"));
  EXPECT_EQ(Read("").error().message, "groups.csv: no jobs below the first line");
  EXPECT_EQ(Read("a,1,2,mnist,1\n").error().message,
            "no usable job: groups.csv:2: dataset is unknown: \"mnist\"");
}

TEST_F(GroupTraceTest, MissingColumnsAreNamed) {
  EXPECT_THAT(ReadText("group,start_time,dataset\na,1,squad\n").error().message,
              HasSubstr("no column end_time, runtime_ratio"));
}

TEST_F(GroupTraceTest, WhatIsWrittenIsReadBackExactly) {
  const auto trace = Read("a,0.1,1.5,squad,0.3333333333333333\nb,2,3,neumf,1e-05\n").value();
  const auto again = ReadText(Written(trace)).value();
  ASSERT_EQ(again.jobs.size(), 2U);
  EXPECT_EQ(again.groups[0].workload, "bert_qa");
  EXPECT_EQ(again.groups[1].workload, "neumf");
  EXPECT_EQ(again.jobs[0].start, Seconds(0.1));
  EXPECT_EQ(again.jobs[0].runtime_ratio, 0.3333333333333333);
  EXPECT_EQ(again.jobs[1].runtime_ratio, 1e-05);
}

TEST_F(GroupTraceTest, NamesOfGroupsWithCommasAndQuotationMarksAreReadBack) {
  const auto trace = Read("\"a,b\",0,1,squad,1\n\"q\"\"x\",2,3,neumf,1\n").value();
  const auto again = ReadText(Written(trace)).value();
  EXPECT_TRUE(problems_.empty());
  ASSERT_EQ(again.groups.size(), 2U);
  EXPECT_EQ(again.groups[0].id, "a,b");
  EXPECT_EQ(again.groups[1].id, "q\"x");
}

TEST_F(GroupTraceTest, WritingEndsWhereNothingIsTaken) {
  const auto trace = Read("a,0,1,squad,1\nb,2,3,neumf,1\n").value();
  int parts = 0;
  const Status written = WriteGroupTrace(trace, [&parts](std::string_view) -> Status {
    ++parts;
    return Error{ErrorCode::kUnavailable, "full"};
  });
  EXPECT_FALSE(written.ok());
  EXPECT_EQ(parts, 1);
}

}  // namespace cluster_trace_test
}  // namespace zeus::replay
