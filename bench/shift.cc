// A year of cleaner and cheaper hours: runs that may wait, decided again and again with forecasts
// that are wrong, judged by what came. Beside them stand starting at once and perfect knowledge.
//
//   ./dev bench shift [--runs N] [--series FILE.csv]
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <numbers>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/base/testing/places.h"
#include "zeus/carbon/step_series.h"
#include "zeus/optimizer/shift/follow_planner.h"
#include "zeus/optimizer/shift/pause_planner.h"
#include "zeus/optimizer/shift/start_planner.h"
#include "zeus/optimizer/shift/testing/year.h"

namespace zeus {
namespace {

using std::chrono::days;
using std::chrono::hours;
using std::chrono::minutes;
using testing::kYearBegin;
using testing::kYearStep;
using testing::YearJobs;
using testing::YearSeries;
using testing::YearSum;

std::vector<YearSeries> LoadSeries(const std::string& path) {
  auto csv = LoadCsvSeries(path, CsvValues::kAny);
  if (!csv.ok()) {
    std::fprintf(stderr, "shift: %s\n", csv.error().message.c_str());
    std::exit(2);
  }
  const StepSeries& series = csv.value().series;
  const WallTime first = series.rows().front().time;
  testing::YearValues values(testing::kYearValues);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto step = series.At(first + i * kYearStep);
    // A file that ends earlier begins again.
    values[i] = step.ok() ? step.value().value : values[i - std::min<std::size_t>(i, 48UL * 7)];
  }
  return {{path, values}};
}

void Print(const std::string& what, const YearSum& sum) {
  const double ours = sum.Saved(sum.ours);
  const double perfect = sum.Saved(sum.perfect);
  std::printf("%-34s %7.1f %% %9.1f %% %8s %7.0f %% %7.1f %% %7d %7d\n", what.c_str(), ours,
              perfect, perfect > 0.05 ? fmt::format("{:.0f} %", 100 * ours / perfect).c_str() : "-",
              100.0 * sum.waited / sum.runs, 100.0 * sum.worse / sum.runs, sum.missed,
              sum.not_feasible);
}

void Head(const char* title) {
  std::printf("\n%s\n%-34s %9s %11s %8s %9s %9s %7s %7s\n", title, "", "saved", "perfect", "of it",
              "waited", "worse", "missed", "(tight)");
}

// A recorded curve of a V100 (ResNet-50, batch size 256) that lies beside the repository: limit,
// epochs per second, power. Empty where there is none.
std::vector<LimitPoint> RecordedCurve() {
  std::ifstream file(testing::RecordedData("ZEUS_TRACE_DIR", "nsdi23") / "summary_power_v100.csv");
  std::vector<LimitPoint> curve;
  std::string line;
  while (std::getline(file, line)) {
    if (!line.starts_with("imagenet,resnet50,256,adadelta,")) continue;
    std::istringstream row(line.substr(line.find("adadelta,") + 9));
    std::string limit, time, power;
    std::getline(row, limit, ',');
    std::getline(row, time, ',');
    std::getline(row, power, ',');
    curve.push_back({Watts(std::stod(limit)), 1 / std::stod(time), Watts(std::stod(power))});
  }
  return curve;
}

void Follow() {
  const std::vector<LimitPoint> curve = RecordedCurve();
  if (curve.empty()) {
    std::printf(
        "\nFollowing with the power limit is left out: there is no recorded curve "
        "(ZEUS_TRACE_DIR)\n");
    return;
  }
  double fastest_rate = 0;
  for (const LimitPoint& point : curve) fastest_rate = std::max(fastest_rate, point.rate);
  std::printf(
      "\nPower limits that follow the signal instead of waiting, a day of work; carbon and time "
      "against the highest limit\n");
  std::printf("%-24s %5s %22s %26s %8s\n", "", "eta", "following", "constant, same time", "gain");
  for (const double factor : {1.5, 2.0, 3.0}) {
    std::vector<Signal::Step> steps;
    for (int i = 0; i < 96 * 2; ++i)
      steps.push_back({kYearBegin + i * kYearStep,
                       1 + (factor - 1) * (0.5 - 0.5 * std::cos((i % 48 / 2.0 + 0.25) / 12 *
                                                                std::numbers::pi))});
    const Signal signal = Signal::Create(steps, kYearBegin + days(4)).value();
    for (const double eta : {0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8}) {
      const FollowRequest request{.now = kYearBegin,
                                  .profile = curve,
                                  .work = 86400 * fastest_rate,
                                  .eta = eta,
                                  .max_power = Watts(250)};
      const FollowPlan plan = PlanFollowing(signal, request).value();
      FollowRequest fastest = request;
      fastest.eta = 0;
      const FollowPlan::Amounts full = PlanFollowing(signal, fastest).value().amounts;
      const double saved = 100 * (1 - plan.amounts.cost / full.cost);
      const double constant = 100 * (1 - plan.constant_in_same_time / full.cost);
      std::printf("daily swing, factor %-4.1f %5.1f %10.1f %% in %+5.1f %% %19.1f %% %12.1f\n",
                  factor, eta, -saved, 100 * (plan.amounts.time / full.time - 1), -constant,
                  saved - constant);
    }
  }
}

int Run(const std::vector<std::string_view>& words) {
  int runs = 2000;
  std::vector<YearSeries> all = testing::MakeYears();
  for (std::size_t i = 0; i + 1 < words.size(); i += 2) {
    if (words[i] == "--runs") runs = std::max(1, std::atoi(std::string(words[i + 1]).c_str()));
    if (words[i] == "--series") all = LoadSeries(std::string(words[i + 1]));
  }
  std::printf(
      "%d runs over a year for each row; durations spread by 5 %% and are learned from 12 runs; "
      "new forecasts every half-hour.\n"
      "saved: against starting at once, by what came; worse: runs that cost more than at once; "
      "tight: even a start at once is too late\n",
      runs);
  Head("One piece of 6 h that may end within 24 h, forecast error 10 %");
  for (const YearSeries& series : all) Print(series.name, SimulateYear(series, {.runs = runs}));
  Head("The same with other forecasts, for the first series");
  for (const double error : {0.0, 0.05, 0.2, 0.4})
    Print(fmt::format("forecast error {:.0f} %", 100 * error),
          SimulateYear(all[0], {.forecast_error = error, .runs = runs}));
  Head("The same with less time, for the first series");
  for (const double in_all : {6.2, 8.0, 12.0, 48.0})
    Print(fmt::format("6 h within {:.1f} h", in_all),
          SimulateYear(all[0], {.within = Seconds(in_all * 3600), .runs = runs}));
  Head(
      "Interruptible: 6 h in epochs of 30 min within 24 h, a resume costs 2 min, forecast error 10 "
      "%");
  const int fewer = std::max(1, runs / 10);
  for (const YearSeries& series : all) Print(series.name, SimulatePauses(series, {.runs = fewer}));
  Follow();

  // Two days of half-hours.
  std::vector<Signal::Step> steps;
  for (std::size_t i = 0; i < 96; ++i)
    steps.push_back({kYearBegin + i * kYearStep, all[0].values[i], 0.1 * all[0].values[i]});
  const Signal forecast = Signal::Create(steps, kYearBegin + days(2)).value();
  const DurationBelief belief = DurationBelief::Of(hours(6), minutes(20));
  const WallTime finish_by = kYearBegin + days(1);
  const auto time = [](const char* what, int count, const std::function<void()>& work) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < count; ++i) work();
    const Seconds took = std::chrono::steady_clock::now() - begin;
    std::printf("%-34s %9.1f us\n", what, took.count() / count * 1e6);
  };
  std::printf("\n");
  time("one plan of one piece", 200, [&] {
    (void)PlanStart(forecast, {.now = kYearBegin,
                               .duration = belief,
                               .power = {{.share = 1, .power = Watts(1000)}},
                               .finish_by = finish_by});
  });
  time("one plan with pauses", 20, [&] {
    (void)PlanPauses(forecast, {.now = kYearBegin,
                                .left = belief,
                                .power = Watts(1000),
                                .finish_by = finish_by,
                                .block = minutes(30)});
  });
  return 0;
}

}  // namespace
}  // namespace zeus

int main(int argc, char** argv) { return zeus::Run({argv + 1, argv + argc}); }
