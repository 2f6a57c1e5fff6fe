#pragma once

#include <memory>
#include <optional>
#include <string>

#include "apps/zeus/carbon_report.h"
#include "apps/zeus/command_line.h"
#include "zeus/base/clock.h"
#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/carbon/intensity_source.h"
#include "zeus/carbon/price_source.h"
#include "zeus/monitor/measurement.h"

// What a command line says about carbon and price, for every verb that reports energy.
namespace zeus::cli {

struct CarbonOptions {
  std::string carbon{};  // "350g/kWh", "DE", "grid.csv", "electricity-maps:DE"; empty: not wanted.
  std::string price{};   // "0.31EUR", "tariff.toml", "spot.csv"; empty: not wanted.
  std::string fallback{};  // For electricity maps: "350g/kWh" or "DE".
  std::string token_file{};
  std::string url = "https://api.electricitymaps.com/v3";
  // How long the first report waits for an answer of a server that was asked at the start.
  Seconds patience{2};
};

// Declares --carbon, --price and what belongs to them.
void AddCarbonOptions(Verb app, CarbonOptions& options);

// Turns energy into emissions and cost. Thread-safe.
class CarbonAccounting {
 public:
  // Everything that can be wrong is found here, before a command is started: files, names, numbers,
  // a missing token. Servers are asked from now on, in the background. `clock` must outlive it.
  static Result<CarbonAccounting> Open(Clock& clock, const CarbonOptions& options);

  bool wanted() const { return intensity_ != nullptr || price_ != nullptr; }

  // Never fails: what cannot be known has a reason in the report. A window's energy is spread
  // evenly over it.
  CarbonReport Of(const Measurement& measurement) const;
  CarbonReport Of(const EnergyUse& use) const;

 private:
  std::unique_ptr<IntensitySource> intensity_;
  std::unique_ptr<PriceSource> price_;
};

}  // namespace zeus::cli
