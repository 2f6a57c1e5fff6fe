#include "zeus/optimizer/budget/market.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <tuple>
#include <utility>

namespace zeus::water_filling::internal {

namespace {

// A domain counts as full when less than this share of its capacity is free.
constexpr double kFull = 1e-9;

double Up(double limit, double step) { return step * std::ceil(limit / step - 1e-9); }
double Down(double limit, double step) { return step * std::floor(limit / step + 1e-9); }

void AddLoads(Market& market) {
  const Problem& problem = market.problem;
  market.first_load.push_back(0);
  for (const Job& job : problem.jobs) {
    const std::size_t first = market.loads.size();
    for (const Placement& placement : job.placements) {
      for (auto at = std::optional(placement.domain); at; at = problem.domains[*at].parent) {
        const auto domain = static_cast<std::uint32_t>(*at);
        const auto known = std::find_if(market.loads.begin() + static_cast<std::ptrdiff_t>(first),
                                        market.loads.end(),
                                        [&](const Load& load) { return load.domain == domain; });
        if (known == market.loads.end())
          market.loads.push_back({.domain = domain, .gpus = placement.gpus});
        else
          known->gpus += placement.gpus;
      }
    }
    // A domain that holds only a part of the job's GPUs and does not lie alone on one path.
    const int gpus = job.gpus();
    for (std::size_t i = first; i < market.loads.size(); ++i)
      market.spanning = market.spanning || market.loads[i].gpus != gpus;
    market.first_load.push_back(static_cast<std::uint32_t>(market.loads.size()));
  }
}

// Returns how many watts each GPU of the job may take more.
double Room(const Market& market, std::span<const double> free, std::size_t job) {
  double room = std::numeric_limits<double>::infinity();
  for (const Load& load : market.LoadsOf(job)) room = std::min(room, free[load.domain] / load.gpus);
  return room;
}

void Take(const Market& market, std::vector<double>& free, std::size_t job, double per_gpu) {
  for (const Load& load : market.LoadsOf(job)) free[load.domain] -= per_gpu * load.gpus;
}

double TakenAtPoint(const CurvePoint& point, Resource resource) {
  return resource == Resource::kLimits ? point.limit.value()
                                       : (point.draw + 2 * point.draw_sigma).value();
}

// The cost of one GPU relative to the time without a cap, in watts.
double CostRate(double eta, const PowerCurve& curve, const CurvePoint& point) {
  return point.slowdown * (eta * point.draw.value() + (1 - eta) * curve.highest().value());
}
double CostRate(const Market& market, const PowerCurve& curve, Watts limit) {
  return CostRate(market.problem.eta, curve, curve.At(limit));
}

// The limit of the least cost: no job gets more for Objective::kCost.
Watts CheapestLimit(const Market& market, const Job& job, const LimitRange& range) {
  Watts best = range.lowest;
  double least = CostRate(market, *job.curve, best);
  const auto consider = [&](Watts limit) {
    if (limit < range.lowest || limit > range.highest) return;
    if (const double cost = CostRate(market, *job.curve, limit); cost < least) {
      least = cost;
      best = limit;
    }
  };
  for (const CurvePoint& point : job.curve->points())
    consider(Watts(Down(point.limit.value(), market.problem.step.value())));
  consider(range.highest);
  return best;
}

void AddRanges(Market& market) {
  const Problem& problem = market.problem;
  for (const Job& job : problem.jobs) {
    LimitRange range = RangeOf(job, problem.step);
    if (problem.objective == Objective::kCost) range.highest = CheapestLimit(market, job, range);
    market.ranges.push_back(range);
    market.start.push_back(range.lowest);
  }
}

void TakeLowest(Market& market) {
  const std::vector<Domain>& domains = market.problem.domains;
  std::vector<double> lowest(domains.size(), 0);
  for (std::size_t j = 0; j < market.jobs(); ++j) {
    const double taken = market.TakenAt(j, market.start[j]);
    for (const Load& load : market.LoadsOf(j)) lowest[load.domain] += load.gpus * taken;
  }
  for (std::size_t d = 0; d < domains.size(); ++d) {
    // Less than nothing where more is reserved than there is: that is missing, too.
    const double watts = (domains[d].watts - domains[d].reserved).value();
    market.capacity.push_back(std::max(watts, lowest[d]));
    market.missing.push_back(std::max(lowest[d] - watts, 0.0));
    market.free.push_back(market.capacity[d] - lowest[d]);
  }
}

// Raises the job's start if there is room for it.
bool RaiseStart(Market& market, std::size_t job, Watts limit) {
  if (limit <= market.start[job]) return true;
  const double more = market.TakenAt(job, limit) - market.TakenAt(job, market.start[job]);
  if (more > Room(market, market.free, job)) return false;
  Take(market, market.free, job, more);
  market.start[job] = limit;
  return true;
}

// Returns the limit for a slowdown within the job's range: the nearest where it has none.
double LimitFor(const Market& market, std::size_t job, double slowdown) {
  const LimitRange& range = market.ranges[job];
  const auto limit = market.problem.jobs[job].curve->LimitFor(slowdown);
  return std::clamp(limit.value_or(range.highest), range.lowest, range.highest).value();
}

void KeepBounds(Market& market) {
  const std::vector<Job>& jobs = market.problem.jobs;
  struct Wish {
    std::size_t job;
    Watts limit;
    double more;  // Watts above the lowest limit.
  };
  std::vector<Wish> wishes;
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    if (!jobs[j].max_slowdown) continue;
    const Watts limit(
        std::min(Up(LimitFor(market, j, *jobs[j].max_slowdown), market.problem.step.value()),
                 market.ranges[j].highest.value()));
    const double more = market.TakenAt(j, limit) - market.TakenAt(j, market.start[j]);
    wishes.push_back({.job = j, .limit = limit, .more = more * jobs[j].gpus()});
  }
  std::ranges::sort(wishes, [&](const Wish& one, const Wish& other) {
    return std::tuple(-jobs[one.job].weight, one.more, one.job) <
           std::tuple(-jobs[other.job].weight, other.more, other.job);
  });
  for (const Wish& wish : wishes) {
    const bool kept = RaiseStart(market, wish.job, wish.limit);
    market.bound_missed[wish.job] =
        !kept || jobs[wish.job].curve->SlowdownAt(wish.limit) > *jobs[wish.job].max_slowdown + 1e-9;
  }
}

}  // namespace

