#include "zeus/job/job_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "zeus/base/json.h"
#include "zeus/base/units.h"

namespace zeus {
namespace job_spec_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using namespace literals;

JobSpec Valid() {
  return {.id = "mnist",
          .batch_sizes = {32, 64, 128},
          .default_batch_size = 64,
          .max_power = 250_W,
          .gpu_model = "Tesla V100"};
}

TEST(JobSpecTest, BatchSizesAreSortedAndEachOnce) {
  JobSpec spec = Valid();
  spec.batch_sizes = {128, 32, 64, 32};
  const auto checked = Checked(spec);
  ASSERT_TRUE(checked.ok());
  EXPECT_THAT(checked.value().batch_sizes, ElementsAre(32, 64, 128));
}

TEST(JobSpecTest, DefaultsAreThoseOfTheReference) {
  const JobSpec spec;
  EXPECT_EQ(spec.eta, 0.5);
  EXPECT_EQ(spec.beta, 2.0);
  EXPECT_EQ(spec.target_metric, 0.5);
  EXPECT_TRUE(spec.higher_is_better);
  EXPECT_EQ(spec.max_epochs, 100);
  EXPECT_EQ(spec.pruning_rounds, 2);
  EXPECT_EQ(spec.window, 0);
  EXPECT_EQ(spec.prior_mean, 0.0);
  EXPECT_EQ(spec.prior_precision, 0.0);
  EXPECT_EQ(spec.explorations, 2);
  EXPECT_FALSE(spec.seed.has_value());
}

struct Mistake {
  const char* field;
  void (*make)(JobSpec&);
};

class JobSpecMistakeTest : public ::testing::TestWithParam<Mistake> {};

TEST_P(JobSpecMistakeTest, IsRefusedByName) {
  JobSpec spec = Valid();
  GetParam().make(spec);
  const auto checked = Checked(spec);
  ASSERT_FALSE(checked.ok());
  EXPECT_EQ(checked.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(checked.error().message, StartsWith(std::string(GetParam().field) + ": "));
}

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

INSTANTIATE_TEST_SUITE_P(
    Fields, JobSpecMistakeTest,
    ::testing::Values(Mistake{"id", [](JobSpec& s) { s.id = ""; }},
                      Mistake{"id", [](JobSpec& s) { s.id = "a/b/c"; }},
                      Mistake{"id", [](JobSpec& s) { s.id = "/b"; }},
                      Mistake{"id", [](JobSpec& s) { s.id = "a/"; }},
                      Mistake{"id", [](JobSpec& s) { s.id = ".."; }},
                      Mistake{"id", [](JobSpec& s) { s.id = std::string(201, 'a'); }},
                      Mistake{"id", [](JobSpec& s) { s.prefix = "cifar"; }},
                      Mistake{"batch_sizes", [](JobSpec& s) { s.batch_sizes.clear(); }},
                      Mistake{"batch_sizes",
                              [](JobSpec& s) {
                                s.batch_sizes = {0, 64};
                              }},
                      Mistake{"batch_sizes",
                              [](JobSpec& s) {
                                for (int b = 1; b <= 65; ++b) s.batch_sizes.push_back(1000 + b);
                              }},
                      Mistake{"default_batch_size", [](JobSpec& s) { s.default_batch_size = 65; }},
                      Mistake{"eta", [](JobSpec& s) { s.eta = 1.5; }},
                      Mistake{"eta", [](JobSpec& s) { s.eta = kNan; }},
                      Mistake{"beta", [](JobSpec& s) { s.beta = 0.0; }},
                      Mistake{"target_metric", [](JobSpec& s) { s.target_metric = kNan; }},
                      Mistake{"max_epochs", [](JobSpec& s) { s.max_epochs = 0; }},
                      Mistake{"max_power_watts", [](JobSpec& s) { s.max_power = 0_W; }},
                      Mistake{"policy", [](JobSpec& s) { s.policy = "guess"; }},
                      Mistake{"window", [](JobSpec& s) { s.window = -1; }},
                      Mistake{"prior_precision", [](JobSpec& s) { s.prior_precision = -1.0; }},
                      Mistake{"number_of_gpus", [](JobSpec& s) { s.number_of_gpus = 0; }},
                      Mistake{"gpu_model", [](JobSpec& s) { s.gpu_model = ""; }},
                      Mistake{"deadline_seconds", [](JobSpec& s) { s.deadline = Seconds(-1); }},
                      Mistake{"lease_seconds", [](JobSpec& s) { s.lease = Seconds(kNan); }},
                      Mistake{"max_power_watts", [](JobSpec& s) { s.max_power = Watts(1e300); }},
                      Mistake{"gpu_model",
                              [](JobSpec& s) { s.gpu_model = std::string("V\0 100", 6); }},
                      Mistake{"gpu_model", [](JobSpec& s) { s.gpu_model = "V100\nsaved: 99 %"; }},
                      Mistake{"gpu_model", [](JobSpec& s) { s.gpu_model = "V100\x1B[31m"; }},
                      Mistake{"labels", [](JobSpec& s) { s.labels["a"] = std::string("x\0y", 3); }},
                      Mistake{"labels", [](JobSpec& s) { s.labels["a:b"] = "x"; }},
                      Mistake{"labels", [](JobSpec& s) { s.labels[""] = "x"; }}));

TEST(JobSpecTest, JsonRoundTrips) {
  JobSpec spec = Valid();
  spec.beta.reset();
  spec.seed = 18446744073709551615U;
  spec.deadline = Seconds(3600.5);
  spec.labels = {{"team", "ü"}, {"node", "a"}};
  const auto read = JobSpecFromJson(ToJson(spec));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read.value(), spec);
}

TEST(JobSpecTest, WrongTypesAndUnknownFieldsAreRefusedByName) {
  const Json valid = ToJson(Valid());
  const std::pair<const char*, Json> wrong[] = {
      {"eta", "0.5"},        {"batch_sizes", 32},         {"batch_sizes", {32, "64"}},
      {"max_epochs", 1.5},   {"max_epochs", 99999999999}, {"higher_is_better", 1},
      {"seed", -1},          {"labels", {{"a", 1}}},      {"default_batch_size", nullptr},
      {"batchsizes", {1, 2}}};
  for (const auto& [field, value] : wrong) {
    Json json = valid;
    json[field] = value;
    const auto read = JobSpecFromJson(json);
    ASSERT_FALSE(read.ok()) << field;
    EXPECT_THAT(read.error().message, StartsWith(std::string(field) + ": "));
  }
  EXPECT_FALSE(JobSpecFromJson(Json::array()).ok());
}

TEST(JobSpecTest, CostWeighsEnergyAgainstTimeAtFullPower) {
  EXPECT_EQ(ComputeZeusCost(1.0, 250_W, 100_J, Seconds(2)), 100_J);
  EXPECT_EQ(ComputeZeusCost(0.0, 250_W, 100_J, Seconds(2)), 500_J);
  EXPECT_EQ(ComputeZeusCost(0.5, 250_W, 100_J, Seconds(2)), 300_J);
}

}  // namespace job_spec_test
}  // namespace zeus
