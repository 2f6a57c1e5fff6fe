#include "zeus/export/perfetto_trace.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "zeus/base/file.h"
#include "zeus/base/json.h"
#include "zeus/base/testing/child_process.h"
#include "zeus/base/testing/temporary_directory.h"
#include "zeus/export/testing/records.h"

namespace zeus {
namespace perfetto_trace_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using zeus::testing::AWindow;
using zeus::testing::HoldsInAChild;
using zeus::testing::TemporaryDirectory;

const PerfettoTrace::Counter kPower{.name = "power", .unit = "W"};
const PerfettoTrace::Counter kTemperature{.name = "temperature", .unit = "°C"};

// Builds tracks from a trace by the rules of Perfetto's trace processor for JSON: a counter makes a
// track for each key of its arguments, named after both; an asynchronous slice begins and ends on
// the track of its name, process and id, and ends the slice of the same name and category.
struct Tracks {
  using Values = std::vector<std::pair<double, double>>;  // Time and value.
  struct Slice {
    std::string category{};
    std::string name{};
    double begin = 0;
    double end = -1;
  };

  explicit Tracks(const Json& document) {
    for (const Json& event : document["traceEvents"]) {
      const std::string phase = event["ph"];
      if (phase == "M" && event["name"] == "process_name")
        processes[event["pid"]] = event["args"]["name"];
      if (phase == "C")
        for (const auto& [key, value] : event["args"].items())
          counters[{event["pid"], event["name"].get<std::string>() + " " + key}].emplace_back(
              event["ts"], value);
      if (phase == "b") Begin(event);
      if (phase == "e") End(event);
    }
  }

  std::map<int, std::string> processes{};
  std::map<std::pair<int, std::string>, Values> counters{};
  std::map<std::string, std::vector<Slice>> slices{};  // By name, process and id.
  int unmatched = 0;

 private:
  static std::string Track(const Json& event) {
    return fmt::format("{}/{}/{}", event["name"].get<std::string>(), event["pid"].get<int>(),
                       event["id"].get<std::string>());
  }
  void Begin(const Json& event) {
    slices[Track(event)].push_back(
        {.category = event["cat"], .name = event["name"], .begin = event["ts"]});
  }
  void End(const Json& event) {
    std::vector<Slice>& track = slices[Track(event)];
    if (track.empty() || track.back().end >= 0 || track.back().name != event["name"] ||
        track.back().category != event["cat"]) {
      ++unmatched;
    } else {
      track.back().end = event["ts"];
    }
  }
};

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
  ASSERT_TRUE(trace->AddCounter("gpu:0", kPower, At(1.5), 250).ok());
  const Json counters = EventsInPhase("C");
  ASSERT_EQ(counters.size(), 1U);
  EXPECT_EQ(counters[0]["name"], "power");
  EXPECT_EQ(counters[0]["ts"], 500'000);
  EXPECT_EQ(counters[0]["args"]["W"], 250);
}

TEST_F(PerfettoTraceTest, EveryDeviceIsAGroupWithAName) {
  const auto trace = Create();
  ASSERT_TRUE(trace->AddCounter("gpu:0", kPower, At(2), 1).ok());
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

TEST_F(PerfettoTraceTest, TheTraceProcessorSeesCountersWithUnitsAndWholeSlices) {
  const auto trace = Create();
  ASSERT_TRUE(trace->AddDevice("gpu:1", "A100").ok());
  ASSERT_TRUE(trace->AddCounter("gpu:1", kPower, At(2), 250).ok());
  ASSERT_TRUE(trace->AddCounter("gpu:1", kTemperature, At(2), 40).ok());
  ASSERT_TRUE(trace->AddCounter("gpu:1", kPower, At(3), 260).ok());
  Measurement outer = AWindow("epoch");
  Measurement overlapping = AWindow("epoch");
  overlapping.id = static_cast<decltype(outer.id)>(static_cast<std::uint64_t>(outer.id) + 1);
  overlapping.begin = outer.begin + outer.time / 2;
  ASSERT_TRUE(trace->AddWindow(outer).ok());
  ASSERT_TRUE(trace->AddWindow(overlapping).ok());

  const Tracks tracks(Read());
  std::vector<std::string> names;
  for (const auto& [track, values] : tracks.counters)
    names.push_back(tracks.processes.at(track.first) + ": " + track.second);
  EXPECT_THAT(names, ElementsAre("gpu:1 A100: power W", "gpu:1 A100: temperature °C"));
  EXPECT_EQ(tracks.counters.begin()->second, (Tracks::Values{{1'000'000, 250}, {2'000'000, 260}}));
  EXPECT_EQ(tracks.unmatched, 0);
  ASSERT_EQ(tracks.slices.size(), 2U) << "overlapping windows are on tracks of their own";
  for (const auto& [track, slices] : tracks.slices) {
    ASSERT_EQ(slices.size(), 1U) << track;
    EXPECT_EQ(slices[0].end - slices[0].begin, 10'000'000);
  }
}

TEST_F(PerfettoTraceTest, NoEventIsOnTheThreadOfTheIdleTask) {
  const auto trace = Create();
  ASSERT_TRUE(trace->AddCounter("gpu:0", kPower, At(2), 250).ok());
  ASSERT_TRUE(trace->AddWindow(AWindow("epoch")).ok());
  const Json document = Read();
  for (const Json& event : document["traceEvents"]) {
    EXPECT_NE(event["tid"], 0) << event;
    EXPECT_EQ(event["tid"], event["pid"]) << event;
  }
}

TEST_F(PerfettoTraceTest, ATimeThatGoesBackIsRefused) {
  const auto trace = Create();
  ASSERT_TRUE(trace->AddCounter("gpu:0", kPower, At(4), 250).ok());
  const Status back = trace->AddCounter("gpu:0", kPower, At(3), 250);
  ASSERT_FALSE(back.ok());
  EXPECT_EQ(back.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(back.error().message, HasSubstr("lies before"));
  EXPECT_TRUE(trace->AddCounter("gpu:0", kTemperature, At(3), 40).ok());
  EXPECT_EQ(EventsInPhase("C").size(), 2U);
}

TEST_F(PerfettoTraceTest, WhatIsOlderThanTheTraceIsRefused) {
  const auto trace = Create();
  EXPECT_FALSE(trace->AddCounter("gpu:0", kPower, At(0.5), 250).ok());
  Measurement early = AWindow("early");
  early.begin = At(0.5);
  EXPECT_FALSE(trace->AddWindow(early).ok());
}

TEST_F(PerfettoTraceTest, WhatIsNoNumberIsRefused) {
  const auto trace = Create();
  EXPECT_FALSE(trace->AddCounter("gpu:0", kPower, At(2), std::nan("")).ok());
  EXPECT_FALSE(trace->AddCounter("gpu:9", kPower, At(2), 1).ok());
}

TEST_F(PerfettoTraceTest, AFullDiskLeavesAWholeDocumentThatGoesOnLater) {
  EXPECT_TRUE(HoldsInAChild([this] {
    const auto trace = Create();
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit full{.rlim_cur = std::filesystem::file_size(path_) + 40,
                      .rlim_max = RLIM_INFINITY};
    ::setrlimit(RLIMIT_FSIZE, &full);
    if (trace->AddCounter("gpu:0", kPower, At(2), 250).ok()) return false;
    if (!EventsInPhase("C").empty()) return false;
    const rlimit free{.rlim_cur = RLIM_INFINITY, .rlim_max = RLIM_INFINITY};
    ::setrlimit(RLIMIT_FSIZE, &free);
    return trace->AddCounter("gpu:0", kPower, At(3), 250).ok();
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
