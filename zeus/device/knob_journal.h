#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/result.h"
#include "zeus/device/knob_actuator.h"
#include "zeus/device/knob_entry.h"

namespace zeus {

// Remembers in files what knobs were before somebody turned them, so that a process which is killed
// leaves behind how to repair it, and so that two processes do not turn the same knob. One file per
// device and kind in a folder; a lock is held around each change of it. Thread-safe.
class KnobJournal {
 public:
  // The folder must exist. The clock must outlive it.
  KnobJournal(Clock& clock, std::filesystem::path folder, std::filesystem::path procfs = "/proc");

  const std::filesystem::path& folder() const { return folder_; }

  // To be called before the knob is turned: what there is to put back. First repairs what a dead
  // owner left. kUnavailable while somebody else, or this process, holds the knob.
  Result<KnobState> Take(KnobActuator& actuator);

  // The knob was put back. Entries of others are left alone.
  Status Release(const KnobActuator& actuator);

  enum class Repair {
    kNothingToDo,
    kRestored,
    kDiscarded,  // Of an earlier boot or driver epoch: the knob is at its default already.
  };
  // Puts back what a dead owner left. kUnavailable while somebody holds the knob.
  Result<Repair> PutBackLeftover(KnobActuator& actuator);

  enum class Standing { kHeld, kLeft, kOutdated };
  struct Record {
    KnobEntry entry;
    Standing standing;  // As far as it can be told without the device.
  };
  // Readable entries, sorted by file name.
  Result<std::vector<Record>> List() const;

  // Forgets an entry whose device is not needed to see that it is outdated.
  Status Discard(const KnobEntry& entry);

 private:
  // These need the lock.
  Result<Repair> Settle(KnobActuator& actuator);
  std::optional<KnobEntry> Read(const std::filesystem::path& file) const;
  Result<KnobEntry> NewEntry(KnobActuator& actuator) const;

  Standing StandingOf(const KnobEntry& entry) const;

  Clock& clock_;
  const std::filesystem::path folder_;
  const std::filesystem::path procfs_;
};

// Where this user's journal is: ZEUS_KNOB_DIR, /run/zeus/knobs (root), $XDG_RUNTIME_DIR/zeus/knobs
// or /tmp/zeus-knobs-<uid>, the first that can be written; made if need be. kPermissionDenied when
// it belongs to somebody else.
Result<std::filesystem::path> KnobFolder();

}  // namespace zeus
