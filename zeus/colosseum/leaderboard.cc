// Ratings are the Bradley-Terry model's: P(i beats j) = s_i / (s_i + s_j). The likelihood is
// maximised by minorisation (Hunter 2004): s_i = wins_i / sum_j n_ij / (s_i + s_j), repeated until
// nothing moves. Duels enter as counts by pair and outcome, so that a bootstrap resample is one
// Poisson number for each count (the Poisson bootstrap), whatever the number of duels.
#include "zeus/colosseum/leaderboard.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <tuple>

namespace zeus::colosseum {
namespace {

constexpr double kConfidence = 0.95;
constexpr int kResamples = 300;
constexpr int kMostIterations = 500;
constexpr double kTolerance = 1e-7;
constexpr double kEloScale = 400;
constexpr double kMeanRating = 1000;
constexpr double kVirtualGames = 1;  // Against an average opponent, half of them won.
constexpr double kNormalFrom = 40;   // A Poisson number of a greater mean is drawn as a normal one.

// Outcomes of the games between two models, the one of the smaller index first.
struct OutcomeCounts {
  std::size_t one = 0;
  std::size_t other = 0;
  std::array<double, 3> counts{};  // Won by one, won by the other, tied.
};

double PoissonNumber(double mean, Random& random) {
  if (mean <= 0) return 0;
  if (mean > kNormalFrom)
    return std::max(0.0, std::round(mean + std::sqrt(mean) * random.Normal()));
  const double limit = std::exp(-mean);
  double product = random.Uniform();
  double number = 0;
  while (product > limit) {
    product *= random.Uniform();
    ++number;
  }
  return number;
}

std::vector<PairScore> ToScores(const std::vector<OutcomeCounts>& outcomes) {
  std::vector<PairScore> scores;
  scores.reserve(outcomes.size());
  for (const OutcomeCounts& pair : outcomes)
    scores.push_back({.one = pair.one,
                      .other = pair.other,
                      .wins_of_one = pair.counts[0] + pair.counts[2] / 2,
                      .wins_of_other = pair.counts[1] + pair.counts[2] / 2});
  return scores;
}

std::optional<Median> MedianOf(std::vector<double> values) {
  if (values.empty()) return std::nullopt;
  std::ranges::sort(values);
  const std::size_t n = values.size();
  Median median{.count = n};
  median.value = n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
  median.interval = MedianInterval(values, kConfidence);
  return median;
}

// Collects the figures of all games, by model.
class Tally {
 public:
  void Add(const Game& game) {
    const std::array<std::size_t, 2> index = {IndexOf(game.models[0]), IndexOf(game.models[1])};
    if (index[0] == index[1]) return;  // A model against itself says nothing.
    const std::size_t outcome = game.vote == Choice::kA ? 0 : game.vote == Choice::kB ? 1 : 2;
    CountOutcome(index, outcome);
    for (const std::size_t side : {0U, 1U}) AddSide(game, side, outcome, rows_[index[side]]);
  }

  std::vector<Standing> Finish(Random random) {
    std::vector<OutcomeCounts> outcomes;
    for (const auto& [pair, counts] : outcomes_) outcomes.push_back(counts);
    const auto ratings = FitRatings(rows_.size(), ToScores(outcomes));
    const auto intervals = BootstrapIntervals(outcomes, random);
    std::vector<Standing> standings;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      Standing standing = std::move(rows_[i].standing);
      standing.rating = ratings[i];
      // The estimate itself always belongs to its interval.
      standing.rating_interval = {std::min(intervals[i].low, ratings[i]),
                                  std::max(intervals[i].high, ratings[i])};
      standing.response_joules = MedianOf(std::move(rows_[i].joules));
      standing.token_joules = MedianOf(std::move(rows_[i].token_joules));
      standings.push_back(std::move(standing));
    }
    return standings;
  }

 private:
  struct Row {
    Standing standing{};
    std::vector<double> joules{};
    std::vector<double> token_joules{};
  };

  std::size_t IndexOf(const std::string& model) {
    const auto [found, added] = index_.try_emplace(model, rows_.size());
    if (added) rows_.emplace_back().standing.model = model;
    return found->second;
  }

  void CountOutcome(const std::array<std::size_t, 2>& index, std::size_t outcome) {
    const bool in_order = index[0] < index[1];
    const std::size_t one = std::min(index[0], index[1]);
    const std::size_t other = std::max(index[0], index[1]);
    OutcomeCounts& counts = outcomes_[{one, other}];
    counts.one = one;
    counts.other = other;
    ++counts.counts[outcome == 2 || in_order ? outcome : 1 - outcome];
  }

