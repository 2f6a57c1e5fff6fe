#include "zeus/monitor/calibration/plateaus.h"

#include <algorithm>
#include <cstddef>

namespace zeus::calibration {
namespace {

using namespace std::chrono_literals;

// A load and its power do not change in no time, and moments are known to a few milliseconds.
constexpr Seconds kMargin = 5ms;

struct Level {
  double count = 0;
  double sum = 0;
  double squares = 0;  // Of the differences from the mean.

  double mean() const { return sum / count; }
};

// Of the readings that saw only [begin, end].
Level LevelBetween(const InstrumentLog& log, TimePoint begin, TimePoint end) {
  const TimePoint first = begin + log.delay + log.span + kMargin;
  const TimePoint last = end + log.delay - kMargin;
  const auto from = std::ranges::lower_bound(log.readings, first, {}, &SensorReading::time);
  const auto to = std::ranges::upper_bound(log.readings, last, {}, &SensorReading::time);
  Level level;
  for (auto reading = from; reading < to; ++reading) {
    level.count += 1;
    level.sum += reading->value;
  }
  for (auto reading = from; reading < to; ++reading)
    level.squares += (reading->value - level.mean()) * (reading->value - level.mean());
  return level;
}

// Of one reading. A single one on its plateau does not tell how much it scatters, so all plateaus
// together do.
double Scatter(const std::vector<Level>& levels) {
  double squares = 0;
  double freedom = 0;
  for (const Level& level : levels) {
    squares += level.squares;
    freedom += level.count - 1;
  }
  return freedom > 0 ? squares / freedom : 0;
}

}  // namespace

std::vector<Plateau> FindPlateaus(const LoadPattern& load, TimePoint end,
                                  const InstrumentLog& reported, const InstrumentLog& meter) {
  std::vector<Level> ours;
  std::vector<Level> theirs;
  const auto& switches = load.switches();
  for (std::size_t i = 0; i < switches.size(); ++i) {
    const TimePoint until = i + 1 < switches.size() ? switches[i + 1].time : end;
    const Level our = LevelBetween(reported, switches[i].time, until);
    const Level their = LevelBetween(meter, switches[i].time, until);
    if (our.count == 0 || their.count == 0) continue;
    ours.push_back(our);
    theirs.push_back(their);
  }
  const double our_scatter = Scatter(ours);
  const double their_scatter = Scatter(theirs);
  std::vector<Plateau> plateaus;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    plateaus.push_back({.reported = ours[i].mean(),
                        .reported_variance = our_scatter / ours[i].count,
                        .meter = theirs[i].mean(),
                        .meter_variance = their_scatter / theirs[i].count});
  }
  return plateaus;
}

}  // namespace zeus::calibration
