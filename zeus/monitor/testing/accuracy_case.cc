#include "zeus/monitor/testing/accuracy_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <utility>

#include "zeus/base/clock.h"
#include "zeus/monitor/energy_monitor.h"

namespace zeus::testing {
namespace {

using namespace std::chrono_literals;

constexpr double kIdle = 60;
constexpr double kCeiling = 450;  // Power limit of the device, in watts.

void Square(const Script& s, double period) {
  double time = -3 - period * s.random.Uniform();
  for (; time < s.end() + 3; time += period) {
    s.SetPower(time, 450);
    s.SetPower(time + 0.5 * period, 150);
  }
}

void Random300ms(const Script& s, double end) {
  for (double time = -3; time < end; time -= 0.3 * std::log(1.0 - s.random.Uniform()))
    s.SetPower(time, s.random.Uniform(60, 400));
}

void SlowSteps(const Script& s, double end) {
  for (double time = -3; time < end; time += s.random.Uniform(0.5, 2.5))
    s.SetPower(time, s.random.Uniform(60, 350));
}

// Steps of 0.35 s with a gap for input, and a little noise from step to step.
void TrainingSteps(const Script& s, double end) {
  for (double time = -3; time < end; time += 0.35 * s.random.Uniform(0.97, 1.03)) {
    s.SetPower(time, s.random.Uniform(280, 300));
    s.SetPower(time + 0.28, 140);
  }
}

// Short work at random on an idle device.
void Bursts(const Script& s, double end) {
  s.SetPower(-3, kIdle);
  for (double time = -3; time < end; time += s.random.Uniform(0.1, 1.0)) {
    s.SetPower(time, s.random.Uniform(200, 400));
    time += s.random.Uniform(0.01, 0.3);
    s.SetPower(time, kIdle);
  }
}

void WriteWork(const Script& s, Place place, double begin, double end) {
  const double work = s.random.Uniform(0.02, 0.05);
  const double room = end - begin - work;
  const double at = place == Place::kStart    ? 0
                    : place == Place::kMiddle ? room * s.random.Uniform(0.2, 0.8)
                                              : room;
  s.SetPower(begin + at, s.random.Uniform(250, 400));
  s.SetPower(begin + at + work, kIdle);
}

template <Place place>
void WriteAlone(Script& s) {
  s.SetPower(-3, kIdle);
  WriteWork(s, place, s.begin, s.end());
  s.windows.push_back(
      {.begin = s.begin, .end = s.end(), .work_ended = place == Place::kEndAwaited});
}

// Ten windows that are judged after four seconds of such windows. They follow each other without a
// pause, and their lengths vary a little, so that they do not fall into step with the sensor.
template <Place place>
void WriteLoop(Script& s) {
  s.SetPower(-3, kIdle);
  double begin = s.random.Uniform();
  for (int judged = 0; judged < 10;) {
    const double end = begin + s.length * s.random.Uniform(0.85, 1.15);
    WriteWork(s, place, begin, end);
    const bool counts = begin > 4;
    s.windows.push_back(
        {.begin = begin, .end = end, .work_ended = place == Place::kEndAwaited, .counts = counts});
    judged += counts;
    begin = end;
  }
}

void WriteRandomWindows(Script& s) {
  double begin = 4;
  for (int i = 0; i < 40; ++i) {
    begin += s.random.Uniform(0, 0.5);
    const double end = begin + 0.05 * std::pow(60, s.random.Uniform());  // 0.05 to 3 s.
    s.windows.push_back({.begin = begin, .end = end});
    begin = end;
  }
  switch (s.random.Below(4)) {
    case 0:
      return Random300ms(s, begin + 3);
    case 1:
      return SlowSteps(s, begin + 3);
    case 2:
      return TrainingSteps(s, begin + 3);
    default:
      return Bursts(s, begin + 3);
  }
}

// Measures as a naive program does: it reads the counter at the edges or, without one, adds up
// trapezoids over the readings that differ from their predecessor.
class NaiveMethod {
 public:
  NaiveMethod(ScriptedMeter& meter, bool counter) : meter_(meter), counter_(counter) {}
  void Poll(double now) {
    if (counter_) return;
    const double power = meter_.Power().value().value();
    if (!samples_.empty() && samples_.back().second == power) return;
    samples_.emplace_back(now, power);
  }
  double Edge() { return counter_ ? meter_.TotalEnergy().value().value() : 0; }
  double Energy(const PlannedWindow& window, double first_edge, double last_edge) const {
    if (counter_) return last_edge - first_edge;
    double sum = 0;
    for (std::size_t i = 1; i < samples_.size(); ++i)
      if (samples_[i - 1].first >= window.begin && samples_[i].first <= window.end)
        sum += (samples_[i].first - samples_[i - 1].first) *
               (samples_[i].second + samples_[i - 1].second) / 2;
    return sum;
  }

