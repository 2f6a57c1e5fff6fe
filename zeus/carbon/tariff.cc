#include "zeus/carbon/tariff.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>

#include "zeus/base/file.h"
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

namespace {

using std::chrono::days;
using std::chrono::local_days;
using std::chrono::local_seconds;
using std::chrono::minutes;

constexpr minutes kDay{24 * 60};

std::string Describe(local_seconds time) {
  constexpr std::array<const char*, 7> kDays = {"sunday",   "monday", "tuesday", "wednesday",
                                                "thursday", "friday", "saturday"};
  const auto day = std::chrono::floor<days>(time);
  const std::chrono::hh_mm_ss clock(time - day);
  return fmt::format("a {} in month {} at {:02}:{:02}",
                     kDays[std::chrono::weekday(day).c_encoding()],
                     static_cast<unsigned>(std::chrono::year_month_day(day).month()),
                     clock.hours().count(), clock.minutes().count());
}

}  // namespace

bool TariffRate::HoldsAt(local_seconds time) const {
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  if (!months[static_cast<unsigned>(date.month()) - 1]) return false;
  if (!days[std::chrono::weekday(day).c_encoding()]) return false;
  const auto since_midnight = time - day;
  if (begin < end) return since_midnight >= begin && since_midnight < end;
  return since_midnight >= begin || since_midnight < end;
}

Tariff::Tariff(Contents contents) : contents_(std::move(contents)) {
  edges_ = {minutes(0), kDay};
  for (const TariffRate& rate : contents_.rates) {
    edges_.push_back(rate.begin);
    edges_.push_back(rate.end);
  }
  std::ranges::sort(edges_);
}

Result<std::unique_ptr<Tariff>> Tariff::Create(Contents contents) {
  const std::string name = contents.name;
  std::unique_ptr<Tariff> tariff(new Tariff(std::move(contents)));
  // A week of every month: all that a rate can tell apart.
  for (unsigned month = 1; month <= 12; ++month) {
    const local_days first(std::chrono::year(2023) / std::chrono::month(month) / 1);
    for (int day = 0; day < 7; ++day) {
      for (const minutes edge : tariff->edges_) {
        const local_seconds time = first + days(day) + edge % kDay;
        if (tariff->RateAt(time) != nullptr) continue;
        return Error{ErrorCode::kInvalidArgument,
                     fmt::format("{}: no rate holds on {}: add a last rate without hours, days and "
                                 "months",
                                 name, Describe(time))};
      }
    }
  }
  return tariff;
}

const TariffRate* Tariff::RateAt(local_seconds time) const {
  const auto found = std::ranges::find_if(
      contents_.rates, [&](const TariffRate& rate) { return rate.HoldsAt(time); });
  return found == contents_.rates.end() ? nullptr : &*found;
}

Result<PriceReading> Tariff::At(WallTime time) {
  const UtcOffset offset = contents_.zone.OffsetAt(time);
  const local_seconds local = contents_.zone.ToLocal(time);
  const TariffRate* rate = RateAt(local);
  if (rate == nullptr)
    return Error{ErrorCode::kInternal, contents_.name + ": no rate on " + Describe(local)};
  // Local time runs evenly until the clocks change, so the next edge is as far in UTC as it is on
  // the clock, unless they change before.
  const auto today = std::chrono::floor<days>(local);
  const auto next = std::ranges::upper_bound(edges_, local - today, {});
  const auto until = std::chrono::floor<std::chrono::seconds>(time) + (today + *next - local);
  return PriceReading{.tiers = rate->tiers,
                      .valid = {.from = time, .until = std::min(until, offset.until)},
                      .source = fmt::format("{}: {}", contents_.name, rate->name),
                      .note = {}};
}

// The TOML form of a tariff. The only file that knows toml++.

namespace {

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
  if (!table.contains(key)) {
    const std::string_view example = key == "time_zone"  ? "Europe/Berlin"
                                     : key == "currency" ? "EUR"
                                                         : "…";
    return InvalidArgument(fmt::format("{0} is missing: write {0} = \"{1}\"", key, example));
  }
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
