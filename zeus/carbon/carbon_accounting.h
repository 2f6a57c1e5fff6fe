#pragma once

#include <memory>
#include <string>

#include "zeus/base/clock.h"
#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/carbon/accounting.h"
#include "zeus/carbon/carbon_report.h"
#include "zeus/carbon/intensity_source.h"
#include "zeus/carbon/tariff.h"

namespace zeus {

// Says where carbon intensities and prices come from, as users write it: the same words on the
// command line, for the server and in Python.
struct CarbonOptions {
  std::string carbon{};  // "350g/kWh", "DE", "grid.csv", "electricity-maps:DE"; empty: not wanted.
  std::string price{};   // "0.31EUR", "tariff.toml", "spot.csv"; empty: not wanted.
  std::string fallback{};  // For electricity maps: "350g/kWh" or "DE".
  std::string token_file{};
  std::string url = "https://api.electricitymaps.com/v3";
  // How long the first report waits for an answer of a server that was asked at the start.
  Seconds timeout{2};
  std::string prefix = "--";  // Stands before the names of options in messages.
};

// Turns energy into emissions and cost. Thread-safe.
class CarbonAccounting {
 public:
  // Everything that can be wrong is found here, before a command is started: files, names, numbers,
  // a missing token. Servers are asked from now on, in the background. `clock` must outlive it.
  static Result<CarbonAccounting> Open(Clock& clock, const CarbonOptions& options);

  bool wanted() const { return intensity_ != nullptr || price_ != nullptr; }

  // Never fails: the report has the reason for every amount that is not known.
  CarbonReport Of(const EnergyUse& use) const;

 private:
  std::unique_ptr<IntensitySource> intensity_;
  std::unique_ptr<PriceSource> price_;
};

}  // namespace zeus