 private:
  ScriptedMeter& meter_;
  bool counter_;
  std::vector<std::pair<double, double>> samples_;
};

Stated StatedBy(const Measurement& measurement) {
  const EnergyEstimate& estimate = measurement.devices[0].energy.value();
  return {.energy = estimate.energy.value(),
          .sigma = estimate.sigma.value(),
          .flagged = !estimate.flags.empty(),
          .preview = estimate.flags.Has(MeasurementFlag::kPreview)};
}

// Plays a script: the recorder steps when it wants to, windows begin and end as planned.
class Player {
 public:
  Player(VirtualClock& clock, EnergyMonitor& monitor, ScriptedMeter& meter, const SensorKind& kind)
      : clock_(clock),
        monitor_(monitor),
        meter_(meter),
        naive_(meter, kind.counter.has_value()),
        naive_interval_(kind.period.count() / 2) {
    monitor_.OnRefined([this](const Measurement& result) { refined_.emplace(result.id, result); });
  }

  std::vector<Outcome> Play(const std::vector<PlannedWindow>& windows) {
    std::vector<Outcome> outcomes;
    std::vector<WindowId> ids;
    for (const PlannedWindow& window : windows) {
      RecordUntil(window.begin);
      const double first_edge = naive_.Edge();
      const WindowId id = monitor_.BeginWindow("window").value();
      RecordUntil(window.end);
      const double last_edge = naive_.Edge();
      const Measurement immediate =
          monitor_
              .EndWindow("window", window.work_ended ? WindowEnd::kWorkEnded : WindowEnd::kPlain)
              .value();
      if (!window.counts) continue;
      ids.push_back(id);
      outcomes.push_back({.truth = meter_.ExactEnergy(Time(window.begin), Time(window.end)).value(),
                          .naive = naive_.Energy(window, first_edge, last_edge),
                          .immediate = StatedBy(immediate),
                          .refined{}});
    }
    RecordUntil(windows.back().end + 1);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (!refined_.contains(ids[i])) {
        fmt::print(stderr, "window {} of {} was not refined\n", i, ids.size());
        std::abort();
      }
      outcomes[i].refined = StatedBy(refined_.at(ids[i]));
    }
    return outcomes;
  }

 private:
  static TimePoint Time(double seconds) { return TimePoint(Seconds(seconds)); }

  void RecordUntil(double until) {
    double next_naive = clock_.Now().time_since_epoch().count();
    for (;;) {
      const double next = monitor_.Step().time_since_epoch().count();
      const double wake = std::min(next, next_naive);
      if (wake > until) break;
      clock_.SleepUntil(Time(wake));
      if (wake == next_naive) {
        naive_.Poll(wake);
        next_naive += naive_interval_;
      }
    }
    clock_.SleepUntil(Time(until));
  }

  VirtualClock& clock_;
  EnergyMonitor& monitor_;
  ScriptedMeter& meter_;
  NaiveMethod naive_;
  double naive_interval_;
  std::map<WindowId, Measurement> refined_;
};

}  // namespace

