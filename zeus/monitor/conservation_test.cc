// Every joule is booked exactly once, whatever windows are opened: parts + others + unattributed =
// device, and windows that partition a period add up to it.
#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "zeus/base/random.h"
#include "zeus/monitor/energy_monitor.h"
#include "zeus/monitor/testing/scripted_meter.h"

namespace zeus {
namespace conservation_test {

using namespace zeus::literals;
using namespace std::chrono_literals;
using zeus::testing::ScriptedMeter;

constexpr double kRelativeError = 1e-9;

// Levels that change at random, from long before `begin` until `end`.
void WriteRandomLoad(ScriptedMeter& meter, Random random, TimePoint begin, Seconds length) {
  for (Seconds time = -1s; time < length; time += Seconds(random.Uniform(0.01, 0.5)))
    meter.SetPower(begin + time, Watts(random.Uniform(30, 400)));
}

struct Sums {
  std::vector<Joules> attributed;
  std::vector<Joules> energy;
  std::size_t windows = 0;

  void Add(const Measurement& result) {
    attributed.resize(result.devices.size());
    energy.resize(result.devices.size());
    for (std::size_t i = 0; i < result.devices.size(); ++i) {
      attributed[i] += result.devices[i].energy.value().attributed;
      energy[i] += result.devices[i].energy.value().energy;
    }
    ++windows;
  }
};

// Sanitizers keep what is freed for a while.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

// Returns the resident memory of this process.
long ResidentKilobytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmRSS:")) return std::stol(line.substr(6));
  return 0;
}

void ExpectConserved(const EnergyMonitor& monitor, const Sums& sums) {
  for (std::size_t device = 0; device < monitor.device_count(); ++device) {
    const EnergyMonitor::Ledger ledger = monitor.Accounts(device);
    const Joules booked = sums.attributed[device] + ledger.unattributed + ledger.others;
    EXPECT_GT(ledger.device, 0_J);
    EXPECT_GT(sums.attributed[device], 0_J);
    EXPECT_NEAR(booked / ledger.device, 1.0, kRelativeError) << monitor.device_name(device);
  }
}

class RandomWindowsTest : public ::testing::TestWithParam<unsigned> {};

TEST_P(RandomWindowsTest, ThousandsInManyLanesAreBookedExactly) {
  Random random(GetParam());
  VirtualClock clock;
  const ScriptedMeter::Sensor counter{.counter_period = 100ms, .phase = 31ms};
  const ScriptedMeter::Sensor power{
      .counter_period = std::nullopt, .power_period = 20ms, .power_window = 10ms, .phase = 7ms};
  ScriptedMeter first(clock, counter, "gpu:0");
  ScriptedMeter second(clock, power, "gpu:1");
  WriteRandomLoad(first, random.Fork("first"), clock.Now(), 400s);
  WriteRandomLoad(second, random.Fork("second"), clock.Now(), 400s);
  SensorProfile profile;
  profile.power_period = power.power_period;
  profile.power_window = power.power_window;
  EnergyMonitor monitor(clock, {{.meter = &first}, {.meter = &second, .sensor = profile}});
  Sums sums;
  monitor.OnRefined([&](const Measurement& result) { sums.Add(result); });

  std::vector<std::string> open;
  std::size_t ended = 0;
  for (int i = 0; i < 3000; ++i) {
    if (open.empty() || random.Below(2) == 0) {
      const std::string name = std::to_string(i);
      ASSERT_TRUE(
          monitor.BeginWindow(name, {.lane = random.Below(5), .weight = random.Uniform(0.1, 3)})
              .ok());
      open.push_back(name);
    } else {
      const auto chosen = open.begin() + static_cast<std::ptrdiff_t>(random.Below(open.size()));
      if (random.Below(10) == 0) {
        ASSERT_TRUE(monitor.CancelWindow(*chosen).ok());
      } else {
        ASSERT_TRUE(monitor.EndWindow(*chosen).ok());
        ++ended;
      }
      open.erase(chosen);
    }
    clock.Advance(Seconds(random.Uniform(0, 0.2)));
    monitor.Step();
  }
  for (const std::string& name : open) ASSERT_TRUE(monitor.EndWindow(name).ok());
  ended += open.size();
  for (int i = 0; i < 50; ++i) clock.SleepUntil(monitor.Step());
  EXPECT_EQ(sums.windows, ended);
  ExpectConserved(monitor, sums);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomWindowsTest, ::testing::Range(1U, 9U));

TEST(ConservationTest, WindowsThatPartitionAPeriodAddUpToIt) {
  Random random(5);
  VirtualClock clock;
  ScriptedMeter meter(clock, {.counter_period = 100ms, .phase = 31ms});
  WriteRandomLoad(meter, random.Fork("load"), clock.Now(), 100s);
  EnergyMonitor monitor(clock, {{.meter = &meter}});
  Sums parts;
  Joules whole;
  monitor.OnRefined([&](const Measurement& result) {
    if (result.window == "whole") {
      whole = result.devices[0].energy.value().energy;
    } else {
      parts.Add(result);
    }
  });
  ASSERT_TRUE(monitor.BeginWindow("whole").ok());
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(monitor.BeginWindow("part").ok());
    clock.Advance(Seconds(random.Uniform(0, 0.1)));
    monitor.Step();
    ASSERT_TRUE(monitor.EndWindow("part").ok());
  }
  ASSERT_TRUE(monitor.EndWindow("whole").ok());
  for (int i = 0; i < 50; ++i) clock.SleepUntil(monitor.Step());
  EXPECT_EQ(parts.windows, 1000U);
  EXPECT_NEAR(parts.energy[0] / whole, 1.0, kRelativeError);
}

