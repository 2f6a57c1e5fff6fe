#pragma once

#include <cstddef>
#include <deque>

#include "zeus/base/clock.h"
#include "zeus/base/units.h"

namespace zeus {

// Finds the instants at which a sensor shows new values, much more precisely than the polls that
// notice them: a sensor updates periodically, each poll that sees a change brackets one update, and
// the brackets of many updates leave little room for the phase. One owner.
class UpdateClock {
 public:
  struct Instant {
    TimePoint time;
    Seconds sigma;
  };

  // Whether each update shows a new value (a counter), or only some (a power reading).
  enum class Changes { kAlways, kSometimes };

  // `period` is what is expected; the true one is learned if it differs by up to a fifth or, where
  // updates always show, is a multiple of it.
  explicit UpdateClock(Seconds period, Changes changes = Changes::kAlways);

  // A poll at `now` saw a value that the poll at `before` had not seen. The most probable instant
  // of the update that brought it.
  Instant Changed(TimePoint before, TimePoint now);

  // The latest update at or before `now`, whether it showed a new value or not.
  Instant Latest(TimePoint now) const;

  // When to look next, having looked at `now`: at any time between the two. While the phase is not
  // known well, right where an update is expected: whether it has come or not halves the room for
  // the phase. Later any moment of a period will do, and several sensors can share one.
  struct Appointment {
    TimePoint earliest;
    TimePoint latest;
  };
  Appointment NextPoll(TimePoint now);

  // After this time past an expected update it has come for certain.
  Seconds margin(TimePoint now) const;

  Seconds period() const { return period_; }
  // Enough updates were bracketed to know the phase.
  bool locked() const { return locked_; }

 private:
  struct Bracket {
    TimePoint after;  // The update came after this …
    TimePoint until;  // … and not after this.
    double count;     // Periods since the first bracket.
  };

  // Brackets that make a phase. A power reading may not change for hours: the first change must do.
  std::size_t Enough() const { return changes_ == Changes::kAlways ? 3 : 1; }
  static constexpr std::size_t kMost = 32;

  double Remember(TimePoint before, TimePoint now);  // The count of the update.
  // Which update it was that a poll at `now` saw and a poll at `before` did not.
  double CountUpdates(TimePoint before, TimePoint now) const;
  // How well the phase should be known.
  Seconds Precise() const;
  // The phase is the less certain the longer ago the last update was bracketed.
  Seconds SigmaAt(TimePoint time) const;
  TimePoint UpdateInstant(double count) const { return phase_ + (count - phase_count_) * period_; }
  void AdoptLongerPeriod(double step);
  bool WouldCrowdOut(TimePoint before, TimePoint now, double count) const;
  bool TeachesNothing(TimePoint before, TimePoint now, double count) const;
  void StartAnew();
  void Fit();
  // By how much all brackets leave room for the phase under `period`; the middle of the room.
  struct Room {
    double width;
    double middle;
  };
  Room RoomFor(double period) const;
  // The last period with room on the way from one that has some to one that has not.
  double EndOfRoom(double inside, double outside) const;

  Changes changes_;
  Seconds expected_;
  Seconds period_;
  bool locked_ = false;
  TimePoint phase_{};  // The instant of the update with that count.
  double phase_count_ = 0;
  Seconds phase_sigma_;
  std::deque<Bracket> brackets_;
  int since_fit_ = 0;
  int polls_unlocked_ = 0;
  double checked_count_ = 0;  // Count of the update at which the phase was last checked.
  double last_count_ = 0;     // Count of the last update that was seen.
  // Updates on end that came after more than one period, and the fewest periods among them.
  int long_steps_ = 0;
  double shortest_step_ = 0;
};

}  // namespace zeus
