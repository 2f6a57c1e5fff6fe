#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/monitor/activity_layout.h"

namespace zeus::activity {

// A process without a sign of life for this long is gone.
inline constexpr Seconds kSilence{3};

// News of a process that uses nothing are awaited for this long: several visits of its recorder.
inline constexpr Seconds kPatience{0.25};

// What this process knows about another process's slot. Speaks of this process's devices: what the
// other does elsewhere is left out. One thread.
class SlotFollower {
 public:
  struct News {
    TimePoint time;
    unsigned device;
    double weight;
  };
  static constexpr unsigned kNotOurs = ~0U;

  // `device_of_key`: for each key of the file the number of our device, or kNotOurs.
  SlotFollower(const Slot& slot, const Journal& journal, std::span<const unsigned> device_of_key,
               unsigned device_count);

  // Begins with what the process does at `now` instead of with its first event.
  void StartAt(TimePoint now);

  // Reads what is new, and notices when the process goes silent or comes back.
  void Follow(TimePoint now);

  // From this moment on the process may have done something that it did not announce yet. Not
  // later than `now`.
  TimePoint KnownUntil(TimePoint now) const;

  // Moves news up to `horizon` to `settled`, in order of time.
  void TakeUntil(TimePoint horizon, std::vector<News>& settled);

  // How often events were overwritten before they were read.
  std::uint64_t overruns() const { return overruns_; }

 private:
  bool Alive(TimePoint now) const;
  bool MayUseOurs() const;
  TimePoint LastSign() const;
  bool ReadEvents(TimePoint now);
  void TakeWeights(TimePoint time);
  void Add(TimePoint time, unsigned device, double weight);

  const Slot& slot_;
  const Journal& journal_;
  std::span<const unsigned> device_of_key_;
  std::uint64_t position_ = 0;   // Of the next event to read.
  TimePoint newest_{};           // Time of the last event that was read.
  std::vector<double> weights_;  // By device, after all news.
  std::deque<News> news_;
  bool silent_ = false;
  std::uint64_t overruns_ = 0;
};

}  // namespace zeus::activity
