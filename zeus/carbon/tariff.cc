#include "zeus/carbon/tariff.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace zeus {
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

}  // namespace zeus
