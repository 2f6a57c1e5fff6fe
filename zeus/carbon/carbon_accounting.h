#pragma once

#include <memory>
#include <optional>
#include <string>

#include "zeus/base/clock.h"
#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/carbon/accounting.h"
#include "zeus/carbon/carbon_report.h"
#include "zeus/carbon/forecast.h"
#include "zeus/carbon/intensity_source.h"
#include "zeus/carbon/live_intensity.h"
#include "zeus/carbon/tariff.h"

namespace zeus {

// Says where carbon intensities and prices come from, as users write it: the same words on the
// command line, for the server and in Python.
struct CarbonOptions {
  // "350g/kWh", "DE", "grid.csv", "electricity-maps:DE", "carbonintensity.org.uk",
  // "watttime:CAISO_NORTH"; empty: not wanted.
  std::string carbon{};
  std::string price{};     // "0.31EUR", "tariff.toml", "spot.csv"; empty: not wanted.
  std::string fallback{};  // For services: "350g/kWh" or "DE".
  std::string token_file{};
  std::string url{};  // The address of the service; empty: its own.
  // How long the first report waits for an answer of a server that was asked at the start.
  Seconds timeout{2};
  std::string prefix = "--";  // Stands before the names of options in messages.
  std::string named_by{};     // The option that names the source; empty: carbon or price.
  // Services are asked for their forecast as well.
  bool with_forecast = false;
  // Relative error of forecasts that come without one; empty: a tenth for intensities, and none for
  // prices, which are known in advance.
  std::optional<double> forecast_error{};
};

// The amount that is to be small.
enum class ShiftGoal { kCarbon, kPrice };

// Turns energy into emissions and cost. Thread-safe.
class CarbonAccounting {
 public:
  // Everything that can be wrong is found here, before a command is started: files, names, numbers,
  // a missing token. Servers are asked from now on, in the background. `clock` must outlive it.
  static Result<CarbonAccounting> Open(Clock& clock, const CarbonOptions& options);

  // The values of the coming hours. An error gives the reason why there is no forecast.
  Result<Forecast> ForecastFor(ShiftGoal goal, WallTime now, WallTime until) const;
  bool knows(ShiftGoal goal) const {
    return goal == ShiftGoal::kCarbon ? intensity_ != nullptr : price_ != nullptr;
  }
  // The unit in which the goal is counted: "g" of CO2e, or a currency.
  std::string UnitOf(ShiftGoal goal) const;

  // Asks services for their newest values and waits for them, at most for the timeout: for reports
  // about what has just happened.
  void Refresh() const;

  bool wanted() const { return intensity_ != nullptr || price_ != nullptr; }

  // Never fails: the report has the reason for every amount that is not known.
  CarbonReport Of(const EnergyUse& use) const;

 private:
  std::unique_ptr<IntensitySource> intensity_;
  std::unique_ptr<PriceSource> price_;
  LiveIntensity* service_ = nullptr;  // Part of intensity_, when that is a service.
  std::optional<double> forecast_error_;
};

}  // namespace zeus
