#include "zeus/device/knobs/knob_journal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cmath>
#include <cstdlib>
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

constexpr const char* kSchema = "zeus.knob/1";

Json BeforeJson(const KnobState& before) {
  Json json = {{"setting", nullptr}};  // A clock that was not locked.
  if (before.setting) json["setting"] = ToNumber(*before.setting);
  if (before.persistence) json["persistence"] = *before.persistence == Persistence::kOn;
  return json;
}

Result<KnobState> ParseBefore(const Json& json, KnobKind kind) {
  ZEUS_TRY(const auto setting, GetOptionalField<double>(json, "setting"));
  ZEUS_TRY(const auto persistence, GetOptionalField<bool>(json, "persistence"));
  KnobState before;
  if (setting) before.setting = SettingOf(kind, *setting);
  if (persistence) before.persistence = *persistence ? Persistence::kOn : Persistence::kOff;
  const bool nothing_to_set =
      IsClock(kind) || (kind == KnobKind::kPersistence && before.persistence);
  const bool meaningful = setting ? std::isfinite(*setting) && *setting > 0 : nothing_to_set;
  if (!meaningful) return Error{ErrorCode::kInvalidArgument, "the setting before is not a setting"};
  return before;
}

Result<KnobDevice> ParseDevice(const Json& json) {
  KnobDevice device;
  ZEUS_TRY(device.name, GetField<std::string>(json, "name"));
  ZEUS_TRY(device.uuid, GetField<std::string>(json, "uuid"));
  ZEUS_TRY(device.pci_address, GetField<std::string>(json, "pci"));
  ZEUS_TRY(device.driver, GetField<std::string>(json, "driver"));
  return device;
}

Result<ProcessIdentity> ParseOwner(const Json& json) {
  ProcessIdentity owner;
  ZEUS_TRY(owner.pid, GetField<std::int64_t>(json, "pid"));
  ZEUS_TRY(owner.start_ticks, GetField<std::uint64_t>(json, "start_ticks"));
  ZEUS_TRY(owner.pid_namespace, GetField<std::string>(json, "pid_namespace"));
  return owner;
}

Result<KnobKind> ParseEntryKind(const std::string& name) {
  if (name == KnobKindName(KnobKind::kPersistence)) return KnobKind::kPersistence;
  return ParseKnobKind(name);
}

Result<KnobEntry> FromJson(const Json& json) {
  ZEUS_TRY(const auto schema, GetField<std::string>(json, "schema"));
  if (schema != kSchema)
    return Error{ErrorCode::kInvalidArgument, fmt::format("the schema is not {}", kSchema)};
  KnobEntry entry;
  ZEUS_TRY(const auto kind, GetField<std::string>(json, "knob"));
  ZEUS_TRY(entry.kind, ParseEntryKind(kind));
  ZEUS_TRY(const auto device, GetField<Json>(json, "device"));
  ZEUS_TRY(entry.device, ParseDevice(device));
  ZEUS_TRY(const auto before, GetField<Json>(json, "before"));
  ZEUS_TRY(entry.before, ParseBefore(before, entry.kind));
  ZEUS_TRY(entry.boot_id, GetField<std::string>(json, "boot_id"));
  ZEUS_TRY(const auto mark, GetOptionalField<double>(json, "energy_joules"));
  if (mark) entry.epoch_mark = Joules(*mark);
  ZEUS_TRY(const auto owner, GetField<Json>(json, "owner"));
  ZEUS_TRY(entry.owner, ParseOwner(owner));
  ZEUS_TRY(entry.user, GetOptionalField<std::uint32_t>(owner, "uid"));
  ZEUS_TRY(const auto ours, GetOptionalField<std::vector<double>>(json, "settings"));
  for (const double setting : ours.value_or(std::vector<double>()))
    entry.ours.push_back(SettingOf(entry.kind, setting));
  ZEUS_TRY(const auto locked, GetOptionalField<bool>(json, "locked"));
  entry.locked = locked.value_or(false);
  ZEUS_TRY(const auto since, GetField<std::string>(json, "since"));
  ZEUS_TRY(entry.since, ParseWallTime(since));
  return entry;
}

}  // namespace

