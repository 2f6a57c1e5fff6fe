#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"
#include "zeus/wire/node/lease.h"

namespace zeus::daemon {

// One change of a knob or of a lease, or a refused request.
struct AuditEntry {
  std::uint64_t number = 0;  // Given by the log; grows by one with each entry.
  std::string time{};        // RFC 3339; given by the log.
  std::string event{};       // "lease created", "knob set", "knob put back", "refused", …
  std::string subject{};     // "uid:1001"
  std::int64_t pid = 0;
  std::string executable{};
  std::string lease{};
  std::string job{};
  std::optional<wire::KnobKey> knob{};
  std::string from{};       // "300 W"
  std::string to{};         // The demand.
  std::string effective{};  // The value that holds then.
  std::string reason{};
  std::string outcome{};  // "ok", or the error in words.
  Seconds duration{};
};

// Every change of a knob or a lease, its author and values, and why it ended: one JSON line each,
// in a file that is only appended to. Append() never waits for the disk: a thread writes, and lines
// that it cannot write are counted and lost. The newest entries are also kept in memory, for GET
// /v1/audit. Thread-safe; the clock must outlive it.
class AuditLog {
 public:
  static constexpr std::size_t kKept = 4096;        // Entries in memory.
  static constexpr std::size_t kMostQueued = 8192;  // Lines that wait for the disk.

  // An empty path: entries are kept in memory only. kPermissionDenied and kUnavailable name the
  // file.
  static Result<std::unique_ptr<AuditLog>> Open(std::filesystem::path file, Clock& clock);
  ~AuditLog();  // Writes what is queued, as far as that takes less than a second.
  AuditLog(const AuditLog&) = delete;
  AuditLog& operator=(const AuditLog&) = delete;

  void Append(AuditEntry entry);
  // A refused request: at most ten a second are logged for each subject.
  void AppendRefusal(AuditEntry entry);

  // Entries after `number`, oldest first, at most `limit`; of one subject unless it is empty.
  std::vector<AuditEntry> After(std::uint64_t number, std::size_t limit,
                                const std::string& subject) const;

  // Opens the file again, after it was rotated.
  Status Reopen();
  std::uint64_t lost() const;

  // Waits until the lines that were appended so far are on the disk or lost.
  bool WaitUntilWritten(Seconds timeout) const;

 private:
  class State;
  explicit AuditLog(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

Json ToJson(const AuditEntry& entry);

}  // namespace zeus::daemon
