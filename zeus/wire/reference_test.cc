#include "zeus/wire/reference.h"

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

}  // namespace reference_test
}  // namespace zeus::wire::reference
