// Meter and board have different clocks, delays and rates, so single readings cannot be compared.
// Stretches of steady load can: the meter's log is shifted to where it correlates best with the
// load, both instruments are averaged over each stretch between two switches, and a line is fitted
// through the pairs of means. Both coordinates have errors, so each pair counts by its variance in
// both directions; where pairs scatter more than their errors say, all errors grow to match.
#include "zeus/monitor/calibration/gain_fit.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/units.h"
#include "zeus/base/wall_time_text.h"
#include "zeus/monitor/calibration/least_squares.h"
#include "zeus/monitor/calibration/load_pattern.h"
#include "zeus/monitor/calibration/sensor_trace.h"

namespace zeus::calibration {

// Readings of one instrument. Each tells the mean of the `span` that ended `delay` before it.
struct InstrumentLog {
  std::vector<SensorReading> readings;  // In the order of time.
  Seconds span;
  Seconds delay;
};

// A stretch of steady load that two instruments saw: means in watts, and variances of the means.
struct Plateau {
  double reported;
  double reported_variance;
  double meter;
  double meter_variance;
};

// The stretches between switches, up to `end`, for which both have at least one reading that saw
// nothing else.
std::vector<Plateau> FindPlateaus(const LoadPattern& load, TimePoint end,
                                  const InstrumentLog& reported, const InstrumentLog& meter);

namespace {

using namespace std::chrono_literals;

// A load and its power do not change in no time, and moments are known to a few milliseconds.
constexpr Seconds kMargin = 5ms;

struct Level {
  double count = 0;
  double sum = 0;
  double squares = 0;  // Sum of the squared differences from the mean.

