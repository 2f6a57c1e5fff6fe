#include "zeus/wire/node/lease.h"

#include <gtest/gtest.h>

#include <string>

#include "zeus/base/json.h"

namespace zeus::wire::lease_test {
namespace {

using namespace zeus::literals;

constexpr const char* kPower = R"({"device": "GPU-1", "knob": "gpu_power_limit", )";
constexpr const char* kClock = R"({"device": "GPU-1", "knob": "graphics_clock", )";

Json Parsed(const std::string& text) {
  auto json = ParseJson(text);
  EXPECT_TRUE(json.ok()) << text;
  return json.ok() ? json.value() : Json();
}

std::string ErrorOf(const std::string& text) {
  const auto spec = ParseLeaseSpec(Parsed(text));
  if (spec.ok()) return "accepted";
  EXPECT_EQ(spec.error().code, ErrorCode::kInvalidArgument);
  return spec.error().message;
}

std::string ErrorOfRequest(const std::string& request) {
  return ErrorOf(R"({"requests": [)" + request + "]}");
}

TEST(LeaseSpecTest, ReadsTheExampleOfTheDocumentation) {
  const auto spec = ParseLeaseSpec(Parsed(
      R"({"name": "bert power limit", "holder": "process", "ttl_seconds": null, "class": "user",
          "requests": [{"device": "GPU-1", "knob": "gpu_power_limit", "exactly": {"watts": 200}},
                       {"device": "GPU-2", "knob": "graphics_clock",
                        "range": {"lowest_hertz": 1.2e9, "highest_hertz": 1.4e9}},
                       {"device": "GPU-2", "knob": "persistence", "on": true},
                       {"device": "cpu:0", "knob": "cpu_power_limit", "at_most": {"watts": 90}}]})"));
  ASSERT_TRUE(spec.ok()) << spec.error().message;
  EXPECT_EQ(spec.value().name, "bert power limit");
  EXPECT_EQ(spec.value().holder, HolderKind::kProcess);
  EXPECT_FALSE(spec.value().ttl.has_value());
  ASSERT_EQ(spec.value().requests.size(), 4U);
  EXPECT_EQ(spec.value().requests[0].demand, Demand(Exactly{200_W}));
  EXPECT_EQ(spec.value().requests[1].demand, Demand(InRange{1200_MHz, 1400_MHz}));
  EXPECT_EQ(spec.value().requests[2].demand, Demand(SwitchedOn{}));
  EXPECT_EQ(spec.value().requests[3].demand, Demand(AtMost{90_W}));
}

TEST(LeaseSpecTest, WhatIsWrittenIsReadAgain) {
  LeaseSpec spec{.name = "night", .holder = HolderKind::kJob, .ttl = Seconds(60)};
  spec.job = "slurm:12";
  spec.lease_class = LeaseClass::kSite;
  spec.request_id = "abc-1";
  spec.requests = {{{"GPU-1", LeaseKnob::kMemoryClock}, AtMost{810_MHz}},
                   {{"GPU-1", LeaseKnob::kPersistence}, SwitchedOn{}}};
  const auto again = ParseLeaseSpec(ToJson(spec));
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(again.value(), spec);
}

TEST(LeaseSpecTest, ErrorsBeginWithTheField) {
  EXPECT_EQ(ErrorOf("[]"), "a lease must be a JSON object");
  EXPECT_EQ(ErrorOf("{}"), "requests: a lease needs it");
  EXPECT_EQ(ErrorOf(R"({"requests": {}})"), "requests: must be a list");
  EXPECT_EQ(ErrorOf(R"({"requests": [], "nmae": "x"})"), "nmae: is not a field of a lease");
  EXPECT_EQ(ErrorOf(R"({"requests": [], "name": 7})"), "name: must be text");
  EXPECT_EQ(ErrorOf(R"({"requests": [], "holder": "me"})"),
            "holder: \"me\" is not a kind of holder: use one of connection, process, ttl, job, "
            "standing");
  EXPECT_EQ(ErrorOf(R"({"requests": [], "class": "root"})"),
            "class: \"root\" is not a class of leases: use one of user, job, site");
  EXPECT_EQ(ErrorOf(R"({"requests": [], "ttl_seconds": 0.5})"),
            "ttl_seconds: must be from 1 to 3600");
  EXPECT_EQ(ErrorOf(R"({"requests": [], "ttl_seconds": 3601})"),
            "ttl_seconds: must be from 1 to 3600");
  EXPECT_EQ(ErrorOf(R"({"requests": [], "holder": "job"})"),
            "job: the holder \"job\" needs the name of a job");
  EXPECT_EQ(ErrorOf(R"({"requests": [], "job": "slurm:1"})"), "job: needs \"holder\": \"job\"");
  EXPECT_EQ(ErrorOf(R"({"requests": [], "request_id": "a b"})"),
            "request_id: \"a b\" has characters other than letters, digits and -_.:");
  EXPECT_EQ(ErrorOf(R"({"requests": [], "name": "a\u0007"})"), "name: has control characters");
}

TEST(LeaseSpecTest, ErrorsOfRequestsBeginWithTheirPlace) {
  const std::string power = kPower;
  const std::string clock = kClock;
  EXPECT_EQ(ErrorOfRequest("7"), "requests[0]: must be a JSON object");
  EXPECT_EQ(ErrorOfRequest(R"({"knob": "persistence", "on": true})"),
            "requests[0].device: a request needs it");
  EXPECT_EQ(ErrorOfRequest(R"({"device": "../etc", "knob": "persistence", "on": true})"),
            "requests[0].device: \"../etc\" has characters other than letters, digits and -_.:");
  EXPECT_EQ(ErrorOfRequest(R"({"device": "GPU-1", "knob": "fan", "on": true})"),
            "requests[0].knob: \"fan\" is not a knob: use one of gpu_power_limit, graphics_clock, "
            "memory_clock, cpu_power_limit, persistence");
  EXPECT_EQ(ErrorOfRequest(R"({"device": "GPU-1", "knob": "persistence", "on": false})"),
            "requests[0].on: must be true; leave the request out for off");
  EXPECT_EQ(ErrorOfRequest(R"({"device": "GPU-1", "knob": "persistence"})"),
            "requests[0].exactly: say exactly, at_most, range or on");
  EXPECT_EQ(ErrorOfRequest(power + R"("exactly": {"watts": 1}, "at_most": {"watts": 1}})"),
            "requests[0].at_most: there is exactly already; one demand a knob");
  EXPECT_EQ(ErrorOfRequest(power + R"("exactly": {"hertz": 1e9}})"),
            "requests[0].exactly: watts: a setting needs it");
  EXPECT_EQ(ErrorOfRequest(power + R"("exactly": {"watts": "200"}})"),
            "requests[0].exactly: watts: must be a number");
  EXPECT_EQ(ErrorOfRequest(power + R"("exactly": {"watts": -1}})"),
            "requests[0].exactly: must be a positive number");
  EXPECT_EQ(ErrorOfRequest(power + R"("range": {"lowest_hertz": 1, "highest_hertz": 2}})"),
            "requests[0].range: ranges are for clocks only; use at_most");
  EXPECT_EQ(ErrorOfRequest(clock + R"("range": {"lowest_hertz": 3, "highest_hertz": 2}})"),
            "requests[0].range: the lowest is above the highest");
  EXPECT_EQ(ErrorOfRequest(clock + R"("on": true})"),
            "requests[0].on: on is for persistence, and persistence takes nothing else");
  const std::string good = power + R"("at_most": {"watts": 200}})";
  EXPECT_EQ(ErrorOfRequest(good + ", " + good), "requests[1].knob: this knob is asked for twice");
}

LeaseView SampleView() {
  LeaseView view{.id = "lease_1", .name = "bert", .subject = "uid:1001"};
  view.state = LeaseState::kSuspended;
  view.version = 7;
  view.lease_class = LeaseClass::kJob;
  view.pid = 4711;
  view.expires_in = Seconds(2.5);
  view.since = "2024-03-31T01:30:00Z";
  KnobView power{.request = {{"GPU-1", LeaseKnob::kGpuPowerLimit}, Exactly{200_W}}};
  power.effective = Setting(180_W);
  power.enforced = Setting(175_W);
  power.overruled = true;
  power.bound_by = "lease_budget";
  power.bound_by_class = "site";
  power.bound_by_name = "cluster budget";
  KnobView clock{.request = {{"GPU-1", LeaseKnob::kGraphicsClock}, InRange{900_MHz, 990_MHz}}};
  clock.effective = ClockRange{900_MHz, 990_MHz};
  clock.foreign = true;
  KnobView persistence{.request = {{"GPU-1", LeaseKnob::kPersistence}, SwitchedOn{}}};
  persistence.enforced = Persistence::kOff;
  view.knobs = {power, clock, persistence};
  view.end_reason = "expired";
  return view;
}

TEST(LeaseViewTest, WhatIsWrittenIsReadAgain) {
  const LeaseView view = SampleView();
  const auto again = ParseLeaseView(ToJson(view));
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(again.value(), view);
}

TEST(LeaseViewTest, LooksLikeTheDocumentation) {
  const Json json = ToJson(SampleView());
  EXPECT_EQ(json["holder"], Json({{"kind", "process"}, {"pid", 4711}}));
  EXPECT_EQ(json["expires_in_seconds"], 2.5);
  EXPECT_EQ(json["knobs"][0]["requested"], Json({{"watts", 200.0}}));
  EXPECT_EQ(json["knobs"][0]["effective"], Json({{"watts", 180.0}}));
  EXPECT_EQ(json["knobs"][0]["bound_by"]["name"], "cluster budget");
  EXPECT_TRUE(json["knobs"][1]["bound_by"].is_null());
  EXPECT_EQ(json["knobs"][2]["requested"], Json({{"on", true}}));
}

TEST(LeaseViewTest, FieldsOfLaterVersionsAreIgnored) {
  Json json = ToJson(SampleView());
  json["colour"] = "green";
  json["knobs"][0]["colour"] = "red";
  EXPECT_TRUE(ParseLeaseView(json).ok());
}

TEST(LeaseViewTest, ErrorsNameTheField) {
  Json json = ToJson(SampleView());
  json["knobs"][1]["demand"] = "perhaps";
  const auto view = ParseLeaseView(json);
  ASSERT_FALSE(view.ok());
  EXPECT_EQ(view.error().message, "knobs[1].demand: must be exactly, at_most, range or on");
  json = ToJson(SampleView());
  json["knobs"][2]["requested"] = {{"on", 7}};
  ASSERT_FALSE(ParseLeaseView(json).ok());
  EXPECT_EQ(ParseLeaseView(json).error().message.substr(0, 21), "knobs[2].requested: o");
  json = ToJson(SampleView());
  json["state"] = "asleep";
  ASSERT_FALSE(ParseLeaseView(json).ok());
  EXPECT_EQ(ParseLeaseView(json).error().message.substr(0, 6), "state:");
}

TEST(LeaseRefusalTest, EveryKindHasItsStatus) {
  using Kind = LeaseRefusal::Kind;
  EXPECT_EQ(StatusOf(Kind::kMalformed), 400);
  EXPECT_EQ(StatusOf(Kind::kForbidden), 403);
  EXPECT_EQ(StatusOf(Kind::kUnknown), 404);
  EXPECT_EQ(StatusOf(Kind::kHeld), 409);
  EXPECT_EQ(StatusOf(Kind::kEnded), 410);
  EXPECT_EQ(StatusOf(Kind::kOutOfBounds), 422);
  EXPECT_EQ(StatusOf(Kind::kQuota), 429);
  EXPECT_EQ(StatusOf(Kind::kUnavailable), 503);
}

TEST(LeaseRefusalTest, SaysWhatIsInTheWay) {
  LeaseRefusal refusal{.kind = LeaseRefusal::Kind::kHeld, .message = "held"};
  refusal.key = {"GPU-1", LeaseKnob::kGpuPowerLimit};
  refusal.since = "2024-03-31T01:30:00Z";
  refusal.lease_class = "user";
  EXPECT_EQ(ToJson(refusal), Parsed(R"({"error": {"code": "conflict", "message": "held",
      "device": "GPU-1", "knob": "gpu_power_limit", "since": "2024-03-31T01:30:00Z",
      "class": "user"}})"));
  EXPECT_EQ(ToError(refusal).code, ErrorCode::kConflict);
}

TEST(LeaseRefusalTest, QuotasCanBeRetried) {
  LeaseRefusal refusal{.kind = LeaseRefusal::Kind::kQuota, .message = "too many"};
  refusal.retry_after = Seconds(0.5);
  EXPECT_EQ(ToJson(refusal)["error"]["retry_after_seconds"], 0.5);
  EXPECT_TRUE(ToError(refusal).retryable());
}

TEST(LeaseNamesTest, EveryNameIsReadAgain) {
  for (const auto knob :
       {LeaseKnob::kGpuPowerLimit, LeaseKnob::kGraphicsClock, LeaseKnob::kMemoryClock,
        LeaseKnob::kCpuPowerLimit, LeaseKnob::kPersistence})
    EXPECT_EQ(ParseLeaseKnob(Name(knob)).value(), knob);
  for (const auto kind : {HolderKind::kConnection, HolderKind::kProcess, HolderKind::kTtl,
                          HolderKind::kJob, HolderKind::kStanding})
    EXPECT_EQ(ParseHolderKind(Name(kind)).value(), kind);
  for (const auto state : {LeaseState::kApplying, LeaseState::kActive, LeaseState::kSuspended,
                           LeaseState::kRestoring, LeaseState::kEnded})
    EXPECT_EQ(ParseLeaseState(Name(state)).value(), state);
}

}  // namespace
}  // namespace zeus::wire::lease_test
