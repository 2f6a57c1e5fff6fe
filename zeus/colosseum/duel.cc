#include "zeus/colosseum/duel.h"

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <utility>

namespace zeus::colosseum {
namespace {

constexpr std::array<std::string_view, 6> kStageNames = {"answering", "voting", "weighing",
                                                         "revealed",  "failed", "expired"};
constexpr std::array<std::string_view, 3> kBallotNames = {"response", "worth", "change"};
constexpr std::array<std::string_view, 5> kChoiceNames = {"a", "b", "tie", "yes", "no"};
constexpr std::array<std::string_view, 4> kVerdictNames = {"unknown", "cannot_tell", "a_more",
                                                           "b_more"};
// A difference of fewer standard deviations is none that anybody should judge.
constexpr double kLeastSigmas = 2;

template <class T, std::size_t size>
std::optional<T> FindName(const std::array<std::string_view, size>& names, std::string_view name) {
  const auto found = std::ranges::find(names, name);
  if (found == names.end()) return std::nullopt;
  return static_cast<T>(found - names.begin());
}

void Enter(Duel& duel, Stage stage, WallTime now) {
  duel.stage = std::move(stage);
  duel.stage_at = now;
}

VoteRefusal Refuse(Duel& duel, VoteRefusal::Kind kind, std::string what, std::string message,
                   WallTime now) {
  if (duel.irregularities.size() < Duel::kMostIrregularities)
    duel.irregularities.push_back({.what = std::move(what), .at = now});
  return {.kind = kind, .message = std::move(message)};
}

// The stage after the vote for an answer.
Stage AfterResponse(const Duel& duel, Choice choice) {
  const auto more = CompareEnergy(duel).more();
  if (more && choice == For(*more)) return Weighing{*more};
  return Revealed{};
}

std::optional<VoteRefusal> RefuseByStage(Duel& duel, Ballot ballot, WallTime now) {
  using Kind = VoteRefusal::Kind;
  if (std::holds_alternative<Failed>(duel.stage))
    return Refuse(duel, Kind::kGone, "vote after failure",
                  "this duel has failed: start another one", now);
  if (std::holds_alternative<Expired>(duel.stage))
    return Refuse(duel, Kind::kGone, "vote after expiry",
                  "this duel has expired: votes are awaited for 10 minutes", now);
  if (std::holds_alternative<Answering>(duel.stage))
    return Refuse(duel, Kind::kTooEarly, "vote too early",
                  "the answers are still arriving: vote when both are complete", now);
  const bool open = ballot == Ballot::kResponse ? std::holds_alternative<Voting>(duel.stage)
                    : ballot == Ballot::kWorth  ? std::holds_alternative<Weighing>(duel.stage)
                                                : std::holds_alternative<Revealed>(duel.stage);
  if (open) return std::nullopt;
  return Refuse(
      duel, Kind::kOutOfTurn, "vote out of turn",
      ballot == Ballot::kResponse ? "the vote for this duel was cast: change it after the reveal"
      : ballot == Ballot::kWorth
          ? "whether the extra energy was worth it is asked after a vote for the answer that "
            "took more"
          : "a vote is changed after the reveal",
      now);
}

}  // namespace

std::string_view NameOfStage(const Stage& stage) { return kStageNames[stage.index()]; }
std::string_view Name(Ballot ballot) { return kBallotNames[static_cast<std::size_t>(ballot)]; }
std::string_view Name(Choice choice) { return kChoiceNames[static_cast<std::size_t>(choice)]; }
std::string_view Name(Comparison::Verdict verdict) {
  return kVerdictNames[static_cast<std::size_t>(verdict)];
}
std::optional<Ballot> FindBallot(std::string_view name) {
  return FindName<Ballot>(kBallotNames, name);
}
std::optional<Choice> FindChoice(std::string_view name) {
  return FindName<Choice>(kChoiceNames, name);
}

const Vote* Duel::Find(Ballot ballot) const {
  const auto found = std::ranges::find(votes, ballot, &Vote::ballot);
  return found == votes.end() ? nullptr : &*found;
}

std::optional<Side> Comparison::more() const {
  if (verdict == Verdict::kAMore) return Side::kA;
  if (verdict == Verdict::kBMore) return Side::kB;
  return std::nullopt;
}

Comparison CompareEnergy(const Duel& duel) {
  const auto& a = duel.at(Side::kA).energy;
  const auto& b = duel.at(Side::kB).energy;
  if (!a || !b) return {};
  Comparison comparison;
  comparison.difference = a->energy - b->energy;
  comparison.sigma = Joules(std::hypot(a->sigma.value(), b->sigma.value()));
  const double smaller = std::min(a->energy, b->energy).value();
  if (smaller > 0) comparison.ratio = std::max(a->energy, b->energy).value() / smaller;
  const double distance = std::abs(comparison.difference.value());
  if (distance <= kLeastSigmas * comparison.sigma.value())
    comparison.verdict = Comparison::Verdict::kCannotTell;
  else
    comparison.verdict = comparison.difference.value() > 0 ? Comparison::Verdict::kAMore
                                                           : Comparison::Verdict::kBMore;
  return comparison;
}

void BeginVoting(Duel& duel, WallTime now) {
  if (std::holds_alternative<Answering>(duel.stage)) Enter(duel, Voting{}, now);
}

void Fail(Duel& duel, std::string reason, WallTime now) {
  if (std::holds_alternative<Answering>(duel.stage)) Enter(duel, Failed{std::move(reason)}, now);
}

bool ExpireIfOverdue(Duel& duel, WallTime now) {
  const bool waits = std::holds_alternative<Answering>(duel.stage) ||
                     std::holds_alternative<Voting>(duel.stage) ||
                     std::holds_alternative<Weighing>(duel.stage);
  if (!waits || now - duel.stage_at <= kVotingTime) return false;
  Enter(duel, Expired{}, now);
  return true;
}

bool Suits(Ballot ballot, Choice choice) {
  const bool judges_energy = choice == Choice::kYes || choice == Choice::kNo;
  return (ballot == Ballot::kWorth) == judges_energy;
}

std::optional<VoteRefusal> CastVote(Duel& duel, Ballot ballot, Choice choice, WallTime now) {
  if (const Vote* earlier = duel.Find(ballot)) {
    if (earlier->choice == choice) return std::nullopt;
    return Refuse(duel, VoteRefusal::Kind::kSecondVote, "second vote",
                  ballot == Ballot::kResponse
                      ? "another vote was cast for this duel: change it after the reveal"
                      : "another vote was cast for this duel",
                  now);
  }
  ExpireIfOverdue(duel, now);
  if (auto refusal = RefuseByStage(duel, ballot, now)) return refusal;
  if (ballot == Ballot::kChange && now - duel.stage_at > kVotingTime)
    return Refuse(duel, VoteRefusal::Kind::kGone, "change after expiry",
                  "a vote may be changed for 10 minutes after the reveal", now);
  duel.votes.push_back({.ballot = ballot, .choice = choice, .at = now});
  if (ballot == Ballot::kResponse) Enter(duel, AfterResponse(duel, choice), now);
  if (ballot == Ballot::kWorth) Enter(duel, Revealed{}, now);
  return std::nullopt;
}

}  // namespace zeus::colosseum
