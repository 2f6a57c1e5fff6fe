#pragma once

#include <bitset>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/carbon/price_source.h"
#include "zeus/carbon/time_zone.h"

namespace zeus {

// One price of a tariff and the local times at which it holds.
struct TariffRate {
  std::string name;
  std::bitset<12> months;          // Bit 0 is January.
  std::bitset<7> days;             // Bit 0 is Sunday.
  std::chrono::minutes begin{0};   // Since midnight. A rate whose end is not after its begin goes
  std::chrono::minutes end{1440};  // over midnight and belongs, after it, to the new day.
  std::vector<PriceReading::Tier> tiers;

  bool HoldsAt(std::chrono::local_seconds time) const;
};

// Prices by local month, day of the week and time of day, as contracts state them; clock changes
// are the zone's. The first rate that holds counts. Immutable, thread-safe.
class Tariff final : public PriceSource {
 public:
  // Reads a TOML file; see docs/carbon-and-price.md. Refused when some moment of the year has no
  // rate.
  static Result<std::unique_ptr<Tariff>> Load(
      const std::filesystem::path& path, const std::filesystem::path& zones = kZoneInfoDirectory);
  static Result<std::unique_ptr<Tariff>> Parse(
      std::string_view toml, const std::string& name,
      const std::filesystem::path& zones = kZoneInfoDirectory);

  struct Contents {
    std::string name;
    std::string currency;
    TimeZone zone;
    KilowattHours already_used;
    std::vector<TariffRate> rates;
  };
  // kInvalidArgument when some moment of the year has no rate.
  static Result<std::unique_ptr<Tariff>> Create(Contents contents);

  Result<PriceReading> At(WallTime time) override;
  const std::string& currency() const override { return contents_.currency; }
  KilowattHours already_used() const override { return contents_.already_used; }

 private:
  explicit Tariff(Contents contents);
  const TariffRate* RateAt(std::chrono::local_seconds time) const;

  const Contents contents_;
  std::vector<std::chrono::minutes> edges_;  // Times of day at which the rate may change, rising.
};

}  // namespace zeus
