#include "zeus/ranks/rank_place.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>

namespace zeus {
namespace rank_place_test {

using ::testing::HasSubstr;

Environment Variables(std::map<std::string, std::string> variables) {
  return [variables = std::move(variables)](const std::string& name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional<std::string>(found->second);
  };
}

std::map<std::string, std::string> Mpirun() {
  return {{"OMPI_COMM_WORLD_RANK", "3"},
          {"OMPI_COMM_WORLD_SIZE", "4"},
          {"PMIX_NAMESPACE", "1234"},
          {"OMPI_MCA_orte_hnp_uri", "1234.0;tcp://10.0.0.1:41000"}};
}

std::map<std::string, std::string> Srun() {
  return {{"SLURM_PROCID", "1"},  {"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_CLUSTER_NAME", "zeus"},
          {"SLURM_JOB_ID", "77"}, {"SLURM_STEP_ID", "0"},        {"SLURM_NTASKS", "2"}};
}

TEST(RankPlaceTest, AProcessOfItsOwnIsNoRank) {
  const auto place = FindRankPlace(Variables({}));
  ASSERT_TRUE(place.ok());
  EXPECT_FALSE(place.value().has_value());
}

TEST(RankPlaceTest, LaunchersTellTheRanks) {
  const auto mpirun = FindRankPlace(Variables(Mpirun()));
  ASSERT_TRUE(mpirun.ok() && mpirun.value());
  EXPECT_EQ(mpirun.value()->rank, 3);
  EXPECT_EQ(mpirun.value()->size, 4);
  EXPECT_EQ(mpirun.value()->launcher, "mpirun");

  const auto srun = FindRankPlace(Variables(Srun()));
  ASSERT_TRUE(srun.ok() && srun.value());
  EXPECT_EQ(srun.value()->rank, 1);
  EXPECT_EQ(srun.value()->job, "slurm:zeus.77.0");
}

TEST(RankPlaceTest, TheInnermostLauncherCounts) {
  auto variables = Srun();
  variables.merge(Mpirun());  // mpirun starts its daemons with srun.
  EXPECT_EQ(FindRankPlace(Variables(variables)).value()->launcher, "mpirun");
  variables.insert({{"TORCHELASTIC_RUN_ID", "none"},
                    {"RANK", "1"},
                    {"WORLD_SIZE", "2"},
                    {"MASTER_ADDR", "n1"},
                    {"MASTER_PORT", "29500"},
                    {"TORCHELASTIC_RESTART_COUNT", "0"}});
  EXPECT_EQ(FindRankPlace(Variables(variables)).value()->job, "torchrun:none@n1:29500.0");
}

TEST(RankPlaceTest, TheBatchScriptAndASingleTaskAreNoRanks) {
  auto script = Srun();
  script.erase("SLURM_STEP_NUM_TASKS");
  EXPECT_FALSE(FindRankPlace(Variables(script)).value());
  auto single = Srun();
  single["SLURM_STEP_NUM_TASKS"] = "1";
  single["SLURM_PROCID"] = "0";
  EXPECT_FALSE(FindRankPlace(Variables(single)).value());
}

TEST(RankPlaceTest, WhatAMeasuredRankStartsIsNoRank) {
  auto variables = Mpirun();
  const RankPlace place = *FindRankPlace(Variables(variables)).value();
  const std::string variable = MeasuredVariable(place);
  variables[variable.substr(0, variable.find('='))] = variable.substr(variable.find('=') + 1);
  EXPECT_FALSE(FindRankPlace(Variables(variables)).value());
  variables["OMPI_MCA_orte_hnp_uri"] = "another";  // A launch inside it.
  EXPECT_TRUE(FindRankPlace(Variables(variables)).value());
}

TEST(RankPlaceTest, OtherLaunchersAreSaid) {
  const auto place = FindRankPlace(
      Variables({{"ZEUS_RANK", "0"}, {"ZEUS_RANKS", "8"}, {"ZEUS_RANKS_JOB", "pbs-9"}}));
  ASSERT_TRUE(place.ok() && place.value());
  EXPECT_EQ(place.value()->size, 8);
  const auto no_job = FindRankPlace(Variables({{"ZEUS_RANK", "0"}, {"ZEUS_RANKS", "8"}}));
  ASSERT_FALSE(no_job.ok());
  EXPECT_THAT(no_job.error().message, HasSubstr("ZEUS_RANKS_JOB"));
}

TEST(RankPlaceTest, MalformedVariablesAreNamed) {
  for (const char* rank : {"-1", "x", "4", "99999999999"}) {
    auto variables = Mpirun();
    variables["OMPI_COMM_WORLD_RANK"] = rank;
    const auto place = FindRankPlace(Variables(variables));
    ASSERT_FALSE(place.ok()) << rank;
    EXPECT_THAT(place.error().message, HasSubstr("OMPI_COMM_WORLD_RANK"));
  }
}

TEST(RankPlaceTest, LaunchesHaveNumbersOfTheirOwn) {
  const std::uint64_t one = LaunchNumber({.job = "slurm:zeus.77.0"});
  EXPECT_NE(one, LaunchNumber({.job = "slurm:zeus.77.1"}));
  EXPECT_EQ(one, LaunchNumber({.rank = 5, .size = 9, .job = "slurm:zeus.77.0"}));
  EXPECT_EQ(one >> 63U, 0U);
}

}  // namespace rank_place_test
}  // namespace zeus
