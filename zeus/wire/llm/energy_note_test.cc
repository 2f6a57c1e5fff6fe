#include "zeus/wire/llm/energy_note.h"

#include <gtest/gtest.h>

#include <limits>

#include "zeus/base/json.h"
#include "zeus/wire/llm/testing/sample_responses.h"

namespace zeus::llm {
namespace energy_note_test {

TEST(EnergyNoteTest, TheObjectHasTheNamesThatClientsRead) {
  const Json json = ParseJson(ToJsonText(testing::SampleNote())).value();
  EXPECT_DOUBLE_EQ(json.at("energy_joules"), 92.4);
  EXPECT_NEAR(json.at("energy_kwh"), 92.4 / 3.6e6, 1e-10);
  EXPECT_NEAR(json.at("avg_power_watts"), 92.4 / 1.8, 1e-3);
  EXPECT_DOUBLE_EQ(json.at("duration_seconds"), 1.8);
  EXPECT_EQ(json.at("attribution_method"), "zeus-iterations");
  EXPECT_DOUBLE_EQ(json.at("attribution_ratio"), 0.083);
  EXPECT_DOUBLE_EQ(json.at("sigma_joules"), 2.1);
  EXPECT_DOUBLE_EQ(json.at("prefill_joules"), 24.9);
  EXPECT_DOUBLE_EQ(json.at("decode_joules"), 67.5);
  EXPECT_NEAR(json.at("joules_per_output_token"), 92.4 / 211, 1e-6);
  EXPECT_EQ(json.at("final"), false);
  EXPECT_EQ(json.at("source"), "counter");
  EXPECT_EQ(json.at("gpus"), Json::array({"gpu:0"}));
  EXPECT_EQ(json.at("request"), "r-1");
  EXPECT_FALSE(json.contains("tokens"));
  EXPECT_FALSE(json.contains("carbon_grams"));
}

TEST(EnergyNoteTest, EstimatedTokensAndUnknownNumbersAreSaid) {
  EnergyNote note = testing::SampleNote();
  note.tokens_estimated = true;
  note.output_tokens = 0;
  note.duration = Seconds(0);
  note.sigma = Joules(std::numeric_limits<double>::quiet_NaN());
  const Json json = ParseJson(ToJsonText(note)).value();
  EXPECT_EQ(json.at("tokens"), "estimated");
  EXPECT_FALSE(json.contains("joules_per_output_token"));
  EXPECT_TRUE(json.at("avg_power_watts").is_null());
  EXPECT_TRUE(json.at("sigma_joules").is_null());
}

TEST(EnergyNoteTest, AbsentEnergyHasAReasonAndNoNumbers) {
  EnergyNote note = testing::SampleNote();
  note.absent_reason = "the GPUs of \"m\" are\nnot known \xff";
  const std::string text = ToJsonText(note);
  EXPECT_EQ(text.find('\n'), std::string::npos);
  const Json json = ParseJson(text).value();
  EXPECT_TRUE(json.at("energy_joules").is_null());
  EXPECT_EQ(json.at("absent_reason"), "the GPUs of \"m\" are\nnot known \xEF\xBF\xBD");
  EXPECT_EQ(json.size(), 3U);
  ASSERT_EQ(ToHeaders(note).size(), 1U);
  EXPECT_EQ(ToHeaders(note)[0].second, "r-1");
}

TEST(EnergyNoteTest, HeadersCarryEnergySigmaAndCarbon) {
  EnergyNote note = testing::SampleNote();
  note.carbon_grams = 0.0125;
  const std::vector<std::pair<std::string, std::string>> expected{
      {"x-zeus-request", "r-1"},
      {"x-zeus-energy-joules", "92.4"},
      {"x-zeus-energy-sigma-joules", "2.1"},
      {"x-zeus-carbon-grams", "0.0125"}};
  EXPECT_EQ(ToHeaders(note), expected);
}

}  // namespace energy_note_test
}  // namespace zeus::llm
