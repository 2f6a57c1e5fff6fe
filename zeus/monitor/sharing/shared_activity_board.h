#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/result.h"
#include "zeus/monitor/sharing/activity_board.h"
#include "zeus/monitor/sharing/activity_file.h"

namespace zeus::activity {

// A process without a sign of life for this long is gone.
inline constexpr Seconds kSilence{3};

// News of a process that uses nothing are awaited for this long: several visits of its recorder.
inline constexpr Seconds kNewsTimeout{0.25};

// Follows the slot of another process, as far as it concerns devices that this process sees too.
// One thread.
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
  std::uint64_t position_ = 0;   // Position of the next event to read.
  TimePoint newest_{};           // Time of the last event that was read.
  std::vector<double> weights_;  // By device, after all news.
  std::deque<News> news_;
  bool silent_ = false;
  std::uint64_t overruns_ = 0;
};

}  // namespace zeus::activity

namespace zeus {

// A program that measures another one as a whole, the host, and the processes of that program,
// which may measure themselves: `zeus train` and its command. What both claim is the same work, so
// the host and its members leave each other out, and third parties count the larger claim of the
// two. Members among themselves share like any other processes.
struct ActivityGroup {
  std::uint64_t id = 0;  // 0: of no group. Less than 2^63.
  bool host = false;

  // "host:5f3a…" or "5f3a…", in hexadecimal digits; anything else is no group.
  static ActivityGroup Parse(std::string_view text);
  // Reads ZEUS_ACTIVITY_GROUP.
  static ActivityGroup FromEnvironment();
  // The group of a monitor that this thread opens now: that of its ScopedActivityGroup, or that of
  // the environment.
  static ActivityGroup Current();
  // Returns the host of a new group, or of that in which this process was started itself: for a
  // monitor that measures a command as a whole, see ScopedActivityGroup. A program may have several
  // such monitors, each with its command.
  static ActivityGroup NewHost();
  // Makes all monitors of this process hosts of one group. It changes the environment, so it is for
  // the begin of a program only, before the first thread.
  static void BecomeHost();
  // The same for several programs that measure the same command together: hosts of one group. `id`
  // is below 2^63, and not 0.
  static void BecomeHostOf(std::uint64_t id);
  // "ZEUS_ACTIVITY_GROUP=…" for the command of a host; empty where there is nothing to say.
  static std::string VariableOfMembers();

  std::string ToText() const;  // As Parse() reads it.
  // "ZEUS_ACTIVITY_GROUP=…" for the command of this host.
  std::string Variable() const;
  std::uint64_t number() const { return id * 2 + (host ? 1 : 0); }
};

// While an object lives, the monitors that its thread opens belong to this group. One owner.
class ScopedActivityGroup {
 public:
  explicit ScopedActivityGroup(ActivityGroup group);
  ~ScopedActivityGroup();
  ScopedActivityGroup(const ScopedActivityGroup&) = delete;
  ScopedActivityGroup& operator=(const ScopedActivityGroup&) = delete;

 private:
  const ActivityGroup before_;
};

// The activity board of one user's processes on one machine, in a file that they share.
//
// Poll(now) also promises the others that everything before `now` was announced. What it returns
// ends where the promises of all processes with devices of ours reach, and kMargin before `now`.
// A process that does not come is awaited for activity::kNewsTimeout if it uses nothing, and for
// activity::kSilence if it does: then it was gone since its last sign. What arrives even later
// counts from the moment up to which everything had been told.
//
// Times must be those of CLOCK_MONOTONIC (SystemClock), which all processes have in common; tests
// may agree on another. A fork()ed child is silent: it neither writes nor reads, and opens a board
// of its own. Announce() and Poll() are thread-safe against each other; Poll() is for one thread.
class SharedActivityBoard final : public ActivityBoard {
 public:
  static constexpr Seconds kMargin{0.01};

  // `device_keys` name hardware, not positions, because processes see different devices under the
  // same number: "GPU-6e0a…", "cpu:<boot id>:0". Up to 63 characters each, all different.
  // kUnavailable when the file is damaged or of another version of Zeus, or when 256 processes have
  // it open; kPermissionDenied when it belongs to another user. `clock` must outlive the board.
  static Result<std::unique_ptr<SharedActivityBoard>> Open(const std::filesystem::path& path,
                                                           std::vector<std::string> device_keys,
                                                           Clock& clock, ActivityGroup group = {});
  // Leaves: the others see at once that this process uses nothing any more.
  ~SharedActivityBoard() override;
  SharedActivityBoard(const SharedActivityBoard&) = delete;
  SharedActivityBoard& operator=(const SharedActivityBoard&) = delete;

  void Announce(TimePoint time, unsigned device, double weight) override;
  std::vector<Change> Poll(TimePoint now) override;
  TimePoint known_until() const override { return known_until_; }

  // How often another process wrote more than the board holds between two calls of Poll(): the
  // changes in between were lost, and only their outcome is known.
  std::uint64_t overruns() const;

 private:
  // This process's right to write: a slot, as long as its generation is the one given here.
  struct Membership {
    activity::Slot* slot;
    activity::Journal* journal;
    std::uint64_t generation;

    bool holds() const {
      return slot != nullptr && slot->generation.load(std::memory_order_relaxed) == generation;
    }
  };

  SharedActivityBoard(std::unique_ptr<activity::ActivityFile> file,
                      std::vector<std::string> device_keys, Clock& clock, ActivityGroup group);

  Status Join();
  Status RegisterKeys(TimePoint now);
  Result<std::size_t> ClaimSlot(TimePoint now);
  void FollowOthers(TimePoint now);
  void FollowNewcomers();
  bool forked() const;
  double OthersOn(unsigned device) const;
  std::vector<Change> Settle(TimePoint told_until);

  const std::unique_ptr<activity::ActivityFile> file_;
  const std::vector<std::string> device_keys_;
  Clock& clock_;
  const ActivityGroup group_;
  const unsigned fork_generation_;

  std::mutex mutex_;  // Guards the three below, between Announce() and a new membership.
  Membership membership_{};
  std::vector<std::uint64_t> key_of_device_;
  std::vector<double> own_weights_;

  // Only Poll() uses these.
  std::array<unsigned, activity::kKeys> device_of_key_{};
  struct Other {
    const activity::Slot* slot;
    activity::SlotFollower follower;
    std::vector<double> weights;  // By device, as far as it was told.
  };
  std::vector<std::unique_ptr<Other>> others_;  // By slot; null for our own.
  std::vector<double> told_;                    // The weight that was published, by device.
  TimePoint known_until_{};
  std::uint64_t earlier_overruns_ = 0;
};

}  // namespace zeus
