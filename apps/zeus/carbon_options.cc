#include "apps/zeus/carbon_options.h"

#include <fmt/format.h>

namespace zeus::cli {

void AddCarbonOptions(Verb app, CarbonOptions& options) {
  constexpr const char* kGroup = "Carbon and price";
  app.AddOption("--carbon", options.carbon,
                "Report emissions: 350g/kWh, a country (DE), a file.csv, electricity-maps:ZONE, "
                "watttime:REGION (marginal) or carbonintensity.org.uk (Great Britain)")
      .TypeName("SOURCE")
      .Group(kGroup);
  app.AddOption("--price", options.price,
                "Report cost: 0.31EUR per kWh, a tariff.toml, or a file.csv")
      .TypeName("SOURCE")
      .Group(kGroup);
  app.AddOption(
         "--carbon-token-file", options.token_file,
         "File with the token of electricity maps, else ELECTRICITY_MAPS_TOKEN; with NAME:PASSWORD "
         "of watttime, else WATTTIME_USER and WATTTIME_PASSWORD")
      .TypeName("FILE")
      .Group(kGroup);
  app.AddOption("--carbon-fallback", options.fallback,
                "When the service is out of reach: 350g/kWh or a country; else the zone's")
      .TypeName("SOURCE")
      .Group(kGroup);
  app.AddOption("--carbon-url", options.url,
                "Another address of the service; of electricity maps with its version")
      .TypeName("URL")
      .Group(kGroup);
}

CarbonReport ReportCarbon(const CarbonAccounting& accounting, const Measurement& measurement) {
  const Measurement::Total total = measurement.Sum();
  const auto length = std::chrono::duration_cast<std::chrono::microseconds>(measurement.time);
  CarbonReport report = accounting.Of(
      EnergyUse{.pieces = {{measurement.started, measurement.started + length, total.energy}},
                .sigma = total.sigma});
  if (accounting.wanted() && !total.missing.empty()) {
    report.notes.push_back(
        fmt::format("without {}, whose energy is not known", fmt::join(total.missing, ", ")));
  }
  return report;
}

}  // namespace zeus::cli
