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

  // `period` is what is expected; the true one is learned if it differs by up to a fifth, or is a
  // multiple of it.
  explicit UpdateClock(Seconds period);

  // A poll at `now` saw a value that the poll at `before` had not seen. The most probable instant
  // of the update that brought it.
  Instant Changed(TimePoint before, TimePoint now);

  // The latest update at or before `now`, whether it showed a new value or not.
  Instant Latest(TimePoint now) const;

  Seconds period() const { return period_; }
  // Enough updates were bracketed to know the phase.
  bool locked() const { return brackets_.size() >= kEnough; }

 private:
  struct Bracket {
    TimePoint after;  // The update came after this …
    TimePoint until;  // … and not after this.
    double count;     // Periods since the first bracket.
  };

  static constexpr std::size_t kEnough = 3;
  static constexpr std::size_t kMost = 48;

  void Remember(TimePoint before, TimePoint now);
  void AdoptLongerPeriod();
  void Fit();
  // By how much all brackets leave room for the phase under `period`; the middle of the room.
  struct Room {
    double width;
    double middle;
  };
  Room RoomFor(double period) const;

  Seconds expected_;
  Seconds period_;
  TimePoint phase_{};  // An update instant of the grid.
  Seconds phase_sigma_;
  std::deque<Bracket> brackets_;
  int since_fit_ = 0;
};

}  // namespace zeus
