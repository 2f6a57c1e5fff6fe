// The load is switched on and off at known moments. A sensor with delay d and averaging window w
// would show, at t, the busy share of [t - d - w, t - d]; the model of a reading is a slow drift
// plus the step between idle and busy times that share. For a given lag (d, w) drift and step are
// linear least squares, so the fit is a search over the lag alone: every combination of a coarse
// grid, then a compass search from the best one. Readings that contradict the rest wholly are
// dropped and the search is repeated. Sigmas come from the readings whose window saw a switch,
// since only they know the lag.
#include "zeus/monitor/calibration/response.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "zeus/base/units.h"
#include "zeus/monitor/calibration/least_squares.h"
#include "zeus/monitor/calibration/load_pattern.h"
#include "zeus/monitor/calibration/sensor_trace.h"

namespace zeus::calibration {

// A reading that appears at t is the mean from t - delay - window to t - delay.
struct Lag {
  Seconds window;
  Seconds delay;
};

// Where to look for the lag: every combination is tried, then the best is refined.
struct LagGrid {
  std::vector<Seconds> windows;
  std::vector<Seconds> delays;
};

// reading(t) = slow drift (a cubic) + step * busy share of the reading's window.
struct StepFit {
  Lag lag;
  Lag sigma;  // Standard deviations of the lags.
  double step;
  double noise;  // Root mean square of what is left.
};

// Least squares over the readings, of which there must be more than ten, in the order of time.
// nullopt when they do not determine all unknowns.
std::optional<StepFit> FitStep(std::vector<SensorReading> readings, const LoadPattern& load,
                               const LagGrid& grid);

namespace {

using namespace std::chrono_literals;

using Linear = LeastSquares<5>;  // 1, t, t², t³ and the busy share.
using Whole = LeastSquares<7>;   // And what a change of window and delay would change.

constexpr std::size_t kCoarseReadings = 300;
constexpr Seconds kShortestWindow = 100us;
constexpr Seconds kFinestStep = 5us;
constexpr Seconds kDerivativeStep = 200us;
// A reading off by this part of the step, and by so many deviations, is off because the load was.
constexpr double kContradiction = 0.3;
constexpr double kContradictionInSigmas = 6;
constexpr double kSigmasPerMedian = 1.4826;
constexpr int kRounds = 3;
constexpr int kMostMoves = 300;

class Fitter {
 public:
  Fitter(std::vector<SensorReading> readings, const LoadPattern& load)
      : readings_(std::move(readings)), load_(load) {
    begin_ = readings_.front().time;
    half_ = (readings_.back().time - begin_) / 2;
  }

  Lag Search(const LagGrid& grid) const;
  Lag Refine(Lag lag) const;
  // Whether there were any.
  bool DropContradictions(Lag lag);
  std::optional<StepFit> Describe(Lag lag) const;

 private:
  double Share(TimePoint time, Lag lag) const {
    const TimePoint end = time - lag.delay;
    return load_.BusyShare(end - lag.window, end);
  }
  Linear::Vector Row(const SensorReading& reading, Lag lag) const {
    const double t = Seconds(reading.time - begin_) / half_ - 1;
    return {1, t, t * t, t * t * t, Share(reading.time, lag)};
  }
  Whole::Vector WholeRow(const SensorReading& reading, Lag lag, double step) const;
  std::optional<Linear::Vector> Solve(Lag lag, std::size_t stride = 1) const;
  double Rest(const SensorReading& reading, Lag lag, const Linear::Vector& solution) const {
    return reading.value - Linear::Dot(Row(reading, lag), solution);
  }
  double SumOfSquares(Lag lag, std::size_t stride = 1) const;