Json ToJson(const KnobEntry& entry) {
  Json json = {{"schema", kSchema},
               {"knob", KnobKindName(entry.kind)},
               {"device",
                {{"name", entry.device.name},
                 {"uuid", entry.device.uuid},
                 {"pci", entry.device.pci_address},
                 {"driver", entry.device.driver}}},
               {"before", BeforeJson(entry.before)},
               {"boot_id", entry.boot_id},
               {"energy_joules", nullptr},
               {"owner",
                {{"pid", entry.owner.pid},
                 {"start_ticks", entry.owner.start_ticks},
                 {"pid_namespace", entry.owner.pid_namespace}}},
               {"settings", Json::array()},
               {"locked", entry.locked},
               {"since", ToText(entry.since)}};
  if (entry.user) json["owner"]["uid"] = *entry.user;
  if (entry.epoch_mark) json["energy_joules"] = entry.epoch_mark->value();
  for (const Setting& setting : entry.ours) json["settings"].push_back(ToNumber(setting));
  return json;
}

Result<KnobEntry> ParseKnobEntry(std::string_view text) {
  ZEUS_TRY(const Json json, ParseJson(text));
  if (!json.is_object()) return Error{ErrorCode::kInvalidArgument, "not a JSON object"};
  return FromJson(json);
}

std::string KnobFileName(KnobKind kind, const KnobDevice& device) {
  std::string key = device.uuid;
  if (key.empty()) key = device.pci_address;
  if (key.empty()) key = device.name;
  for (char& c : key)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '-';
  return fmt::format("{}.{}.json", KnobKindName(kind), key);
}

std::string OwnerText(const KnobEntry& entry, const std::string& this_namespace) {
  const bool of_others = entry.user && *entry.user != ::geteuid();
  return fmt::format(
      "process {}{}{}", entry.owner.pid, of_others ? fmt::format(" (uid {})", *entry.user) : "",
      entry.owner.pid_namespace == this_namespace ? "" : " of another pid namespace");
}

// Where the journal of knobs is kept.

namespace {

namespace fs = std::filesystem;

constexpr const char* kFolderOfMachine = "/run/zeus/knobs";

Result<fs::path> Make(const fs::path& folder, KnobFolderUse use = KnobFolderUse::kOfUser) {
  std::error_code failure;
  fs::create_directories(folder.parent_path(), failure);
  constexpr mode_t kOwnerOnly = 0700;
  if (::mkdir(folder.c_str(), kOwnerOnly) != 0 && errno != EEXIST) return FileError(folder, errno);
  ZEUS_RETURN_IF_ERROR(CheckKnobFolder(folder, use));
  // With the capabilities that this process has: access(2) leaves them out.
  if (::faccessat(AT_FDCWD, folder.c_str(), W_OK | X_OK, AT_EACCESS) != 0)
    return FileError(folder, errno);
  return folder;
}

fs::path FromVariable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? fs::path() : fs::path(value);
}

}  // namespace

