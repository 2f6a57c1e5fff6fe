#include "zeus/inference/benchmark/workload.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

namespace zeus::inference {
namespace workload_test {

TEST(TokenCountTest, FormsAreParsedAndDrawnAroundTheirMean) {
  struct Case {
    const char* text;
    double mean;
    double tolerance;
  };
  const std::vector<Case> cases = {{"512", 512, 0},
                                   {"uniform:100-900", 500, 8},
                                   {"exponential:300", 300, 10},
                                   {"normal:500,100", 500, 4},
                                   {"lognormal:400,0.5", 400 * std::exp(0.125), 10}};
  for (const Case& one : cases) {
    const auto count = TokenCount::Parse(one.text);
    ASSERT_TRUE(count.ok()) << one.text;
    Random random(3);
    double sum = 0;
    constexpr int kDraws = 20000;
    for (int i = 0; i < kDraws; ++i) sum += count.value().Draw(random);
    EXPECT_NEAR(sum / kDraws, one.mean, one.tolerance) << one.text;
  }
}

TEST(TokenCountTest, OtherTextIsRefusedWithTheForms) {
  for (const char* const text : {"", "0", "-5", "many", "uniform:9-1", "uniform:5", "normal:5",
                                 "exponential:x", "pareto:1,2", "nan", "1e99"}) {
    const auto count = TokenCount::Parse(text);
    ASSERT_FALSE(count.ok()) << text;
    EXPECT_NE(count.error().message.find("lognormal"), std::string::npos);
  }
}

TEST(TraceTest, AzuresFormatIsReadWithTimesAfterTheFirst) {
  const auto trace = ParseTrace(
      "TIMESTAMP,ContextTokens,GeneratedTokens\n"
      "2023-11-16 18:15:46.6805900,374,44\n"
      "2023-11-16 18:15:50.9951690,396,109\n");
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  ASSERT_EQ(trace.value().size(), 2U);
  EXPECT_EQ(trace.value()[0].at, Seconds(0));
  EXPECT_NEAR(trace.value()[1].at.count(), 4.314579, 1e-6);
  EXPECT_EQ(trace.value()[1].prompt_tokens, 396U);
  EXPECT_EQ(trace.value()[1].output_tokens, 109U);
}

TEST(TraceTest, WrongRowsAreNamedByTheirLine) {
  const std::string header = "TIMESTAMP,ContextTokens,GeneratedTokens\n";
  for (const char* const row :
       {"yesterday,1,2\n", "2023-11-16 18:15:46.0,many,2\n", "2023-11-16 18:15:46.0,1\n"}) {
    const auto trace = ParseTrace(header + row);
    ASSERT_FALSE(trace.ok()) << row;
    EXPECT_NE(trace.error().message.find("line 2"), std::string::npos) << trace.error().message;
  }
  EXPECT_FALSE(ParseTrace(header).ok());
  EXPECT_FALSE(ParseTrace(header + "2023-11-16 18:15:46.0,1,2\n2023-11-16 18:15:45.0,1,2\n").ok());
}

TEST(TraceTest, ANamedTraceWithoutItsFileSaysWhereToGetIt) {
  ::unsetenv("ZEUS_LLM_TRACE_DIR");  // NOLINT(concurrency-mt-unsafe)
  const auto trace = ReadTrace("conversation");
  ASSERT_FALSE(trace.ok());
  EXPECT_EQ(trace.error().code, ErrorCode::kNotFound);
  EXPECT_NE(trace.error().message.find("AzurePublicDataset"), std::string::npos);
}

TEST(PromptsTest, LinesAreTextOrJson) {
  const auto prompts = ParsePrompts("Hello\n\n{\"prompt\": \"Count\", \"max_tokens\": 7}\n");
  ASSERT_TRUE(prompts.ok());
  ASSERT_EQ(prompts.value().size(), 2U);
  EXPECT_EQ(prompts.value()[0].text, "Hello");
  EXPECT_EQ(prompts.value()[1].output_tokens, 7U);
  const auto wrong = ParsePrompts("Hello\n{\"text\": 1}\n");
  ASSERT_FALSE(wrong.ok());
  EXPECT_NE(wrong.error().message.find("line 2"), std::string::npos);
}

TEST(ParseTimeTest, UnitsAreUnderstood) {
  EXPECT_EQ(ParseTime("50ms").value(), Seconds(0.05));
  EXPECT_EQ(ParseTime("1.5s").value(), Seconds(1.5));
  EXPECT_EQ(ParseTime("2min").value(), Seconds(120));
  EXPECT_EQ(ParseTime("1h").value(), Seconds(3600));
  EXPECT_EQ(ParseTime("3").value(), Seconds(3));
  for (const char* const text : {"", "0", "-1s", "soon", "nan"}) EXPECT_FALSE(ParseTime(text).ok());
}

std::vector<double> ArrivalTimes(const WorkloadOptions& options) {
  Workload workload(options);
  std::vector<double> times;
  while (const auto request = workload.Next()) times.push_back(request->at->count());
  return times;
}

TEST(WorkloadTest, PoissonArrivalsHaveTheRateAndExponentialGaps) {
  constexpr std::size_t kRequests = 20000;
  const auto times = ArrivalTimes(
      {.arrivals = PoissonArrivals{5}, .requests = kRequests, .prompt_tokens = TokenCount(1)});
  ASSERT_EQ(times.size(), kRequests);
  EXPECT_NEAR(times.back(), kRequests / 5.0, 4 * std::sqrt(kRequests) / 5);
  std::size_t longer = 0;  // Than the mean gap: a share of 1/e.
  for (std::size_t i = 1; i < times.size(); ++i) longer += times[i] - times[i - 1] > 0.2 ? 1 : 0;
  EXPECT_NEAR(static_cast<double>(longer) / kRequests, std::exp(-1), 0.015);
}

TEST(WorkloadTest, StepsHaveTheirRatesAndEndTheLoad) {
  const auto steps = ParseSteps("2@1000s, 0@500s, 8@1000s");
  ASSERT_TRUE(steps.ok());
  const auto times = ArrivalTimes({.arrivals = SteppedArrivals{steps.value()},
                                   .requests = 1000000,
                                   .prompt_tokens = TokenCount(1)});
  const auto between = [&times](double low, double high) {
    return std::count_if(times.begin(), times.end(),
                         [&](double time) { return time >= low && time < high; });
  };
  EXPECT_NEAR(static_cast<double>(between(0, 1000)), 2000, 4 * std::sqrt(2000));
  EXPECT_EQ(between(1000, 1500), 0);
  EXPECT_NEAR(static_cast<double>(between(1500, 2500)), 8000, 4 * std::sqrt(8000));
  EXPECT_LT(times.back(), 2500);
  for (const char* const text : {"", "5", "x@3s", "1@", "1@0s", "-1@3s"})
    EXPECT_FALSE(ParseSteps(text).ok()) << text;
}

TEST(WorkloadTest, ATraceGivesTimesAndLengths) {
  const TracedArrivals trace{{{Seconds(0), 10, 5}, {Seconds(4), 20, 6}, {Seconds(8), 30, 7}}, 2};
  Workload workload({.arrivals = trace, .requests = 100});
  EXPECT_FALSE(workload.concurrency());
  (void)workload.Next();
  const auto second = workload.Next();
  ASSERT_TRUE(second);
  EXPECT_EQ(second->at, Seconds(2));
  EXPECT_EQ(second->output_tokens, 6U);
  EXPECT_EQ(std::count(second->prompt.begin(), second->prompt.end(), ' '), 19);
  EXPECT_TRUE(workload.Next());
  EXPECT_FALSE(workload.Next());
}

TEST(WorkloadTest, TheSameSeedGivesTheSameRequestsAndNoPromptTwice) {
  const WorkloadOptions options{
      .arrivals = ClosedLoop{4}, .requests = 50, .prompt_tokens = TokenCount(30)};
  Workload one(options);
  Workload other(options);
  std::vector<std::string> prompts;
  while (const auto request = one.Next()) {
    const auto same = other.Next();
    ASSERT_TRUE(same);
    EXPECT_EQ(request->prompt, same->prompt);
    EXPECT_FALSE(request->at);
    prompts.push_back(request->prompt);
  }
  EXPECT_EQ(prompts.size(), 50U);
  std::sort(prompts.begin(), prompts.end());
  EXPECT_EQ(std::unique(prompts.begin(), prompts.end()), prompts.end());
}

TEST(WorkloadTest, PromptsOfAFileComeInTurnAndLeaveTheLengthToTheModel) {
  Workload workload(
      {.arrivals = ClosedLoop{1}, .requests = 3, .prompts = {{"a", std::nullopt}, {"b", 9}}});
  EXPECT_EQ(workload.Next()->output_tokens, std::nullopt);
  EXPECT_EQ(workload.Next()->output_tokens, 9U);
  EXPECT_EQ(workload.Next()->prompt, "a");
}

}  // namespace workload_test
}  // namespace zeus::inference