const std::vector<SensorKind>& SensorKinds() {
  static const std::vector<SensorKind> kinds = {
      {"power 100/100 ms", std::nullopt, 100ms, 100ms},
      {"power 100/25 ms", std::nullopt, 100ms, 25ms},
      {"power 20/10 ms", std::nullopt, 20ms, 10ms},
      {"power, 1 s average", std::nullopt, 100ms, 1s},
      {"counter 100 ms", 100ms, 100ms, 100ms},
  };
  return kinds;
}

const std::vector<Load>& PlainLoads() {
  static const std::vector<Load> loads = {
      {"steady", [](Script& s) { s.SetPower(0, 300); }},
      {"burst",  // The burst fills the window.
       [](Script& s) {
         s.SetPower(0, kIdle);
         s.SetPower(s.begin, 300);
         s.SetPower(s.end(), kIdle);
       }},
      {"one step",
       [](Script& s) {
         s.SetPower(0, 120);
         s.SetPower(s.begin + s.length * s.random.Uniform(), 300);
       }},
      {"slow steps", [](Script& s) { SlowSteps(s, s.end() + 3); }},
      {"training", [](Script& s) { TrainingSteps(s, s.end() + 3); }},
      {"square x0.5", [](Script& s) { Square(s, 0.503 * s.period); }},
      {"square x0.97", [](Script& s) { Square(s, 0.97 * s.period); }},
      {"square x1.37", [](Script& s) { Square(s, 1.37 * s.period); }},
      {"square x10", [](Script& s) { Square(s, 10.3 * s.period); }},
      {"random", [](Script& s) { Random300ms(s, s.end() + 3); }},
  };
  return loads;
}

Load WorkAlone(Place place) {
  switch (place) {
    case Place::kStart:
      return {"start", WriteAlone<Place::kStart>};
    case Place::kMiddle:
      return {"middle", WriteAlone<Place::kMiddle>};
    case Place::kEnd:
      return {"end", WriteAlone<Place::kEnd>};
    case Place::kEndAwaited:
      break;
  }
  return {"end, awaited", WriteAlone<Place::kEndAwaited>};
}

Load WorkInALoop(Place place) {
  switch (place) {
    case Place::kStart:
      return {"start", WriteLoop<Place::kStart>};
    case Place::kMiddle:
      return {"middle", WriteLoop<Place::kMiddle>};
    case Place::kEnd:
      return {"end", WriteLoop<Place::kEnd>};
    case Place::kEndAwaited:
      break;
  }
  return {"end, awaited", WriteLoop<Place::kEndAwaited>};
}

Load RandomWindows() { return {"random windows", WriteRandomWindows}; }

bool Outcome::Contains(const Stated& stated) const {
  return std::abs(stated.energy - truth) <= 1.96 * stated.sigma + 0.002;
}

std::vector<Outcome> RunCase(const SensorKind& sensor, const Load& load,
                             const CaseOptions& options) {
  Random random(options.seed);
  VirtualClock clock;
  const double gain = random.Uniform(1 - options.gain_spread, 1 + options.gain_spread);
  ScriptedMeter meter(clock, {.counter_period = sensor.counter,
                              .power_period = sensor.period,
                              .power_window = sensor.window,
                              .phase = sensor.period * random.Uniform(),
                              .gain = gain});
  Script script{
      .meter = meter,
      .random = random,
      .begin = 4 + random.Uniform(),
      // Not a whole number of the load's periods, whose errors at both edges would cancel.
      .length = options.length * random.Fork("length").Uniform(0.95, 1.05),
      .period = sensor.period.count()};
  load.write(script);
  if (script.windows.empty())
    script.windows.push_back({.begin = script.begin, .end = script.end()});
  SensorProfile profile;
  profile.power_period = sensor.period;
  profile.power_window = sensor.window;
  profile.gain_sigma = options.gain_spread / std::sqrt(3.0);
  EnergyMonitor monitor(clock,
                        {{.meter = &meter, .sensor = profile, .highest_power = Watts(kCeiling)}});
  return Player(clock, monitor, meter, sensor).Play(script.windows);
}

}  // namespace zeus::testing