Status CheckKnobFolder(const fs::path& folder, KnobFolderUse use) {
  struct stat status {};
  if (::lstat(folder.c_str(), &status) != 0) return FileError(folder, errno);
  const uid_t user = ::geteuid();
  const bool trusted = status.st_uid == user || status.st_uid == 0 ||
                       (user == 0 && use == KnobFolderUse::kOfMachine);
  const bool closed = (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
  if (S_ISDIR(status.st_mode) && trusted && closed) return Ok();
  return Error{ErrorCode::kPermissionDenied,
               fmt::format("{} is not a folder that this user alone may write: have it removed, or "
                           "set ZEUS_KNOB_DIR to a folder of yours",
                           Printable(folder.string()))};
}

Result<fs::path> KnobFolder() {
  if (const fs::path chosen = FromVariable("ZEUS_KNOB_DIR"); !chosen.empty()) {
    const bool of_machine = chosen == kFolderOfMachine;
    auto made = Make(chosen, of_machine ? KnobFolderUse::kOfMachine : KnobFolderUse::kOfUser);
    return made.ok() ? made : std::move(made).error().While("ZEUS_KNOB_DIR");
  }
  if (auto made = Make(kFolderOfMachine, KnobFolderUse::kOfMachine); made.ok()) return made;
  if (const fs::path runtime = FromVariable("XDG_RUNTIME_DIR"); !runtime.empty())
    if (auto made = Make(runtime / "zeus/knobs"); made.ok()) return made;
  return Make(fs::temp_directory_path() / fmt::format("zeus-knobs-{}", ::geteuid()));
}

namespace {

namespace fs = std::filesystem;

constexpr const char* kBad = ".bad";

// A holder talks to a driver, which may take seconds to wake up.
constexpr Seconds kLockTimeout{10};
constexpr Seconds kLockRetry{0.002};

// Held while it lives: closing the file releases it.
Result<std::unique_ptr<FileDescriptor>> Lock(const fs::path& folder, Clock& clock) {
  const fs::path path = folder / "lock";
  constexpr mode_t kOwnerOnly = 0600;
  constexpr int kFlags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW;
  auto file = std::make_unique<FileDescriptor>(::open(path.c_str(), kFlags, kOwnerOnly));
  if (!file->valid()) return FileError(path, errno).While("journal of knobs");
  const TimePoint deadline = clock.Now() + kLockTimeout;
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

}  // namespace

KnobJournal::KnobJournal(Clock& clock, fs::path folder, fs::path procfs)
    : clock_(clock), folder_(std::move(folder)), procfs_(std::move(procfs)) {}

Status KnobJournal::Usable() const {
  // With the capabilities that this process has: access(2) leaves them out.
  if (::faccessat(AT_FDCWD, folder_.c_str(), W_OK | X_OK, AT_EACCESS) == 0) return Ok();
  return Error{ErrorCode::kUnavailable, "journal of knobs: " + FileError(folder_, errno).message};
}

fs::path KnobJournal::LockFile(KnobKind kind, const KnobDevice& device) const {
  return (folder_ / KnobFileName(kind, device)).replace_extension(".lock");
}

Error KnobJournal::Held(const KnobActuator& actuator, const std::optional<KnobEntry>& entry) const {
  const std::string knob = KnobName(actuator.kind(), actuator.device().name);
  if (!entry) {
    return {ErrorCode::kUnavailable,
            fmt::format("the {} is held by another process: wait for it, or observe only", knob)};
  }
  const auto self = ThisProcess(procfs_);
  if (self.ok() && self.value() == entry->owner) {
    return {ErrorCode::kUnavailable,
            fmt::format("the {} is held by process {}, which is this one: put it back where it was "
                        "set",
                        knob, entry->owner.pid)};
  }
  const std::string here = self.ok() ? self.value().pid_namespace : "";
  return {ErrorCode::kUnavailable,
          fmt::format("the {} is held by {} (since {}): wait for it, or observe only", knob,
                      OwnerText(*entry, here), zeus::ToText(entry->since))};
}

// --- of this process ---

Result<KnobState> KnobJournal::Take(KnobActuator& actuator, const Setting& first) {
  ZEUS_TRY(const auto lock, Lock(folder_, clock_));
  ZEUS_RETURN_IF_ERROR(PutBackIfLeft(actuator, Holders::kRespect));
  ZEUS_TRY(KnobEntry entry, NewEntry(actuator));
  entry.ours = {first};
  KnobState before = entry.before;
  ZEUS_RETURN_IF_ERROR(Hold(actuator, std::move(entry)));
  return before;
}

Result<std::optional<KnobEntry>> KnobJournal::Adopt(KnobActuator& actuator) {
  ZEUS_TRY(const auto lock, Lock(folder_, clock_));
  const fs::path file = folder_ / KnobFileName(actuator.kind(), actuator.device());
  auto left = Read(file);
  ZEUS_RETURN_IF_ERROR(CheckFree(file, actuator, left));
  if (!left || FindStanding(*left) == Standing::kOutdated || DriverReloadedSince(*left, actuator))
    return std::optional<KnobEntry>();
  ZEUS_TRY(KnobEntry entry, NewEntry(actuator));
  const auto& present = entry.before.setting;
  const auto is_present = [&](const Setting& setting) { return SameSetting(*present, setting); };
  const bool ours = !present || (left->before.setting && is_present(*left->before.setting)) ||
                    std::ranges::any_of(left->ours, is_present);
  if (!ours) return std::optional<KnobEntry>();
  entry.before = left->before;
  entry.ours = left->ours;
  ZEUS_RETURN_IF_ERROR(Hold(actuator, entry));
  return std::optional(std::move(entry));
}

Status KnobJournal::Hold(KnobActuator& actuator, KnobEntry entry) {
  auto alive = FileLock::TryTake(LockFile(actuator.kind(), actuator.device()));
  if (!alive.ok() && alive.error().code == ErrorCode::kUnavailable)
    return Held(actuator, std::nullopt);
  if (!alive.ok()) return std::move(alive).error().While("journal of knobs");
  ZEUS_RETURN_IF_ERROR(Write(entry));
  const std::string name = KnobFileName(entry.kind, entry.device);
  const std::lock_guard guard(mutex_);
  held_.insert_or_assign(name, Holding{std::move(alive).value(), std::move(entry)});
  return Ok();
}

Result<KnobEntry> KnobJournal::NewEntry(KnobActuator& actuator) const {
  KnobEntry entry{.kind = actuator.kind(), .device = actuator.device(), .since = clock_.WallNow()};
  ZEUS_TRY(entry.before, actuator.Read());
  ZEUS_TRY(entry.boot_id, ReadLine(procfs_ / "sys/kernel/random/boot_id"));
  ZEUS_TRY(entry.owner, ThisProcess(procfs_));
  entry.epoch_mark = actuator.EpochMark();
  entry.user = ::geteuid();
  entry.locked = true;
  return entry;
}

// Settings do not survive a loss of power, so that their entries need not either: no wait for a
// disk. The next boot forgets them in any case.
Status KnobJournal::Write(const KnobEntry& entry) const {
  const fs::path file = folder_ / KnobFileName(entry.kind, entry.device);
  return ReplaceFile(file, JsonText(ToJson(entry), 2) + "\n", Readers::kOwnerOnly,
                     Durability::kSurvivesProcess);
}

Status KnobJournal::Note(const KnobActuator& actuator, const KnobState& before,
                         std::vector<Setting> ours) {
  ZEUS_TRY(const auto lock, Lock(folder_, clock_));
  const std::lock_guard guard(mutex_);
  const auto held = held_.find(KnobFileName(actuator.kind(), actuator.device()));
  if (held == held_.end())
    return Error{ErrorCode::kInternal, "a knob that was not taken is being turned"};
  held->second.entry.before = before;
  held->second.entry.ours = std::move(ours);
  return Write(held->second.entry);
}

Status KnobJournal::Release(const KnobActuator& actuator) {
  ZEUS_TRY(const auto lock, Lock(folder_, clock_));
  const std::string name = KnobFileName(actuator.kind(), actuator.device());
  {
    const std::lock_guard guard(mutex_);
    if (held_.erase(name) == 0) return Ok();
  }
  // No process can open the file to lock it now: that needs the lock of the folder.
  ZEUS_RETURN_IF_ERROR(Remove(LockFile(actuator.kind(), actuator.device())));
  return Remove(folder_ / name);
}

// --- of others ---

Result<KnobJournal::Repair> KnobJournal::PutBackLeftover(KnobActuator& actuator, Holders holders,
                                                         const Found& found) {
  ZEUS_TRY(const auto lock, Lock(folder_, clock_));
  return PutBackIfLeft(actuator, holders, found);
}

bool KnobJournal::IsHeldByOther(KnobKind kind, const KnobDevice& device) const {
  const std::string name = KnobFileName(kind, device);
  {
    const std::lock_guard guard(mutex_);
    if (held_.contains(name)) return false;
  }
  const auto entry = Read(folder_ / name);
  if (entry && FindStanding(*entry) == Standing::kHeld) return true;
  const auto held = FileLock::IsHeld(LockFile(kind, device));
  return held.ok() && held.value();
}

Status KnobJournal::CheckFree(const fs::path& file, const KnobActuator& actuator,
                              const std::optional<KnobEntry>& entry) const {
  if (entry && FindStanding(*entry) == Standing::kHeld) return Held(actuator, entry);
  ZEUS_TRY(const bool held, FileLock::IsHeld(fs::path(file).replace_extension(".lock")));
  return held ? Status(Held(actuator, entry)) : Ok();
}

Result<KnobJournal::Repair> KnobJournal::PutBackIfLeft(KnobActuator& actuator, Holders holders,
                                                       const Found& found) {
  const fs::path file = folder_ / KnobFileName(actuator.kind(), actuator.device());
  const auto entry = Read(file);
  if (holders == Holders::kRespect) ZEUS_RETURN_IF_ERROR(CheckFree(file, actuator, entry));
  if (!entry) return Repair::kNothingToDo;
  const std::string knob = KnobName(entry->kind, actuator.device().name);
  if (FindStanding(*entry) == Standing::kOutdated || DriverReloadedSince(*entry, actuator)) {
    log::Info("the {} was left changed before the last boot or reload of the driver: forgotten",
              knob);
    ZEUS_RETURN_IF_ERROR(Forget(file, holders));
    return Repair::kDiscarded;
  }
  if (found) found(*entry);
  const auto put_back = PutBackIfOurs(actuator, entry->before, entry->ours);
  if (!put_back.ok()) {
    return put_back.error().While(
        fmt::format("repair the {}, left by process {}", knob, entry->owner.pid));
  }
  const bool held = FindStanding(*entry) == Standing::kHeld;
  ZEUS_RETURN_IF_ERROR(Forget(file, holders));
  if (put_back.value() == KnobReturn::kNotOurs) return Repair::kNotOurs;
  log::Warning("the {} was {} by process {}{}: put back to {}", knob,
               held ? "held" : "left changed", entry->owner.pid, held ? "" : ", which is gone",
               ToText(entry->before));
  return Repair::kRestored;
}

Result<std::string> KnobJournal::PutToDefault(KnobActuator& actuator, Holders holders) {
  ZEUS_TRY(const auto lock, Lock(folder_, clock_));
  const fs::path file = folder_ / KnobFileName(actuator.kind(), actuator.device());
  if (holders == Holders::kRespect) {
    const auto text = ReadSmallFile(file);
    const auto entry = text.ok() ? ParseKnobEntry(text.value()) : Result<KnobEntry>(text.error());
    ZEUS_RETURN_IF_ERROR(
        CheckFree(file, actuator, entry.ok() ? std::optional(entry.value()) : std::nullopt));
  }
  ZEUS_TRY(std::string setting, actuator.PutToDefault());
  ZEUS_RETURN_IF_ERROR(Forget(file, holders));
  ZEUS_RETURN_IF_ERROR(Remove(file.string() + kBad));
  return setting;
}

// A holder that was overruled keeps its lock: it may turn the knob again.
Status KnobJournal::Forget(const fs::path& file, Holders holders) const {
  if (holders == Holders::kRespect)
    ZEUS_RETURN_IF_ERROR(Remove(fs::path(file).replace_extension(".lock")));
  return Remove(file);
}

std::optional<KnobEntry> KnobJournal::Read(const fs::path& file) const {
  const auto text = ReadSmallFile(file);
  if (!text.ok() && text.error().code == ErrorCode::kNotFound) return std::nullopt;
  // The machine lost its power before an entry of the last boot reached the disk.
  if (text.ok() && text.value().empty()) return std::nullopt;
  auto entry = text.ok() ? ParseKnobEntry(text.value()) : Result<KnobEntry>(text.error());
  if (entry.ok()) return std::move(entry).value();
  log::Warning("{} is damaged ({}) and is put aside as *.bad: check the limit with zeus doctor",
               Printable(file.string()), entry.error().message);
  std::error_code ignored;
  fs::rename(file, file.string() + kBad, ignored);
  return std::nullopt;
}

KnobJournal::Standing KnobJournal::FindStanding(const KnobEntry& entry) const {
  const auto boot_id = ReadLine(procfs_ / "sys/kernel/random/boot_id");
  if (boot_id.ok() && boot_id.value() != entry.boot_id) return Standing::kOutdated;
  if (!entry.locked) return IsRunning(entry.owner, procfs_) ? Standing::kHeld : Standing::kLeft;
  const auto held = FileLock::IsHeld(LockFile(entry.kind, entry.device));
  return held.ok() && !held.value() ? Standing::kLeft : Standing::kHeld;
}

// --- reading ---

Result<std::vector<fs::path>> KnobJournal::Files() const {
  std::vector<fs::path> files;
  std::error_code failure;
  for (const auto& file : fs::directory_iterator(folder_, failure)) files.push_back(file.path());
  if (failure) return FileError(folder_, failure.value());
  std::ranges::sort(files);
  return files;
}

Result<std::vector<KnobJournal::Record>> KnobJournal::List() const {
  ZEUS_TRY(const std::vector<fs::path> files, Files());
  std::vector<Record> records;
  for (const fs::path& file : files) {
    if (file.extension() != ".json") continue;
    const auto text = ReadSmallFile(file);
    if (!text.ok()) continue;  // Released meanwhile, or damaged.
    auto entry = ParseKnobEntry(text.value());
    if (!entry.ok()) continue;
    const Standing standing = FindStanding(entry.value());
    records.push_back({.entry = std::move(entry).value(), .standing = standing});
  }
  return records;
}

Result<std::vector<KnobJournal::Damage>> KnobJournal::Damaged() const {
  ZEUS_TRY(const std::vector<fs::path> files, Files());
  std::vector<Damage> damaged;
  for (const fs::path& file : files) {
    if (file.extension() != ".json" && file.extension() != kBad) continue;
    const auto text = ReadSmallFile(file);
    if (!text.ok() && text.error().code == ErrorCode::kNotFound) continue;
    if (text.ok() && text.value().empty()) continue;  // As Read() has it.
    const auto entry = text.ok() ? ParseKnobEntry(text.value()) : Result<KnobEntry>(text.error());
    if (!entry.ok()) damaged.push_back({.file = file, .reason = entry.error().message});
  }
  return damaged;
}

bool KnobJournal::Knows(KnobKind kind, const KnobDevice& device) const {
  const auto text = ReadSmallFile(folder_ / KnobFileName(kind, device));
  if (text.ok() && ParseKnobEntry(text.value()).ok()) return true;
  const auto held = FileLock::IsHeld(LockFile(kind, device));
  return held.ok() && held.value();
}

Status KnobJournal::Discard(const KnobEntry& entry) {
  ZEUS_TRY(const auto lock, Lock(folder_, clock_));
  const fs::path file = folder_ / KnobFileName(entry.kind, entry.device);
  const auto present = Read(file);
  return present && FindStanding(*present) == Standing::kOutdated ? Remove(file) : Ok();
}

}  // namespace zeus
