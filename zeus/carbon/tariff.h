#pragma once

#include <bitset>
#include <cmath>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/carbon/intensity_source.h"
#include "zeus/carbon/quantities.h"
#include "zeus/carbon/step_series.h"
#include "zeus/carbon/time_zone.h"

namespace zeus {

// The price of electricity at one moment. Prices may depend on how much was used before.
struct PriceReading {
  struct Tier {
    KilowattHours up_to{INFINITY};  // Use in the accounting period; the last tier is unlimited.
    UnitPrice price;
  };
  std::vector<Tier> tiers;  // At least one, by rising ends.
  ValidSpan valid;          // Contains the moment that was asked for.
  std::string source;       // "constant", "tariff.toml: night"
  std::string note;         // A warning, or empty.
};

// The price of electricity over time. An error gives a reason and never ends a measurement.
// Implementations are thread-safe and do not wait.
class PriceSource {
 public:
  virtual ~PriceSource() = default;
  virtual Result<PriceReading> At(WallTime time) = 0;
  virtual const std::string& currency() const = 0;
  // The energy used in the accounting period so far, which decides the first tier.
  virtual KilowattHours already_used() const { return KilowattHours(0); }
};

class ConstantPrice final : public PriceSource {
 public:
  ConstantPrice(UnitPrice price, std::string currency)
      : price_(price), currency_(std::move(currency)) {}
  Result<PriceReading> At(WallTime) override {
    return PriceReading{
        .tiers = {{.price = price_}}, .valid = {}, .source = "constant", .note = {}};
  }
  const std::string& currency() const override { return currency_; }

 private:
  const UnitPrice price_;
  const std::string currency_;
};

// Prices from a CSV file whose header names the currency: time,EUR_per_kwh. They may be negative,
// as they are on exchanges.
class PriceSeries final : public PriceSource {
 public:
  static Result<std::unique_ptr<PriceSeries>> Load(const std::filesystem::path& path);

  PriceSeries(std::string name, std::string currency, StepSeries series)
      : name_(std::move(name)), currency_(std::move(currency)), series_(std::move(series)) {}
  Result<PriceReading> At(WallTime time) override;
  const std::string& currency() const override { return currency_; }

 private:
  const std::string name_;
  const std::string currency_;
  const StepSeries series_;
};

// Checks that a currency is three capital letters, as in ISO 4217. kInvalidArgument otherwise.
Result<std::string> ParseCurrency(std::string_view text);

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
