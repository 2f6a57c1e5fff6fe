// Jobs whose GPUs lie in several domains make the greedy choice a guess: a watt for such a job
// blocks watts in every domain at once. Lagrange's prices tell how much that is worth. Subgradients
// with Polyak's step raise the dual bound; after every few of them the jobs buy again, in the order
// of what a stretch saves over what it takes at these prices, and the best purchase is kept.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "zeus/optimizer/budget/market.h"

namespace zeus::water_filling::internal {

namespace {

constexpr double kCloseEnough = 1e-3;  // A share of the whole loss: 0.1 points of per cent.
constexpr int kRounds = 200;
constexpr int kRoundsBetweenPurchases = 10;

double PriceOf(const Market& market, std::span<const double> prices, std::size_t job) {
  double price = 0;
  for (const Load& load : market.LoadsOf(job)) price += prices[load.domain] * load.gpus;
  return price;
}

// The dual function at some prices.
struct Dual {
  double bound = 0;
  std::vector<double> excess{};  // Watts that jobs want beyond each domain's capacity.
};

Dual DualAt(const Market& market, std::span<const double> prices) {
  Dual dual;
  for (std::size_t d = 0; d < prices.size(); ++d) {
    const double capacity = market.capacity[d];
    dual.excess.push_back(std::isfinite(capacity) ? -capacity : 0);
    if (prices[d] > 0) dual.bound -= prices[d] * capacity;
  }
  for (std::size_t j = 0; j < market.jobs(); ++j) {
    const double price = PriceOf(market, prices, j);
    const auto corners = market.CornersOf(j);
    const auto best = std::ranges::min_element(
        corners, {}, [&](const Corner& corner) { return corner.loss + price * corner.taken; });
    dual.bound += best->loss + price * best->taken;
    for (const Load& load : market.LoadsOf(j)) {
      if (std::isfinite(market.capacity[load.domain]))
        dual.excess[load.domain] += best->taken * load.gpus;
    }
  }
  return dual;
}

// Moves the prices along the subgradient, by the step that would reach `target` if the dual
// function were linear (Polyak).
void Move(std::vector<double>& prices, const Dual& dual, double target) {
  double square = 0;
  for (std::size_t d = 0; d < prices.size(); ++d) {
    if (prices[d] > 0 || dual.excess[d] > 0) square += dual.excess[d] * dual.excess[d];
  }
  if (square <= 0) return;
  const double step = (target - dual.bound) / square;
  for (std::size_t d = 0; d < prices.size(); ++d)
    prices[d] = std::max(prices[d] + step * dual.excess[d], 0.0);
}

std::vector<Watts> BuyAtPrices(const Market& market, std::span<const double> prices) {
  const double highest = *std::ranges::max_element(prices);
  // Even a watt that costs nothing now is better left than taken for nothing.
  const double least = highest > 0 ? 1e-3 * highest : 1;
  std::vector<double> dear(market.jobs());
  for (std::size_t j = 0; j < market.jobs(); ++j) {
    const int gpus = market.problem.jobs[j].gpus();
    dear[j] = PriceOf(market, prices, j) / gpus + least;
  }
  std::vector<Stretch> stretches = market.stretches;
  for (Stretch& stretch : stretches) stretch.worth /= dear[stretch.job];
  std::ranges::sort(stretches, [](const Stretch& one, const Stretch& other) {
    return one.worth != other.worth ? one.worth > other.worth : one.corner < other.corner;
  });
  return BuySteps(market, stretches);
}

}  // namespace

Improved ImproveByPrices(const Market& market, Improved start) {
  const double enough = kCloseEnough * WholeLoss(market);
  Improved best = std::move(start);
  double loss = LossOf(market, best.limits);
  std::vector<double> prices = best.prices;
  double bound = LowerBound(market, prices);
  for (int round = 0; round < kRounds && loss - bound > enough; ++round) {
    if (round % kRoundsBetweenPurchases == 0) {
      for (const std::vector<double>& at : {prices, best.prices}) {
        std::vector<Watts> limits = BuyAtPrices(market, at);
        if (const double other = LossOf(market, limits); other < loss) {
          loss = other;
          best.limits = std::move(limits);
        }
      }
    }
    const Dual dual = DualAt(market, prices);
    if (dual.bound > bound) {
      bound = dual.bound;
      best.prices = prices;
    }
    Move(prices, dual, loss);
  }
  return best;
}

}  // namespace zeus::water_filling::internal
