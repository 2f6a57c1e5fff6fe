#include "zeus/optimizer/shift/follow_planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "zeus/base/wall_time_text.h"

namespace zeus {
namespace {

using std::chrono::microseconds;

// Prices of work that are tried at most; more differ by less than anybody measures.
constexpr std::size_t kMostPrices = 2000;

Status Check(const FollowRequest& request) {
  if (request.profile.empty()) return InvalidArgument("there is no profile of power limits");
  for (const LimitPoint& point : request.profile) {
    if (!(point.rate > 0) || !std::isfinite(point.rate) || !(point.power > Watts(0)) ||
        !std::isfinite(point.power.value()))
      return InvalidArgument(
          fmt::format("the profile of power limits makes no sense at {:g} W", point.limit.value()));
  }
  if (!(request.work > 0) || !std::isfinite(request.work))
    return InvalidArgument("there is no work left");
  if (!(request.eta >= 0 && request.eta <= 1))
    return InvalidArgument(fmt::format("eta is a number from 0 to 1, not {:g}", request.eta));
  return Ok();
}

class Follower {
 public:
  Follower(const Signal& signal, const FollowRequest& request, double mean)
      : signal_(signal), request_(request), weight_(mean > 0 ? request.eta / mean : 0) {}

  // The prices between those at which some decision changes.
  std::vector<double> Prices() const {
    std::set<double> critical;
    std::set<double> values;
    for (const Signal::Step& step : signal_.steps()) values.insert(step.value);
    for (const double value : values) {
      for (const LimitPoint& a : request_.profile)
        for (const LimitPoint& b : request_.profile)
          if (a.rate > b.rate)
            critical.insert(Weighed(value) * (a.power - b.power).value() / (a.rate - b.rate));
    }
    std::vector<double> sorted(critical.begin(), critical.end());
    std::vector<double> prices;
    if (sorted.empty()) return {0};
    const std::size_t stride = 1 + sorted.size() / kMostPrices;
    prices.push_back(sorted.front() - 1);
    for (std::size_t i = 0; i + stride < sorted.size(); i += stride)
      prices.push_back((sorted[i] + sorted[i + stride]) / 2);
    prices.push_back(sorted.back() + 1 + std::abs(sorted.back()));
    return prices;
  }

  FollowPlan Follow(double price) const {
    return Walk([&](double value) { return Best(price, value); });
  }
  FollowPlan Constant(const LimitPoint& point) const {
    return Walk([&](double) { return &point; });
  }

  // The amount that the planner minimises.
  double Objective(const FollowPlan::Amounts& amounts) const {
    return weight_ * amounts.cost * kJoulesPerKilowattHour +
           (1 - request_.eta) * (request_.max_power * amounts.time).value();
  }

 private:
  double Weighed(double value) const { return weight_ * value; }

  const LimitPoint* Best(double price, double value) const {
    const LimitPoint* best = nullptr;
    double most = 0;
    for (const LimitPoint& point : request_.profile) {
      const double worth = price * point.rate - Weighed(value) * point.power.value();
      if (best == nullptr || worth > most) {
        best = &point;
        most = worth;
      }
    }
    return best;
  }

  template <class Choose>
  FollowPlan Walk(const Choose& choose) const {
    FollowPlan plan;
    double left = request_.work;
    WallTime time = request_.now;
    const auto steps = signal_.steps();
    auto next = std::ranges::upper_bound(steps, time, {}, &Signal::Step::from);
    while (left > 0) {
      const LimitPoint* point = choose(signal_.At(time));
      const Seconds needed(left / point->rate);
      Seconds length = needed;
      if (next != steps.end()) length = std::min(length, Seconds(next->from - time));
      const bool last = length >= needed;
      const WallTime until = last ? Later(time, length) : next->from;
      plan.amounts.cost +=
          signal_.At(time) * (point->power * length).value() / kJoulesPerKilowattHour;
      plan.amounts.energy += point->power * length;
      plan.amounts.time += length;
      if (!plan.spans.empty() && plan.spans.back().limit == point->limit) {
        plan.spans.back().until = until;
      } else {
        plan.spans.push_back({time, until, point->limit});
      }
      if (last) break;
      left -= point->rate * length.count();
      time = until;
      ++next;
    }
    return plan;
  }

  const Signal& signal_;
  const FollowRequest& request_;
  const double weight_;  // Factor of the signal, whose mean then counts as eta.
};

// The least power at which constant limits, mixed evenly over the time, do the work at this rate.
double PowerAtRate(const std::vector<LimitPoint>& profile, double rate) {
  double least = HUGE_VAL;
  for (const LimitPoint& a : profile) {
    if (a.rate >= rate) least = std::min(least, a.power.value());
    for (const LimitPoint& b : profile) {
      if (!(a.rate < rate && b.rate >= rate)) continue;
      const double share = (rate - a.rate) / (b.rate - a.rate);
      least = std::min(least, (1 - share) * a.power.value() + share * b.power.value());
    }
  }
  return least;
}

}  // namespace

Watts FollowPlan::LimitAt(WallTime time) const {
  for (const Span& span : spans)
    if (time < span.until) return span.limit;
  return spans.back().limit;
}

Result<FollowPlan> PlanFollowing(Signal signal, const FollowRequest& request) {
  ZEUS_RETURN_IF_ERROR(Check(request));
  if (signal.end() <= request.now)
    return InvalidArgument(fmt::format("the forecast ended at {}", ToText(signal.end())));
  double slowest = HUGE_VAL;
  for (const LimitPoint& point : request.profile) slowest = std::min(slowest, point.rate);
  const WallTime longest = Later(request.now, Seconds(request.work / slowest));
  signal.ExtendTo(longest);
  const Follower follower(signal, request, std::abs(signal.Mean(request.now, longest)));

  const auto meets = [&](const FollowPlan& plan) {
    return request.finish_by == WallTime::max() ||
           plan.amounts.time <= Seconds(request.finish_by - request.now);
  };
  std::optional<FollowPlan> best;
  std::optional<FollowPlan> fastest;
  double least = HUGE_VAL;
  const auto consider = [&](FollowPlan plan) {
    if (!fastest || plan.amounts.time < fastest->amounts.time) fastest = plan;
    if (!meets(plan) || !(follower.Objective(plan.amounts) < least)) return;
    least = follower.Objective(plan.amounts);
    best = std::move(plan);
  };
  for (const double price : follower.Prices()) consider(follower.Follow(price));
  FollowPlan::Amounts constant;
  Watts constant_limit{};
  double constant_least = HUGE_VAL;
  for (const LimitPoint& point : request.profile) {
    FollowPlan plan = follower.Constant(point);
    const double objective = follower.Objective(plan.amounts);
    if (meets(plan) && objective < constant_least) {
      constant_least = objective;
      constant = plan.amounts;
      constant_limit = point.limit;
    }
    consider(std::move(plan));
  }
  FollowPlan plan = best ? std::move(*best) : std::move(*fastest);
  plan.meets_deadline = best.has_value();
  plan.best_constant = constant_limit;
  plan.constant = constant;
  const double power =
      PowerAtRate(request.profile, request.work / plan.amounts.time.count() * (1 - 1e-12));
  plan.constant_in_same_time = power *
                               signal.Integral(request.now, Later(request.now, plan.amounts.time)) /
                               kJoulesPerKilowattHour;
  return plan;
}

}  // namespace zeus
