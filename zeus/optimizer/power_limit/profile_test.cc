#include "zeus/optimizer/power_limit/profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "zeus/base/json.h"
#include "zeus/optimizer/power_limit/selector.h"

namespace zeus {
namespace profile_test {

using namespace zeus::literals;
using ::testing::HasSubstr;

Profile Sample() {
  return {.knob = KnobKind::kGpuPowerLimit,
          .context = {.job = "a \"job\" / ünïcode\n",
                      .batch_size = 128,
                      .device_model = "Tesla V100-PCIE-32GB",
                      .uuids = {"GPU-1", "GPU-2"},
                      .devices = 2,
                      .driver = "535.00",
                      .date = WallTime(std::chrono::seconds(1714564800))},
          .max_power = 500_W,
          .shared_error = 0.0123456789012345,
          .complete = true,
          .points = {{.setting = 250_W,
                      .steps = 40,
                      .time_per_step = Seconds(0.1),
                      .time_sigma = Seconds(0.001),
                      .energy_per_step = 40_J,
                      .energy_sigma = 0.1_J},
                     {.setting = 187.5_W,
                      .steps = 33,
                      .time_per_step = Seconds(0.123456789012345),
                      .time_sigma = Seconds(0),
                      .energy_per_step = 30.3_J,
                      .energy_sigma = 0_J}}};
}

void ExpectSame(const Profile& a, const Profile& b) {
  EXPECT_EQ(a.knob, b.knob);
  EXPECT_EQ(a.context.job, b.context.job);
  EXPECT_EQ(a.context.batch_size, b.context.batch_size);
  EXPECT_EQ(a.context.device_model, b.context.device_model);
  EXPECT_EQ(a.context.uuids, b.context.uuids);
  EXPECT_EQ(a.context.devices, b.context.devices);
  EXPECT_EQ(a.context.driver, b.context.driver);
  EXPECT_EQ(a.context.date, b.context.date);
  EXPECT_EQ(a.max_power, b.max_power);
  EXPECT_EQ(a.shared_error, b.shared_error);
  EXPECT_EQ(a.complete, b.complete);
  ASSERT_EQ(a.points.size(), b.points.size());
  for (std::size_t i = 0; i < a.points.size(); ++i) {
    EXPECT_EQ(a.points[i].setting, b.points[i].setting);
    EXPECT_EQ(a.points[i].steps, b.points[i].steps);
    EXPECT_EQ(a.points[i].time_per_step, b.points[i].time_per_step);
    EXPECT_EQ(a.points[i].time_sigma, b.points[i].time_sigma);
    EXPECT_EQ(a.points[i].energy_per_step, b.points[i].energy_per_step);
    EXPECT_EQ(a.points[i].energy_sigma, b.points[i].energy_sigma);
  }
}

std::string WhyNot(const std::string& text) {
  const auto parsed = ParseProfile(text);
  return parsed.ok() ? "it is understood" : parsed.error().message;
}

// Returns the sample with one field changed by `edit`.
template <class Edit>
std::string Edited(Edit edit) {
  Json json = ParseJson(ProfileToJson(Sample())).value();
  edit(json);
  return WhyNot(json.dump());
}

TEST(ProfileJsonTest, WhatIsWrittenIsReadAgain) {
  const auto read = ParseProfile(ProfileToJson(Sample()));
  ASSERT_TRUE(read.ok()) << read.error().message;
  ExpectSame(read.value(), Sample());
}

TEST(ProfileJsonTest, ClocksAreInMegahertz) {
  Profile clocks = Sample();
  clocks.knob = KnobKind::kGraphicsClock;
  clocks.points[0].setting = 1380_MHz;
  clocks.points[1].setting = 810_MHz;
  const std::string text = ProfileToJson(clocks);
  EXPECT_THAT(text, HasSubstr("\"clock_megahertz\": 1380.0"));
  const auto read = ParseProfile(text);
  ASSERT_TRUE(read.ok()) << read.error().message;
  ExpectSame(read.value(), clocks);
}

TEST(ProfileJsonTest, ReadersOfTheReferencesFormatFindTheirField) {
  Json json = ParseJson(ProfileToJson(Sample())).value();
  const std::string theirs = Json{{"measurements", json["measurements"]}}.dump();
  const auto read = ParseProfile(theirs);
  ASSERT_TRUE(read.ok()) << read.error().message;
  ASSERT_EQ(read.value().points.size(), Sample().points.size());
  EXPECT_EQ(read.value().points[0].setting, Sample().points[0].setting);
  EXPECT_EQ(read.value().points[0].energy_per_step, Sample().points[0].energy_per_step);
  EXPECT_EQ(read.value().points[0].time_per_step, Sample().points[0].time_per_step);
}

TEST(ProfileJsonTest, PointsComeFastestFirst) {
  Profile reversed = Sample();
  std::swap(reversed.points[0], reversed.points[1]);
  const auto read = ParseProfile(ProfileToJson(reversed));
  ASSERT_TRUE(read.ok()) << read.error().message;
  ExpectSame(read.value(), Sample());
}

TEST(ProfileJsonTest, NoPartOfAProfileIsAProfile) {
  const std::string text = ProfileToJson(Sample());
  for (std::size_t size = 0; size + 2 < text.size(); ++size)
    EXPECT_FALSE(ParseProfile(text.substr(0, size)).ok()) << size;
}

TEST(ProfileJsonTest, EveryMistakeIsOneSentence) {
  EXPECT_EQ(WhyNot("hello"), "not valid JSON at byte 1");
  EXPECT_EQ(WhyNot("[]"), "not a power profile: not a JSON object");
  EXPECT_THAT(WhyNot("{}"), HasSubstr("neither field \"schema\" nor \"measurements\""));
  EXPECT_THAT(WhyNot(R"({"schema": 3})"), HasSubstr("\"schema\" has the wrong type"));
  EXPECT_THAT(WhyNot(R"({"schema": "zeus.run/1"})"), HasSubstr("its format is \"zeus.run/1\""));
  EXPECT_THAT(WhyNot(R"({"schema": "zeus.power_profile/2"})"), HasSubstr("profile again"));
  EXPECT_THAT(WhyNot(std::string(100'000'000, '[')), HasSubstr("larger than 1048576 bytes"));
  EXPECT_THAT(WhyNot(R"({"schema": "zeus.power_profile/1", "x": 1e999})"),
              HasSubstr("not valid JSON"));
}

TEST(ProfileJsonTest, NumbersThatNobodyMeasuredAreRefused) {
  EXPECT_EQ(Edited([](Json&) {}), "it is understood");
  EXPECT_THAT(Edited([](Json& json) { json["points"] = Json::array(); }), HasSubstr("is empty"));
  EXPECT_THAT(Edited([](Json& json) { json["points"] = {1}; }), HasSubstr("no object"));
  EXPECT_THAT(Edited([](Json& json) { json["knob"] = "volume"; }), HasSubstr("not a knob"));
  EXPECT_THAT(Edited([](Json& json) { json["date"] = "yesterday"; }), HasSubstr("yesterday"));
  EXPECT_THAT(Edited([](Json& json) { json["date"] = "1969-12-31T00:00:00Z"; }),
              HasSubstr("nobody"));
  EXPECT_THAT(Edited([](Json& json) { json["devices"] = 0; }), HasSubstr("\"devices\" is 0"));
  EXPECT_THAT(Edited([](Json& json) { json["batch_size"] = 1.5; }), HasSubstr("whole number"));
  EXPECT_THAT(Edited([](Json& json) { json["max_power_watts"] = -1; }), HasSubstr("is -1"));
  EXPECT_THAT(Edited([](Json& json) { json["points"][0]["limit_watts"] = 187.5; }),
              HasSubstr("187.5 W is there twice"));
  const auto edit_point = [](const char* field, const Json& value) {
    return Edited([&](Json& json) { json["points"][1][field] = value; });
  };
  EXPECT_THAT(edit_point("time_per_step_seconds", 0), HasSubstr("\"time_per_step_seconds\" is 0"));
  EXPECT_THAT(edit_point("energy_per_step_joules", -3), HasSubstr("is -3"));
  EXPECT_THAT(edit_point("energy_per_step_joules", nullptr), HasSubstr("wrong type (null)"));
  EXPECT_THAT(edit_point("energy_sigma_joules", -1), HasSubstr("is -1"));
  EXPECT_THAT(edit_point("steps", 0), HasSubstr("\"steps\" is 0"));
  EXPECT_THAT(edit_point("steps", 1e300), HasSubstr("\"steps\" is 1e+300"));
}

// A profile in the format of the reference implementation, whose order is not fixed.
constexpr const char* kReference = R"({
    "measurements": [
        {"power_limit": 100, "energy": 900.5, "time": 9.0},
        {"power_limit": 300, "energy": 1200.0, "time": 5.0},
        {"power_limit": 200, "energy": 800.0, "time": 6.0}
    ]
})";

