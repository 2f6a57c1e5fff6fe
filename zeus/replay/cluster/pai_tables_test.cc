#include "zeus/replay/cluster/pai_tables.h"

#include <gmock/gmock.h>

#include "zeus/base/testing/temporary_directory.h"

namespace zeus::replay {
namespace pai_tables_test {

using ::testing::HasSubstr;

const std::vector<std::string> kWorkloads{"neumf", "resnet50"};

class PaiTablesTest : public ::testing::Test {
 protected:
  void AddTables(const std::string& jobs, const std::string& groups) {
    directory_.AddFile("pai_job_table.csv", jobs);
    directory_.AddFile("pai_group_tag_table.csv", groups);
  }
  Result<PaiTrace> Read() { return ReadPaiTables(directory_.path(), kWorkloads, problems_); }

  zeus::testing::TemporaryDirectory directory_;
  RowProblems problems_{};
};

TEST_F(PaiTablesTest, JoinsJobsThatTerminatedWithTheirGroups) {
  AddTables(
      "j1,i1,u,Terminated,100.0,110.0\n"
      "j2,i2,u,Terminated,50.0,60.0\n"
      "j3,i3,u,Failed,1.0,2.0\n"
      "j4,i4,u,Terminated,1.0,1001.0\n"
      "j5,i5,u,Running,5.0,\n"
      "j6,i9,u,Terminated,5.0,6.0\n",
      "i1,u,V100,g1,\n"
      "i2,u,V100,g1,\n"
      "i3,u,V100,g1,\n"
      "i4,u,,g2,bert\n"
      "i5,u,,g2,bert\n");
  const auto pai = Read();
  ASSERT_TRUE(pai.ok());
  const ClusterTrace& trace = pai.value().trace;
  ASSERT_EQ(trace.groups.size(), 2U);
  EXPECT_EQ(trace.groups[0].id, "g1");
  EXPECT_EQ(trace.groups[0].workload, "neumf");
  EXPECT_EQ(trace.groups[1].workload, "resnet50");
  EXPECT_EQ(trace.jobs[0].start, Seconds(50)) << "in the order of starts";
  EXPECT_EQ(pai.value().not_terminated, 2);
  EXPECT_EQ(pai.value().without_group, 1);
  EXPECT_TRUE(problems_.empty());
}

TEST_F(PaiTablesTest, AFirstLineWithTheColumnNamesIsNoJob) {
  AddTables(
      "job_name,inst_id,user,status,start_time,end_time\n"
      "j1,i1,u,Terminated,100.0,110.0\n",
      "inst_id,user,gpu_type_spec,group,workload\n"
      "i1,u,V100,g1,\n");
  const auto pai = Read();
  ASSERT_TRUE(pai.ok());
  EXPECT_EQ(pai.value().trace.jobs.size(), 1U);
  EXPECT_EQ(pai.value().not_terminated, 0);
  EXPECT_TRUE(problems_.empty());
}

TEST_F(PaiTablesTest, ABadHeaderFileIsNamed) {
  AddTables("Terminated,i1,100,110\n", "i1,u,V100,g1,\n");
  directory_.AddFile("pai_job_table.header", "status,inst_id,start\n");
  EXPECT_THAT(Read().error().message,
              HasSubstr("pai_job_table.header: column start_time must be there once"));
}

TEST_F(PaiTablesTest, WhereNothingIsLeftTheFirstProblemIsSaid) {
  AddTables("j1,i1,u,Terminated,100.0,soon\n", "i1,u,V100,g1,\n");
  EXPECT_THAT(Read().error().message,
              HasSubstr("pai_job_table.csv:1: end_time is not a finite number: \"soon\""));
}

TEST_F(PaiTablesTest, AHeaderFileSaysWhereColumnsAre) {
  AddTables("Terminated,i1,100,110\n", "g1,i1\n");
  directory_.AddFile("pai_job_table.header", "status,inst_id,start_time,end_time\n");
  directory_.AddFile("pai_group_tag_table.header", "group,inst_id\n");
  const auto pai = Read();
  ASSERT_TRUE(pai.ok());
  EXPECT_EQ(pai.value().trace.groups[0].id, "g1");
}

TEST_F(PaiTablesTest, BadRowsAreReportedWithTheirFile) {
  AddTables(
      "j1,i1,u,Terminated,100.0,110.0\n"
      "j2,i1,u,Terminated,100.0,\n"
      "j3,i1,u,Terminated,100.0,90.0\n",
      "i1,u,V100,g1,\ni1,u,V100,g2,\n,u,V100,g3,\n");
  ASSERT_TRUE(Read().ok());
  EXPECT_EQ(problems_.left_out(), 4);
  EXPECT_THAT(problems_.first()[0].file, HasSubstr("pai_group_tag_table.csv"));
  EXPECT_EQ(problems_.first()[0].reason, "inst_id has another group already: \"i1\"");
  EXPECT_THAT(problems_.first()[2].file, HasSubstr("pai_job_table.csv"));
  EXPECT_EQ(problems_.first()[2].line, 2);
}

TEST_F(PaiTablesTest, AMissingTableIsNamed) {
  directory_.AddFile("pai_group_tag_table.csv", "i1,u,V100,g1,\n");
  EXPECT_THAT(Read().error().message, HasSubstr("no pai_job_table.csv"));
  EXPECT_EQ(Read().error().code, ErrorCode::kNotFound);
}

TEST_F(PaiTablesTest, TablesWithoutAUsableJobSayWhy) {
  AddTables("j1,i1,u,Failed,100.0,110.0\n", "i1,u,V100,g1,\n");
  EXPECT_THAT(Read().error().message, HasSubstr("no usable job: 1 did not terminate"));
}

}  // namespace pai_tables_test
}  // namespace zeus::replay
