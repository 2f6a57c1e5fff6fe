#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "zeus/colosseum/duel_repository.h"

namespace zeus::colosseum::testing {

// Duels in memory, for tests of what stands above a repository. Thread-safe.
class MemoryDuelRepository final : public DuelRepository {
 public:
  Status Insert(const Duel& duel) override {
    const std::lock_guard lock(mutex_);
    if (broken_) return *broken_;
    if (!duels_.emplace(duel.id, duel).second)
      return Error{ErrorCode::kConflict, "id: there is a duel " + duel.id};
    return Ok();
  }
  Result<Duel> Find(const std::string& id) override {
    const std::lock_guard lock(mutex_);
    const auto found = duels_.find(id);
    if (found == duels_.end()) return Error{ErrorCode::kNotFound, "id: there is no duel " + id};
    return found->second;
  }
  Status Update(const std::string& id, const Change& change) override {
    const std::lock_guard lock(mutex_);
    if (broken_) return *broken_;
    const auto found = duels_.find(id);
    if (found == duels_.end()) return Error{ErrorCode::kNotFound, "id: there is no duel " + id};
    Duel after = found->second;
    ZEUS_RETURN_IF_ERROR(change(after));
    found->second = std::move(after);
    return Ok();
  }
  Result<std::vector<Duel>> ListRevealed(const DuelQuery& query) override {
    const std::lock_guard lock(mutex_);
    std::vector<Duel> revealed;
    for (const auto& [id, duel] : duels_)
      if (std::holds_alternative<Revealed>(duel.stage)) revealed.push_back(duel);
    const auto later = [](const Duel& one, const Duel& other) {
      return std::tie(other.created_at, other.id) < std::tie(one.created_at, one.id);
    };
    std::ranges::sort(revealed, later);
    if (query.before)
      std::erase_if(revealed, [&](const Duel& duel) { return duel.created_at >= *query.before; });
    if (revealed.size() > static_cast<std::size_t>(query.limit))
      revealed.resize(static_cast<std::size_t>(query.limit));
    return revealed;
  }
  Result<std::vector<Game>> Games() override {
    if (const auto meanwhile = std::exchange(while_games_are_read_, nullptr)) meanwhile();
    const std::lock_guard lock(mutex_);
    if (games_broken_) return *games_broken_;
    ++games_read_;
    std::vector<Game> games;
    for (const auto& [id, duel] : duels_) {
      const Vote* const vote = duel.Find(Ballot::kResponse);
      const bool revealed = std::holds_alternative<Revealed>(duel.stage);
      if (vote == nullptr || !(revealed || std::holds_alternative<Expired>(duel.stage))) continue;
      Game game{.vote = vote->choice, .revealed = revealed};
      for (const Side side : kSides) {
        game.models[Index(side)] = duel.at(side).model;
        if (const auto& energy = duel.at(side).energy)
          game.joules[Index(side)] = energy->energy.value();
        game.output_tokens[Index(side)] = duel.at(side).output_tokens;
      }
      if (const Vote* const worth = duel.Find(Ballot::kWorth)) game.worth = worth->choice;
      if (const Vote* const change = duel.Find(Ballot::kChange)) game.change = change->choice;
      games.push_back(std::move(game));
    }
    return games;
  }
  Result<std::vector<std::string>> Overdue(WallTime before, int limit) override {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> ids;
    for (const auto& [id, duel] : duels_)
      if (duel.stage.index() <= Stage(Weighing{}).index() && duel.stage_at < before &&
          ids.size() < static_cast<std::size_t>(limit))
        ids.push_back(id);
    return ids;
  }
  Status Ping() override { return Ok(); }

  // Every change fails with this error from now on; nullopt: no more.
  void Break(std::optional<Error> error) {
    const std::lock_guard lock(mutex_);
    broken_ = std::move(error);
  }
  // The leaderboard's query fails with this error from now on; nullopt: no more.
  void BreakGames(std::optional<Error> error) {
    const std::lock_guard lock(mutex_);
    games_broken_ = std::move(error);
  }
  // Called once, within the next Games(), by its thread.
  void WhileGamesAreRead(std::function<void()> meanwhile) {
    while_games_are_read_ = std::move(meanwhile);
  }
  int games_read() const {
    const std::lock_guard lock(mutex_);
    return games_read_;
  }

 private:
  std::function<void()> while_games_are_read_{};  // Only the test calls it, on its own thread.
  mutable std::mutex mutex_;
  std::map<std::string, Duel> duels_{};  // Guarded by mutex_, to the end of the class.
  std::optional<Error> broken_{};
  std::optional<Error> games_broken_{};
  int games_read_ = 0;
};

}  // namespace zeus::colosseum::testing
