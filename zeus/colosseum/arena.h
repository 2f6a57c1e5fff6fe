#pragma once

#include <array>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/random.h"
#include "zeus/base/result.h"
#include "zeus/colosseum/duel.h"
#include "zeus/colosseum/duel_repository.h"
#include "zeus/colosseum/leaderboard.h"
#include "zeus/colosseum/model_host.h"
#include "zeus/colosseum/pacer.h"

namespace zeus::colosseum {

struct ArenaOptions {
  std::size_t most_duels = 32;        // Duels whose answers arrive at the same time.
  std::size_t most_per_caller = 16;   // The same for one address.
  std::size_t longest_prompt = 8192;  // Bytes.
  Question question{};                // Its limits are those of every answer.
  Pace pace = Pace::kTogether;
  double characters_per_second = 400;
  bool store_text = false;
  Seconds answer_time{300};  // A duel whose answers are not complete then has failed.
  Seconds absence{20};       // One that nobody follows for so long is ended: its joules are wasted.
};

// The reason why something was not done. The message is for the client: it names no model, size or
// energy of a duel.
struct Refusal {
  enum class Kind { kInvalid, kUnknown, kConflict, kGone, kOverloaded, kUnavailable };
  Kind kind = Kind::kInvalid;
  std::string message{};
};

template <class T>
using Outcome = std::variant<T, Refusal>;

// A duel that somebody wants to see.
struct Challenge {
  std::string prompt{};
  std::string preference{};  // A model that must fight; empty: two random ones.
  std::string caller{};      // Counts duels at the same time; empty: not counted.
  std::string id{};          // Empty: a new one.
};

// Follows the answers of one duel. Thread-safe.
class Follower {
 public:
  // Where a client is in the two texts, in bytes.
  using Position = std::array<std::size_t, 2>;
  struct News {
    std::array<std::string, 2> text{};  // Since the last call.
    Position position{};                // After this text.
    std::string stage{};                // Set once, with the last text: the answers are over.
  };

  virtual ~Follower() = default;
  virtual News Pull() = 0;
  // The client has left.
  virtual void Leave() = 0;
};

// Counts for metrics. They tell nothing of duels that are not revealed.
struct ArenaCounts {
  std::uint64_t created = 0;
  std::uint64_t failed = 0;
  std::uint64_t abandoned = 0;
  std::uint64_t overloaded = 0;
  std::uint64_t refused_votes = 0;
  std::map<Ballot, std::uint64_t> votes{};
  std::size_t answering = 0;
};

// Runs duels: draws the models, has them answer, shows both answers at a common pace, and counts
// the votes. Thread-safe. The repository, the host and the clock must outlive it. Step() and
// Sweep() are called by threads of the program.
class Arena {
 public:
  static constexpr Seconds kStepPeriod{0.05};
  static constexpr Seconds kSweepPeriod{5};

  Arena(DuelRepository& repository, ModelHost& host, const Clock& clock, Entropy entropy,
        ArenaOptions options);
  ~Arena();  // Ends the answers that are arriving, and waits for their ends.
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // Called, from any thread, when Step() should be called soon.
  void WakeBy(std::function<void()> wake);

  Outcome<std::vector<std::string>> Models();
  // Begins a duel and returns its id.
  Outcome<std::string> Begin(const Challenge& challenge);
  // As Begin() for a duel that may have begun already with the same prompt and preference.
  Outcome<std::string> BeginOrJoin(const Challenge& challenge);
  // Returns the duel as it is stored; VisibleJson() decides what of it may be shown.
  Outcome<Duel> Find(const std::string& id);
  // Follows the answers from a position on. `notify` is called from any thread when there is news;
  // it must not block, nor call the follower.
  Outcome<std::shared_ptr<Follower>> Follow(const std::string& id, Follower::Position from,
                                            std::function<void()> notify);
  // Stores a vote and returns the duel after it.
  Outcome<Duel> Cast(const std::string& id, Ballot ballot, Choice choice);
  Outcome<std::vector<Duel>> List(const DuelQuery& query);
  // Computed at most every few moments, however often it is asked for.
  Outcome<std::vector<Standing>> Leaderboard();

  // Ends the duels whose answers arrive, for the end of the server, and lets no other begin.
  void Stop();
  // Shows what may be shown, and ends what has lasted too long. Does not use the database. Returns
  // when to call it next: every kStepPeriod while there is something to show.
  TimePoint Step();
  // Ends duels in the database whose votes have been awaited for too long. Called every
  // kSweepPeriod.
  void Sweep();
  ArenaCounts counts() const;

 private:
  class ActiveDuel;
  class FollowerOfDuel;
  class Listener;

  Outcome<std::string> Start(const Challenge& challenge, const std::string& id);
  Outcome<std::array<std::string, 2>> Draw(const std::string& preference);
  // Adds a duel, or returns the active one of the same id.
  Outcome<std::shared_ptr<ActiveDuel>> Admit(const std::shared_ptr<ActiveDuel>& duel);
  static Outcome<std::string> Join(const ActiveDuel& active, const Challenge& challenge);
  void AskBoth(const std::shared_ptr<ActiveDuel>& active, const std::string& prompt);
  std::shared_ptr<ActiveDuel> FindActive(const std::string& id) const;
  void Remove(const std::string& id);
  void OnAnswerEnd(const std::shared_ptr<ActiveDuel>& active, Side side,
                   Result<Contestant> outcome);
  void StoreAnswers(ActiveDuel& active);
  Result<std::vector<Standing>> MakeBoard();
  void StoreFailure(ActiveDuel& active, std::string reason);
  void Wake();

  DuelRepository& repository_;
  ModelHost& host_;
  const Clock& clock_;
  const Entropy entropy_;
  const ArenaOptions options_;

  mutable std::mutex mutex_;
  // Guarded by mutex_, to the end of the class.
  std::condition_variable answer_ended_{};
  std::map<std::string, std::shared_ptr<ActiveDuel>> active_{};
  std::function<void()> wake_{};
  Random random_;
  ArenaCounts counts_{};
  std::size_t running_answers_ = 0;
  bool stopped_ = false;
  bool makes_board_ = false;  // A call computes it.
  std::condition_variable board_made_{};
  std::optional<TimePoint> board_due_{};  // nullopt: the board was not computed yet.
  std::vector<Standing> board_{};
};

}  // namespace zeus::colosseum