TEST(ConservationTest, AMillionWindowsTakeBoundedMemory) {
  VirtualClock clock;
  ScriptedMeter meter(clock, {.counter_period = 100ms, .phase = 31ms});
  meter.SetPower(clock.Now(), 200_W);
  EnergyMonitor monitor(clock, {{.meter = &meter}});
  Sums sums;
  monitor.OnRefined([&](const Measurement& result) { sums.Add(result); });
  const long before = ResidentKilobytes();
  Joules immediate;
  for (int i = 0; i < 1'000'000; ++i) {
    ASSERT_TRUE(monitor.BeginWindow("step").ok());
    clock.Advance(1us);
    immediate += monitor.EndWindow("step").value().Sum().energy;
    if (i % 500'000 == 0) monitor.Step();
  }
  if (!kSanitized) {
    EXPECT_LT(ResidentKilobytes() - before, 200'000);
  }
  for (int i = 0; i < 50; ++i) clock.SleepUntil(monitor.Step());
  EXPECT_NEAR(immediate.value(), 200, 20) << "each has an answer at once";
  EXPECT_GE(sums.windows, 65536U);
  ExpectConserved(monitor, sums);
}

TEST(ConservationTest, WindowsOfSeveralThreadsWhileARecorderRuns) {
  SystemClock clock;
  const TimePoint begin = clock.Now();
  ScriptedMeter meter(clock, {.counter_period = 6ms, .phase = 2ms});
  WriteRandomLoad(meter, Random(11), begin, 600s);
  SensorProfile profile;
  profile.counter_period = 6ms;
  EnergyMonitor monitor(clock, {{.meter = &meter, .sensor = profile}});
  Sums sums;  // Only the thread that steps touches it.
  monitor.OnRefined([&](const Measurement& result) { sums.Add(result); });

  std::atomic<int> running = 4;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&monitor, &running, thread] {
      Random random(static_cast<unsigned>(thread) + 1);
      for (int i = 0; i < 500; ++i) {
        const std::string outer = std::to_string(thread) + "/" + std::to_string(i);
        const std::string inner = outer + "/inner";
        ASSERT_TRUE(monitor.BeginWindow(outer).ok());
        ASSERT_TRUE(monitor.BeginWindow(inner).ok());
        if (random.Below(4) == 0) std::this_thread::yield();
        // Not always in the order of nesting.
        const bool inner_first = random.Below(2) == 0;
        ASSERT_TRUE(monitor.EndWindow(inner_first ? inner : outer).ok());
        ASSERT_TRUE(monitor.EndWindow(inner_first ? outer : inner).ok());
      }
      --running;
    });
  }
  while (running > 0) clock.SleepUntil(monitor.Step());
  for (std::thread& thread : threads) thread.join();
  while (sums.windows < 4000) clock.SleepUntil(monitor.Step());
  ExpectConserved(monitor, sums);
}

}  // namespace conservation_test
}  // namespace zeus
