#include "zeus/daemon/resolver.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <tuple>
#include <utility>

namespace zeus::daemon {
namespace {

using wire::AtMost;
using wire::Exactly;
using wire::InRange;
using wire::KnobValue;
using wire::SwitchedOn;

// Higher classes first, then the earlier claim; ids make the order total.
bool Precedes(const Claim* a, const Claim* b) {
  if (a->lease_class != b->lease_class) return a->lease_class > b->lease_class;
  return std::tie(a->order, a->lease) < std::tie(b->order, b->lease);
}

template <class T>
std::vector<const Claim*> Having(const std::vector<Claim>& claims) {
  std::vector<const Claim*> found;
  for (const Claim& claim : claims)
    if (std::holds_alternative<T>(claim.demand)) found.push_back(&claim);
  std::ranges::sort(found, Precedes);
  return found;
}

const Setting& ValueOf(const Claim& claim) {
  if (const auto* exactly = std::get_if<Exactly>(&claim.demand)) return exactly->value;
  return std::get<AtMost>(claim.demand).value;
}

// The strictest cap, or null. Of equal ones the id decides, so that the order of arrival does not.
const Claim* StrictestCap(const std::vector<Claim>& claims) {
  const Claim* strictest = nullptr;
  for (const Claim* claim : Having<AtMost>(claims)) {
    const auto rank = [](const Claim* c) {
      return std::tuple(ValueOf(*c), -static_cast<int>(c->lease_class), c->lease);
    };
    if (strictest == nullptr || rank(claim) < rank(strictest)) strictest = claim;
  }
  return strictest;
}

// The highest setting that the device has at or below `wanted`; at least its lowest.
Setting Clip(const Setting& wanted, const std::optional<KnobChoices>& choices) {
  if (!choices) return wanted;
  const Setting inside = std::clamp(wanted, choices->lowest, choices->highest);
  if (choices->steps.empty()) return inside;
  const auto above = std::ranges::upper_bound(choices->steps, inside);
  return above == choices->steps.begin() ? choices->steps.front() : *std::prev(above);
}

Resolution ResolveSwitch(const std::vector<Claim>& claims) {
  const auto switched_on = Having<SwitchedOn>(claims);
  if (switched_on.empty()) return {};
  return {.effective = Persistence::kOn, .bound_by = switched_on.front()->lease};
}

Resolution ResolvePower(const std::optional<KnobValue>& baseline,
                        const std::optional<KnobChoices>& choices,
                        const std::vector<Claim>& claims) {
  Resolution resolution;
  const auto exclusive = Having<Exactly>(claims);
  for (std::size_t i = 1; i < exclusive.size(); ++i)
    resolution.overruled.insert(exclusive[i]->lease);
  const Claim* cap = StrictestCap(claims);
  std::optional<Setting> target;
  if (!exclusive.empty()) {
    target = ValueOf(*exclusive.front());
    resolution.bound_by = exclusive.front()->lease;
  } else if (baseline && std::holds_alternative<Setting>(*baseline)) {
    target = std::get<Setting>(*baseline);
  }
  if (cap != nullptr && (!target || ValueOf(*cap) < *target)) {
    target = ValueOf(*cap);
    resolution.bound_by = cap->lease;
  }
  if (target && !resolution.bound_by.empty()) resolution.effective = Clip(*target, choices);
  return resolution;
}

// The clocks that claims leave, from the device's range downwards.
struct Window {
  Hertz lowest;
  Hertz highest;
};

Hertz HertzOf(const Setting& setting) { return std::get<Hertz>(setting); }

// The window of the steps inside of both; nullopt when there are none.
std::optional<Window> Intersect(const Window& window, const Window& other,
                                const std::optional<KnobChoices>& choices) {
  Window both{.lowest = std::max(window.lowest, other.lowest),
              .highest = std::min(window.highest, other.highest)};
  if (both.lowest > both.highest) return std::nullopt;
  if (!choices || choices->steps.empty()) return both;
  const auto& steps = choices->steps;
  const auto first = std::ranges::lower_bound(steps, Setting(both.lowest));
  const auto end = std::ranges::upper_bound(steps, Setting(both.highest));
  if (first >= end) return std::nullopt;
  return Window{.lowest = HertzOf(*first), .highest = HertzOf(*std::prev(end))};
}

Window WindowOf(const Claim& claim, const std::optional<KnobChoices>& choices) {
  if (const auto* range = std::get_if<InRange>(&claim.demand))
    return {.lowest = range->lowest, .highest = range->highest};
  // Rounded as the device rounds it, so that a clock between two steps is not an empty range.
  const Hertz clock = HertzOf(Clip(ValueOf(claim), choices));
  return {.lowest = clock, .highest = clock};
}

Window WholeRange(const std::optional<KnobChoices>& choices) {
  if (choices) return {.lowest = HertzOf(choices->lowest), .highest = HertzOf(choices->highest)};
  return {.lowest = Hertz(0), .highest = Hertz(std::numeric_limits<double>::max())};
}

// The clocks that exclusive claims and ranges leave, and the claim that decides it.
struct ClockDecision {
  Window window;
  const Claim* by = nullptr;  // Null: nobody asks for more than a cap.
  bool fixed = false;         // The window is one clock, by an exclusive claim.
};

ClockDecision DecideClocks(const std::optional<KnobChoices>& choices,
                           const std::vector<Claim>& claims, std::set<std::string>& overruled) {
  std::vector<const Claim*> demanding = Having<InRange>(claims);
  std::ranges::copy(Having<Exactly>(claims), std::back_inserter(demanding));
  std::ranges::sort(demanding, Precedes);
  ClockDecision decision{.window = WholeRange(choices)};
  const auto exclusive = Having<Exactly>(claims);
  for (const Claim* claim : demanding) {
    const bool exact = std::holds_alternative<Exactly>(claim->demand);
    const auto both = Intersect(decision.window, WindowOf(*claim, choices), choices);
    if (!both || (exact && claim != exclusive.front())) {
      overruled.insert(claim->lease);
      continue;
    }
    if (decision.by == nullptr || exact || both->highest < decision.window.highest)
      decision.by = claim;
    decision.window = *both;
    decision.fixed = decision.fixed || exact;
  }
  return decision;
}

// The window of a clock that was locked before the first claim.
std::optional<Window> LockedBefore(const std::optional<KnobValue>& baseline) {
  if (!baseline) return std::nullopt;
  if (const auto* range = std::get_if<ClockRange>(&*baseline))
    return Window{.lowest = range->min, .highest = range->max};
  const auto* setting = std::get_if<Setting>(&*baseline);
  if (setting == nullptr || !std::holds_alternative<Hertz>(*setting)) return std::nullopt;
  return Window{.lowest = HertzOf(*setting), .highest = HertzOf(*setting)};
}

KnobValue ValueOf(const Window& window, bool fixed) {
  if (fixed) return Setting(window.lowest);
  return ClockRange{.min = window.lowest, .max = window.highest};
}

Resolution ResolveClock(const std::optional<KnobValue>& baseline,
                        const std::optional<KnobChoices>& choices,
                        const std::vector<Claim>& claims) {
  Resolution resolution;
  ClockDecision decision = DecideClocks(choices, claims, resolution.overruled);
  if (decision.by != nullptr) {
    resolution.bound_by = decision.by->lease;
  } else if (const auto locked = LockedBefore(baseline)) {
    decision.window = *locked;
    decision.fixed = locked->lowest == locked->highest;
  }
  const Claim* cap = StrictestCap(claims);
  if (cap != nullptr && HertzOf(ValueOf(*cap)) < decision.window.highest) {
    const Hertz highest = HertzOf(Clip(ValueOf(*cap), choices));
    decision.window = {.lowest = std::min(decision.window.lowest, highest), .highest = highest};
    resolution.bound_by = cap->lease;
  }
  if (!resolution.bound_by.empty()) resolution.effective = ValueOf(decision.window, decision.fixed);
  return resolution;
}

bool IsOfClock(const Claim& claim) {
  if (std::holds_alternative<SwitchedOn>(claim.demand)) return false;
  return std::holds_alternative<InRange>(claim.demand) ||
         std::holds_alternative<Hertz>(ValueOf(claim));
}

// Whether two demands, each an exclusive value or a range, leave each other room.
bool Contradict(const wire::Demand& a, const wire::Demand& b) {
  const auto* a_exactly = std::get_if<Exactly>(&a);
  const auto* b_exactly = std::get_if<Exactly>(&b);
  if (a_exactly != nullptr && b_exactly != nullptr) return true;
  const auto window = [](const wire::Demand& demand, const Exactly* exactly) {
    if (exactly != nullptr)
      return Window{.lowest = HertzOf(exactly->value), .highest = HertzOf(exactly->value)};
    const auto& range = std::get<InRange>(demand);
    return Window{.lowest = range.lowest, .highest = range.highest};
  };
  return !Intersect(window(a, a_exactly), window(b, b_exactly), std::nullopt);
}

bool IsCapOrSwitch(const Claim& claim) {
  return std::holds_alternative<AtMost>(claim.demand) ||
         std::holds_alternative<SwitchedOn>(claim.demand);
}

}  // namespace

Resolution Resolve(const std::optional<KnobValue>& baseline,
                   const std::optional<KnobChoices>& choices, const std::vector<Claim>& claims) {
  if (claims.empty()) return {};
  if (std::holds_alternative<SwitchedOn>(claims.front().demand)) return ResolveSwitch(claims);
  if (IsOfClock(claims.front())) return ResolveClock(baseline, choices, claims);
  return ResolvePower(baseline, choices, claims);
}

const Claim* FindConflict(const std::vector<Claim>& claims, const Claim& asked) {
  if (IsCapOrSwitch(asked)) return nullptr;
  const Claim* conflict = nullptr;
  for (const Claim& claim : claims) {
    if (claim.lease == asked.lease || claim.lease_class < asked.lease_class) continue;
    if (IsCapOrSwitch(claim) || !Contradict(claim.demand, asked.demand)) continue;
    if (conflict == nullptr || Precedes(&claim, conflict)) conflict = &claim;
  }
  return conflict;
}

}  // namespace zeus::daemon
