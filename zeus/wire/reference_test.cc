#include "zeus/wire/reference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "zeus/base/json.h"
#include "zeus/wire/error.h"

namespace zeus::wire::reference {
namespace reference_test {

using namespace zeus::literals;

Json LeastJob() {
  return {{"job_id_prefix", "mnist"}, {"batch_sizes", {128, 32, 64}}, {"default_batch_size", 64},
          {"max_power", 500},         {"number_of_gpus", 2},          {"gpu_model", "Tesla V100"}};
}

TEST(WireReferenceTest, AJobHasTheDefaultsOfTheReference) {
  const auto read = JobSpecFromJson(LeastJob());
  ASSERT_TRUE(read.ok()) << read.error().message;
  const JobSpec& spec = read.value();
  EXPECT_EQ(spec.batch_sizes, (std::vector{32, 64, 128}));
  EXPECT_EQ(spec.eta, 0.5);
  EXPECT_EQ(spec.beta, 2.0);
  EXPECT_EQ(spec.target_metric, 0.5);
  EXPECT_TRUE(spec.higher_is_better);
  EXPECT_EQ(spec.max_epochs, 100);
  EXPECT_EQ(spec.pruning_rounds, 2);
  EXPECT_EQ(spec.window, 0);
  EXPECT_EQ(spec.explorations, 2);
  EXPECT_FALSE(spec.seed);
  EXPECT_EQ(spec.policy, "zeus");
  EXPECT_EQ(spec.max_power, 500_W);
  EXPECT_EQ(spec.lease, kLease) << "its clients send no heartbeats";
}

TEST(WireReferenceTest, AJobComesBackAsItWas) {
  Json json = LeastJob();
  json["job_id"] = "mnist-1";
  json["beta_knob"] = nullptr;
  json["mab_seed"] = 7;
  json["something_of_a_later_version"] = true;
  const auto read = JobSpecFromJson(json);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_FALSE(read.value().beta) << "null: no early stop";
  const auto again = JobSpecFromJson(reference::ToJson(read.value()));
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(again.value(), read.value());
}

TEST(WireReferenceTest, AJobThatMakesNoSenseNamesTheField) {
  const std::vector<std::pair<std::string, Json>> mistakes = {
      {"job_id", "other-1"},
      {"job_id_prefix", ""},
      {"batch_sizes", Json::array()},
      {"batch_sizes", "32"},
      {"batch_sizes", {32, 1.5}},
      {"batch_sizes", {0, 64}},
      {"default_batch_size", 65},
      {"eta_knob", 1.5},
      {"eta_knob", "x"},
      {"beta_knob", 0},
      {"max_epochs", 0},
      {"num_pruning_rounds", -1},
      {"window_size", -1},
      {"mab_seed", -1},
      {"mab_num_explorations", -1},
      {"mab_prior_precision", -0.5},
      {"max_power", -1},
      {"number_of_gpus", 0},
      {"gpu_model", ""},
      {"target_metric", Json()},
      {"job_id", "mnist one"},
      {"higher_is_better_metric", 1},
      {"job_id_prefix", Json()},
  };
  for (const auto& [field, value] : mistakes) {
    Json json = LeastJob();
    json[field] = value;
    const auto read = JobSpecFromJson(json);
    ASSERT_FALSE(read.ok()) << field << " " << value;
    EXPECT_EQ(FieldOf(read.error()), field) << read.error().message;
  }
}

TEST(WireReferenceTest, TrialsAndResultsComeBackAsTheyWere) {
  const TrialId trial{.job_id = "mnist-1", .batch_size = 64, .trial_number = 3};
  EXPECT_EQ(TrialIdFromJson(ToJson(trial)).value(), trial);
  const TrainingResult result{.report = {.job_id = "mnist-1",
                                         .trial = 3,
                                         .epoch = 5,
                                         .time = Seconds(10),
                                         .energy = 100_J,
                                         .metric = 0.7},
                              .batch_size = 64};
  const auto read = TrainingResultFromJson(ToJson(result));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(ToJson(read.value()), ToJson(result));
  Json negative = ToJson(result);
  negative["energy"] = -1;
  EXPECT_EQ(FieldOf(TrainingResultFromJson(negative).error()), "energy");
}

TEST(WireReferenceTest, ErrorsLookLikeThoseOfItsFramework) {
  const Json wrong = ErrorToJson(Error{ErrorCode::kInvalidArgument, "energy: is bad"}, "body");
  EXPECT_EQ(wrong.at("detail").at(0).at("loc"), Json::array({"body", "energy"}));
  const Json missing =
      ErrorToJson(Error{ErrorCode::kNotFound, "job_id: there is no job x"}, "body");
  EXPECT_EQ(missing.at("detail"), "job_id: there is no job x");
}

using ::testing::HasSubstr;

const Json kJob = {{"job_id", ""},    {"pp_degree", 4},  {"dp_degree", 2},
                   {"tp_degree", 1},  {"world_size", 8}, {"job_metadata", "plan=gpt"},
                   {"framework", "x"}};

TEST(ReferencePipelineTest, AJobIsItsDegreesAndItsMetadata) {
  const auto job = PipelineFromJson(kJob);
  ASSERT_TRUE(job.ok()) << job.error().message;
  EXPECT_EQ(job.value().pipeline_parallel, 4);
  EXPECT_EQ(job.value().data_parallel, 2);
  EXPECT_EQ(job.value().tensor_parallel, 1);
  EXPECT_EQ(job.value().metadata, "plan=gpt");
}

TEST(ReferencePipelineTest, TheWorldIsTheProductOfTheDegrees) {
  for (const auto& [field, value] : {std::pair<std::string, Json>{"world_size", 7},
                                     {"pp_degree", 0},
                                     {"tp_degree", -1},
                                     {"dp_degree", "2"},
                                     {"world_size", nullptr},
                                     {"pp_degree", 1'000'000'000}}) {
    Json job = kJob;
    job[field] = value;
    EXPECT_FALSE(PipelineFromJson(job).ok()) << field;
  }
}

TEST(ReferencePipelineTest, ARankSaysWhereItStandsAndWhatItCan) {
  const auto rank = RankFromJson({{"rank", 5},
                                  {"dp_rank", 1},
                                  {"pp_rank", 1},
                                  {"tp_rank", 0},
                                  {"available_frequencies", {1410, 1200}}});
  ASSERT_TRUE(rank.ok()) << rank.error().message;
  EXPECT_EQ(rank.value(), (SessionRank{.rank = 5,
                                       .data_rank = 1,
                                       .pipeline_rank = 1,
                                       .tensor_rank = 0,
                                       .clocks_mhz = {1410, 1200}}));
  EXPECT_FALSE(RankFromJson({{"rank", 5}}).ok());
}

TEST(ReferencePipelineTest, AScheduleIsAListOfNamesAndMegahertz) {
  const Json schedule =
      ToJson(3, {{"forward", Hertz::FromMega(1410)}, {"backward", Hertz::FromMega(0)}});
  EXPECT_EQ(schedule.dump(), R"({"rank":3,"frequencies":[["forward",1410],["backward",0]]})");
}

TEST(ReferencePipelineTest, AResultIsTheMeanOfItsIterations) {
  const auto report = RankReportFromJson(Json::parse(R"({
      "rank": 2, "iter_time": [1.0, 2.0], "iter_energy": [10, 20],
      "time_breakdown": {"forward": [[1, 2], [3, 6]]},
      "energy_breakdown": {"forward": [[10, 20], [30, 60]]}})"));
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_EQ(report.value().rank, 2);
  ASSERT_EQ(report.value().points.size(), 1U);
  EXPECT_EQ(report.value().points[0].instruction, "forward");
  EXPECT_EQ(report.value().points[0].clock, std::nullopt);
  EXPECT_EQ(report.value().points[0].time, Seconds(3));
  EXPECT_EQ(report.value().points[0].energy, Joules(30));
}

TEST(ReferencePipelineTest, AnOfflineResultKnowsItsClocks) {
  const auto report = RankReportFromJson({{"rank", 0},
                                          {"forward_time", {{"1410", 0.1}, {"1200", 0.12}}},
                                          {"forward_energy", {{"1410", 30}, {"1200", 25}}},
                                          {"backward_time", {{"1410", 0.2}}},
                                          {"backward_energy", {{"1410", 60}}}});
  ASSERT_TRUE(report.ok()) << report.error().message;
  ASSERT_EQ(report.value().points.size(), 3U);
  EXPECT_EQ(report.value().points[1].clock, Hertz::FromMega(1200));
  EXPECT_EQ(report.value().points[1].energy, Joules(25));
  EXPECT_EQ(report.value().points[2].instruction, "backward");
}

TEST(ReferencePipelineTest, ResultsThatMakeNoSenseNameTheField) {
  const auto why = [](const Json& json) { return RankReportFromJson(json).error().message; };
  EXPECT_THAT(why({{"rank", 0}}), HasSubstr("time_breakdown: "));
  const Json times = {{"forward", {{1, 2}}}};
  EXPECT_THAT(why({{"rank", 0}, {"time_breakdown", times}, {"energy_breakdown", Json::object()}}),
              HasSubstr("energy_breakdown: of rank 0 must be an object"));
  for (const Json& wrong : {Json{{"forward", {1, 2}}}, Json{{"forward", {{-1}}}},
                            Json{{"forward", {{"1"}}}}, Json{{"forward", 1}}, Json("forward")})
    EXPECT_THAT(why({{"rank", 0}, {"time_breakdown", wrong}, {"energy_breakdown", times}}),
                HasSubstr("time_breakdown: "))
        << wrong;
  const Json offline = {
      {"rank", 0}, {"forward_time", {{"fast", 0.1}}}, {"forward_energy", {{"fast", 30}}}};
  EXPECT_THAT(why(offline), HasSubstr("\"fast\", which is no clock in MHz"));
}

TEST(ReferencePipelineTest, ResultsThatNobodyCanHaveMeasuredNameRankAndField) {
  const Json good = {{"forward", {{1, 2}, {3, 4}}}};
  const auto why = [](const Json& times, const Json& energies) {
    const auto report = RankReportFromJson(
        {{"rank", 7}, {"time_breakdown", times}, {"energy_breakdown", energies}});
    return report.ok() ? "taken" : report.error().message;
  };
  ASSERT_EQ(why(good, good), "taken");
  for (const char* wrong :
       {"{}", "[]", "null", R"({"forward": []})", R"({"forward": [[]]})",
        R"({"forward": [[1], []]})", R"({"forward": [[0, 1], [1, 1]]})",
        R"({"forward": [[-1, 1], [1, 1]]})", R"({"forward": [[1e300, 1], [1, 1]]})",
        R"({"forward": [["1", 1], [1, 1]]})", R"({"forward": [[null, 1], [1, 1]]})",
        R"({"forward": [[true, 1], [1, 1]]})"})
    EXPECT_THAT(why(Json::parse(wrong), good), HasSubstr("time_breakdown: of rank 7 ")) << wrong;
  for (const char* wrong :
       {"{}", R"({"backward": [[1, 2], [3, 4]]})", R"({"forward": [[1, 2]]})",
        R"({"forward": [[1, 2], [3]]})", R"({"forward": [[0, 0], [0, 0]]})",
        R"({"forward": [[-1, 2], [3, 4]]})", R"({"forward": [[1e300, 2], [3, 4]]})"})
    EXPECT_THAT(why(good, Json::parse(wrong)), HasSubstr("energy_breakdown: of rank 7 ")) << wrong;
  const Json uneven = {{"forward", {{1, 2}, Json::array({3})}}};
  EXPECT_THAT(why(uneven, uneven), HasSubstr("iterations that differ"));
}

}  // namespace reference_test
}  // namespace zeus::wire::reference
