#include "zeus/optimizer/shift/start_planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "zeus/base/wall_time_text.h"

namespace zeus {
namespace {

using std::chrono::microseconds;

constexpr double kSumOfSharesTolerance = 1e-6;
// Services begin a forecast with the next full hour; until then its first value is used.
constexpr Seconds kEarlyForecast = std::chrono::hours(1);

microseconds ToMicroseconds(Seconds seconds) {
  return std::chrono::duration_cast<microseconds>(seconds);
}

double CostAt(const Signal& signal, const ShiftRequest& request, WallTime start, Seconds duration) {
  return signal.Cost(PiecesOf(request.power, start, duration));
}

// Every start in [first, last] at which the cost can be least.
std::vector<WallTime> Candidates(const Signal& signal, const ShiftRequest& request, WallTime first,
                                 WallTime last) {
  std::vector<WallTime> times{first, last};
  std::vector<microseconds> edges{microseconds(0)};
  double share = 0;
  for (const PowerPhase& phase : request.power) {
    share += phase.share;
    edges.push_back(ToMicroseconds(share * request.duration.mean()));
  }
  for (const Signal::Step& step : signal.steps()) {
    for (const microseconds edge : edges) {
      const WallTime time = step.from - edge;
      if (time > first && time < last) times.push_back(time);
    }
  }
  std::ranges::sort(times);
  const auto same = std::ranges::unique(times);
  times.erase(same.begin(), same.end());
  return times;
}

// The error of the gain: that of the forecast, and what a shorter or a longer run would change.
double SigmaOfGain(const Signal& signal, const ShiftRequest& request, WallTime now,
                   WallTime start) {
  const DurationBelief& duration = request.duration;
  const double of_forecast =
      signal.SigmaOfDifference(PiecesOf(request.power, now, duration.mean()),
                               PiecesOf(request.power, start, duration.mean()));
  const auto gain = [&](Seconds length) {
    return CostAt(signal, request, now, length) - CostAt(signal, request, start, length);
  };
  const Seconds shorter = std::max(duration.mean() - duration.sigma(), Seconds(0));
  const double of_duration = (gain(duration.mean() + duration.sigma()) - gain(shorter)) / 2;
  // A longer run gains more or less in proportion: only the rest is an error of the decision.
  const double proportional = gain(duration.mean()) * (duration.sigma() / duration.mean());
  return std::hypot(of_forecast, of_duration - proportional);
}

}  // namespace

Status Check(const ShiftRequest& request) {
  const Seconds mean = request.duration.mean();
  if (!(mean > Seconds(0)) || !std::isfinite(mean.count()) ||
      !std::isfinite(request.duration.sigma().count()) || request.duration.sigma() < Seconds(0))
    return InvalidArgument(
        fmt::format("the duration must be greater than 0, not {:g} s", mean.count()));
  if (request.power.empty()) return InvalidArgument("the power of the run is not known");
  double shares = 0;
  for (const PowerPhase& phase : request.power) {
    if (!(phase.power >= Watts(0)) || !std::isfinite(phase.power.value()))
      return InvalidArgument(fmt::format("a power of {:g} W makes no sense", phase.power.value()));
    if (!(phase.share >= 0)) return InvalidArgument("a phase has no length");
    shares += phase.share;
  }
  if (!(std::abs(shares - 1) <= kSumOfSharesTolerance))
    return InvalidArgument("the phases of the run are not its whole length");
  if (!(request.margin >= Seconds(0))) return InvalidArgument("the margin must not be negative");
  return Ok();
}

std::vector<PowerPiece> PiecesOf(const std::vector<PowerPhase>& phases, WallTime start,
                                 Seconds duration) {
  std::vector<PowerPiece> pieces;
  pieces.reserve(phases.size());
  double share = 0;
  WallTime from = start;
  for (const PowerPhase& phase : phases) {
    share += phase.share;
    const WallTime until = Later(start, share * duration);
    pieces.push_back({.from = from, .until = until, .power = phase.power});
    from = until;
  }
  return pieces;
}

WallTime LatestStart(const ShiftRequest& request) {
  if (request.finish_by == WallTime::max()) return request.latest_start;
  const Seconds needed = request.duration.longest() + request.margin;
  return std::min(request.finish_by - ToMicroseconds(needed), request.latest_start);
}

Result<StartPlan> PlanStart(Signal signal, const ShiftRequest& request) {
  ZEUS_RETURN_IF_ERROR(Check(request));
  if (signal.end() <= request.now)
    return InvalidArgument(
        fmt::format("the forecast ended at {}, and it is {}: is it old, or is "
                    "a clock wrong?",
                    ToText(signal.end()), ToText(request.now)));
  if (signal.begin() > Later(request.now, kEarlyForecast))
    return InvalidArgument(
        fmt::format("the forecast begins only at {}, and it is {}: is a clock "
                    "wrong?",
                    ToText(signal.begin()), ToText(request.now)));
  const WallTime now = std::max(request.now, request.not_before);
  const WallTime latest = LatestStart(request);
  StartPlan plan{.start = now, .latest = std::max(latest, now), .considered = now};
  plan.meets_deadline = latest >= now;
  // Without a bound the forecast is one: nobody waits for what is not even forecast.
  const WallTime last =
      latest == WallTime::max() ? std::max(signal.end(), now) : std::max(latest, now);
  const WallTime known_until = signal.end();
  signal.ExtendTo(Later(last, request.duration.mean() + request.duration.sigma()));
  plan.expected.cost_now = CostAt(signal, request, now, request.duration.mean());
  plan.expected.cost = plan.expected.cost_now;
  if (latest <= now) {
    plan.reason = ShiftReason::kNoTime;
    return plan;
  }
  const double tolerance = 1e-9 * std::abs(plan.expected.cost_now);
  for (const WallTime time : Candidates(signal, request, now, last)) {
    const double cost = CostAt(signal, request, time, request.duration.mean());
    if (cost >= plan.expected.cost - tolerance) continue;
    plan.expected.cost = cost;
    plan.considered = time;
  }
  plan.assumed = Later(plan.considered, request.duration.mean()) > known_until;
  if (plan.considered == now) return plan;
  plan.expected.gain_sigma = SigmaOfGain(signal, request, now, plan.considered);
  const double gain = plan.expected.gain();
  if (gain < request.least_gain * std::abs(plan.expected.cost_now)) return plan;
  if (gain <= kSureGain * plan.expected.gain_sigma) {
    plan.reason = ShiftReason::kUnsure;
    return plan;
  }
  plan.reason = ShiftReason::kGain;
  plan.start = plan.considered;
  return plan;
}

}  // namespace zeus
