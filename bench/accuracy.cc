// How wrong measured energies are, and whether they say so: simulated sensors over scripted loads,
// compared with the exact energy. Prints the tables of docs/accuracy.md.
//   accuracy [CASES]   cases per sensor, window and load (20)
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "zeus/base/random.h"
#include "zeus/monitor/energy_monitor.h"
#include "zeus/monitor/testing/scripted_meter.h"

namespace {

using namespace zeus;
using namespace std::chrono_literals;
using zeus::testing::ScriptedMeter;

struct SensorKind {
  std::string name;
  std::optional<Seconds> counter;
  Seconds period;
  Seconds window;
};

const std::vector<SensorKind> kSensors = {
    {"power 100/100 ms", std::nullopt, 100ms, 100ms},
    {"power 100/25 ms", std::nullopt, 100ms, 25ms},
    {"power 20/10 ms", std::nullopt, 20ms, 10ms},
    {"power, 1 s average", std::nullopt, 100ms, 1s},
    {"counter 100 ms", 100ms, 100ms, 100ms},
};
const std::vector<double> kWindows = {0.1, 0.3, 1, 3, 10, 100};

// A load writes the exact power of one case; the window is [begin, begin + length].
struct Case {
  ScriptedMeter& meter;
  Random& random;
  double begin;
  double length;
  double end;     // Of the script.
  double period;  // Of the sensor.
};

void Square(const Case& c, double period, double low, double high, double duty) {
  double time = -3 - period * c.random.Uniform();
  for (; time < c.end; time += period) {
    c.meter.SetPower(TimePoint(Seconds(time)), Watts(high));
    c.meter.SetPower(TimePoint(Seconds(time + duty * period)), Watts(low));
  }
}

struct Load {
  std::string name;
  void (*write)(const Case&);
};

const std::vector<Load> kLoads = {
    {"steady", [](const Case& c) { c.meter.SetPower(TimePoint{}, Watts(300)); }},
    {"burst",  // Fills the window.
     [](const Case& c) {
       c.meter.SetPower(TimePoint{}, Watts(60));
       c.meter.SetPower(TimePoint(Seconds(c.begin)), Watts(300));
       c.meter.SetPower(TimePoint(Seconds(c.begin + c.length)), Watts(60));
     }},
    {"one step",
     [](const Case& c) {
       c.meter.SetPower(TimePoint{}, Watts(120));
       c.meter.SetPower(TimePoint(Seconds(c.begin + c.length * c.random.Uniform())), Watts(300));
     }},
    {"slow steps",
     [](const Case& c) {
       for (double time = -3; time < c.end; time += c.random.Uniform(0.5, 2.5))
         c.meter.SetPower(TimePoint(Seconds(time)), Watts(c.random.Uniform(60, 350)));
     }},
    {"training",  // Steps of 0.35 s with a gap for input, and a little noise from step to step.
     [](const Case& c) {
       for (double time = -3; time < c.end; time += 0.35 * c.random.Uniform(0.97, 1.03)) {
         c.meter.SetPower(TimePoint(Seconds(time)), Watts(c.random.Uniform(280, 300)));
         c.meter.SetPower(TimePoint(Seconds(time + 0.28)), Watts(140));
       }
     }},
    {"square x0.5", [](const Case& c) { Square(c, 0.503 * c.period, 150, 450, 0.5); }},
    {"square x0.97", [](const Case& c) { Square(c, 0.97 * c.period, 150, 450, 0.5); }},
    {"square x1.37", [](const Case& c) { Square(c, 1.37 * c.period, 150, 450, 0.5); }},
    {"square x10", [](const Case& c) { Square(c, 10.3 * c.period, 150, 450, 0.5); }},
    {"random",
     [](const Case& c) {
       for (double time = -3; time < c.end; time -= 0.3 * std::log(1.0 - c.random.Uniform()))
         c.meter.SetPower(TimePoint(Seconds(time)), Watts(c.random.Uniform(60, 400)));
     }},
};

struct Outcome {
  double naive;
  double immediate;
  double refined;
  double half_width;  // Of the stated 95 % interval, relative to the truth.
  bool contained;
  bool flagged;
};

// What a program does that reads the sensor at the edges, or, without a counter, adds up trapezoids
// over the readings that differ from their predecessor.
class NaiveMethod {
 public:
  NaiveMethod(ScriptedMeter& meter, bool counter) : meter_(meter), counter_(counter) {}
  void Poll(TimePoint now) {
    if (counter_) return;
    const double power = meter_.Power().value().value();
    if (!samples_.empty() && samples_.back().second == power) return;
    samples_.emplace_back(now.time_since_epoch().count(), power);
  }
  void Edge() {
    if (counter_) edges_.push_back(meter_.TotalEnergy().value().value());
  }
  double Energy(double begin, double end) const {
    if (counter_) return edges_[1] - edges_[0];
    double sum = 0;
    for (std::size_t i = 1; i < samples_.size(); ++i)
      if (samples_[i - 1].first >= begin && samples_[i].first <= end)
        sum += (samples_[i].first - samples_[i - 1].first) *
               (samples_[i].second + samples_[i - 1].second) / 2;
    return sum;
  }

