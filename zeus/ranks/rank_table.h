#pragma once

#include <initializer_list>
#include <map>
#include <optional>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/units.h"
#include "zeus/ranks/rank_share.h"

namespace zeus {

struct MeetingTimes {
  // How long ranks that were never met are awaited after the first command has ended.
  Seconds absence{10};
  // The first part of that time, in which the others still measure their devices: ranks of one
  // launch begin so far apart. The rest of it does not count as time of the run.
  Seconds measured_absence{0.5};
};

// The chair's knowledge of the ranks of its launch, and when all of them have ended.
// Ranks that were never met are awaited for a while after the first one has ended; none is awaited
// that is gone. Pure; one owner.
class RankTable {
 public:
  RankTable(int size, MeetingTimes times) : size_(size), times_(times) {}

  // False for a number that no rank of this launch has.
  bool Knows(int rank) const { return rank >= 0 && rank < size_; }
  // Whether this rank is here and alive.
  bool Present(int rank) const;

  // The rank is here; its share has no measurement yet.
  void Arrive(RankShare share);
  // Its command has ended, and it waits for the others.
  void End(int rank, TimePoint now);
  // Its measurement has come.
  void Deliver(RankShare share, TimePoint now);
  // Its connection has ended. What it delivered stays.
  void Leave(int rank);

  // Whether no command runs any more as far as can be known: then those that wait stop measuring.
  bool Over(TimePoint now) const;
  // Whether nothing more will come.
  bool Complete(TimePoint now) const;
  // Whether a rank was never met.
  bool Incomplete() const { return static_cast<int>(ranks_.size()) < size_; }

  std::vector<RankShare> Shares() const;

 private:
  enum class State { kRunning, kEnded, kDelivered, kLost };
  struct Entry {
    State state;
    RankShare share;
  };
  bool All(std::initializer_list<State> states) const;

  const int size_;
  const MeetingTimes times_;
  std::map<int, Entry> ranks_;
  std::optional<TimePoint> first_end_;
};

}  // namespace zeus
