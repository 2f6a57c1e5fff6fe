#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/units.h"

// A duel of two language models: what is known about it, and the rules by which votes move it.
// Nothing here knows a database, a socket or the time: callers say when something happens.
namespace zeus::colosseum {

enum class Side { kA, kB };
inline constexpr std::array kSides = {Side::kA, Side::kB};
constexpr std::size_t Index(Side side) { return side == Side::kA ? 0 : 1; }
constexpr Side Other(Side side) { return side == Side::kA ? Side::kB : Side::kA; }

// The energy of an answer, as the gateway attributed it.
struct AnswerEnergy {
  Joules energy{};
  Joules sigma{};  // One standard deviation.
  std::optional<Joules> prefill{};
  std::optional<Joules> prefill_sigma{};
  std::optional<Joules> decode{};
  std::optional<Joules> decode_sigma{};
  bool final = false;  // No later reading of the sensors changes it.

  bool operator==(const AnswerEnergy&) const = default;
};

// Power of the GPUs that worked for an answer, at a moment after the beginning of the duel.
struct PowerSample {
  Seconds at{};
  Watts power{};

  bool operator==(const PowerSample&) const = default;
};

// One side of a duel. Secret until the identities are revealed.
struct Contestant {
  std::string model{};
  std::string request{};  // The gateway's name of the request.
  std::optional<double> prompt_tokens{};
  std::optional<double> output_tokens{};
  std::optional<AnswerEnergy> energy{};
  std::string absent_reason{};  // Why there is no energy.
  std::optional<Seconds> duration{};
  std::vector<PowerSample> power{};
  std::string text{};  // Kept only with consent.

  bool operator==(const Contestant&) const = default;
};

// --- stages ---

struct Answering {
  bool operator==(const Answering&) const = default;
};
// Both answers are complete; the vote for one of them is awaited.
struct Voting {
  bool operator==(const Voting&) const = default;
};
// The preferred answer took more energy; whether it was worth that is awaited.
struct Weighing {
  Side preferred = Side::kA;
  bool operator==(const Weighing&) const = default;
};
struct Revealed {
  bool operator==(const Revealed&) const = default;
};
// An answer did not come, or nobody watched. The reason may name models: it is for the log and the
// database alone.
struct Failed {
  std::string reason{};
  bool operator==(const Failed&) const = default;
};
// A vote was awaited for too long. A vote that was given before counts.
struct Expired {
  bool operator==(const Expired&) const = default;
};
using Stage = std::variant<Answering, Voting, Weighing, Revealed, Failed, Expired>;

// "answering", "voting", "weighing", "revealed", "failed", "expired"
std::string_view NameOfStage(const Stage& stage);

// --- votes ---

enum class Ballot {
  kResponse,  // Which answer is better.
  kWorth,     // Whether the better one was worth its extra energy.
  kChange,    // Which answer is better, again, knowing everything.
};
enum class Choice { kA, kB, kTie, kYes, kNo };

std::string_view Name(Ballot ballot);  // "response", "worth", "change"
std::optional<Ballot> FindBallot(std::string_view name);
std::string_view Name(Choice choice);  // "a", "b", "tie", "yes", "no"
std::optional<Choice> FindChoice(std::string_view name);
constexpr Choice For(Side side) { return side == Side::kA ? Choice::kA : Choice::kB; }

struct Vote {
  Ballot ballot = Ballot::kResponse;
  Choice choice = Choice::kTie;
  WallTime at{};

  bool operator==(const Vote&) const = default;
};

// Something that a client did and should not have done; kept for those who judge the votes.
struct Irregularity {
  std::string what{};  // "vote too early", "second vote", …
  WallTime at{};

  bool operator==(const Irregularity&) const = default;
};

struct Duel {
  static constexpr std::size_t kMostIrregularities = 20;

  std::string id{};
  WallTime created_at{};
  std::string preference{};  // The model that was asked for; empty: two random ones.
  std::string prompt{};      // Kept only with consent.
  Stage stage{};
  WallTime stage_at{};  // When the stage began.
  std::array<Contestant, 2> sides{};
  std::vector<Vote> votes{};  // At most one for each ballot, in the order of their coming.
  std::vector<Irregularity> irregularities{};

  Contestant& at(Side side) { return sides[Index(side)]; }
  const Contestant& at(Side side) const { return sides[Index(side)]; }
  const Vote* Find(Ballot ballot) const;

  bool operator==(const Duel&) const = default;
};

// --- energy of both ---

struct Comparison {
  enum class Verdict {
    kUnknown,     // The energy of an answer is not known.
    kCannotTell,  // They differ by less than two sigma of the difference.
    kAMore,
    kBMore,
  };

  Verdict verdict = Verdict::kUnknown;
  Joules difference{};  // A - B
  Joules sigma{};       // Standard deviation of the difference.
  double ratio = 1;     // The greater energy over the smaller one.

  // The side that took more, when that is certain enough.
  std::optional<Side> more() const;
};
std::string_view Name(Comparison::Verdict verdict);  // "unknown", "cannot_tell", "a_more", "b_more"

Comparison CompareEnergy(const Duel& duel);

// --- moving a duel ---

// The time for which a vote is awaited, and for which it may be changed after the reveal.
inline constexpr Seconds kVotingTime{600};

// The reason for which a vote is not accepted.
struct VoteRefusal {
  enum class Kind {
    kTooEarly,    // The answers are not complete.
    kSecondVote,  // Another choice was stored before.
    kOutOfTurn,   // This ballot is not open.
    kGone,        // The duel has expired or failed.
  };
  Kind kind = Kind::kOutOfTurn;
  std::string message{};
};

// Both answers are complete. Does nothing in another stage than Answering.
void BeginVoting(Duel& duel, WallTime now);
// Does nothing once voting has begun.
void Fail(Duel& duel, std::string reason, WallTime now);
// Ends a duel whose votes have been awaited for too long. Returns whether the duel has changed.
bool ExpireIfOverdue(Duel& duel, WallTime now);
// Stores a vote and moves the duel on, or says why not and notes the irregularity. The same vote
// again is accepted and changes nothing. `choice` must suit the ballot.
std::optional<VoteRefusal> CastVote(Duel& duel, Ballot ballot, Choice choice, WallTime now);

// Whether votes for the answers belong to the ballot, or yes and no.
bool Suits(Ballot ballot, Choice choice);

}  // namespace zeus::colosseum