 private:
  ScriptedMeter& meter_;
  bool counter_;
  std::vector<double> edges_;
  std::vector<std::pair<double, double>> samples_;
};

void RecordUntil(VirtualClock& clock, EnergyMonitor& monitor, NaiveMethod& naive, double until,
                 double naive_interval) {
  double next_naive = clock.Now().time_since_epoch().count();
  for (;;) {
    const double next = monitor.Step().time_since_epoch().count();
    const double wake = std::min(next, next_naive);
    if (wake > until) break;
    clock.SleepUntil(TimePoint(Seconds(wake)));
    if (wake == next_naive) {
      naive.Poll(clock.Now());
      next_naive += naive_interval;
    }
  }
  clock.SleepUntil(TimePoint(Seconds(until)));
}

Outcome Run(const SensorKind& kind, double length, const Load& load, std::uint64_t seed,
            double gain_spread) {
  Random random(seed);
  VirtualClock clock;
  const double gain = random.Uniform(1 - gain_spread, 1 + gain_spread);
  ScriptedMeter meter(clock, {.counter_period = kind.counter,
                              .power_period = kind.period,
                              .power_window = kind.window,
                              .phase = kind.period * random.Uniform(),
                              .gain = gain});
  const double begin = 4 + random.Uniform();
  load.write({.meter = meter,
              .random = random,
              .begin = begin,
              .length = length,
              .end = begin + length + 3,
              .period = kind.period.count()});
  SensorProfile profile;
  profile.power_period = kind.period;
  profile.power_window = kind.window;
  profile.gain_sigma = gain_spread / std::sqrt(3.0);
  EnergyMonitor monitor(clock, {{.meter = &meter, .sensor = profile}});
  NaiveMethod naive(meter, kind.counter.has_value());

  const double naive_interval = kind.period.count() / 2;
  RecordUntil(clock, monitor, naive, begin, naive_interval);
  naive.Edge();
  const WindowId id = monitor.BeginWindow("window").value();
  RecordUntil(clock, monitor, naive, begin + length, naive_interval);
  naive.Edge();
  const double immediate = monitor.EndWindow("window").value().Sum().energy.value();
  const Result<Measurement> result = monitor.Refine(id, 3s);
  if (!result.ok()) {
    fmt::print(stderr, "{} {} {} {}: {}\n", kind.name, length, load.name, seed,
               result.error().message);
    std::exit(1);
  }
  const Measurement& refined = result.value();
  const EnergyEstimate& estimate = refined.devices[0].energy.value();
  const double truth =
      meter.ExactEnergy(TimePoint(Seconds(begin)), TimePoint(Seconds(begin + length))).value();
  const double error = estimate.energy.value() - truth;
  return {.naive = naive.Energy(begin, begin + length) / truth - 1,
          .immediate = immediate / truth - 1,
          .refined = error / truth,
          .half_width = 1.96 * estimate.sigma.value() / truth,
          .contained = std::abs(error) <= 1.96 * estimate.sigma.value() + 0.002,
          .flagged = !estimate.flags.empty()};
}

struct Summary {
  double naive = 0, immediate = 0, refined = 0, worst = 0, half_width = 0;
  int contained = 0, flagged = 0, cases = 0;

