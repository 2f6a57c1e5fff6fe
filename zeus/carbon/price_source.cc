#include "zeus/carbon/price_source.h"

#include <fmt/format.h>

#include <algorithm>

#include "zeus/base/text.h"

namespace zeus {

Result<std::string> ParseCurrency(std::string_view text) {
  const auto capital = [](char c) { return c >= 'A' && c <= 'Z'; };
  if (text.size() == 3 && std::ranges::all_of(text, capital)) return std::string(text);
  return Error{ErrorCode::kInvalidArgument,
               Quote(text) + " is no currency: write three capital letters like EUR"};
}

Result<std::unique_ptr<PriceSeries>> PriceSeries::Load(const std::filesystem::path& path) {
  ZEUS_TRY(CsvSeries csv, LoadCsvSeries(path, CsvValues::kAny));
  const std::string name = Printable(path.filename().string());
  constexpr std::string_view kSuffix = "_per_kwh";
  const auto currency = ParseCurrency(std::string_view(csv.column).substr(0, 3));
  if (!currency.ok() || csv.column.substr(3) != kSuffix) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{}: the second column is {} and must name a currency like "
                             "EUR_per_kwh",
                             name, Quote(csv.column))};
  }
  return std::make_unique<PriceSeries>(name, currency.value(), std::move(csv.series));
}

Result<PriceReading> PriceSeries::At(WallTime time) {
  auto step = series_.At(time);
  if (!step.ok()) return std::move(step).error().While(name_);
  return PriceReading{.tiers = {{.price = UnitPrice(step.value().value)}},
                      .valid = step.value().valid,
                      .source = name_,
                      .note = step.value().note};
}

}  // namespace zeus
