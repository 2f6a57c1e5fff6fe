#include "zeus/inference/benchmark/load_generator.h"

#include <gtest/gtest.h>

#include "zeus/base/json.h"
#include "zeus/inference/benchmark/energy_sources.h"
#include "zeus/inference/benchmark/testing/virtual_server.h"

namespace zeus::inference {
namespace load_generator_test {

const LoadGenerator::Continue kAlways = [](const LoadProgress&) { return true; };

class LoadGeneratorTest : public ::testing::Test {
 protected:
  LoadRecord Run(const VirtualServer::Options& server, const WorkloadOptions& load,
                 const LoadOptions& options = {.model = "m"},
                 const LoadGenerator::Continue& keep_going = kAlways) {
    server_.emplace(clock_, server);
    Workload workload(load);
    return LoadGenerator(clock_, *server_, workload, options).Run(keep_going);
  }

  VirtualClock clock_;
  std::optional<VirtualServer> server_;
};

WorkloadOptions Closed(std::size_t concurrency, std::size_t requests, double tokens = 11) {
  return {.arrivals = ClosedLoop{concurrency},
          .requests = requests,
          .prompt_tokens = TokenCount(5),
          .output_tokens = TokenCount(tokens)};
}

TEST_F(LoadGeneratorTest, AClosedLoopKeepsSoManyUnderWay) {
  const LoadRecord record = Run({}, Closed(3, 9));
  EXPECT_EQ(server_->most_at_once(), 3U);
  EXPECT_EQ(record.peak_in_flight, 3U);
  ASSERT_EQ(record.requests.size(), 9U);
  // Three rounds of 0.5 s to the first token and ten more tokens.
  EXPECT_NEAR((record.end - record.begin).count(), 3 * 1.5, 1e-6);
  for (const RequestRecord& request : record.requests) {
    EXPECT_TRUE(request.finished);
    EXPECT_NEAR(request.TimeToFirstToken()->count(), 0.5, 1e-9);
    EXPECT_NEAR(request.TimePerOutputToken()->count(), 0.1, 1e-9);
    EXPECT_EQ(request.output_tokens, 11);
    EXPECT_FALSE(request.tokens_estimated);
  }
}

TEST_F(LoadGeneratorTest, AnOpenLoopDoesNotWaitForAnswers) {
  const TracedArrivals trace{{{Seconds(0), 1, 100}, {Seconds(0.1), 1, 100}, {Seconds(5), 1, 2}}, 1};
  const LoadRecord record = Run({}, {.arrivals = trace, .requests = 10});
  ASSERT_EQ(record.requests.size(), 3U);
  EXPECT_EQ(server_->most_at_once(), 3U);
  EXPECT_NEAR((record.requests[2].sent - record.begin).count(), 5, 1e-9);
}

TEST_F(LoadGeneratorTest, RequestsAreThoseOfOpenAi) {
  (void)Run({}, Closed(1, 1), {.model = "m", .headers = {{"Authorization", "Bearer k"}}});
  EXPECT_EQ(server_->last_request().target, "/v1/chat/completions");
  EXPECT_EQ(server_->last_request().headers.front().second, "Bearer k");
  Json body = ParseJson(server_->last_request().body).value();
  EXPECT_EQ(body["model"], "m");
  EXPECT_EQ(body["max_tokens"], 11);
  EXPECT_EQ(body["ignore_eos"], true);
  EXPECT_EQ(body["stream"], true);
  EXPECT_EQ(body["stream_options"]["include_usage"], true);
  EXPECT_EQ(body["messages"][0]["role"], "user");

  (void)Run({}, Closed(1, 1), {.model = "m", .api = Api::kText, .exact_lengths = false});
  EXPECT_EQ(server_->last_request().target, "/v1/completions");
  body = ParseJson(server_->last_request().body).value();
  EXPECT_TRUE(body["prompt"].is_string());
  EXPECT_FALSE(body.contains("ignore_eos"));
}

TEST_F(LoadGeneratorTest, TheServersCountRescalesEventsOfSeveralTokens) {
  const LoadRecord record = Run({.tokens_per_event = 4}, Closed(1, 1, 12));
  const RequestRecord& request = record.requests.front();
  EXPECT_EQ(request.arrivals.size(), 3U);
  EXPECT_EQ(request.output_tokens, 12);
  EXPECT_NEAR(request.arrivals[0].tokens, 4, 1e-9);
  // Two events of four tokens each, 0.4 s apart.
  EXPECT_NEAR(request.TimePerOutputToken()->count(), 0.1, 1e-9);
}

TEST_F(LoadGeneratorTest, WithoutUsageEventsAreCounted) {
  const LoadRecord record = Run({.usage = false}, Closed(1, 1));
  EXPECT_EQ(record.requests.front().output_tokens, 11);
  EXPECT_TRUE(record.requests.front().tokens_estimated);
}

TEST_F(LoadGeneratorTest, FailuresAreKeptByKindAndTheRestGoesOn) {
  const LoadRecord record =
      Run({.refuse = 2, .stall = 1, .break_off = 1}, Closed(2, 8),
          {.model = "m", .request_timeout = Seconds(600), .idle_timeout = Seconds(30)});
  ASSERT_EQ(record.requests.size(), 8U);
  EXPECT_EQ(record.requests[0].failure->kind, FailureKind::kStatus);
  EXPECT_EQ(record.requests[0].failure->status, 503);
  EXPECT_EQ(record.requests[0].failure->message, "overloaded");
  EXPECT_EQ(record.requests[2].failure->kind, FailureKind::kTimeout);
  EXPECT_EQ(record.requests[3].failure->kind, FailureKind::kBroken);
  EXPECT_EQ(server_->aborted(), 1U);
  for (std::size_t i = 4; i < 8; ++i) EXPECT_TRUE(record.requests[i].finished);
  EXPECT_LT((record.end - record.begin).count(), 31);
}

TEST_F(LoadGeneratorTest, ARequestThatNeverEndsIsGivenUp) {
  const LoadRecord record =
      Run({.token = Seconds(1)}, Closed(1, 1, 1000),
          {.model = "m", .request_timeout = Seconds(20), .idle_timeout = Seconds(5)});
  EXPECT_EQ(record.requests.front().failure->kind, FailureKind::kTimeout);
  EXPECT_NEAR((record.end - record.begin).count(), 20, 0.5);
}

TEST_F(LoadGeneratorTest, NothingIsSentAfterTheDurationAndAnswersMayFinish) {
  const LoadRecord record = Run({}, Closed(2, 1000), {.model = "m", .duration = Seconds(4)});
  // Rounds begin at 0, 1.5 and 3 s.
  EXPECT_EQ(record.requests.size(), 6U);
  EXPECT_NEAR((record.end - record.begin).count(), 4.5, 1e-6);
  for (const RequestRecord& request : record.requests) EXPECT_TRUE(request.finished);
}

TEST_F(LoadGeneratorTest, AnInterruptionKeepsWhatWasMeasured) {
  const LoadRecord record =
      Run({}, Closed(2, 1000), {.model = "m"},
          [](const LoadProgress& progress) { return progress.time < Seconds(2); });
  EXPECT_TRUE(record.interrupted);
  ASSERT_EQ(record.requests.size(), 4U);
  EXPECT_TRUE(record.requests[0].finished);
  EXPECT_EQ(record.requests[2].failure->kind, FailureKind::kInterrupted);
  EXPECT_EQ(server_->aborted(), 2U);
}

class FakeGateway final : public RequestEnergySource {
 public:
  Result<std::optional<RequestEnergy>> Find(const std::string& request) override {
    ++asked;
    if (!known) return std::optional<RequestEnergy>();
    const bool final = request != "r-1" || asked > 4;
    return std::optional(RequestEnergy{.energy = Joules(20), .sigma = Joules(1), .final = final});
  }
  bool known = true;
  int asked = 0;
};

TEST_F(LoadGeneratorTest, TheEnergyOfAnswersIsReadAndReplacedByTheFinalOne) {
  LoadRecord record = Run({.energy = true}, Closed(1, 3));
  const RequestEnergy& provisional = *record.requests.front().energy;
  EXPECT_EQ(provisional.energy, Joules(13));
  EXPECT_EQ(provisional.prefill, Joules(2));
  EXPECT_FALSE(provisional.final);

  FakeGateway gateway;
  FetchFinalEnergies(record, gateway, clock_, Seconds(10));
  for (const RequestRecord& request : record.requests) {
    EXPECT_EQ(request.energy->energy, Joules(20));
    EXPECT_TRUE(request.energy->final);
  }
}

TEST_F(LoadGeneratorTest, AServerWithoutGatewayIsNotAskedForLong) {
  LoadRecord record = Run({}, Closed(4, 50));
  FakeGateway none;
  none.known = false;
  FetchFinalEnergies(record, none, clock_, Seconds(10));
  EXPECT_EQ(none.asked, 3);
  EXPECT_FALSE(record.requests.front().energy);
}

}  // namespace load_generator_test
}  // namespace zeus::inference
