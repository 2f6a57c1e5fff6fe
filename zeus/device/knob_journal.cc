#include "zeus/device/knob_journal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <system_error>
#include <utility>

#include "zeus/base/file.h"
#include "zeus/base/file_descriptor.h"
#include "zeus/base/json.h"
#include "zeus/base/log.h"
#include "zeus/base/text.h"
#include "zeus/base/wall_time_text.h"

namespace zeus {
namespace {

namespace fs = std::filesystem;

// A holder talks to a driver, which may take seconds to wake up.
constexpr Seconds kLockPatience{10};
constexpr Seconds kLockRetry{0.002};

// Held while it lives: closing the file releases it.
Result<std::unique_ptr<FileDescriptor>> Lock(const fs::path& folder, Clock& clock) {
  const fs::path path = folder / "lock";
  constexpr mode_t kOwnerOnly = 0600;
  constexpr int kFlags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW;
  auto file = std::make_unique<FileDescriptor>(::open(path.c_str(), kFlags, kOwnerOnly));
  if (!file->valid()) return FileError(path, errno).While("journal of knobs");
  const TimePoint deadline = clock.Now() + kLockPatience;
  while (::flock(file->get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) return FileError(path, errno);
    if (clock.Now() > deadline) {
      return Error{ErrorCode::kUnavailable,
                   fmt::format("{} is held by a process that does not go on: see fuser {}",
                               path.string(), path.string())};
    }
    clock.SleepFor(kLockRetry);
  }
  return file;
}

Status Remove(const fs::path& file) {
  std::error_code failure;
  fs::remove(file, failure);
  return failure ? Status(FileError(file, failure.value())) : Ok();
}

// Whether the driver forgot its settings since.
bool DriverReloadedSince(const KnobEntry& entry, KnobActuator& actuator) {
  if (entry.device.driver != actuator.device().driver) return true;
  const auto mark = entry.epoch_mark ? actuator.EpochMark() : std::nullopt;
  return mark && *mark < *entry.epoch_mark;
}

Error Held(const KnobEntry& entry, const std::string& device, const fs::path& procfs) {
  if (const auto self = ThisProcess(procfs); self.ok() && self.value() == entry.owner) {
    return {ErrorCode::kUnavailable,
            fmt::format("the {} is held by process {}, which is this one: put it back where it was "
                        "set",
                        KnobName(entry.kind, device), entry.owner.pid)};
  }
  return {ErrorCode::kUnavailable,
          fmt::format("the {} is held by process {} (since {}): wait for it, or observe only",
                      KnobName(entry.kind, device), entry.owner.pid, ToText(entry.since))};
}

std::string ToText(const KnobState& state) {
  return state.setting ? ToText(*state.setting) : "not locked";
}

}  // namespace

KnobJournal::KnobJournal(Clock& clock, fs::path folder, fs::path procfs)
    : clock_(clock), folder_(std::move(folder)), procfs_(std::move(procfs)) {}

Result<KnobState> KnobJournal::Take(KnobActuator& actuator) {
  ZEUS_TRY(const auto lock, Lock(folder_, clock_));
  ZEUS_RETURN_IF_ERROR(Settle(actuator));
  ZEUS_TRY(KnobEntry entry, NewEntry(actuator));
  const fs::path file = folder_ / KnobFileName(entry.kind, entry.device);
  ZEUS_RETURN_IF_ERROR(ReplaceFile(file, ToJson(entry).dump(2) + "\n", Readers::kOwnerOnly));
  return entry.before;
}

Result<KnobEntry> KnobJournal::NewEntry(KnobActuator& actuator) const {
  KnobEntry entry{.kind = actuator.kind(), .device = actuator.device(), .since = clock_.WallNow()};
  ZEUS_TRY(entry.before, actuator.Read());
  ZEUS_TRY(entry.boot_id, ReadLine(procfs_ / "sys/kernel/random/boot_id"));
  ZEUS_TRY(entry.owner, ThisProcess(procfs_));
  entry.epoch_mark = actuator.EpochMark();
  return entry;
}

Status KnobJournal::Release(const KnobActuator& actuator) {
  ZEUS_TRY(const auto lock, Lock(folder_, clock_));
  const fs::path file = folder_ / KnobFileName(actuator.kind(), actuator.device());
  const auto entry = Read(file);
  if (!entry) return Ok();
  ZEUS_TRY(const ProcessIdentity self, ThisProcess(procfs_));
  return entry->owner == self ? Remove(file) : Ok();
}

Result<KnobJournal::Repair> KnobJournal::PutBackLeftover(KnobActuator& actuator) {
  ZEUS_TRY(const auto lock, Lock(folder_, clock_));
  return Settle(actuator);
}

Result<KnobJournal::Repair> KnobJournal::Settle(KnobActuator& actuator) {
  const fs::path file = folder_ / KnobFileName(actuator.kind(), actuator.device());
  const auto entry = Read(file);
  if (!entry) return Repair::kNothingToDo;
  const std::string knob = KnobName(entry->kind, actuator.device().name);
  const Standing standing = StandingOf(*entry);
  if (standing == Standing::kHeld) return Held(*entry, actuator.device().name, procfs_);
  if (standing == Standing::kOutdated || DriverReloadedSince(*entry, actuator)) {
    log::Info("the {} was left changed before the last boot or reload of the driver: forgotten",
              knob);
    ZEUS_RETURN_IF_ERROR(Remove(file));
    return Repair::kDiscarded;
  }
  const Status put_back = actuator.PutBack(entry->before);
  if (!put_back.ok()) {
    return put_back.error().While(
        fmt::format("repair the {}, left by process {}", knob, entry->owner.pid));
  }
  log::Warning("the {} was left changed by process {}, which is gone: put back to {}", knob,
               entry->owner.pid, ToText(entry->before));
  ZEUS_RETURN_IF_ERROR(Remove(file));
  return Repair::kRestored;
}

std::optional<KnobEntry> KnobJournal::Read(const fs::path& file) const {
  const auto text = ReadSmallFile(file);
  if (!text.ok() && text.error().code == ErrorCode::kNotFound) return std::nullopt;
  auto entry = text.ok() ? ParseKnobEntry(text.value()) : Result<KnobEntry>(text.error());
  if (entry.ok()) return std::move(entry).value();
  log::Warning("{} is damaged ({}) and is put aside as *.bad: check the limit with zeus doctor",
               Printable(file.string()), entry.error().message);
  std::error_code ignored;
  fs::rename(file, file.string() + ".bad", ignored);
  return std::nullopt;
}

KnobJournal::Standing KnobJournal::StandingOf(const KnobEntry& entry) const {
  const auto boot_id = ReadLine(procfs_ / "sys/kernel/random/boot_id");
  if (boot_id.ok() && boot_id.value() != entry.boot_id) return Standing::kOutdated;
  return IsRunning(entry.owner, procfs_) ? Standing::kHeld : Standing::kLeft;
}

Result<std::vector<KnobJournal::Record>> KnobJournal::List() const {
  std::vector<fs::path> files;
  std::error_code failure;
  for (const auto& file : fs::directory_iterator(folder_, failure))
    if (file.path().extension() == ".json") files.push_back(file.path());
  if (failure) return FileError(folder_, failure.value());
  std::ranges::sort(files);
  std::vector<Record> records;
  for (const fs::path& file : files) {
    const auto text = ReadSmallFile(file);
    if (!text.ok()) continue;  // Released meanwhile.
    auto entry = ParseKnobEntry(text.value());
    if (!entry.ok()) {
      log::Warning("{} is damaged: {}", Printable(file.string()), entry.error().message);
      continue;
    }
    const Standing standing = StandingOf(entry.value());
    records.push_back({.entry = std::move(entry).value(), .standing = standing});
  }
  return records;
}

Status KnobJournal::Discard(const KnobEntry& entry) {
  ZEUS_TRY(const auto lock, Lock(folder_, clock_));
  const fs::path file = folder_ / KnobFileName(entry.kind, entry.device);
  const auto present = Read(file);
  return present && StandingOf(*present) == Standing::kOutdated ? Remove(file) : Ok();
}

}  // namespace zeus
