// The sum over requests, the idle energy and that of others is the measured energy, whatever is
// told in whatever order: clients that leave, servers that die, readings that come late, in bursts
// or never.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "zeus/base/random.h"
#include "zeus/monitor/inference/attribution.h"
#include "zeus/monitor/inference/testing/attribution_case.h"

namespace zeus {
namespace inference_conservation_test {

TimePoint At(double seconds) { return TimePoint(Seconds(seconds)); }

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

// A server whose requests, energy and readings are drawn at random. Events are told in the order in
// which a proxy would see them.
class RandomServer {
 public:
  explicit RandomServer(std::uint64_t seed) : random_(seed) {
    attribution_.AddEngine({.name = "one"});
    attribution_.AddEngine({.name = "two"});
    attribution_.EnergyMeasured(At(0), Joules(0), Joules(0));
  }

  // Serves for about `seconds` and then stands idle until every request is final.
  void ServeThenRest(double seconds) {
    const double end = time_ + seconds;
    while (time_ < end) Tick();
    while (!running_.empty()) Tick();
    const double rest = time_ + 8;
    while (time_ < rest) Tick(false);
    Read();
    Collect();
  }

  const EnergyAccounts& accounts() const { return attribution_.accounts(); }
  std::size_t in_flight() const { return started_ - ended_; }
  std::size_t settled() const { return settled_; }
  std::size_t started() const { return started_; }
  const std::vector<Joules>& prefill() const { return prefill_; }
  const std::vector<Joules>& decode() const { return decode_; }
  Joules told() const { return told_; }

 private:
  struct Running {
    InferenceRequestId id;
    EngineIndex engine;
    bool streamed;
    double first_token;
    int tokens;
    int left;
  };

  // One iteration of 10 ms, in which each running sequence gets a token.
  void Tick(bool arrivals = true) {
    constexpr double kLength = 0.01;
    time_ += kLength;
    if (arrivals && random_.Below(25) == 0) Arrive();
    const bool server_dies = arrivals && random_.Below(3000) == 0;
    std::erase_if(running_, [&](Running& request) { return Continues(request, server_dies); });
    const double sequences = static_cast<double>(running_.size());
    joules_ += kLength * (70 + (running_.empty() ? 0 : 200 + 20 * sequences));
    if (time_ >= next_reading_) Read();
    if (random_.Below(100) == 0) attribution_.RunningRequestsSeen(0, At(time_), sequences + 1);
  }

  void Arrive() {
    const InferenceRequestId id = ++started_;
    const int tokens = 1 + static_cast<int>(random_.Below(150));
    const Running request{.id = id,
                          .engine = random_.Below(2),
                          .streamed = random_.Below(4) != 0,
                          .first_token = time_ + random_.Uniform(0.02, 0.3),
                          .tokens = tokens,
                          .left = tokens};
    attribution_.RequestArrived(id, {.engine = request.engine,
                                     .time = At(time_),
                                     .prompt_bytes = random_.Uniform(10, 20000),
                                     .streamed = request.streamed});
    running_.push_back(request);
  }

  // Returns whether the request has ended.
  bool Continues(Running& request, bool server_dies) {
    const bool client_leaves = random_.Below(1500) == 0;
    if (time_ >= request.first_token) {
      --request.left;
      const double late = random_.Below(50) == 0 ? 0.03 : 0.0005;
      if (request.streamed)
        attribution_.TokensArrived(request.id, At(time_ + late * random_.Uniform()));
    }
    if (request.left > 0 && !client_leaves && !server_dies) return false;
    TokenCounts counts;
    RequestOutcome outcome = RequestOutcome::kCompleted;
    if (request.left > 0) {
      outcome = client_leaves ? RequestOutcome::kCancelled : RequestOutcome::kFailed;
    } else if (random_.Below(4) != 0) {
      counts = {.prompt = random_.Uniform(1, 5000), .output = request.tokens};
    }
    attribution_.RequestEnded(request.id, At(time_ + 0.001), outcome, counts);
    ++ended_;
    const auto energy = attribution_.Estimate(request.id);
    EXPECT_TRUE(energy && std::isfinite(energy->energy.value()));
    return true;
  }

