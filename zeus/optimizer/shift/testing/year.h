#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/units.h"

// A simulated year of runs that may wait: decided again and again with forecasts that are wrong,
// judged by what came, beside starting at once and perfect knowledge.
namespace zeus::testing {

inline constexpr WallTime kYearBegin = std::chrono::sys_days(std::chrono::year(2025) / 1 / 1);
inline constexpr int kYearDays = 365;
inline constexpr std::chrono::minutes kYearStep(30);

// One value for each half-hour of the year and four days more.
using YearValues = std::vector<double>;
inline constexpr std::size_t kYearValues = (kYearDays + 4) * 48;

struct YearSeries {
  std::string name;
  YearValues values;
};

// A daily swing of a factor 2, a noon dip of 40 %, weather and season, prices with negative noons
// and spikes, and a flat one.
std::vector<YearSeries> MakeYears();

// Jobs that become ready at random moments of the year, and their forecasts.
struct YearJobs {
  Seconds length = std::chrono::hours(6);
  Seconds within = std::chrono::hours(24);
  double spread = 0.05;  // Relative spread of the durations, which are learned from twelve runs.
  double forecast_error = 0.1;
  int runs = 1000;
};

struct YearSum {
  double at_once = 0;  // Costs of all runs together.
  double ours = 0;
  double perfect = 0;
  int runs = 0;
  int waited = 0;
  int worse = 0;         // Runs that cost more than at once.
  int missed = 0;        // Ended too late although a start at once would have ended in time.
  int not_feasible = 0;  // Not even a start at once would have ended in time.

  // In per cent of starting at once.
  double Saved(double cost) const;
};

// Runs of one piece.
YearSum SimulateYear(const YearSeries& series, const YearJobs& jobs);
// Runs that can pause after each epoch of half an hour; a resume costs two minutes.
YearSum SimulatePauses(const YearSeries& series, const YearJobs& jobs);

}  // namespace zeus::testing
