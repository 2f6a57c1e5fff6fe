#include "zeus/export/perfetto_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <cmath>
#include <string>
#include <utility>

#include "zeus/base/file.h"
#include "zeus/base/json.h"
#include "zeus/base/testing/child_process.h"
#include "zeus/base/testing/temporary_directory.h"
#include "zeus/export/testing/records.h"

namespace zeus {
namespace perfetto_trace_test {

using ::testing::HasSubstr;
using zeus::testing::AWindow;
using zeus::testing::HoldsInAChild;
using zeus::testing::TemporaryDirectory;

class PerfettoTraceTest : public ::testing::Test {
 protected:
  static TimePoint At(double seconds) { return TimePoint(Seconds(seconds)); }

  std::unique_ptr<PerfettoTrace> Create() {
    auto trace = std::move(PerfettoTrace::Create(path_, At(1))).value();
    EXPECT_TRUE(trace->AddDevice("gpu:0", "A100").ok());
    return trace;
  }

  // The file as it is now, which must be whole at any time.
  Json Read() const { return ParseJson(ReadSmallFile(path_).value()).value(); }

  Json EventsInPhase(const char* phase) const {
    Json events = Json::array();
    const Json document = Read();
    for (const Json& event : document["traceEvents"])
      if (event["ph"] == phase) events.push_back(event);
    return events;
  }

  TemporaryDirectory directory_;
  const std::filesystem::path path_ = directory_.path() / "trace.json";
};

TEST_F(PerfettoTraceTest, CountersAreInMicrosecondsSinceTheStart) {
  const auto trace = Create();
  ASSERT_TRUE(trace->AddCounter("gpu:0", "power (W)", At(1.5), 250).ok());
  const Json counters = EventsInPhase("C");
  ASSERT_EQ(counters.size(), 1U);
  EXPECT_EQ(counters[0]["name"], "power (W)");
  EXPECT_EQ(counters[0]["ts"], 500'000);
  EXPECT_EQ(counters[0]["args"]["value"], 250);
}

TEST_F(PerfettoTraceTest, EveryDeviceIsAGroupWithAName) {
  const auto trace = Create();
  ASSERT_TRUE(trace->AddCounter("gpu:0", "power (W)", At(2), 1).ok());
  const Json process = EventsInPhase("C").at(0)["pid"];
  for (const Json& event : EventsInPhase("M")) {
    if (event["pid"] == process && event["name"] == "process_name") {
      EXPECT_EQ(event["args"]["name"], "gpu:0 A100");
      return;
    }
  }
  FAIL() << "the process has no name";
}

TEST_F(PerfettoTraceTest, AWindowIsASliceThatCarriesItsEnergy) {
  const auto trace = Create();
  ASSERT_TRUE(trace->AddWindow(AWindow("epoch")).ok());
  const Json begin = EventsInPhase("b").at(0);
  const Json end = EventsInPhase("e").at(0);
  EXPECT_EQ(begin["ts"], 4'000'000);
  EXPECT_EQ(end["ts"], 14'000'000);
  EXPECT_EQ(begin["id"], end["id"]);
  EXPECT_EQ(begin["args"]["gpu:0"]["energy_joules"], 100);
  EXPECT_EQ(begin["args"]["gpu:0"]["energy_sigma_joules"], 2);
  EXPECT_EQ(begin["args"]["gpu:1"], "GPU fell off the bus");
  EXPECT_EQ(begin["args"]["total_energy_joules"], 120);
}

TEST_F(PerfettoTraceTest, ATimeThatGoesBackIsRefused) {
  const auto trace = Create();
  ASSERT_TRUE(trace->AddCounter("gpu:0", "power (W)", At(4), 250).ok());
  const Status back = trace->AddCounter("gpu:0", "power (W)", At(3), 250);
  ASSERT_FALSE(back.ok());
  EXPECT_EQ(back.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(back.error().message, HasSubstr("lies before"));
  EXPECT_TRUE(trace->AddCounter("gpu:0", "temperature (°C)", At(3), 40).ok());
  EXPECT_EQ(EventsInPhase("C").size(), 2U);
}

TEST_F(PerfettoTraceTest, WhatIsOlderThanTheTraceIsRefused) {
  const auto trace = Create();
  EXPECT_FALSE(trace->AddCounter("gpu:0", "power (W)", At(0.5), 250).ok());
  Measurement early = AWindow("early");
  early.begin = At(0.5);
  EXPECT_FALSE(trace->AddWindow(early).ok());
}

TEST_F(PerfettoTraceTest, WhatIsNoNumberIsRefused) {
  const auto trace = Create();
  EXPECT_FALSE(trace->AddCounter("gpu:0", "power (W)", At(2), std::nan("")).ok());
  EXPECT_FALSE(trace->AddCounter("gpu:9", "power (W)", At(2), 1).ok());
}

TEST_F(PerfettoTraceTest, AFullDiskLeavesAWholeDocumentThatGoesOnLater) {
  EXPECT_TRUE(HoldsInAChild([this] {
    const auto trace = Create();
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit full{.rlim_cur = std::filesystem::file_size(path_) + 40,
                      .rlim_max = RLIM_INFINITY};
    ::setrlimit(RLIMIT_FSIZE, &full);
    if (trace->AddCounter("gpu:0", "power (W)", At(2), 250).ok()) return false;
    if (!EventsInPhase("C").empty()) return false;
    const rlimit free{.rlim_cur = RLIM_INFINITY, .rlim_max = RLIM_INFINITY};
    ::setrlimit(RLIMIT_FSIZE, &free);
    return trace->AddCounter("gpu:0", "power (W)", At(3), 250).ok();
  }));
  EXPECT_EQ(EventsInPhase("C").size(), 1U);
}

TEST_F(PerfettoTraceTest, NamesMayHoldAnything) {
  const auto trace = Create();
  ASSERT_TRUE(trace->AddWindow(AWindow("\"]}\n\xff")).ok());
  EXPECT_EQ(EventsInPhase("b").size(), 1U);
}

}  // namespace perfetto_trace_test
}  // namespace zeus