TEST(ProfileJsonTest, TheReferencesFilesAreRead) {
  const auto read = ParseProfile(kReference, 4);
  ASSERT_TRUE(read.ok()) << read.error().message;
  const Profile& profile = read.value();
  EXPECT_EQ(profile.knob, KnobKind::kGpuPowerLimit);
  EXPECT_EQ(profile.max_power, 1200_W);
  EXPECT_EQ(profile.context.devices, 4);
  EXPECT_EQ(profile.context.device_model, "");
  EXPECT_TRUE(profile.complete);
  ASSERT_EQ(profile.points.size(), 3);
  EXPECT_EQ(profile.points[0].setting, Setting(300_W));
  EXPECT_EQ(profile.points[2].setting, Setting(100_W));
  EXPECT_EQ(profile.points[1].energy_per_step, 800_J);
  EXPECT_EQ(Energy().select(profile).value(), 1);
  EXPECT_EQ(Time().select(profile).value(), 0);
}

TEST(ProfileJsonTest, ReadersOfTheReferencesFilesUnderstandOurs) {
  const Json json = ParseJson(ProfileToJson(ParseProfile(kReference).value())).value();
  EXPECT_EQ(json["measurements"][0].dump(), R"({"power_limit":300,"energy":1200.0,"time":5.0})");
  EXPECT_TRUE(ParseProfile(Json{{"measurements", json["measurements"]}}.dump()).ok());

  Profile clocks = Sample();
  clocks.knob = KnobKind::kGraphicsClock;
  EXPECT_FALSE(ParseJson(ProfileToJson(clocks)).value().contains("measurements"));
}

TEST(ProfileJsonTest, MistakesInTheReferencesFilesAreRefused) {
  EXPECT_THAT(WhyNot(R"({"measurements": []})"), HasSubstr("is empty"));
  EXPECT_THAT(WhyNot(R"({"measurements": {}})"), HasSubstr("wrong type"));
  EXPECT_THAT(WhyNot(R"({"measurements": [{"power_limit": 100, "energy": 1}]})"),
              HasSubstr("\"time\" is missing"));
  EXPECT_THAT(WhyNot(R"({"measurements": [{"power_limit": 100, "energy": -1, "time": 1}]})"),
              HasSubstr("\"energy\" is -1"));
}

}  // namespace profile_test
}  // namespace zeus
