#include "zeus/carbon/accounting.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace zeus {
namespace {

// Bounds how often one piece is cut, so that a source with absurdly short steps cannot make an
// answer take for ever.
constexpr int kMaxCuts = 100'000;
constexpr std::chrono::hours kNextTry(1);

void AddOnce(std::vector<std::string>& list, const std::string& text) {
  if (!text.empty() && std::ranges::find(list, text) == list.end()) list.push_back(text);
}

// Cuts every piece where an answer of `read` ceases to hold; `count` is called with each answer and
// the energy for which it holds. Energy without an answer is counted as missing, with the reason.
template <class Read, class Count>
Accounted Walk(const EnergyUse& use, Read read, Count count) {
  Accounted accounted;
  for (const EnergyPiece& piece : use.pieces) {
    WallTime time = piece.begin;
    Joules left = piece.energy;
    for (int cuts = 1;; ++cuts) {
      const auto reading = read(time);
      // Where there is no answer, there may be one an hour later.
      const WallTime change = reading.ok() ? reading.value().valid.until : time + kNextTry;
      const WallTime until = std::min(change, piece.end);
      const bool last = until >= piece.end || cuts == kMaxCuts;
      const Joules part = last ? left : left * (Seconds(until - time) / Seconds(piece.end - time));
      if (reading.ok()) {
        accounted.energy += part;
        AddOnce(accounted.sources, reading.value().source);
        AddOnce(accounted.notes, reading.value().note);
        count(reading.value(), part);
      } else {
        accounted.missing += part;
        AddOnce(accounted.notes, reading.error().message);
      }
      if (last) break;
      left -= part;
      time = until;
    }
  }
  return accounted;
}

// The price of `energy` when `used` was used before.
Money PriceInTiers(const std::vector<PriceReading::Tier>& tiers, KilowattHours used,
                   Joules energy) {
  Money cost;
  for (const PriceReading::Tier& tier : tiers) {
    const Joules room = std::max(ToJoules(tier.up_to - used), Joules(0));
    const Joules part = std::min(energy, room);
    cost += part * tier.price;
    energy -= part;
    used += ToKilowattHours(part);
  }
  return cost;
}

}  // namespace

Joules EnergyUse::Sum() const {
  Joules sum;
  for (const EnergyPiece& piece : pieces) sum += piece.energy;
  return sum;
}

Emissions ComputeEmissions(const EnergyUse& use, IntensitySource& source) {
  Emissions emissions;
  GramsCo2e of_intensity;
  bool estimated = false;
  emissions.accounted = Walk(
      use, [&](WallTime time) { return source.At(time); },
      [&](const IntensityReading& reading, Joules energy) {
        emissions.amount += energy * reading.intensity;
        of_intensity += energy * reading.sigma;
        estimated = estimated || reading.estimated;
      });
  emissions.accounted.estimated = estimated;
  if (use.Sum() != Joules(0)) {
    const GramsCo2e of_energy = emissions.amount * (use.sigma / use.Sum());
    emissions.sigma = GramsCo2e(std::hypot(of_energy.value(), of_intensity.value()));
  }
  return emissions;
}

Cost ComputeCost(const EnergyUse& use, PriceSource& source) {
  Cost cost;
  cost.currency = source.currency();
  KilowattHours used = source.already_used();
  cost.accounted = Walk(
      use, [&](WallTime time) { return source.At(time); },
      [&](const PriceReading& reading, Joules energy) {
        cost.amount += PriceInTiers(reading.tiers, used, energy);
        used += ToKilowattHours(energy);
      });
  if (use.Sum() != Joules(0))
    cost.sigma = Money(std::abs((cost.amount * (use.sigma / use.Sum())).value()));
  return cost;
}

}  // namespace zeus