  void Add(const Outcome& outcome) {
    naive += outcome.naive * outcome.naive;
    immediate += outcome.immediate * outcome.immediate;
    refined += outcome.refined * outcome.refined;
    worst = std::max(worst, std::abs(outcome.refined));
    half_width += outcome.half_width * outcome.half_width;
    contained += outcome.contained;
    flagged += outcome.flagged;
    ++cases;
  }
  double Percent(double squares) const { return 100 * std::sqrt(squares / cases); }
};

void PrintRow(const std::string& first, const std::string& second, const Summary& s) {
  fmt::print("| {} | {} | {:.3g} | {:.3g} | {:.3g} | {:.3g} | {:.0f} | {:.1f} | {:.0f} |\n", first,
             second, s.Percent(s.naive), s.Percent(s.immediate), s.Percent(s.refined),
             100 * s.worst, 100.0 * s.contained / s.cases,
             s.half_width > 0 ? std::sqrt(s.half_width / std::max(s.refined, 1e-30)) : 0.0,
             100.0 * s.flagged / s.cases);
}

void PrintHeader(const char* first, const char* second) {
  fmt::print(
      "| {} | {} | naive % | immediate % | refined % | worst % | inside % | width | "
      "flagged % |\n|---|---|---|---|---|---|---|---|---|\n",
      first, second);
}

}  // namespace

int main(int argc, char** argv) {
  const int cases = argc > 1 ? std::atoi(argv[1]) : 20;
  std::map<std::pair<std::string, std::string>, Summary> by_load;

  fmt::print("### Calibrated boards, all loads together\n\n");
  PrintHeader("sensor", "window");
  for (const SensorKind& sensor : kSensors) {
    for (const double window : kWindows) {
      Summary summary;
      for (const Load& load : kLoads) {
        for (int i = 0; i < cases; ++i) {
          const Outcome outcome = Run(sensor, window, load, 1000 + static_cast<unsigned>(i), 0);
          summary.Add(outcome);
          if (window >= 1) by_load[{sensor.name, load.name}].Add(outcome);
        }
      }
      PrintRow(sensor.name, fmt::format("{} s", window), summary);
    }
  }
  fmt::print("\n### By load, windows of 1 s and more\n\n");
  PrintHeader("sensor", "load");
  for (const SensorKind& sensor : kSensors)
    for (const Load& load : kLoads)
      PrintRow(sensor.name, load.name, by_load[{sensor.name, load.name}]);

  fmt::print("\n### The reference's case: 60 W idle, 300 W burst filling the window\n\n");
  PrintHeader("sensor", "window");
  for (const double window : {0.2, 1.0, 10.0}) {
    Summary summary;
    for (int i = 0; i < 10 * cases; ++i)
      summary.Add(Run(kSensors.back(), window, kLoads[1], 5000 + static_cast<unsigned>(i), 0));
    PrintRow(kSensors.back().name, fmt::format("{} s", window), summary);
  }
  fmt::print("\n### Boards nobody calibrated: gain anywhere within ±5 %\n\n");
  PrintHeader("sensor", "window");
  for (const SensorKind& sensor : kSensors) {
    for (const double window : {1.0, 10.0}) {
      Summary summary;
      for (const Load& load : kLoads)
        for (int i = 0; i < cases; ++i)
          summary.Add(Run(sensor, window, load, 9000 + static_cast<unsigned>(i), 0.05));
      PrintRow(sensor.name, fmt::format("{} s", window), summary);
    }
  }
}
