#pragma once

#include <cmath>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/carbon/intensity_source.h"
#include "zeus/carbon/quantities.h"
#include "zeus/carbon/step_series.h"

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

}  // namespace zeus