  std::vector<SensorReading> readings_;
  const LoadPattern& load_;
  TimePoint begin_;
  Seconds half_{};
};

std::optional<Linear::Vector> Fitter::Solve(Lag lag, std::size_t stride) const {
  Linear equations;
  for (std::size_t i = 0; i < readings_.size(); i += stride)
    equations.Add(Row(readings_[i], lag), readings_[i].value);
  return equations.Solve();
}

double Fitter::SumOfSquares(Lag lag, std::size_t stride) const {
  const auto solution = Solve(lag, stride);
  if (!solution) return std::numeric_limits<double>::infinity();
  double sum = 0;
  for (std::size_t i = 0; i < readings_.size(); i += stride) {
    const double rest = Rest(readings_[i], lag, *solution);
    sum += rest * rest;
  }
  return sum;
}

Lag Fitter::Search(const LagGrid& grid) const {
  const std::size_t stride = readings_.size() / kCoarseReadings + 1;
  Lag best{grid.windows.front(), grid.delays.front()};
  double least = std::numeric_limits<double>::infinity();
  for (const Seconds window : grid.windows) {
    for (const Seconds delay : grid.delays) {
      const double rest = SumOfSquares({window, delay}, stride);
      if (rest >= least) continue;
      least = rest;
      best = {window, delay};
    }
  }
  return best;
}

// Compass search: no derivatives, which the corners of the answer would spoil. Moving one end of
// the window or its middle alone are the natural directions, so they are among those tried.
Lag Fitter::Refine(Lag lag) const {
  constexpr std::array<std::array<double, 2>, 8> kDirections{
      {{1, 0}, {-1, 0}, {0, 1}, {0, -1}, {1, -1}, {-1, 1}, {1, -0.5}, {-1, 0.5}}};
  double least = SumOfSquares(lag);
  Seconds step = 0.1 * lag.window + 2ms;
  for (int move = 0; move < kMostMoves && step > kFinestStep; ++move) {
    bool better = false;
    for (const auto& [window, delay] : kDirections) {
      const Lag next{lag.window + window * step, lag.delay + delay * step};
      if (next.window < kShortestWindow) continue;
      const double rest = SumOfSquares(next);
      if (rest >= least) continue;
      least = rest;
      lag = next;
      better = true;
    }
    if (!better) step /= 2;
  }
  return lag;
}

bool Fitter::DropContradictions(Lag lag) {
  const auto solution = Solve(lag);
  if (!solution) return false;
  std::vector<double> sizes;
  for (const SensorReading& reading : readings_)
    sizes.push_back(std::abs(Rest(reading, lag, *solution)));
  const auto middle = sizes.begin() + static_cast<std::ptrdiff_t>(sizes.size() / 2);
  std::nth_element(sizes.begin(), middle, sizes.end());
  const double bound = std::max(kContradictionInSigmas * kSigmasPerMedian * *middle,
                                kContradiction * std::abs(solution->back()));
  return std::erase_if(readings_, [&](const SensorReading& reading) {
           return std::abs(Rest(reading, lag, *solution)) > bound;
         }) > 0;
}

Whole::Vector Fitter::WholeRow(const SensorReading& reading, Lag lag, double step) const {
  const auto slope = [&](Seconds window, Seconds delay) {
    const double after = Share(reading.time, {lag.window + window, lag.delay + delay});
    const double before = Share(reading.time, {lag.window - window, lag.delay - delay});
    return step * (after - before) / (2 * (window + delay).count());
  };
  const Linear::Vector row = Row(reading, lag);
  const Seconds small = std::min(kDerivativeStep, lag.window / 2);
  return {row[0], row[1], row[2], row[3], row[4], slope(small, 0s), slope(0s, small)};
}

// The few readings whose window saw a switch carry all that is known about the lag, and the noise
// of their moments with it: so each reading counts with its own rest, not with the mean of all
// (heteroscedasticity-consistent covariance, with the leverages of its third form).
std::optional<StepFit> Fitter::Describe(Lag lag) const {
  const auto solution = Solve(lag);
  if (!solution) return std::nullopt;
  Whole equations;
  for (const SensorReading& reading : readings_)
    equations.Add(WholeRow(reading, lag, solution->back()), 0);
  const auto inverse = equations.Inverse();
  if (!inverse) return std::nullopt;

  Whole::Vector variance{};
  double squares = 0;
  for (const SensorReading& reading : readings_) {
    const Whole::Vector row = WholeRow(reading, lag, solution->back());
    const Whole::Vector influence = Whole::Times(*inverse, row);
    const double leverage = std::min(Whole::Dot(row, influence), 0.99);
    const double rest = Rest(reading, lag, *solution);
    squares += rest * rest;
    for (std::size_t i = 0; i < variance.size(); ++i)
      variance[i] += std::pow(influence[i] * rest / (1 - leverage), 2);
  }
  return StepFit{.lag = lag,
                 .sigma = {Seconds(std::sqrt(variance[5])), Seconds(std::sqrt(variance[6]))},
                 .step = solution->back(),
                 .noise = std::sqrt(squares / static_cast<double>(readings_.size()))};
}

}  // namespace

std::optional<StepFit> FitStep(std::vector<SensorReading> readings, const LoadPattern& load,
                               const LagGrid& grid) {
  Fitter fitter(std::move(readings), load);
  Lag lag = fitter.Refine(fitter.Search(grid));
  for (int round = 0; round < kRounds && fitter.DropContradictions(lag); ++round)
    lag = fitter.Refine(lag);
  return fitter.Describe(lag);
}

namespace {

using namespace std::chrono_literals;

constexpr std::size_t kFewestReadings = 20;
constexpr std::size_t kFewestSwitches = 6;
// Largest ratio of noise to step: above it the sensor does not follow the load.
constexpr double kLargestNoise = 0.25;

// A moment that polling found lies anywhere between two polls: deviation of the interval over √12.
constexpr double kPollSigma = 0.28867513459481288;

Error NotEnough(std::string what) { return {ErrorCode::kUnavailable, std::move(what)}; }

LagGrid GridFor(Seconds period) {
  constexpr Seconds kShortest = 2ms;
  constexpr Seconds kLongest = 2s;
  constexpr double kWindowRatio = 1.2;
  LagGrid grid;
  for (Seconds window = kShortest; window < kLongest; window *= kWindowRatio)
    grid.windows.push_back(window);
  const Seconds step = std::max(Seconds(3ms), period / 20);
  const Seconds latest = std::max(Seconds(300ms), 3 * period);
  for (Seconds delay = -period / 2; delay < latest; delay += step) grid.delays.push_back(delay);
  return grid;
}

// Power over each update of a counter. The moments are those of polls and a little off; the
// updates themselves are regular, so the period is the better divisor.
std::vector<SensorReading> PowerOfCounter(const std::vector<SensorReading>& joules,
                                          Seconds period) {
  std::vector<SensorReading> watts;
  for (std::size_t i = 1; i < joules.size(); ++i) {
    const double updates = Seconds(joules[i].time - joules[i - 1].time) / period;
    if (std::round(updates) != 1) continue;
    watts.push_back({joules[i].time, (joules[i].value - joules[i - 1].value) / period.count()});
  }
  return watts;
}

Status CheckStep(const StepFit& fit) {
  if (fit.step < kLeastContrast.value()) {
    return NotEnough(fmt::format(
        "not enough contrast: busy and idle differ by {:.1f} W, and {:.0f} W are needed: give a "
        "heavier load, or end what else runs on this GPU",
        fit.step, kLeastContrast.value()));
  }
  if (fit.noise > kLargestNoise * fit.step) {
    return NotEnough(fmt::format(
        "the readings did not follow the load ({:.0f} W off for a step of {:.0f} W): end what else "
        "runs on this GPU, or give a load that reacts faster",
        fit.noise, fit.step));
  }
  return Ok();
}

Result<Response> Fit(const SensorTrace& trace, std::vector<SensorReading> readings,
                     const Estimate& period, const LoadPattern& load) {
  if (readings.size() < kFewestReadings || load.switches().size() < kFewestSwitches) {
    return NotEnough(
        fmt::format("{} readings and {} switches of the load are too few: give more --seconds",
                    readings.size(), load.switches().size()));
  }
  const auto fit = FitStep(std::move(readings), load, GridFor(period.value));
  if (!fit) {
    return NotEnough(
        "no reading saw a switch of the load in the midst of its window: give more --seconds, or a "
        "load that reacts faster and always alike");
  }
  ZEUS_RETURN_IF_ERROR(CheckStep(*fit));
  const Seconds poll = kPollSigma * trace.PollInterval();
  const auto with_polls = [&](Seconds sigma) {
    return Seconds(std::hypot(sigma.count(), poll.count()));
  };
  return Response{.period = period,
                  .window = {fit->lag.window, with_polls(fit->sigma.window)},
                  .delay = {fit->lag.delay, with_polls(fit->sigma.delay)},
                  .step = Watts(fit->step),
                  .noise = Watts(fit->noise),
                  .updates = trace.changes()};
}

Error NoUpdates(const SensorTrace& trace) {
  return NotEnough(
      fmt::format("the sensor showed {} new values: give more --seconds, or see "
                  "whether it works with zeus doctor",
                  trace.changes()));
}

}  // namespace

Result<Response> FitPowerResponse(const SensorTrace& watts, const LoadPattern& load) {
  const auto period = watts.UpdatePeriod();
  if (!period) return NoUpdates(watts);
  return Fit(watts, watts.Readings(period->value), *period, load);
}

Result<Response> FitCounterResponse(const SensorTrace& joules, const LoadPattern& load) {
  const auto period = joules.UpdatePeriod();
  if (!period) return NoUpdates(joules);
  return Fit(joules, PowerOfCounter(joules.Readings(period->value), period->value), *period, load);
}

}  // namespace zeus::calibration