std::span<const Load> Market::LoadsOf(std::size_t job) const {
  return std::span(loads).subspan(first_load[job], first_load[job + 1] - first_load[job]);
}

std::span<const Corner> Market::CornersOf(std::size_t job) const {
  return std::span(corners).subspan(first_corner[job], first_corner[job + 1] - first_corner[job]);
}

double Market::TakenAt(std::size_t job, Watts limit) const {
  return water_filling::TakenAt(problem.jobs[job], limit, problem.resource).value();
}

double Market::LossAtPoint(std::size_t job, const CurvePoint& point) const {
  const Job& it = problem.jobs[job];
  const double worth = it.weight * it.gpus();
  if (problem.objective != Objective::kCost) return worth * (point.slowdown - 1);
  return worth * (CostRate(problem.eta, *it.curve, point) -
                  CostRate(*this, *it.curve, ranges[job].highest));
}

double Market::LossAt(std::size_t job, Watts limit) const {
  return LossAtPoint(job, problem.jobs[job].curve->At(limit));
}

Market OpenMarket(const Problem& problem) {
  Market market{.problem = problem};
  AddLoads(market);
  AddRanges(market);
  TakeLowest(market);
  market.bound_missed.resize(problem.jobs.size());
  KeepBounds(market);
  return market;
}

namespace {

// Whether all jobs fit when each has at most this slowdown, or the nearest that it can have.
bool Fits(const Market& market, double slowdown, double step) {
  std::vector<double> free = market.free;
  for (std::size_t j = 0; j < market.jobs(); ++j) {
    double limit = LimitFor(market, j, slowdown);
    if (step > 0) limit = std::min(Up(limit, step), market.ranges[j].highest.value());
    if (limit <= market.start[j].value()) continue;
    Take(market, free, j, market.TakenAt(j, Watts(limit)) - market.TakenAt(j, market.start[j]));
  }
  return std::ranges::all_of(free, [](double watts) { return watts >= 0; });
}

// Returns the least slowdown at which all jobs fit, at least `low`.
double CommonSlowdown(const Market& market, double low, double step) {
  if (Fits(market, low, step)) return low;
  double high = low;  // Fits: all jobs are at their starts there.
  for (const Job& job : market.problem.jobs)
    high = std::max(high, job.curve->points().front().slowdown);
  for (int i = 0; i < 50 && high - low > 1e-9 * high; ++i) {
    const double middle = (low + high) / 2;
    (Fits(market, middle, step) ? high : low) = middle;
  }
  return high;
}

}  // namespace

