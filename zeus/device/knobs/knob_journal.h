#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/file_lock.h"
#include "zeus/base/json_fwd.h"
#include "zeus/base/process.h"
#include "zeus/base/result.h"
#include "zeus/device/knobs/knob_actuator.h"

namespace zeus {

// One line of memory about a knob that is not at its original value: docs/formats.md.
struct KnobEntry {
  KnobKind kind = KnobKind::kGpuPowerLimit;
  KnobDevice device{};
  KnobState before{};
  // Settings that the owner may have made: the last setting, and the next one while it is under
  // way. Empty in entries of earlier versions.
  std::vector<Setting> ours{};
  std::string boot_id{};               // Settings do not survive a boot.
  std::optional<Joules> epoch_mark{};  // KnobActuator::EpochMark() at that time.
  ProcessIdentity owner{};
  std::optional<std::uint32_t>
      user{};  // The uid that wrote the entry; earlier versions did not say.
  // Whether the owner keeps the file beside this one locked while it lives. Earlier versions did
  // not: their owners are looked up by pid.
  bool locked = false;
  WallTime since{};
};

Json ToJson(const KnobEntry& entry);
// kInvalidArgument when a field is missing or means nothing.
Result<KnobEntry> ParseKnobEntry(std::string_view text);

// The same for every process: "gpu_power_limit.GPU-0123.json".
std::string KnobFileName(KnobKind kind, const KnobDevice& device);

// "process 4711", "process 4711 (uid 998)", "process 7 of another pid namespace"
std::string OwnerText(const KnobEntry& entry, const std::string& this_namespace);

// Keeps in files what knobs were before they were turned, so that a killed process leaves behind
// how to repair it, and so that two processes do not turn the same knob. There is one file per
// device and kind in a folder, and beside it a file that its owner keeps locked while it lives:
// every process that sees the folder, from another container too, sees which owners are alive.
// Thread-safe.
class KnobJournal {
 public:
  // The folder must exist. The clock must outlive it.
  KnobJournal(Clock& clock, std::filesystem::path folder, std::filesystem::path procfs = "/proc");

  const std::filesystem::path& folder() const { return folder_; }
  // Ok, or why no knob can be taken: kUnavailable when the folder cannot be written.
  Status Usable() const;

  // To be called before the knob is turned to `first`. First repairs what a dead owner left, then
  // returns the state to restore later. kUnavailable while this or another process holds the knob.
  Result<KnobState> Take(KnobActuator& actuator, const Setting& first);

  // Takes over a knob from a dead owner as it is, for one that goes on with the owner's work: as
  // Take(), but the state to restore and the settings that may be in force are those of the entry,
  // which is returned. nullopt when there is none that is worth it: the knob was turned by another
  // program, or the entry is outdated. PutBackLeftover() settles that.
  Result<std::optional<KnobEntry>> Adopt(KnobActuator& actuator);

  // To be called before a knob that was taken is turned again: what is to be put back by now, and
  // the settings that may be found in force.
  Status Note(const KnobActuator& actuator, const KnobState& before, std::vector<Setting> ours);

  // The knob was put back. Entries of others are left alone.
  Status Release(const KnobActuator& actuator);

  // Whether a knob may be put back although a living process holds it.
  enum class Holders { kRespect, kOverrule };

  enum class Repair {
    kNothingToDo,
    kRestored,
    kDiscarded,  // The entry is of an earlier boot or driver epoch: the knob is at its default
                 // already.
    kNotOurs,    // Another program has set it since: it is left as it is.
  };
  // Restores what a dead owner left. kUnavailable while a living process holds the knob. `found` is
  // called with the entry before the knob is written, with the folder locked.
  using Found = std::function<void(const KnobEntry& entry)>;
  Result<Repair> PutBackLeftover(KnobActuator& actuator, Holders holders = Holders::kRespect,
                                 const Found& found = nullptr);

  // Sets the knob to the default of its driver, forgets its entry, damaged or not, and returns the
  // setting as text. kUnavailable while a living process holds the knob.
  Result<std::string> PutToDefault(KnobActuator& actuator, Holders holders = Holders::kRespect);

  enum class Standing { kHeld, kLeft, kOutdated };
  struct Record {
    KnobEntry entry;
    Standing standing;  // As far as it can be told without the device.
  };
  // Readable entries, sorted by file name.
  Result<std::vector<Record>> List() const;

  // Files that should be entries and cannot be read: what their knobs were is not known.
  struct Damage {
    std::filesystem::path file;
    std::string reason;
  };
  Result<std::vector<Damage>> Damaged() const;

  // Whether there is a readable entry, or a living holder, of this knob.
  bool Knows(KnobKind kind, const KnobDevice& device) const;

  // Whether another living process holds this knob.
  bool IsHeldByOther(KnobKind kind, const KnobDevice& device) const;

  // Forgets an entry whose device is not needed to see that it is outdated.
  Status Discard(const KnobEntry& entry);

 private:
  // A knob that this process holds.
  struct Holding {
    std::unique_ptr<FileLock> lock;
    KnobEntry entry;
  };

  // These need the lock of the folder.
  Result<Repair> PutBackIfLeft(KnobActuator& actuator, Holders holders,
                               const Found& found = nullptr);
  Status CheckFree(const std::filesystem::path& file, const KnobActuator& actuator,
                   const std::optional<KnobEntry>& entry) const;
  std::optional<KnobEntry> Read(const std::filesystem::path& file) const;
  Result<KnobEntry> NewEntry(KnobActuator& actuator) const;
  // Keeps the knob locked from now on, and writes the entry.
  Status Hold(KnobActuator& actuator, KnobEntry entry);
  Status Write(const KnobEntry& entry) const;
  Status Forget(const std::filesystem::path& file, Holders holders) const;

  Standing FindStanding(const KnobEntry& entry) const;
  std::filesystem::path LockFile(KnobKind kind, const KnobDevice& device) const;
  Error Held(const KnobActuator& actuator, const std::optional<KnobEntry>& entry) const;
  Result<std::vector<std::filesystem::path>> Files() const;

  Clock& clock_;
  const std::filesystem::path folder_;
  const std::filesystem::path procfs_;
  mutable std::mutex mutex_;
  std::map<std::string, Holding> held_;  // By file name; guarded by mutex_.
};

// Returns this user's journal folder, the first of these that can be written: ZEUS_KNOB_DIR,
// /run/zeus/knobs (root, and the user of the daemon), $XDG_RUNTIME_DIR/zeus/knobs,
// /tmp/zeus-knobs-<uid>. Creates it if it is missing. kPermissionDenied when it belongs to another
// user, as below.
Result<std::filesystem::path> KnobFolder();

// Checks that nobody can forge entries of a journal's folder: it belongs to this user or to root,
// and nobody else may write it. That of the machine may belong to the daemon's user, which root
// trusts there: the folder above it is root's.
enum class KnobFolderUse { kOfUser, kOfMachine };
Status CheckKnobFolder(const std::filesystem::path& folder, KnobFolderUse use);

}  // namespace zeus
