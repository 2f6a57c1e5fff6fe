#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "zeus/base/random.h"
#include "zeus/base/statistics.h"
#include "zeus/colosseum/duel_repository.h"

namespace zeus::colosseum {

// A share of cases, with Wilson's interval of 95 %.
struct Share {
  double hits = 0;  // A tie is half a win.
  double cases = 0;

  std::optional<double> value() const;  // nullopt without cases.
  std::optional<Interval> interval() const;
};

// A median with an interval of 95 % by order statistics. It needs six values; fewer have none.
struct Median {
  double value = 0;
  std::optional<Interval> interval{};
  std::size_t count = 0;
};

struct Standing {
  std::string model{};
  std::int64_t games = 0;
  std::int64_t wins = 0;
  std::int64_t ties = 0;
  Share win_rate{};
  // Bradley-Terry strength on Elo's scale: 400 points are odds of ten to one, the mean over the
  // models is 1000.
  double rating = 1000;
  Interval rating_interval{1000, 1000};  // 95 %, by bootstrap over the duels.
  std::optional<Median> response_joules{};
  std::optional<Median> token_joules{};
  // Duels that it won with the greater energy, and those among them whose voter took the vote back
  // or said that it was not worth it.
  Share turned{};
  bool on_frontier = false;  // No other model is rated higher and takes less.
};

// The best rating first. `random` draws the bootstrap: the same seed gives the same intervals.
std::vector<Standing> MakeLeaderboard(const std::vector<Game>& games, Random random);

// --- for tests ---

// Wins of one model over another, ties counted as half a win for each.
struct PairScore {
  std::size_t one = 0;
  std::size_t other = 0;
  double wins_of_one = 0;
  double wins_of_other = 0;
};
// The strengths of the Bradley-Terry model, on Elo's scale. Each model has one virtual tie against
// an average opponent, so that one which always won has a finite rating.
std::vector<double> FitRatings(std::size_t models, const std::vector<PairScore>& scores);

}  // namespace zeus::colosseum