double RaiseToCommonSlowdown(Market& market) {
  const double step = market.problem.step.value();
  const double relaxed = CommonSlowdown(market, 1, 0);
  const double common = CommonSlowdown(market, relaxed, step);
  for (std::size_t j = 0; j < market.jobs(); ++j) {
    const double limit = Up(LimitFor(market, j, common), step);
    RaiseStart(market, j, Watts(std::min(limit, market.ranges[j].highest.value())));
  }
  return relaxed;
}

namespace {

// Adds a corner and drops those that it takes off the lower hull.
void AddCorner(std::vector<Corner>& corners, std::size_t first, const Corner& corner, Spare spare) {
  const auto worth = [](const Corner& low, const Corner& high) {
    return (low.loss - high.loss) / (high.taken - low.taken);
  };
  if (corners.size() > first) {
    const double loss = corners.back().loss;
    if (corner.loss > loss || (corner.loss == loss && spare == Spare::kKeep)) return;
    // A higher limit that takes no more is as good, or better.
    if (corner.taken <= corners.back().taken) corners.pop_back();
  }
  while (corners.size() > first + 1 &&
         worth(corners[corners.size() - 2], corners.back()) <= worth(corners.back(), corner))
    corners.pop_back();
  corners.push_back(corner);
}

void AddCorners(Market& market, std::size_t job) {
  const Job& it = market.problem.jobs[job];
  const Watts lowest = market.start[job];
  const Watts highest = market.ranges[job].highest;
  const double gpus = it.gpus();
  const std::size_t first = market.corners.size();
  const auto add = [&](const CurvePoint& point) {
    AddCorner(market.corners, first,
              {.limit = point.limit.value(),
               .taken = TakenAtPoint(point, market.problem.resource),
               .loss = market.LossAtPoint(job, point)},
              market.problem.spare);
  };
  add(it.curve->At(lowest));
  for (const CurvePoint& point : it.curve->points()) {
    if (point.limit > lowest && point.limit < highest) add(point);
  }
  if (highest > lowest) add(it.curve->At(highest));
  for (std::size_t i = first + 1; i < market.corners.size(); ++i) {
    const Corner& low = market.corners[i - 1];
    const Corner& high = market.corners[i];
    market.stretches.push_back({.worth = (low.loss - high.loss) / (high.taken - low.taken) / gpus,
                                .job = static_cast<std::uint32_t>(job),
                                .corner = static_cast<std::uint32_t>(i)});
  }
}

// Sorts by falling worth, equal ones as they stand. Worths are compared as floats, whose bits rise
// with them: one number then holds worth and place, which halves the time to sort. The stretches of
// a job stay in order, because they stand in it.
void SortByWorth(std::vector<Stretch>& stretches) {
  std::vector<std::uint64_t> keys;
  keys.reserve(stretches.size());
  for (std::size_t i = 0; i < stretches.size(); ++i) {
    const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(stretches[i].worth));
    keys.push_back((std::uint64_t{~bits} << 32) | i);
  }
  std::ranges::sort(keys);
  std::vector<Stretch> sorted;
  sorted.reserve(stretches.size());
  for (const std::uint64_t key : keys) sorted.push_back(stretches[static_cast<std::uint32_t>(key)]);
  stretches = std::move(sorted);
}

}  // namespace

void FillShelves(Market& market) {
  market.first_corner.push_back(0);
  for (std::size_t j = 0; j < market.jobs(); ++j) {
    AddCorners(market, j);
    market.first_corner.push_back(static_cast<std::uint32_t>(market.corners.size()));
  }
  SortByWorth(market.stretches);
}

namespace {

// Returns the price of each domain, from the most that a job would pay which only that domain, or
// it and those around it, keeps from buying.
std::vector<double> Prices(const Market& market, std::span<const double> free,
                           std::span<const double> refused) {
  const std::vector<Domain>& domains = market.problem.domains;
  const auto full = [&](std::size_t d) {
    return std::isfinite(free[d]) && free[d] <= kFull * market.capacity[d];
  };
  std::vector<double> most(domains.size(), 0);
  for (std::size_t j = 0; j < market.jobs(); ++j) {
    if (refused[j] <= 0) continue;
    // Placements come first, then the domains around them: the first full one is the innermost.
    for (const Load& load : market.LoadsOf(j)) {
      if (!full(load.domain)) continue;
      most[load.domain] = std::max(most[load.domain], refused[j]);
      break;
    }
  }
  // A job pays the sum of the prices around it, so each domain adds what those around it leave.
  std::vector<double> prices(domains.size(), 0);
  for (std::size_t d = 0; d < domains.size(); ++d) {
    double around = 0;
    for (auto at = domains[d].parent; at; at = domains[*at].parent)
      around = std::max(around, most[*at]);
    prices[d] = std::max(most[d] - around, 0.0);
  }
  return prices;
}

}  // namespace

