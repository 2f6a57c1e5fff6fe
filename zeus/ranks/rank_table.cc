#include "zeus/ranks/rank_table.h"

#include <algorithm>
#include <utility>

namespace zeus {

bool RankTable::Present(int rank) const {
  const auto found = ranks_.find(rank);
  return found != ranks_.end() && found->second.state != State::kLost;
}

void RankTable::Arrive(RankShare share) {
  const int rank = share.rank;
  ranks_.insert_or_assign(rank, Entry{State::kRunning, std::move(share)});
}

void RankTable::End(int rank, TimePoint now) {
  const auto found = ranks_.find(rank);
  if (found == ranks_.end() || found->second.state != State::kRunning) return;
  found->second.state = State::kEnded;
  if (!first_end_) first_end_ = now;
}

void RankTable::Deliver(RankShare share, TimePoint now) {
  const int rank = share.rank;
  ranks_.insert_or_assign(rank, Entry{State::kDelivered, std::move(share)});
  if (!first_end_) first_end_ = now;
}

void RankTable::Leave(int rank) {
  const auto found = ranks_.find(rank);
  if (found != ranks_.end() && found->second.state != State::kDelivered)
    found->second.state = State::kLost;
}

bool RankTable::All(std::initializer_list<State> states) const {
  return std::ranges::all_of(ranks_, [&](const auto& entry) {
    return std::ranges::find(states, entry.second.state) != states.end();
  });
}

bool RankTable::Over(TimePoint now) const {
  if (!first_end_ || !All({State::kEnded, State::kDelivered, State::kLost})) return false;
  return !Incomplete() || now >= *first_end_ + std::min(times_.measured_absence, times_.absence);
}

bool RankTable::Complete(TimePoint now) const {
  if (!Over(now) || !All({State::kDelivered, State::kLost})) return false;
  return !Incomplete() || now >= *first_end_ + times_.absence;
}

std::vector<RankShare> RankTable::Shares() const {
  std::vector<RankShare> shares;
  for (const auto& [rank, entry] : ranks_) shares.push_back(entry.share);
  return shares;
}

}  // namespace zeus