  static void AddSide(const Game& game, std::size_t side, std::size_t outcome, Row& row) {
    Standing& standing = row.standing;
    ++standing.games;
    ++standing.win_rate.cases;
    if (outcome == 2) {
      ++standing.ties;
      standing.win_rate.hits += 0.5;
    } else if (outcome == side) {
      ++standing.wins;
      ++standing.win_rate.hits;
    }
    if (const auto joules = game.joules[side]) {
      row.joules.push_back(*joules);
      if (const double tokens = game.output_tokens[side].value_or(0); tokens > 0)
        row.token_joules.push_back(*joules / tokens);
    }
    // Whether it was worth the energy is known only of those who were asked and answered.
    if (outcome != side || !game.worth) return;
    ++standing.turned.cases;
    const Choice kept = side == 0 ? Choice::kA : Choice::kB;
    const bool changed = game.change && *game.change != kept;
    if (*game.worth == Choice::kNo || changed) ++standing.turned.hits;
  }

  std::vector<Interval> BootstrapIntervals(const std::vector<OutcomeCounts>& outcomes,
                                           Random& random) const {
    std::vector<std::vector<double>> draws(rows_.size());
    for (int i = 0; i < kResamples; ++i) {
      std::vector<OutcomeCounts> resample = outcomes;
      for (OutcomeCounts& pair : resample)
        for (double& count : pair.counts) count = PoissonNumber(count, random);
      const auto ratings = FitRatings(rows_.size(), ToScores(resample));
      for (std::size_t j = 0; j < ratings.size(); ++j) draws[j].push_back(ratings[j]);
    }
    std::vector<Interval> intervals;
    for (std::vector<double>& ratings : draws) {
      std::ranges::sort(ratings);
      const auto at = [&](double share) {
        return ratings[static_cast<std::size_t>(std::lround(share * (kResamples - 1)))];
      };
      intervals.push_back({at((1 - kConfidence) / 2), at((1 + kConfidence) / 2)});
    }
    return intervals;
  }

  std::map<std::string, std::size_t> index_{};
  std::vector<Row> rows_{};
  std::map<std::pair<std::size_t, std::size_t>, OutcomeCounts> outcomes_{};
};

void MarkFrontier(std::vector<Standing>& standings) {
  for (Standing& standing : standings) {
    if (!standing.response_joules) continue;
    standing.on_frontier = std::ranges::none_of(standings, [&](const Standing& other) {
      if (!other.response_joules) return false;
      const double own = standing.response_joules->value;
      const double its = other.response_joules->value;
      return other.rating >= standing.rating && its <= own &&
             (other.rating > standing.rating || its < own);
    });
  }
}

}  // namespace

std::optional<double> Share::value() const {
  if (cases <= 0) return std::nullopt;
  return hits / cases;
}

std::optional<Interval> Share::interval() const {
  if (cases <= 0) return std::nullopt;
  return WilsonInterval(hits, cases, kConfidence);
}

std::vector<double> FitRatings(std::size_t models, const std::vector<PairScore>& scores) {
  std::vector<double> wins(models, kVirtualGames / 2);
  for (const PairScore& score : scores) {
    wins[score.one] += score.wins_of_one;
    wins[score.other] += score.wins_of_other;
  }
  std::vector<double> strength(models, 1.0);
  for (int i = 0; i < kMostIterations; ++i) {
    std::vector<double> weight(models);
    // The virtual opponent has strength 1.
    for (std::size_t j = 0; j < models; ++j) weight[j] = kVirtualGames / (strength[j] + 1);
    for (const PairScore& score : scores) {
      const double games = score.wins_of_one + score.wins_of_other;
      const double share = games / (strength[score.one] + strength[score.other]);
      weight[score.one] += share;
      weight[score.other] += share;
    }
    double moved = 0;
    for (std::size_t j = 0; j < models; ++j) {
      const double next = wins[j] / weight[j];
      moved = std::max(moved, std::abs(std::log(next / strength[j])));
      strength[j] = next;
    }
    if (moved < kTolerance) break;
  }
  std::vector<double> ratings;
  double sum = 0;
  for (const double one : strength) {
    ratings.push_back(kEloScale * std::log10(one));
    sum += ratings.back();
  }
  const double mean = models == 0 ? 0 : sum / static_cast<double>(models);
  for (double& rating : ratings) rating += kMeanRating - mean;
  return ratings;
}

std::vector<Standing> MakeLeaderboard(const std::vector<Game>& games, Random random) {
  Tally tally;
  for (const Game& game : games) tally.Add(game);
  std::vector<Standing> standings = tally.Finish(random);
  std::ranges::sort(standings, [](const Standing& one, const Standing& other) {
    return std::tie(other.rating, one.model) < std::tie(one.rating, other.model);
  });
  MarkFrontier(standings);
  return standings;
}

}  // namespace zeus::colosseum
