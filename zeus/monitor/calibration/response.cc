#include "zeus/monitor/calibration/response.h"

#include <fmt/format.h>

#include <cmath>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "zeus/monitor/calibration/step_fit.h"

namespace zeus::calibration {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kFewestReadings = 20;
constexpr std::size_t kFewestSwitches = 6;
// Of the noise to the step: above it the sensor does not follow the load.
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
