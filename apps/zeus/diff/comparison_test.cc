#include "apps/zeus/diff/comparison.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "zeus/base/json.h"
#include "zeus/base/random.h"
#include "zeus/base/testing/temporary_directory.h"

namespace zeus::cli {
namespace comparison_test {

std::vector<double> Draw(Random& random, int count, double mean, double relative_scatter) {
  std::vector<double> values;
  for (int i = 0; i < count; ++i) values.push_back(mean * (1 + relative_scatter * random.Normal()));
  return values;
}

Verdict VerdictFor(const std::vector<double>& base, const std::vector<double>& changed,
                   const DiffOptions& options = {}) {
  return Judge(base, changed, 0, 0, options).verdict;
}

TEST(JudgeTest, AClearIncreaseIsARegression) {
  EXPECT_EQ(VerdictFor({100, 101, 99, 100}, {110, 111, 109, 110}), Verdict::kRegression);
}

TEST(JudgeTest, AnIncreaseWithinTheLimitIsOk) {
  EXPECT_EQ(VerdictFor({100, 100.2, 99.9, 100}, {101, 101.1, 100.9, 101}), Verdict::kOk);
  EXPECT_EQ(VerdictFor({100, 101, 99, 100}, {110, 111, 109, 110}, {.max_regress = 0.2}),
            Verdict::kOk);
}

TEST(JudgeTest, ADecreaseIsOk) {
  EXPECT_EQ(VerdictFor({100, 101, 99, 100}, {80, 81, 79, 80}), Verdict::kOk);
}

TEST(JudgeTest, ScatterAroundTheLimitIsUndecidedAndSaysHowManyRunsItTakes) {
  const std::vector<double> base = {100, 103, 97, 100};
  const std::vector<double> changed = {104, 108, 101, 105};
  const Judgement judgement = Judge(base, changed, 0, 0, {});
  EXPECT_EQ(judgement.verdict, Verdict::kUndecided);
  ASSERT_TRUE(judgement.runs_needed.has_value());
  EXPECT_GT(*judgement.runs_needed, 4U);
  EXPECT_NE(judgement.reason.find(fmt::format("{}", *judgement.runs_needed)), std::string::npos);
}

TEST(JudgeTest, AsManyRunsAsItAsksForDecide) {
  std::vector<double> base = {100, 103, 97, 100};
  std::vector<double> changed = {104, 108, 101, 105};
  const std::size_t needed = *Judge(base, changed, 0, 0, {}).runs_needed;
  // The same values are repeated until there are enough runs. (Copies scatter a little less than n
  // - 1 assumes.)
  const std::size_t copies = needed / base.size() + 2;
  std::vector<double> more_base;
  std::vector<double> more_changed;
  for (std::size_t i = 0; i < copies; ++i) {
    more_base.insert(more_base.end(), base.begin(), base.end());
    more_changed.insert(more_changed.end(), changed.begin(), changed.end());
  }
  EXPECT_NE(VerdictFor(more_base, more_changed), Verdict::kUndecided);
}

TEST(JudgeTest, AChangeAtTheLimitIsDecidedByNoNumberOfRuns) {
  const Judgement judgement = Judge({100, 104, 96, 100}, {103, 107, 99, 103}, 0, 0, {});
  EXPECT_EQ(judgement.verdict, Verdict::kUndecided);
  EXPECT_FALSE(judgement.runs_needed.has_value());
}

TEST(JudgeTest, OneRunIsNotEnough) {
  EXPECT_EQ(VerdictFor({100}, {200}), Verdict::kUndecided);
  EXPECT_EQ(VerdictFor({100, 100, 100}, {200}), Verdict::kUndecided);
  EXPECT_EQ(VerdictFor({}, {}), Verdict::kUndecided);
  EXPECT_EQ(VerdictFor({100, 100, 100, 100}, {200, 200, 200, 200}, {.method = Method::kBootstrap}),
            Verdict::kUndecided);
}

TEST(JudgeTest, AMeanOfZeroCannotBeCompared) {
  EXPECT_EQ(VerdictFor({0, 0, 0}, {1, 1, 1}), Verdict::kUndecided);
}

TEST(JudgeTest, WhatDifferentBoardsMayBeWrongByHidesSmallChanges) {
  const std::vector<double> base = {100, 100.1, 99.9, 100};
  const std::vector<double> changed = {106, 106.1, 105.9, 106};
  EXPECT_EQ(Judge(base, changed, 0, 0, {}).verdict, Verdict::kRegression);
  const Judgement different = Judge(base, changed, 0.05, 0.05, {});
  EXPECT_EQ(different.verdict, Verdict::kUndecided);
  EXPECT_NE(different.reason.find("same devices"), std::string::npos);
}

// Without a change, false alarms must be rarer than 1 - confidence with any method; exactly at the
// limit they occur about that often.
class FalseAlarmTest : public ::testing::TestWithParam<Method> {};

TEST_P(FalseAlarmTest, AreAsRareAsTheConfidencePromises) {
  Random random(77);
  constexpr int kExperiments = 200;
  int without_change = 0;
  int at_limit = 0;
  int missed = 0;
  for (int i = 0; i < kExperiments; ++i) {
    const DiffOptions options{.method = GetParam(), .seed = static_cast<std::uint64_t>(i)};
    const auto base = Draw(random, 6, 500, 0.03);
    const auto same = Draw(random, 6, 500, 0.03);
    const auto limit = Draw(random, 6, 515, 0.03);
    const auto worse = Draw(random, 6, 600, 0.03);
    without_change += VerdictFor(base, same, options) == Verdict::kRegression ? 1 : 0;
    at_limit += VerdictFor(base, limit, options) == Verdict::kRegression ? 1 : 0;
    missed += VerdictFor(base, worse, options) != Verdict::kRegression ? 1 : 0;
  }
  EXPECT_LT(without_change, 0.02 * kExperiments);
  EXPECT_LT(at_limit, 0.08 * kExperiments);
  EXPECT_LT(missed, 0.02 * kExperiments);
}

INSTANTIATE_TEST_SUITE_P(Methods, FalseAlarmTest,
                         ::testing::Values(Method::kWelch, Method::kBootstrap),
                         [](const auto& method) {
                           return method.param == Method::kWelch ? "Welch" : "Bootstrap";
                         });

// Makes a file as `zeus run --repeat` writes it, with one GPU.
Json FileWith(const std::vector<double>& energies, const std::string& uuid = "GPU-1") {
  Json runs = Json::array();
  for (const double energy : energies) {
    Json device = {{"device", "gpu:0"},
                   {"uuid", uuid},
                   {"energy_joules", energy},
                   {"flags", {}},
                   {"energy_sigma_joules", energy * 0.05}};
    runs.push_back({{"exit_code", 0},
                    {"time_seconds", 2.0},
                    {"devices", {device}},
                    {"total",
                     {{"energy_joules", energy},
                      {"energy_sigma_joules", energy * 0.05},
                      {"contains", {"gpu:0"}}}}});
  }
  return {{"schema", "zeus.run/1"}, {"command", {"train"}}, {"host", "here"}, {"runs", runs}};
}

class CompareTest : public ::testing::Test {
 protected:
  Result<Comparison> Compare(const Json& base, const Json& changed,
                             const DiffOptions& options = {}) {
    auto base_file = Read("base.json", base);
    auto changed_file = Read("new.json", changed);
    if (!base_file.ok()) return std::move(base_file).error();
    if (!changed_file.ok()) return std::move(changed_file).error();
    return cli::Compare(base_file.value(), changed_file.value(), options);
  }