Relaxed BuyFractions(const Market& market) {
  std::vector<double> free = market.free;
  std::vector<double> refused(market.jobs(), 0);  // Worth of the stretch that did not fit.
  std::vector<bool> stopped(market.jobs(), false);
  for (const Stretch& stretch : market.stretches) {
    if (stretch.worth <= 0) break;
    if (stopped[stretch.job]) continue;
    const double wanted =
        market.corners[stretch.corner].taken - market.corners[stretch.corner - 1].taken;
    const double room = std::max(Room(market, free, stretch.job), 0.0);
    if (room < wanted) {
      stopped[stretch.job] = true;
      refused[stretch.job] = stretch.worth;
    }
    Take(market, free, stretch.job, std::min(room, wanted));
  }
  return {.prices = Prices(market, free, refused)};
}

namespace {

// Returns the highest limit from `low` to `high`, in whole steps, that takes at most `taken` for
// each GPU; `low` where none does.
double HighestWithin(const Market& market, std::size_t job, LimitRange limits, double taken) {
  const double step = market.problem.step.value();
  auto low = static_cast<std::int64_t>(0);
  auto high =
      static_cast<std::int64_t>(std::llround((limits.highest - limits.lowest).value() / step));
  while (low < high) {
    const std::int64_t middle = low + (high - low + 1) / 2;
    const Watts limit = limits.lowest + Watts(step * static_cast<double>(middle));
    if (market.TakenAt(job, limit) <= taken)
      low = middle;
    else
      high = middle - 1;
  }
  return limits.lowest.value() + step * static_cast<double>(low);
}

}  // namespace

std::vector<Watts> BuySteps(const Market& market, std::span<const Stretch> stretches) {
  const double step = market.problem.step.value();
  std::vector<double> free = market.free;
  std::vector<double> limits(market.jobs());
  std::vector<double> taken(market.jobs());
  std::vector<bool> stopped(market.jobs(), false);
  for (std::size_t j = 0; j < market.jobs(); ++j) {
    const Corner& first = market.CornersOf(j).front();
    limits[j] = Down(first.limit, step);
    taken[j] = market.TakenAt(j, Watts(limits[j]));
  }
  for (const Stretch& stretch : stretches) {
    const std::size_t j = stretch.job;
    if (stopped[j]) continue;
    const Corner& corner = market.corners[stretch.corner];
    double target = Down(corner.limit, step);
    double wanted = target == corner.limit ? corner.taken : market.TakenAt(j, Watts(target));
    const double room = Room(market, free, j);
    if (target > limits[j] && wanted - taken[j] > room) {
      stopped[j] = true;
      target = HighestWithin(market, j, {Watts(limits[j]), Watts(target)}, taken[j] + room);
      wanted = market.TakenAt(j, Watts(target));
    }
    if (target <= limits[j]) continue;
    Take(market, free, j, wanted - taken[j]);
    limits[j] = target;
    taken[j] = wanted;
  }
  std::vector<Watts> bought;
  for (const double limit : limits) bought.emplace_back(limit);
  return bought;
}

double LowerBound(const Market& market, std::span<const double> prices) {
  double bound = 0;
  for (std::size_t d = 0; d < prices.size(); ++d) {
    if (prices[d] > 0) bound -= prices[d] * market.capacity[d];
  }
  for (std::size_t j = 0; j < market.jobs(); ++j) {
    double price = 0;
    for (const Load& load : market.LoadsOf(j)) price += prices[load.domain] * load.gpus;
    double least = std::numeric_limits<double>::infinity();
    for (const Corner& corner : market.CornersOf(j))
      least = std::min(least, corner.loss + price * corner.taken);
    bound += least;
  }
  return bound;
}

double LossOf(const Market& market, std::span<const Watts> limits) {
  double loss = 0;
  for (std::size_t j = 0; j < market.jobs(); ++j) loss += market.LossAt(j, limits[j]);
  return loss;
}

double WholeLoss(const Market& market) {
  double whole = 0;
  for (std::size_t j = 0; j < market.jobs(); ++j) {
    const Job& job = market.problem.jobs[j];
    const double rate = market.problem.objective == Objective::kCost
                            ? CostRate(market, *job.curve, market.ranges[j].highest)
                            : 1;
    whole += job.weight * job.gpus() * rate;
  }
  return whole;
}

}  // namespace zeus::water_filling::internal
