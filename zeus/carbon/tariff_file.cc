// The TOML form of a tariff. The only file that knows toml++.
#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>

#include "zeus/base/file.h"
#include "zeus/base/text.h"
#include "zeus/carbon/tariff.h"

namespace zeus {
namespace {

using std::chrono::minutes;

// A misspelt key would silently mean "always" or "nothing".
Status OnlyKnown(const toml::table& table, std::initializer_list<std::string_view> known) {
  for (const auto& [key, value] : table) {
    if (std::ranges::find(known, key.str()) == known.end())
      return InvalidArgument(fmt::format("{} is not known here", Quote(key.str())));
  }
  return Ok();
}

Result<double> Number(const toml::table& table, std::string_view key) {
  const std::optional<double> number = table[key].value<double>();
  if (!number || !std::isfinite(*number))
    return InvalidArgument(fmt::format("{} must be a number", key));
  return *number;
}

Result<double> OptionalNumber(const toml::table& table, std::string_view key) {
  return table.contains(key) ? Number(table, key) : Result<double>(0.0);
}

Result<std::string> Text(const toml::table& table, std::string_view key) {
  const std::optional<std::string> text = table[key].value<std::string>();
  if (!text) return InvalidArgument(fmt::format("{} must be a text", key));
  return *text;
}

// "7" or "07:30"; 24 is the end of the day.
Result<minutes> ParseTimeOfDay(std::string_view text) {
  const auto colon = text.find(':');
  const auto hour = ParseUnsigned(text.substr(0, colon));
  auto minute = Result<std::uint64_t>(std::uint64_t{0});
  if (colon != std::string_view::npos) minute = ParseUnsigned(text.substr(colon + 1));
  if (!hour.ok() || !minute.ok() || minute.value() > 59 ||
      hour.value() * 60 + minute.value() > 24 * 60)
    return InvalidArgument(Quote(text) + " is no time of day like 7 or 07:30");
  return minutes(static_cast<int>(hour.value() * 60 + minute.value()));
}

Result<std::pair<std::string_view, std::string_view>> SplitRange(std::string_view text) {
  const auto dash = text.find('-');
  if (dash == std::string_view::npos)
    return InvalidArgument(Quote(text) + " is no range like 22-6");
  return std::pair(Trim(text.substr(0, dash)), Trim(text.substr(dash + 1)));
}

Status ReadHours(std::string_view text, TariffRate& rate) {
  ZEUS_TRY(const auto range, SplitRange(text));
  ZEUS_TRY(rate.begin, ParseTimeOfDay(range.first));
  ZEUS_TRY(rate.end, ParseTimeOfDay(range.second));
  if (rate.begin == rate.end)
    return InvalidArgument(fmt::format("hours {} are empty", Quote(text)));
  return Ok();
}

// "10-3" is October to March, both included.
Status ReadMonths(std::string_view text, TariffRate& rate) {
  ZEUS_TRY(const auto range, SplitRange(text));
  const auto first = ParseUnsigned(range.first);
  const auto last = ParseUnsigned(range.second);
  const auto month = [](const Result<std::uint64_t>& m) {
    return m.ok() && m.value() >= 1 && m.value() <= 12;
  };
  if (!month(first) || !month(last))
    return InvalidArgument(Quote(text) + " is no range of months like 10-3");
  rate.months.reset();
  for (std::size_t m = first.value() - 1;; m = (m + 1) % 12) {
    rate.months.set(m);
    if (m == last.value() - 1) return Ok();
  }
}

Status ReadDays(std::string_view text, TariffRate& rate) {
  constexpr std::array<std::string_view, 7> kNames = {"sun", "mon", "tue", "wed",
                                                      "thu", "fri", "sat"};
  rate.days.reset();
  while (!text.empty()) {
    const auto comma = std::min(text.find(','), text.size());
    const std::string day = LowerCase(Trim(text.substr(0, comma)));
    text.remove_prefix(std::min(comma + 1, text.size()));
    const auto found = std::ranges::find(kNames, day);
    if (day == "weekdays") {
      rate.days |= std::bitset<7>(0b0111110);
    } else if (day == "weekend") {
      rate.days |= std::bitset<7>(0b1000001);
    } else if (found != kNames.end()) {
      rate.days.set(static_cast<std::size_t>(found - kNames.begin()));
    } else {
      return InvalidArgument(Quote(day) + " is no day: write weekdays, weekend, or mon,tue,…");
    }
  }
  return rate.days.any() ? Ok() : Status(InvalidArgument("days are empty"));
}

Status ReadTiers(const toml::table& table, double adjustment, TariffRate& rate) {
  if (const toml::array* tiers = table["tiers"].as_array()) {
    if (table.contains("price")) return InvalidArgument("price and tiers exclude each other");
    for (const toml::node& node : *tiers) {
      const toml::table* tier = node.as_table();
      if (tier == nullptr)
        return InvalidArgument("tiers must be tables like {up_to_kwh = 100, price = 0.3}");
      ZEUS_RETURN_IF_ERROR(OnlyKnown(*tier, {"up_to_kwh", "price"}));
      ZEUS_TRY(const double price, Number(*tier, "price"));
      PriceReading::Tier read{.price = UnitPrice(price + adjustment)};
      if (tier->contains("up_to_kwh")) {
        ZEUS_TRY(const double end, Number(*tier, "up_to_kwh"));
        read.up_to = KilowattHours(end);
      }
      if (!rate.tiers.empty() && read.up_to <= rate.tiers.back().up_to)
        return InvalidArgument(
            "the ends of tiers must rise, and only the last may be without up_to_kwh");
      rate.tiers.push_back(read);
    }
    if (rate.tiers.empty() || std::isfinite(rate.tiers.back().up_to.value()))
      return InvalidArgument("the last tier must be without up_to_kwh");
    return Ok();
  }
  ZEUS_TRY(const double price, Number(table, "price"));
  rate.tiers = {{.price = UnitPrice(price + adjustment)}};
  return Ok();
}

Result<TariffRate> ReadRate(const toml::table& table, double common_adjustment) {
  ZEUS_RETURN_IF_ERROR(
      OnlyKnown(table, {"name", "hours", "days", "months", "price", "tiers", "adjustment"}));
  TariffRate rate;
  rate.months.set();
  rate.days.set();
  rate.name = "rate";
  if (table.contains("name")) {
    ZEUS_TRY(rate.name, Text(table, "name"));
    rate.name = Printable(rate.name);
  }
  using Reader = Status (*)(std::string_view, TariffRate&);
  for (const auto& [key, read] : std::initializer_list<std::pair<const char*, Reader>>{
           {"hours", ReadHours}, {"days", ReadDays}, {"months", ReadMonths}}) {
    if (!table.contains(key)) continue;
    ZEUS_TRY(const std::string text, Text(table, key));
    ZEUS_RETURN_IF_ERROR(read(text, rate));
  }
  ZEUS_TRY(const double own_adjustment, OptionalNumber(table, "adjustment"));
  ZEUS_RETURN_IF_ERROR(ReadTiers(table, common_adjustment + own_adjustment, rate));
  return rate;
}

Result<Tariff::Contents> ReadContents(const toml::table& root, const std::filesystem::path& zones) {
  ZEUS_RETURN_IF_ERROR(
      OnlyKnown(root, {"currency", "time_zone", "already_used_kwh", "adjustment", "rate"}));
  Tariff::Contents contents;
  ZEUS_TRY(const std::string currency, Text(root, "currency"));
  ZEUS_TRY(contents.currency, ParseCurrency(currency));
  ZEUS_TRY(const std::string zone, Text(root, "time_zone"));
  ZEUS_TRY(contents.zone, TimeZone::Load(zone, zones));
  ZEUS_TRY(const double used, OptionalNumber(root, "already_used_kwh"));
  if (used < 0) return InvalidArgument("already_used_kwh must not be negative");
  contents.already_used = KilowattHours(used);
  ZEUS_TRY(const double adjustment, OptionalNumber(root, "adjustment"));
  const toml::array* rates = root["rate"].as_array();
  if (rates == nullptr || rates->empty()) return InvalidArgument("there is no [[rate]]");
  for (std::size_t i = 0; i < rates->size(); ++i) {
    const toml::table* table = (*rates)[i].as_table();
    if (table == nullptr) return InvalidArgument("rates must be written as [[rate]]");
    auto rate = ReadRate(*table, adjustment);
    if (!rate.ok()) return std::move(rate).error().While(fmt::format("rate {}", i + 1));
    contents.rates.push_back(std::move(rate).value());
  }
  return contents;
}

}  // namespace

Result<std::unique_ptr<Tariff>> Tariff::Parse(std::string_view toml, const std::string& name,
                                              const std::filesystem::path& zones) {
  toml::table root;
  try {
    root = toml::parse(toml);
  } catch (const toml::parse_error& error) {
    return InvalidArgument(
        fmt::format("{}:{}: {}", name, error.source().begin.line, Printable(error.description())));
  }
  auto contents = ReadContents(root, zones);
  if (!contents.ok()) return std::move(contents).error().While(name);
  contents.value().name = name;
  return Create(std::move(contents).value());
}

Result<std::unique_ptr<Tariff>> Tariff::Load(const std::filesystem::path& path,
                                             const std::filesystem::path& zones) {
  ZEUS_TRY(const std::string text, ReadSmallFile(path));
  return Parse(text, Printable(path.filename().string()), zones);
}

}  // namespace zeus
