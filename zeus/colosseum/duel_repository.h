#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/colosseum/duel.h"

namespace zeus::colosseum {

// A duel whose votes count, without texts: what the leaderboard is made of.
struct Game {
  std::array<std::string, 2> models{};
  std::array<std::optional<double>, 2> joules{};
  std::array<std::optional<double>, 2> output_tokens{};
  Choice vote = Choice::kTie;  // The blind one.
  std::optional<Choice> worth{};
  std::optional<Choice> change{};
  bool revealed = false;  // The voter has seen the energy and the identities.

  bool operator==(const Game&) const = default;
};

// A list of revealed duels, the latest first.
struct DuelQuery {
  // Duels that began earlier than this; nullopt: all. Not an id: who knows one may vote.
  std::optional<WallTime> before{};
  int limit = 100;
};

// Keeps duels. Thread-safe; several servers may share one. Errors are those of zeus/store.
class DuelRepository {
 public:
  virtual ~DuelRepository() = default;

  // kConflict when there is a duel of this id.
  virtual Status Insert(const Duel& duel) = 0;
  // kNotFound.
  virtual Result<Duel> Find(const std::string& id) = 0;
  // Runs `change` on a duel that nobody else changes meanwhile, and stores what it left, unless it
  // returns an error. It may run several times, and must not change id, votes or irregularities
  // that are there. kNotFound.
  using Change = std::function<Status(Duel& duel)>;
  virtual Status Update(const std::string& id, const Change& change) = 0;

  virtual Result<std::vector<Duel>> ListRevealed(const DuelQuery& query) = 0;
  // Revealed and expired duels with a vote, in any order.
  virtual Result<std::vector<Game>> Games() = 0;
  // Ids of duels that wait for something since a moment before `before`.
  virtual Result<std::vector<std::string>> Overdue(WallTime before, int limit) = 0;
  // Whether the database accepts changes.
  virtual Status Ping() = 0;
};

}  // namespace zeus::colosseum
