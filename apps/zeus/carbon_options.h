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

// The options for carbon and price that every verb with energy reports shares.
namespace zeus::cli {

struct CarbonOptions {
  std::string carbon{};    // "350g/kWh", "DE", "grid.csv", "electricity-maps:DE"; empty: no carbon.
  std::string price{};     // "0.31EUR", "tariff.toml", "spot.csv"; empty: no price.
  std::string fallback{};  // Used when Electricity Maps does not answer: "350g/kWh" or "DE".
  std::string token_file{};
  std::string url = "https://api.electricitymaps.com/v3";
  // Timeout of the first report, which waits for the server's first answer.
  Seconds patience{2};
};

// Declares --carbon, --price and the options that go with them.
void AddCarbonOptions(Verb app, CarbonOptions& options);

// Computes emissions and cost of energy. Thread-safe.
class CarbonAccounting {
 public:
  // Finds all mistakes in files, names, numbers and the token before a command is started. Servers
  // are queried in the background from now on. `clock` must outlive the object.
  static Result<CarbonAccounting> Open(Clock& clock, const CarbonOptions& options);

  bool wanted() const { return intensity_ != nullptr || price_ != nullptr; }

  // Never fails: the report holds a reason for everything that is unknown. The energy of a window
  // is spread evenly over its duration.
  CarbonReport Of(const Measurement& measurement) const;
  CarbonReport Of(const EnergyUse& use) const;

 private:
  std::unique_ptr<IntensitySource> intensity_;
  std::unique_ptr<PriceSource> price_;
};

}  // namespace zeus::cli
