#include "zeus/wire/requests.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "zeus/base/json.h"
#include "zeus/wire/error.h"

namespace zeus::wire {
namespace requests_test {

TEST(WireBodyTest, AnObjectIsRead) {
  const auto json = ParseBody(R"({"metric": 0.5, "text": "[[["})");
  ASSERT_TRUE(json.ok());
  EXPECT_EQ(json.value().at("metric"), 0.5);
}

TEST(WireBodyTest, WhatIsNoNumberNamesItsField) {
  for (const std::string value : {"NaN", "Infinity", "-Infinity", "1e999", "nan", "+1"}) {
    const auto json = ParseBody(R"({"epoch": 1, "energy_joules": )" + value + R"(, "metric": 1})");
    ASSERT_FALSE(json.ok()) << value;
    EXPECT_EQ(json.error().code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(FieldOf(json.error()), "energy_joules") << json.error().message;
  }
}

TEST(WireBodyTest, WhatIsNoObjectIsRefused) {
  for (const std::string text :
       {"", "[]", "3", "null", "\"x\"", "{", "{]", "\xff", "{} {}", R"({"epoch": 1} x)"}) {
    const auto json = ParseBody(text);
    ASSERT_FALSE(json.ok()) << text;
    EXPECT_EQ(FieldOf(json.error()), "") << json.error().message;
  }
}

TEST(WireBodyTest, AFieldThatIsThereTwiceIsRefusedByName) {
  const auto json = ParseBody(R"({"id": "x", "labels": {"id": "y"}, "id": "z"})");
  ASSERT_FALSE(json.ok());
  EXPECT_EQ(FieldOf(json.error()), "id");
  EXPECT_FALSE(ParseBody(R"({"labels": {"a": "1", "a": "2"}})").ok());
  EXPECT_TRUE(ParseBody(R"({"a": {"b": 1}, "b": {"a": 1}})").ok());
}

TEST(WireBodyTest, DepthIsBounded) {
  const std::string deep(100'000, '[');
  EXPECT_FALSE(ParseBody(R"({"a": )" + deep).ok());
  EXPECT_FALSE(ParseBody(R"({"a": )" + std::string(16, '[') + std::string(16, ']') + "}").ok());
  EXPECT_TRUE(ParseBody(R"({"a": )" + std::string(15, '[') + std::string(15, ']') + "}").ok());
}

TEST(WireBodyTest, TheNumberOfValuesIsBounded) {
  std::string many = R"({"a": [1)";
  for (std::size_t i = 0; i < kMostValues; ++i) many += ",1";
  EXPECT_FALSE(ParseBody(many + "]}").ok());
  std::string wide = R"({"0": 0)";
  for (std::size_t i = 1; i < kMostFields; ++i) wide += fmt::format(R"(,"{}":0)", i);
  EXPECT_TRUE(ParseBody(wide + "}").ok());
  EXPECT_FALSE(ParseBody(wide + R"(,"x":0})").ok());
}

TEST(WireBodyTest, ALongArrayOfObjectsTakesALinearTime) {
  std::string text = R"({"points": [{"a":1})";
  for (int i = 0; i < 400'000; ++i) text += R"(,{"a":1})";
  const auto json = ParseBody(text + "]}");  // Would take many minutes.
  ASSERT_TRUE(json.ok()) << json.error().message;
  EXPECT_EQ(json.value().at("points").size(), 400'001U);
}

using namespace zeus::literals;

// The field that the reader of reports complains about, with one field of a good report replaced.
template <class Reader>
std::string Complaint(Json good, const std::string& field, const Json& value, Reader read) {
  good[field] = value;
  const auto outcome = read(good);
  return outcome.ok() ? "" : FieldOf(outcome.error());
}

const TrialReport kReport{.job_id = "mnist",
                          .trial = 7,
                          .epoch = 3,
                          .time = Seconds(12.5),
                          .energy = 1000_J,
                          .metric = 0.9,
                          .epoch_energy = 300_J,
                          .epoch_time = Seconds(4),
                          .power_limit = 150_W};

TEST(WireRequestsTest, AReportComesBackAsItWas) {
  const auto read = TrialReportFromJson("mnist", 7, ToJson(kReport));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read.value().epoch, 3);
  EXPECT_EQ(read.value().energy, 1000_J);
  EXPECT_EQ(read.value().power_limit, 150_W);
  EXPECT_EQ(ToJson(read.value()), ToJson(kReport));
}

TEST(WireRequestsTest, AReportThatMakesNoSenseNamesTheField) {
  const auto read = [](const Json& json) { return TrialReportFromJson("mnist", 7, json); };
  const Json good = ToJson(kReport);
  for (const char* field : {"energy_joules", "time_seconds", "epoch_energy_joules",
                            "epoch_time_seconds", "power_limit_watts"}) {
    EXPECT_EQ(Complaint(good, field, -1, read), field);
    EXPECT_EQ(Complaint(good, field, "1", read), field);
    EXPECT_EQ(Complaint(good, field, Json::array(), read), field);
  }
  for (const Json& value : std::vector<Json>{0, -1, 1.5, "1", true, Json(), 1e10, 5'000'000'000})
    EXPECT_EQ(Complaint(good, "epoch", value, read), "epoch") << value;
  for (const Json& value : std::vector<Json>{"0.9", Json(), false})
    EXPECT_EQ(Complaint(good, "metric", value, read), "metric") << value;
  EXPECT_EQ(Complaint(good, "energy", 5, read), "energy") << "unknown fields are mistakes";
}

TEST(WireRequestsTest, EveryFieldOfAReportThatIsNeededIsMissed) {
  for (const char* field : {"epoch", "time_seconds", "energy_joules", "metric"}) {
    Json json = ToJson(kReport);
    json.erase(field);
    const auto read = TrialReportFromJson("mnist", 7, json);
    ASSERT_FALSE(read.ok());
    EXPECT_EQ(FieldOf(read.error()), field);
  }
}

TEST(WireRequestsTest, ARequestForATrialComesBackAsItWas) {
  const TrialRequest request{.job_id = "mnist",
                             .gpu_model = "V100",
                             .max_power = 250_W,
                             .recurrence = 4,
                             .request_id = "a-1",
                             .lease = Seconds(60)};
  const auto read = TrialRequestFromJson("mnist", ToJson(request));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read.value().recurrence, 4);
  EXPECT_EQ(ToJson(read.value()), ToJson(request));
  EXPECT_TRUE(TrialRequestFromJson("mnist", Json::object()).ok());
}

TEST(WireRequestsTest, ARequestForATrialThatMakesNoSenseNamesTheField) {
  const auto read = [](const Json& json) { return TrialRequestFromJson("mnist", json); };
  const Json good = Json::object();
  EXPECT_EQ(Complaint(good, "lease_seconds", 0, read), "lease_seconds");
  EXPECT_EQ(Complaint(good, "lease_seconds", 1e9, read), "lease_seconds");
  EXPECT_EQ(Complaint(good, "recurrence", -1, read), "recurrence");
  EXPECT_EQ(Complaint(good, "max_power_watts", 0, read), "max_power_watts");
  EXPECT_EQ(Complaint(good, "gpu_model", std::string(1001, 'x'), read), "gpu_model");
  EXPECT_EQ(Complaint(good, "request_id", 5, read), "request_id");
  EXPECT_EQ(Complaint(good, "batch_size", "large", read), "batch_size");
  EXPECT_EQ(Complaint(good, "batch_sizes", 32, read), "batch_sizes");
}

TEST(WireRequestsTest, TheEndOfATrialIsStoppedOrFailed) {
  const TrialEnd end{.job_id = "mnist", .trial = 1, .status = TrialStatus::kStopped, .reason = "x"};
  const auto read = TrialEndFromJson("mnist", 1, ToJson(end));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read.value().status, TrialStatus::kStopped);
  for (const Json& status : std::vector<Json>{"converged", "expired", "", 3, Json()}) {
    const auto wrong = TrialEndFromJson("mnist", 1, {{"status", status}});
    ASSERT_FALSE(wrong.ok()) << status;
    EXPECT_EQ(FieldOf(wrong.error()), "status");
  }
}

TEST(WireRequestsTest, AnEpochCostComesBackAsItWas) {
  const EpochCostReport report{.job_id = "mnist",
                               .gpu_model = "A40",
                               .batch_size = 64,
                               .time = Seconds(3),
                               .energy = 500_J,
                               .max_power = 300_W};
  const auto read = EpochCostReportFromJson("mnist", ToJson(report));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(ToJson(read.value()), ToJson(report));
  Json json = ToJson(report);
  json.erase("gpu_model");
  EXPECT_EQ(FieldOf(EpochCostReportFromJson("mnist", json).error()), "gpu_model");
}

}  // namespace requests_test
}  // namespace zeus::wire