  // Tells the energy since the last reading: at once or in pieces, exactly or with noise, and
  // sometimes that it is not known.
  void Read() {
    const std::uint64_t kind = random_.Below(40);
    const double until = time_ - random_.Uniform(0, 0.05);
    if (until <= told_until_) return;
    const auto pieces = kind < 4 ? 1 : std::max(1.0, std::round((until - told_until_) / 0.1));
    const double begin = told_until_;
    const double energy = joules_ - told_joules_;
    for (int i = 1; i <= static_cast<int>(pieces); ++i) {
      const double end =
          i == static_cast<int>(pieces) ? until : begin + i * (until - begin) / pieces;
      const bool unknown = kind == 5 || random_.Below(300) == 0;
      // The sum that counts is the one that was told, however noisy its parts are.
      const double noise = unknown ? 0 : random_.Uniform(-0.5, 0.5) * energy / pieces;
      const double joules = std::max(0.0, energy / pieces + noise);
      attribution_.EnergyMeasured(At(end), Joules(unknown ? kUnknown : joules),
                                  Joules(0.3 * joules));
      if (!unknown) told_ += Joules(joules);
    }
    told_until_ = until;
    told_joules_ = joules_;
    // Mostly every 0.1 s, at times only after seconds.
    next_reading_ = time_ + (random_.Below(30) == 0 ? random_.Uniform(0.5, 6) : 0.1);
    if (random_.Below(200) == 0) {
      attribution_.LateEnergyMeasured(Joules(3));
      told_ += Joules(3);
    }
    Collect();
  }

  void Collect() {
    for (const SettledRequest& settled : attribution_.TakeSettled()) {
      ++settled_;
      prefill_[settled.engine] += settled.energy.prefill;
      decode_[settled.engine] += settled.energy.decode;
      EXPECT_TRUE(settled.energy.final);
      EXPECT_GE(settled.energy.prefill, Joules(0));
      EXPECT_GE(settled.energy.decode, Joules(0));
    }
  }

  Random random_;
  InferenceAttribution attribution_;
  std::vector<Running> running_;
  double time_ = 0;
  double joules_ = 0;
  double told_joules_ = 0;
  double told_until_ = 0;
  double next_reading_ = 0.1;
  std::size_t started_ = 0;
  std::size_t ended_ = 0;
  std::size_t settled_ = 0;
  std::vector<Joules> prefill_ = std::vector<Joules>(2);
  std::vector<Joules> decode_ = std::vector<Joules>(2);
  Joules told_{};
};

class InferenceConservationTest : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(InferenceConservationTest, SumOverFinalRequestsIsTheMeasuredEnergy) {
  RandomServer server(GetParam());
  for (int round = 0; round < 6; ++round) {
    server.ServeThenRest(20);
    ASSERT_EQ(server.in_flight(), 0U);
    ASSERT_EQ(server.settled(), server.started()) << "round " << round;
    const EnergyAccounts& accounts = server.accounts();
    const double measured = accounts.measured.value();
    ASSERT_GT(measured, 1000);
    double charged = (accounts.idle + accounts.other).value();
    for (std::size_t engine = 0; engine < 2; ++engine) {
      charged += (server.prefill()[engine] + server.decode()[engine]).value();
      const auto& account = accounts.engines[engine];
      EXPECT_NEAR((server.prefill()[engine] + server.decode()[engine]).value(),
                  (account.prefill + account.decode).value(), 1e-9 * measured);
    }
    EXPECT_NEAR(charged / measured, 1, 1e-9) << "round " << round;
    // The last readings wait for tokens that may still be told.
    EXPECT_LT(measured, server.told().value() * (1 + 1e-12)) << "round " << round;
    EXPECT_GT(measured, server.told().value() - 1000) << "round " << round;
  }
}
INSTANTIATE_TEST_SUITE_P(Seeds, InferenceConservationTest, ::testing::Range<std::uint64_t>(1, 9));

// The same with the simulated engine, where the truth is known: a sensor that is not read for
// seconds costs accuracy and no joule.
TEST(StarvedSensorTest, RequestsStillAddUpAndStayNearTheTruth) {
  const auto score = testing::Score({.engines = {testing::SyntheticLoad(9, 2, Seconds(120))},
                                     .sensor_lag = Seconds(0.4),
                                     .sensor_gap = Seconds(5)});
  ASSERT_TRUE(score.ok()) << score.error().message;
  EXPECT_EQ(score.value().settled, score.value().requests);
  EXPECT_LT(std::abs(score.value().requests_conservation), 1e-9);
  EXPECT_LT(score.value().energy.median, 0.05);
  EXPECT_GE(score.value().coverage, 0.9);
  EXPECT_GE(score.value().provisional_within, 0.9);
  EXPECT_LT(score.value().provisional_worst, 2);
}

}  // namespace inference_conservation_test
}  // namespace zeus