  double mean() const { return sum / count; }
};

// Collects the readings whose averaging window lies within [begin, end].
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

// Standard deviation of one reading, from all plateaus together: a plateau with a single reading
// does not show how much it scatters.
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

namespace {

using namespace std::chrono_literals;

constexpr std::size_t kFewestPlateaus = 4;
constexpr Seconds kLargestMeterDelay = 10s;
// Least correlation of the meter with the load: below it the meter measures something else.
constexpr double kLeastCorrelation = 0.5;
constexpr double kFinestPower = 1e-3;  // Watts: readings are no finer.

Seconds MedianInterval(const std::vector<SensorReading>& meter) {
  std::vector<Seconds> intervals;
  for (std::size_t i = 1; i < meter.size(); ++i)
    intervals.emplace_back(meter[i].time - meter[i - 1].time);
  const auto middle = intervals.begin() + static_cast<std::ptrdiff_t>(intervals.size() / 2);
  std::nth_element(intervals.begin(), middle, intervals.end());
  return *middle;
}

// Readings of the meter around the recording, on the clock of the recording.
Result<std::vector<SensorReading>> Overlap(const GainFitInput& input) {
  const TimePoint begin = input.load.switches().front().time - kLargestMeterDelay;
  const TimePoint end = input.end + kLargestMeterDelay;
  std::vector<SensorReading> points;
  for (const MeterSample& sample : input.meter) {
    const TimePoint time = input.clocks.ToMonotonic(sample.time);
    if (time >= begin && time <= end) points.push_back({time, sample.power.value()});
  }
  if (points.size() >= 3) return points;
  if (input.meter.empty()) return Error{ErrorCode::kInvalidArgument, "the meter's log is empty"};
  const Seconds ago = input.clocks.monotonic - input.load.switches().front().time;
  const auto started = input.clocks.wall - std::chrono::round<std::chrono::microseconds>(ago);
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("the meter's log ({} to {}) and the recording (from {}) have no time in "
                           "common: log during the calibration, and set the meter's clock",
                           ToText(input.meter.front().time), ToText(input.meter.back().time),
                           ToText(started))};
}

double Correlation(const std::vector<SensorReading>& meter, const LoadPattern& load, Seconds delay,
                   Seconds interval) {
  double count = 0;
  double x = 0;
  double y = 0;
  double xx = 0;
  double xy = 0;
  double yy = 0;
  const TimePoint first = load.switches().front().time;
  const TimePoint last = load.switches().back().time;
  for (const SensorReading& point : meter) {
    const TimePoint end = point.time - delay;
    if (end < first || end > last) continue;
    const double share = load.BusyShare(end - interval, end);
    count += 1;
    x += share;
    y += point.value;
    xx += share * share;
    xy += share * point.value;
    yy += point.value * point.value;
  }
  const double variances = (xx - x * x / count) * (yy - y * y / count);
  return count >= 3 && variances > 0 ? (xy - x * y / count) / std::sqrt(variances) : 0;
}

Result<Seconds> FindMeterDelay(const std::vector<SensorReading>& meter, const LoadPattern& load,
                               Seconds interval) {
  const Seconds coarse = std::clamp(interval / 4, Seconds(5ms), Seconds(50ms));
  Seconds best(0);
  double highest = Correlation(meter, load, best, interval);
  for (Seconds delay = -kLargestMeterDelay; delay <= kLargestMeterDelay; delay += coarse) {
    const double correlation = Correlation(meter, load, delay, interval);
    if (correlation <= highest) continue;
    highest = correlation;
    best = delay;
  }
  if (highest >= kLeastCorrelation) return best;
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("the meter does not show the load (correlation {:.2f}): does it measure "
                           "this GPU, at least twice per plateau, and is its clock right?",
                           highest)};
}

// Line through the levels; each counts by its own errors in both directions.
struct Line {
  double gain = 1;
  double offset = 0;
  double gain_variance = 0;
  double offset_variance = 0;
  double r_squared = 0;
};

double PlateauWeight(const Plateau& plateau, double gain) {
  return 1 / (plateau.reported_variance + gain * gain * plateau.meter_variance +
              kFinestPower * kFinestPower);
}

Line Describe(const std::vector<Plateau>& plateaus, Line line, const LeastSquares<2>& equations) {
  double weights = 0;
  double mean = 0;
  for (const Plateau& plateau : plateaus) {
    weights += PlateauWeight(plateau, line.gain);
    mean += PlateauWeight(plateau, line.gain) * plateau.reported;
  }
  mean /= weights;
  double rest = 0;
  double total = 0;
  for (const Plateau& plateau : plateaus) {
    const double weight = PlateauWeight(plateau, line.gain);
    rest += weight * std::pow(plateau.reported - line.gain * plateau.meter - line.offset, 2);
    total += weight * std::pow(plateau.reported - mean, 2);
  }
  // Levels that scatter more than their own errors say have others: all errors grow to match.
  const double excess = std::max(1.0, rest / static_cast<double>(plateaus.size() - 2));
  if (const auto inverse = equations.Inverse()) {
    line.gain_variance = excess * (*inverse)[0][0];
    line.offset_variance = excess * (*inverse)[1][1];
  }
  line.r_squared = 1 - rest / total;
  return line;
}

Line FitLine(const std::vector<Plateau>& plateaus) {
  Line line;
  constexpr int kRounds = 3;  // The weights depend, a little, on the gain.
  LeastSquares<2> equations;
  for (int round = 0; round < kRounds; ++round) {
    equations = {};
    for (const Plateau& plateau : plateaus)
      equations.Add({plateau.meter, 1}, plateau.reported, PlateauWeight(plateau, line.gain));
    const auto solution = equations.Solve();
    if (!solution) return line;
    line.gain = (*solution)[0];
    line.offset = (*solution)[1];
  }
  return Describe(plateaus, line, equations);
}

Status CheckLevels(const std::vector<Plateau>& plateaus) {
  if (plateaus.size() < kFewestPlateaus) {
    return Error{ErrorCode::kUnavailable,
                 fmt::format("{} plateaus of the load with readings of both meters are too few: "
                             "give more --seconds, or let the meter log more often",
                             plateaus.size())};
  }
  const auto [low, high] = std::ranges::minmax(plateaus, {}, &Plateau::meter);
  if (high.meter - low.meter < kLeastContrast.value()) {
    return Error{ErrorCode::kUnavailable,
                 fmt::format("the meter shows one level only ({:.1f} W to {:.1f} W), and a gain "
                             "needs two: give a heavier load",
                             low.meter, high.meter)};
  }
  return Ok();
}

}  // namespace

Result<GainFit> FitGain(const GainFitInput& input) {
  if (input.load.switches().empty())
    return Error{ErrorCode::kUnavailable, "the load was never switched"};
  ZEUS_TRY(const std::vector<SensorReading> meter, Overlap(input));
  const Seconds interval = MedianInterval(meter);
  Seconds delay = input.meter_delay.value_or(Seconds(0));
  if (!input.meter_delay) {
    ZEUS_TRY(delay, FindMeterDelay(meter, input.load, interval));
  }
  const std::vector<Plateau> plateaus =
      FindPlateaus(input.load, input.end,
                   {.readings = input.watts.Readings(input.response.period.value),
                    .span = input.response.window.value,
                    .delay = input.response.delay.value},
                   {.readings = meter, .span = interval, .delay = delay});
  ZEUS_RETURN_IF_ERROR(CheckLevels(plateaus));
  const Line line = FitLine(plateaus);
  return GainFit{.gain = line.gain,
                 .gain_sigma = std::sqrt(line.gain_variance),
                 .offset = Watts(line.offset),
                 .offset_sigma = Watts(std::sqrt(line.offset_variance)),
                 .r_squared = line.r_squared,
                 .plateaus = static_cast<int>(plateaus.size()),
                 .meter_delay = delay};
}

}  // namespace zeus::calibration