  Result<RunFile> Read(const std::string& name, const Json& json) {
    return ReadRunFile(directory_.AddFile(name, json.dump()).string());
  }

  zeus::testing::TemporaryDirectory directory_;
};

TEST_F(CompareTest, TheSameRunsAreOkHoweverTheyScatter) {
  const Json file = FileWith({100, 300});
  const auto compared = Compare(file, file);
  ASSERT_TRUE(compared.ok());
  EXPECT_EQ(compared.value().judgement.verdict, Verdict::kOk);
  EXPECT_TRUE(compared.value().warnings.empty());
}

TEST_F(CompareTest, OtherBoardsAreWarnedAboutAndCountTheirCalibration) {
  const Json base = FileWith({100, 100.1, 99.9});
  const auto same = Compare(base, FileWith({106, 106.1, 105.9}));
  const auto other = Compare(base, FileWith({106, 106.1, 105.9}, "GPU-2"));
  EXPECT_EQ(same.value().judgement.verdict, Verdict::kRegression);
  EXPECT_EQ(other.value().judgement.verdict, Verdict::kUndecided);
  ASSERT_EQ(other.value().warnings.size(), 1U);
  EXPECT_NE(other.value().warnings.front().find("different devices"), std::string::npos);
}

TEST_F(CompareTest, FilesOfEarlierVersionsCallSigmaByItsFormerName) {
  const auto former = [](Json file) {
    for (Json& run : file["runs"]) {
      Json& total = run["total"];
      total["sigma_joules"] = total["energy_sigma_joules"];
      total.erase("energy_sigma_joules");
    }
    return file;
  };
  const Json base = FileWith({100, 100.1, 99.9});
  const Json other = FileWith({106, 106.1, 105.9}, "GPU-2");
  // The difference is within the calibration errors of two boards, so it stays undecided.
  EXPECT_EQ(Compare(base, other).value().judgement.verdict, Verdict::kUndecided);
  EXPECT_EQ(Compare(former(base), former(other)).value().judgement.verdict, Verdict::kUndecided);
}

TEST_F(CompareTest, OtherCommandsAreWarnedAbout) {
  Json changed = FileWith({100, 101, 99});
  changed["command"] = {"train", "--fast"};
  const auto compared = Compare(FileWith({100, 101, 99}), changed);
  ASSERT_EQ(compared.value().warnings.size(), 1U);
  EXPECT_NE(compared.value().warnings.front().find("commands differ"), std::string::npos);
}

TEST_F(CompareTest, FailedAndUnmeasuredRunsAreLeftOut) {
  Json changed = FileWith({100, 101, 5000, 7000});
  changed["runs"][2]["exit_code"] = 1;
  changed["runs"][3]["total"]["energy_joules"] = nullptr;
  const auto compared = Compare(FileWith({100, 101, 99}), changed);
  ASSERT_TRUE(compared.ok());
  EXPECT_EQ(compared.value().judgement.changed.count, 2U);
  EXPECT_EQ(compared.value().warnings.size(), 2U);
}

TEST_F(CompareTest, AnUnknownDeviceIsNamed) {
  const auto compared = Compare(FileWith({1, 2}), FileWith({1, 2}), {.device = "gpu:9"});
  ASSERT_FALSE(compared.ok());
  EXPECT_EQ(compared.error().code, ErrorCode::kNotFound);
  EXPECT_NE(compared.error().message.find("gpu:9"), std::string::npos);
}

TEST_F(CompareTest, FilesOfAnotherKindAreRefused) {
  const Json sound = FileWith({1, 2});
  for (const Json& wrong : {Json::array(), Json("text"), Json::object(), Json(nullptr),
                            Json{{"schema", "zeus.run/1"}, {"runs", 5}},
                            Json{{"schema", "zeus.run/1"}, {"runs", {1, "x", nullptr}}}}) {
    const auto compared = Compare(sound, wrong);
    ASSERT_FALSE(compared.ok()) << wrong;
  }
}

// A file of `zeus llm bench` with these joules per token.
Json BenchWith(const std::vector<double>& token_energies) {
  Json runs = Json::array();
  for (const double energy : token_energies)
    runs.push_back({{"exit_code", 0},
                    {"time_seconds", 10},
                    {"inference",
                     {{"joules_per_output_token", energy},
                      {"joules_per_output_token_sigma", energy / 100},
                      {"joules_per_request", nullptr},
                      {"ttft_seconds", {{"p90", energy * 2}}}}}});
  return {{"schema", "zeus.llm_bench/1"}, {"command", {"zeus", "llm", "bench"}}, {"runs", runs}};
}

TEST_F(CompareTest, BenchmarksOfLanguageModelsAreComparedByTokenAndLatency) {
  const Json base = BenchWith({0.100, 0.101, 0.099});
  const Json worse = BenchWith({0.120, 0.121, 0.119});
  for (const Metric metric : {Metric::kTokenEnergy, Metric::kTtft}) {
    const auto compared = Compare(base, worse, {.metric = metric});
    ASSERT_TRUE(compared.ok()) << compared.error().message;
    EXPECT_EQ(compared.value().judgement.verdict, Verdict::kRegression);
    EXPECT_NEAR(*compared.value().judgement.ratio, 1.2, 1e-9);
    EXPECT_EQ(Compare(base, base, {.metric = metric}).value().judgement.verdict, Verdict::kOk);
  }
  // Energies of requests are not known, and files of zeus run have neither.
  EXPECT_EQ(Compare(base, worse, {.metric = Metric::kRequestEnergy}).value().judgement.base.count,
            0U);
  const auto none = Compare(FileWith({1, 2}), base, {.metric = Metric::kTokenEnergy});
  ASSERT_FALSE(none.ok());
  EXPECT_NE(none.error().message.find("zeus llm bench"), std::string::npos);
}

TEST_F(CompareTest, EveryFormatNamesVerdictAndFiles) {
  const auto compared = Compare(FileWith({100, 101, 99}), FileWith({120, 121, 119}));
  ASSERT_TRUE(compared.ok());
  for (const std::string& text : {ToText(compared.value()), ToMarkdown(compared.value()),
                                  ToJUnit(compared.value()), ToJson(compared.value()).dump()}) {
    EXPECT_NE(text.find("regression"), std::string::npos) << text;
    EXPECT_NE(text.find("new.json"), std::string::npos) << text;
  }
}

}  // namespace comparison_test
}  // namespace zeus::cli
