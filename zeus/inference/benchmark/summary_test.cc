#include "zeus/inference/benchmark/summary.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "zeus/base/json.h"
#include "zeus/inference/benchmark/bench_report.h"

namespace zeus::inference {
namespace summary_test {

TimePoint At(double seconds) { return TimePoint{} + Seconds(seconds); }

// A request whose tokens come at these times.
RequestRecord Request(double sent, const std::vector<double>& tokens, double ended) {
  RequestRecord request;
  request.planned = request.sent = At(sent);
  for (const double time : tokens) request.arrivals.push_back({At(time), 1});
  request.ended = At(ended);
  request.finished = true;
  request.output_tokens = static_cast<double>(tokens.size());
  request.prompt_tokens = 10;
  return request;
}

// Requests of one second each, `at_once` of them at any time, with a token every tenth of a second.
LoadRecord Steady(std::size_t at_once, std::size_t rounds) {
  LoadRecord record;
  for (std::size_t round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < at_once; ++i) {
      const auto begin = static_cast<double>(round);
      std::vector<double> tokens;
      for (int token = 1; token <= 10; ++token) tokens.push_back(begin + 0.1 * token);
      record.requests.push_back(Request(begin, tokens, begin + 1));
    }
  }
  record.end = At(static_cast<double>(rounds));
  record.peak_in_flight = at_once;
  return record;
}

TEST(SteadyWindowTest, BeginsWithTheFirstTokenThatFillsTheServerAndEndsBeforeItEmpties) {
  LoadRecord record;
  for (int i = 0; i < 10; ++i) record.requests.push_back(Request(i, {i + 0.5, i + 0.9}, i + 1));
  // Three at once: from the third first token, at 2.5 s, to the end of request 10 - 3 - 1 = 6.
  const auto window = FindSteadyWindow(record, 3);
  ASSERT_TRUE(window.ok());
  EXPECT_EQ(window.value().begin, At(2.5));
  EXPECT_EQ(window.value().end, At(6));
}

TEST(SteadyWindowTest, AShortLoadHasNoneAndSaysHowManyRequestsItTakes) {
  for (const std::size_t saturation : {8U, 9U, 100U}) {
    const auto window = FindSteadyWindow(Steady(5, 2), saturation);
    ASSERT_FALSE(window.ok());
    EXPECT_NE(window.error().message.find("too few"), std::string::npos);
  }
  EXPECT_FALSE(FindSteadyWindow(LoadRecord{}, 1).ok());
}

TEST(SteadyWindowTest, InterruptedRequestsDoNotEndIt) {
  LoadRecord record = Steady(2, 10);
  for (std::size_t i = record.requests.size() - 2; i < record.requests.size(); ++i) {
    record.requests[i].finished = false;
    record.requests[i].failure = CallFailure{FailureKind::kInterrupted, 0, ""};
  }
  const auto window = FindSteadyWindow(record, 2);
  ASSERT_TRUE(window.ok());
  EXPECT_EQ(window.value().end, At(9));
}

TEST(PercentileTest, ValuesAreInterpolatedAndTheirErrorIsThatOfTheRank) {
  std::vector<double> values(101);
  std::iota(values.begin(), values.end(), 0.0);
  EXPECT_DOUBLE_EQ(Percentile(values, 0.5).value, 50);
  EXPECT_DOUBLE_EQ(Percentile(values, 0.99).value, 99);
  // sqrt(101 * 0.25) ranks.
  EXPECT_NEAR(Percentile(values, 0.5).sigma, 5.02, 0.01);
  const std::vector<double> one = {7};
  EXPECT_EQ(Percentile(one, 0.99).value, 7);
  EXPECT_EQ(Percentile(one, 0.99).sigma, 0);
  EXPECT_DOUBLE_EQ(Percentile(std::vector<double>{1, 2}, 0.5).value, 1.5);
}

TEST(LatencyTargetsTest, EitherMayBeAbsent) {
  const auto both = ParseLatencyTargets("ttft=1s,tpot=50ms");
  ASSERT_TRUE(both.ok());
  EXPECT_EQ(both.value().ttft, Seconds(1));
  EXPECT_EQ(both.value().tpot, Seconds(0.05));
  EXPECT_FALSE(ParseLatencyTargets("tpot=50ms").value().ttft);
  for (const char* const text : {"", "x=1s", "ttft", "ttft=soon", "1s"})
    EXPECT_FALSE(ParseLatencyTargets(text).ok()) << text;
}

Measurement Measured(double joules, double sigma, double seconds) {
  Measurement measurement{.time = Seconds(seconds)};
  measurement.devices.push_back({.device = "gpu:0",
                                 .energy = EnergyEstimate{.energy = Joules(joules),
                                                          .sigma = Joules(sigma),
                                                          .attributed = Joules(joules),
                                                          .source = EnergySource::kCounter,
                                                          .coverage = 1,
                                                          .updates = 100,
                                                          .update_period = Seconds(0.1),
                                                          .flags = {}},
                                 .in_total = true});
  return measurement;
}

TEST(RunSummaryTest, EnergyOfTheGpusIsDividedByTheTokensOfTheWindow) {
  const LoadRecord record = Steady(4, 10);
  const GpuEnergies gpus{.whole = Measured(4000, 40, 10), .steady = Measured(3000, 30, 7.9)};
  const RunSummary run = SummarizeRun(record, {}, gpus);
  ASSERT_TRUE(run.steady);
  EXPECT_EQ(run.saturation, 4U);
  // From 0.1 s, exclusive, to the end of request 40 - 4 - 1 = 35, at 9 s.
  EXPECT_NEAR(run.steady->time().count(), 8.9, 1e-9);
  const double tokens = 4 * 89;
  EXPECT_NEAR(run.gpus->steady_per_output_token->value, 3000 / tokens, 1e-9);
  EXPECT_NEAR(run.gpus->steady_per_output_token->sigma, 30 / tokens, 1e-9);
  EXPECT_NEAR(run.gpus->per_output_token->value, 10, 1e-9);
  EXPECT_NEAR(run.gpus->per_request->value, 100, 1e-9);
  EXPECT_NEAR(run.steady_output_tokens_per_second->value, 40, 1e-6);
  EXPECT_NEAR(run.output_tokens_per_second, 40, 1e-9);
  EXPECT_FALSE(run.gateway);
  EXPECT_EQ(run.energy(), &*run.gpus);
}

TEST(RunSummaryTest, TheGatewaysEnergiesAddUpByPhaseAndByWindow) {
  LoadRecord record = Steady(4, 10);
  for (RequestRecord& request : record.requests)
    request.energy = RequestEnergy{.energy = Joules(15),
                                   .sigma = Joules(3),
                                   .prefill = Joules(5),
                                   .decode = Joules(10),
                                   .final = true};
  const RunSummary run = SummarizeRun(record, {}, {});
  ASSERT_TRUE(run.gateway);
  EXPECT_NEAR(run.gateway->total.value, 40 * 15, 1e-9);
  // Independent errors, and at most the 20 % of each request that all may share.
  EXPECT_NEAR(run.gateway->total.sigma, std::hypot(3 * std::sqrt(40), 0.2 * 600), 1e-9);
  // The sensor is known to be better than that.
  Measurement sensor = Measured(600, 12, 10);
  sensor.devices[0].energy.value().shared_sigma = Joules(6);
  EXPECT_NEAR(SummarizeRun(record, {}, {.whole = sensor}).gateway->total.sigma,
              std::hypot(3 * std::sqrt(40), 0.01 * 600), 1e-9);
  EXPECT_NEAR(run.gateway->per_request->value, 15, 1e-9);
  EXPECT_NEAR(run.gateway->per_output_token->value, 1.5, 1e-9);
  EXPECT_NEAR(run.gateway->prefill_per_prompt_token->value, 0.5, 1e-9);
  EXPECT_NEAR(run.gateway->decode_per_output_token->value, 1, 1e-9);
  EXPECT_NEAR(*run.gateway->prefill_share, 1.0 / 3, 1e-9);
  // The first four requests had their prompts before the window.
  EXPECT_NEAR(run.gateway->steady_per_output_token->value, (32 * 5 + 356 * 1.0) / 356, 1e-9);
  EXPECT_EQ(run.energy(), &*run.gateway);
}

TEST(RunSummaryTest, GoodputCountsRequestsThatKeepEveryTarget) {
  LoadRecord record = Steady(2, 5);
  record.requests[0].finished = false;
  record.requests[0].failure = CallFailure{FailureKind::kStatus, 429, "slow down"};
  const RunSummary run =
      SummarizeRun(record, {.targets = {.ttft = Seconds(0.2), .tpot = Seconds(0.11)}}, {});
  EXPECT_NEAR(run.good_share->value, 0.9, 1e-9);
  EXPECT_NEAR(run.goodput->value, 9 / 5.0, 1e-9);
  EXPECT_GT(run.goodput->sigma, 0);
  EXPECT_EQ(run.failures.at("status 429").count, 1U);
  EXPECT_EQ(run.failures.at("status 429").first_message, "slow down");
  const RunSummary strict = SummarizeRun(record, {.targets = {.tpot = Seconds(0.05)}}, {});
  EXPECT_EQ(strict.goodput->value, 0);
}

BenchReport OneRun() {
  BenchReport report{.host = "h",
                     .url = "http://h",
                     .model = "m",
                     .load = "4 at once",
                     .gpus = {{"gpu:0", "H100", "GPU-1"}}};
  BenchmarkRun run{.record = Steady(4, 10),
                   .gpus = {.whole = Measured(4000, 40, 10), .steady = Measured(3000, 30, 8.9)}};
  run.summary = SummarizeRun(run.record, {}, run.gpus);
  report.runs.push_back(std::move(run));
  return report;
}

TEST(BenchReportTest, JsonHasTheFieldsThatDiffReads) {
  const Json json = ToJson(OneRun());
  EXPECT_EQ(json["schema"], "zeus.llm_bench/1");
  const Json& run = json["runs"][0];
  EXPECT_EQ(run["exit_code"], 0);
  EXPECT_EQ(run["total"]["energy_joules"], 4000);
  EXPECT_EQ(run["devices"][0]["uuid"], "GPU-1");
  EXPECT_EQ(run["inference"]["energy_source"], "gpus");
  EXPECT_NEAR(run["inference"]["joules_per_output_token"].get<double>(), 3000.0 / 356, 1e-9);
  EXPECT_NEAR(run["inference"]["ttft_seconds"]["p90"].get<double>(), 0.1, 1e-9);
}

TEST(BenchReportTest, PeopleReadTheSteadyStateAndWhatFailed) {
  BenchReport report = OneRun();
  report.runs[0].record.requests[3].finished = false;
  report.runs[0].record.requests[3].failure = CallFailure{FailureKind::kTimeout, 0, "too late"};
  report.runs[0].summary = SummarizeRun(report.runs[0].record, {}, report.runs[0].gpus);
  const report::Report page = ToReport(report);
  EXPECT_NE(page.findings.front().find("8.427 ± 0.084 J per output token in steady state"),
            std::string::npos)
      << page.findings.front();
  EXPECT_EQ(page.sections.front().tables.back().rows.front()[2].text, "too late");
}

}  // namespace summary_test
}  // namespace zeus::inference
