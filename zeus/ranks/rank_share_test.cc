#include "zeus/ranks/rank_share.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "zeus/base/json.h"

namespace zeus {
namespace rank_share_test {

using namespace std::chrono_literals;
using namespace literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A rank that measured both GPUs of its node from `begin` to `end`, a watt each for gpu:0 and two
// for gpu:1, and uses those of `own`.
RankShare Share(int rank, const std::string& host, std::vector<std::string> own, Seconds begin,
                Seconds end) {
  RankShare share{.rank = rank, .host = host, .own = std::move(own)};
  share.begin = begin;
  share.exit_code = 0;
  Measurement measurement;
  measurement.time = end - begin;
  for (int gpu = 0; gpu < 2; ++gpu) {
    const std::string name = "gpu:" + std::to_string(gpu);
    share.devices.push_back({.device = name, .key = host + name, .model = "V100"});
    const Joules energy((1 + gpu) * (end - begin).count());
    measurement.devices.push_back({.device = name,
                                   .energy = EnergyEstimate{.energy = energy,
                                                            .sigma = energy * 0.1,
                                                            .attributed = energy,
                                                            .source = EnergySource::kCounter,
                                                            .coverage = 1,
                                                            .updates = 10,
                                                            .update_period = 20ms,
                                                            .flags = {}}});
  }
  share.measurement = std::move(measurement);
  return share;
}

std::vector<std::string> Both(const std::string& host) { return {host + "gpu:0", host + "gpu:1"}; }

TEST(CombineTest, AGpuThatSeveralRanksMeasureCountsOnce) {
  const JobMeasurement job =
      Combine(4, {Share(0, "n1", Both("n1"), 0s, 10s), Share(1, "n1", Both("n1"), 0s, 10s),
                  Share(2, "n2", Both("n2"), 100s, 110s), Share(3, "n2", Both("n2"), 100s, 110s)});
  EXPECT_EQ(job.measurement.Sum().energy, 60_J);
  EXPECT_NEAR(job.measurement.Sum().sigma.value(), std::sqrt(2 * (1 + 4)), 1e-9);
  EXPECT_EQ(job.measurement.devices.size(), 4U);
  ASSERT_EQ(job.nodes.size(), 2U);
  EXPECT_EQ(job.nodes[1].host, "n2");
  EXPECT_THAT(job.nodes[1].ranks, ElementsAre(2, 3));
  EXPECT_EQ(job.nodes[0].total.energy + job.nodes[1].total.energy, 60_J);
  EXPECT_TRUE(job.missing.empty());
}

TEST(CombineTest, OnlyDevicesThatARankUsesCount) {
  const JobMeasurement job =
      Combine(2, {Share(0, "n1", {"n1gpu:1"}, 0s, 10s), Share(1, "n2", {"n2gpu:0"}, 0s, 10s)});
  ASSERT_EQ(job.measurement.devices.size(), 2U);
  EXPECT_EQ(job.measurement.devices[0].device, "n1/gpu:1");
  EXPECT_EQ(job.measurement.devices[1].device, "n2/gpu:0");
  EXPECT_EQ(job.measurement.Sum().energy, 30_J);
}

TEST(CombineTest, TheRankThatWatchedLongestCounts) {
  const JobMeasurement job =
      Combine(2, {Share(0, "n1", Both("n1"), 0s, 3s), Share(1, "n1", Both("n1"), 0.01s, 10s)});
  EXPECT_NEAR(job.measurement.Sum().energy.value(), 3 * 9.99, 1e-9);
  EXPECT_NEAR(job.measurement.time.count(), 9.99, 1e-9);
  EXPECT_FALSE(job.measurement.devices[0].energy.value().flags.Has(MeasurementFlag::kPartial));
}

TEST(CombineTest, TimeThatNobodyWatchedIsSaid) {
  const JobMeasurement job =
      Combine(2, {Share(0, "n1", Both("n1"), 0s, 5s), Share(1, "n1", Both("n1"), 4s, 10s)});
  EXPECT_TRUE(job.measurement.devices[0].energy.value().flags.Has(MeasurementFlag::kPartial));
}

TEST(CombineTest, OthersStandInForALostRank) {
  RankShare lost = Share(1, "n1", {"n1gpu:1"}, 0s, 10s);
  lost.measurement.reset();
  lost.exit_code.reset();
  const JobMeasurement job = Combine(2, {Share(0, "n1", {"n1gpu:0"}, 0s, 10s), lost});
  EXPECT_EQ(job.measurement.Sum().energy, 30_J);
  EXPECT_FALSE(job.ranks[1].exit_code);
}

TEST(CombineTest, WhatOnlyALostRankCouldReadHasAReason) {
  RankShare lost = Share(1, "n2", Both("n2"), 0s, 10s);
  lost.measurement.reset();
  const JobMeasurement job = Combine(3, {Share(0, "n1", Both("n1"), 0s, 10s), lost});
  EXPECT_THAT(job.measurement.Sum().missing, ElementsAre("n2/gpu:0", "n2/gpu:1"));
  EXPECT_THAT(job.measurement.Find("n2/gpu:0")->energy.error().message, HasSubstr("rank 1"));
  EXPECT_THAT(job.missing, ElementsAre(2));
}

TEST(CombineTest, ADeviceThatCouldNotBeFoundIsTold) {
  RankShare share = Share(0, "n1", Both("n1"), 0s, 1s);
  share.measurement->devices.push_back(
      {.device = "gpu:2", .energy = Error{ErrorCode::kUnavailable, "fell off the bus"}});
  EXPECT_THAT(Combine(1, {share, Share(1, "n1", Both("n1"), 0s, 1s)}).measurement.Sum().missing,
              ElementsAre("n1/gpu:2"));
}

TEST(RankShareTest, SurvivesJson) {
  const RankShare share = Share(2, "n1", Both("n1"), 3s, 5s);
  const auto read = RankShareFromJson(ToJson(share));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(ToJson(read.value()), ToJson(share));
  EXPECT_FALSE(RankShareFromJson(Json::array()).ok());
  for (const char* field : {"rank", "host", "own", "devices", "begin_seconds"}) {
    Json without = ToJson(share);
    without.erase(field);
    const auto broken = RankShareFromJson(without);
    ASSERT_FALSE(broken.ok());
    EXPECT_THAT(broken.error().message, HasSubstr(field));
  }
}

}  // namespace rank_share_test
}  // namespace zeus
