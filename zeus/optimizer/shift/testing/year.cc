#include "zeus/optimizer/shift/testing/year.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <numbers>
#include <random>

#include "zeus/optimizer/shift/pause_planner.h"
#include "zeus/optimizer/shift/start_planner.h"
#include "zeus/optimizer/shift/start_waiter.h"

namespace zeus::testing {
namespace {

using std::chrono::hours;
using std::chrono::minutes;

constexpr Watts kPower{1000};
constexpr double kPi = std::numbers::pi;

double HourOf(std::size_t i) { return static_cast<double>(i % 48) / 2 + 0.25; }

YearValues Make(const std::function<double(std::size_t)>& value) {
  YearValues values((kYearDays + 4) * 48);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = value(i);
  return values;
}

// The forecast at a moment: the past is known, and the error of the future grows to its full size
// within a day. Errors of neighbours are alike, as Signal assumes; each issue has its own.
Signal ForecastAt(const YearValues& values, std::size_t from, double error,
                  std::mt19937_64& random) {
  constexpr std::size_t kHorizon = 96;
  std::normal_distribution<double> step;
  const double keep = std::exp(-0.5 / 6);
  double drift = step(random);
  std::vector<Signal::Step> steps;
  for (std::size_t i = from; i < std::min(values.size(), from + kHorizon); ++i) {
    const double size = error * std::min(1.0, static_cast<double>(i - from) / 48 + 0.3);
    drift = keep * drift + std::sqrt(1 - keep * keep) * step(random);
    steps.push_back({kYearBegin + i * kYearStep, values[i] * (1 + (i == from ? 0 : size * drift)),
                     i == from ? 0 : size * std::abs(values[i])});
  }
  return Signal::Create(std::move(steps), kYearBegin + (from + kHorizon) * kYearStep).value();
}

Signal Truth(const YearValues& values) {
  std::vector<Signal::Step> steps;
  for (std::size_t i = 0; i < values.size(); ++i)
    steps.push_back({kYearBegin + i * kYearStep, values[i]});
  return Signal::Create(std::move(steps), kYearBegin + values.size() * kYearStep).value();
}

struct Job {
  WallTime ready;
  WallTime finish_by;
  DurationBelief belief;
  Seconds takes;
};

double CostOf(const Signal& truth, WallTime start, Seconds takes) {
  return truth.Cost(PiecesOf({{.share = 1, .power = kPower}}, start, takes));
}

ShiftRequest RequestOf(const Job& job, WallTime now) {
  return {.now = now,
          .duration = job.belief,
          .power = {{.share = 1, .power = kPower}},
          .finish_by = job.finish_by};
}

// Perfect knowledge: of the intensities and of how long the run takes.
double BestOf(const Signal& truth, const Job& job) {
  ShiftRequest request = RequestOf(job, job.ready);
  request.duration = DurationBelief::Of(job.takes, Seconds(0));
  request.margin = Seconds(0);
  request.least_gain = 0;
  return PlanStart(truth, request).value().expected.cost;
}

std::size_t IndexOf(WallTime time) {
  return static_cast<std::size_t>((time - kYearBegin) / kYearStep);
}

WallTime DecideStart(const YearValues& values, const Job& job, double error,
                     std::mt19937_64& random) {
  StartWaiter waiter;
  WallTime now = job.ready;
  Signal forecast = ForecastAt(values, IndexOf(now), error, random);
  std::size_t issued = IndexOf(now);
  for (;;) {
    if (IndexOf(now) != issued) {
      issued = IndexOf(now);
      forecast = ForecastAt(values, issued, error, random);
    }
    const auto next = waiter.Decide(now, PlanStart(forecast, RequestOf(job, now)));
    if (!next) return now;
    now = *next;
  }
}

Job DrawJob(const YearJobs& jobs, std::mt19937_64& random) {
  std::uniform_real_distribution<double> when(0, (kYearDays - 4) * 86400.0);
  std::normal_distribution<double> length(jobs.length.count(), jobs.spread * jobs.length.count());
  std::vector<Seconds> seen;
  for (int i = 0; i < 12; ++i) seen.emplace_back(length(random));
  const WallTime ready = Later(kYearBegin, Seconds(when(random)));
  return {.ready = ready,
          .finish_by = Later(ready, jobs.within),
          .belief = DurationBelief::FromRuns(seen),
          .takes = Seconds(length(random))};
}

}  // namespace

std::vector<YearSeries> MakeYears() {
  std::vector<YearSeries> all;
  const auto swing = [](std::size_t i) { return 300 - 100 * std::cos(HourOf(i) / 12 * kPi); };
  all.push_back({"daily swing, factor 2", Make(swing)});
  all.push_back({"noon dip of 40 %", Make([](std::size_t i) {
                   const double from_noon = std::abs(HourOf(i) - 13);
                   return 400 * (1 - 0.4 * std::exp(-from_noon * from_noon / 8));
                 })});
  // Wind and clouds: a walk that returns to the mean of its season and hour.
  std::mt19937_64 random(1);
  std::normal_distribution<double> step;
  double weather = 0;
  all.push_back({"weather and season", Make([&](std::size_t i) {
                   weather = weather * std::exp(-0.5 / 30) + 12 * step(random);
                   const double season = std::cos(static_cast<double>(i) / 48 / 365 * 2 * kPi);
                   return std::max(20.0, 250 + 60 * season +
                                             60 * -std::cos((HourOf(i) - 1) / 12 * kPi) + weather);
                 })});
  all.push_back({"price: negative noons, spikes", Make([&](std::size_t i) {
                   weather = weather * std::exp(-0.5 / 20) + 0.008 * step(random);
                   const double noon = std::exp(-std::pow(HourOf(i) - 13, 2) / 6);
                   const bool spike = random() % 400 == 0;
                   return 0.09 - 0.11 * noon + 0.05 * std::exp(-std::pow(HourOf(i) - 19, 2) / 3) +
                          weather + (spike ? 0.8 : 0);
                 })});
  all.push_back({"flat", Make([](std::size_t) { return 350.0; })});
  return all;
}

double YearSum::Saved(double cost) const {
  return std::abs(at_once) > 0 ? 100 * (at_once - cost) / std::abs(at_once) : 0;
}

YearSum SimulateYear(const YearSeries& series, const YearJobs& jobs) {
  std::mt19937_64 random(7);
  const Signal truth = Truth(series.values);
  YearSum sum;
  for (int run = 0; run < jobs.runs; ++run) {
    const Job job = DrawJob(jobs, random);
    const WallTime start = DecideStart(series.values, job, jobs.forecast_error, random);
    const double at_once = CostOf(truth, job.ready, job.takes);
    const double ours = CostOf(truth, start, job.takes);
    sum.at_once += at_once;
    sum.ours += ours;
    sum.perfect += BestOf(truth, job);
    ++sum.runs;
    if (start > job.ready) ++sum.waited;
    if (ours > at_once + 1e-9) ++sum.worse;
    const bool feasible = Later(job.ready, job.takes) <= job.finish_by;
    if (!feasible) ++sum.not_feasible;
    if (feasible && Later(start, job.takes) > job.finish_by) ++sum.missed;
  }
  return sum;
}

// Epoch by epoch, with a new plan at each end of an epoch and each new forecast.
YearSum SimulatePauses(const YearSeries& series, const YearJobs& jobs) {
  constexpr Seconds kEpoch = minutes(30);
  constexpr Seconds kResume = minutes(2);
  std::mt19937_64 random(7);
  const Signal truth = Truth(series.values);
  YearSum sum;
  for (int run = 0; run < jobs.runs; ++run) {
    const Job job = DrawJob(jobs, random);
    WallTime now = job.ready;
    Seconds left = job.takes;
    double cost = 0;
    bool begun = false;
    bool running = false;
    bool paused = false;
    while (left > Seconds(1)) {
      const Signal forecast = ForecastAt(series.values, IndexOf(now), jobs.forecast_error, random);
      // The share of the work that is left is known, and how long it takes is believed.
      const PausePlan plan = PlanPauses(forecast, {.now = now,
                                                   .left = job.belief.Times(left / job.takes),
                                                   .power = kPower,
                                                   .finish_by = job.finish_by,
                                                   .block = kEpoch,
                                                   .resume = kResume,
                                                   .running = running,
                                                   .begun = begun})
                                 .value();
      const WallTime work_from = plan.NextWorkFrom(now);
      if (work_from > now) {
        paused = true;
        running = false;
        now = std::min(work_from, Later(now, StartWaiter::kReplanPeriod));
        continue;
      }
      const Seconds resume = begun && !running ? kResume : Seconds(0);
      const Seconds work = std::min(left, kEpoch);
      cost += CostOf(truth, now, work + resume);
      now = Later(now, work + resume);
      left -= work;
      begun = running = true;
    }
    const double at_once = CostOf(truth, job.ready, job.takes);
    const PausePlan best = PlanPauses(truth, {.now = job.ready,
                                              .left = DurationBelief::Of(job.takes, Seconds(0)),
                                              .power = kPower,
                                              .finish_by = job.finish_by,
                                              .margin = Seconds(0),
                                              .block = kEpoch,
                                              .resume = kResume,
                                              .least_gain = 0})
                               .value();
    sum.at_once += at_once;
    sum.ours += cost;
    sum.perfect += best.reason == ShiftReason::kGain ? best.expected.cost : at_once;
    ++sum.runs;
    if (paused) ++sum.waited;
    if (cost > at_once + 1e-9) ++sum.worse;
    const bool feasible = Later(job.ready, job.takes) <= job.finish_by;
    if (!feasible) ++sum.not_feasible;
    if (feasible && now > job.finish_by) ++sum.missed;
  }
  return sum;
}

}  // namespace zeus::testing
