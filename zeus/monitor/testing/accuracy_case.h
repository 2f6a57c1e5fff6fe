#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "zeus/base/random.h"
#include "zeus/base/units.h"
#include "zeus/monitor/measurement.h"
#include "zeus/monitor/testing/scripted_meter.h"

// Measurements of loads whose exact energy is known: how wrong they are, and whether they say so.
namespace zeus::testing {

struct SensorKind {
  std::string name;
  std::optional<Seconds> counter;  // Update period of its energy counter, if it has one.
  Seconds period;                  // Update period of its power reading …
  Seconds window;                  // … and the time over which that averages.
};
const std::vector<SensorKind>& SensorKinds();

struct PlannedWindow {
  double begin;
  double end;
  bool work_ended = false;  // The program waited for its work right before the end.
  bool counts = true;       // False for windows that only lead up to those that are judged.
};

// One case to be written by a load: the exact power over time, and the windows to measure.
struct Script {
  ScriptedMeter& meter;
  Random& random;
  double begin;   // Begin of the window, in seconds.
  double length;  // Length of the window.
  double period;  // Period of the sensor.
  std::vector<PlannedWindow> windows{};

  void SetPower(double time, double watts) const {
    meter.SetPower(TimePoint(Seconds(time)), Watts(watts));
  }
  double end() const { return begin + length; }
};

struct Load {
  std::string name;
  // Adds no window of its own for the plain ones, which have a single window from begin to end().
  void (*write)(Script&);
};
// Loads that go on around one window: steady, bursts, steps, training, square waves, random.
const std::vector<Load>& PlainLoads();

// A little work in a long window, at its start, in its middle or at its end: in one window on an
// idle device, or in a loop of windows.
enum class Place { kStart, kMiddle, kEnd, kEndAwaited };
Load WorkAlone(Place place);
Load WorkInALoop(Place place);
// Windows that begin and end at random over loads that know nothing of them.
Load RandomWindows();

struct Stated {
  double energy;
  double sigma;
  bool flagged;
  bool preview;  // Says itself that the end is not known.
};
struct Outcome {
  double truth;
  double naive;
  Stated immediate;
  Stated refined;

  // Whether the stated 95 % interval holds the truth; counters show whole millijoules.
  bool Contains(const Stated& stated) const;
};

struct CaseOptions {
  double length = 1;
  std::uint64_t seed = 1;
  double gain_spread = 0;  // The gain of the board lies anywhere within 1 ± this.
};
// One outcome for each window that counts. Aborts with a message if a window cannot be refined.
std::vector<Outcome> RunCase(const SensorKind& sensor, const Load& load,
                             const CaseOptions& options);

}  // namespace zeus::testing
