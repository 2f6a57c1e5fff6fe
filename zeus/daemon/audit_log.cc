#include "zeus/daemon/audit_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <utility>

#include "zeus/base/file.h"
#include "zeus/base/file_descriptor.h"
#include "zeus/base/json.h"
#include "zeus/base/log.h"
#include "zeus/base/process.h"
#include "zeus/base/text.h"
#include "zeus/base/ticker.h"
#include "zeus/base/wall_time_text.h"

namespace zeus::daemon {
namespace {

namespace fs = std::filesystem;

constexpr Seconds kFlushTimeout{1};
constexpr int kRefusalsPerSecond = 10;
constexpr std::size_t kMostSubjects = 1024;

Result<std::shared_ptr<FileDescriptor>> OpenToAppend(const fs::path& path) {
  constexpr mode_t kOwnerAndGroup = 0640;
  constexpr int kFlags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  auto file = std::make_shared<FileDescriptor>(::open(path.c_str(), kFlags, kOwnerAndGroup));
  if (!file->valid()) return FileError(path, errno).While("audit log");
  return file;
}

// Writes a whole line or, as far as the file allows, nothing.
Status WriteLine(const FileDescriptor& file, std::string_view line, const fs::path& path) {
  struct stat before {};
  const bool regular = ::fstat(file.get(), &before) == 0 && S_ISREG(before.st_mode);
  Status written = WriteAll(file.get(), line, path);
  if (written.ok() || !regular) return written;
  // A disk that is full takes the beginning of a line: the next one would be damaged by it.
  if (::ftruncate(file.get(), before.st_size) != 0)
    log::Debug("{}: {}", Printable(path.string()), FileError(path, errno).message);
  return written;
}

// Counts the refusals of each subject in the present second. Memory is bounded: subjects beyond the
// table share one count.
class RefusalCounts {
 public:
  bool MayLog(const std::string& subject, TimePoint now) {
    if (now - second_ >= Seconds(1)) {
      counts_.clear();
      second_ = now;
    }
    const bool known = counts_.size() < kMostSubjects || counts_.contains(subject);
    return ++counts_[known ? subject : std::string()] <= kRefusalsPerSecond;
  }

 private:
  TimePoint second_{};
  std::unordered_map<std::string, int> counts_;
};

}  // namespace

Json ToJson(const AuditEntry& entry) {
  Json json = {{"number", entry.number}, {"time", entry.time}, {"event", entry.event}};
  const auto add = [&json](const char* name, const std::string& text) {
    if (!text.empty()) json[name] = text;
  };
  add("subject", entry.subject);
  if (entry.pid != 0) json["pid"] = entry.pid;
  add("executable", entry.executable);
  add("lease", entry.lease);
  add("job", entry.job);
  if (entry.knob) {
    json["device"] = entry.knob->device;
    json["knob"] = wire::Name(entry.knob->knob);
  }
  add("from", entry.from);
  add("to", entry.to);
  add("effective", entry.effective);
  add("reason", entry.reason);
  add("outcome", entry.outcome);
  if (entry.duration > Seconds(0)) json["duration_seconds"] = entry.duration.count();
  return json;
}

class AuditLog::State {
 public:
  State(fs::path path, std::shared_ptr<FileDescriptor> file, Clock& clock)
      : path_(std::move(path)),
        clock_(clock),
        boot_(CurrentBootTime().boot),
        file_(std::move(file)) {}

  void Start() {
    writer_.emplace("zeus audit", [this] { return WriteQueued(); });
  }

  ~State() {
    {
      const std::lock_guard lock(mutex_);
      flush_until_ = SystemClock().Now() + kFlushTimeout;
    }
    WaitUntilWritten(kFlushTimeout);
    writer_.reset();
  }

  void Append(AuditEntry entry) {
    entry.time = ToExactText(clock_.WallNow());
    {
      const std::lock_guard lock(mutex_);
      entry.number = ++last_number_;
      if (file_ && queue_.size() >= kMostQueued) {
        ++lost_;
      } else if (file_) {
        queue_.push_back(entry);
      }
      kept_.push_back(std::move(entry));
      if (kept_.size() > kKept) kept_.pop_front();
    }
    if (writer_) writer_->Wake();
  }

  void AppendRefusal(AuditEntry entry) {
    {
      const std::lock_guard lock(mutex_);
      if (!refusals_.MayLog(entry.subject, clock_.Now())) return;
    }
    Append(std::move(entry));
  }

  std::vector<AuditEntry> After(std::uint64_t number, std::size_t limit,
                                const std::string& subject) const {
    std::vector<AuditEntry> found;
    const std::lock_guard lock(mutex_);
    // Numbers follow each other without gaps.
    const std::uint64_t first = kept_.empty() ? 0 : kept_.front().number;
    const std::uint64_t skipped = number < first ? 0 : number - first + 1;
    for (std::size_t i = skipped; i < kept_.size() && found.size() < limit; ++i)
      if (subject.empty() || kept_[i].subject == subject) found.push_back(kept_[i]);
    return found;
  }

  Status Reopen() {
    if (path_.empty()) return Ok();
    ZEUS_TRY(auto file, OpenToAppend(path_));
    const std::lock_guard lock(mutex_);
    file_ = std::move(file);
    return Ok();
  }

  std::uint64_t lost() const { return lost_; }

  bool WaitUntilWritten(Seconds timeout) const {
    std::unique_lock lock(mutex_);
    return written_.wait_for(lock, timeout, [this] { return queue_.empty() && !writing_; });
  }

 private:
  // Only the writer's thread calls it: lines stay in their order.
  TimePoint WriteQueued() {
    std::unique_lock lock(mutex_);
    while (!queue_.empty()) {
      if (flush_until_ && SystemClock().Now() > *flush_until_) {
        lost_ += queue_.size();
        queue_.clear();
        break;
      }
      const AuditEntry entry = std::move(queue_.front());
      queue_.pop_front();
      writing_ = true;
      const std::shared_ptr<FileDescriptor> file = file_;
      lock.unlock();
      Json json = ToJson(entry);
      json["boot_id"] = boot_;
      NoteOutcome(WriteLine(*file, JsonText(json) + "\n", path_));
      lock.lock();
      writing_ = false;
    }
    written_.notify_all();
    return Ticker::kWhenWoken;
  }

  void NoteOutcome(const Status& written) {
    if (!written.ok()) ++lost_;
    if (written.ok() != working_) {
      working_ = written.ok();
      if (working_) log::Warning("audit log: works again; {} lines are lost", lost_.load());
      if (!working_) log::Warning("audit log: {}: lines are lost", written.error().message);
    }
  }

  const fs::path path_;
  Clock& clock_;
  const std::string boot_;
  std::atomic<std::uint64_t> lost_{0};
  bool working_ = true;  // Used by the writer's thread only.

  mutable std::mutex mutex_;
  mutable std::condition_variable written_;
  std::shared_ptr<FileDescriptor> file_;    // Guarded by mutex_; null: memory only.
  std::deque<AuditEntry> kept_;             // Guarded by mutex_.
  std::deque<AuditEntry> queue_;            // Guarded by mutex_.
  bool writing_ = false;                    // Guarded by mutex_.
  std::optional<TimePoint> flush_until_{};  // Guarded by mutex_.
  std::uint64_t last_number_ = 0;           // Guarded by mutex_.
  RefusalCounts refusals_;                  // Guarded by mutex_.

  std::optional<Ticker> writer_;  // The last member: its thread uses the others.
};

Result<std::unique_ptr<AuditLog>> AuditLog::Open(fs::path file, Clock& clock) {
  std::shared_ptr<FileDescriptor> opened;
  if (!file.empty()) {
    ZEUS_TRY(opened, OpenToAppend(file));
  }
  const bool to_file = opened != nullptr;
  auto state = std::make_unique<State>(std::move(file), std::move(opened), clock);
  try {
    if (to_file) state->Start();
  } catch (const std::system_error&) {
    return NoThreadError().While("audit log");
  }
  return std::unique_ptr<AuditLog>(new AuditLog(std::move(state)));
}

AuditLog::AuditLog(std::unique_ptr<State> state) : state_(std::move(state)) {}
AuditLog::~AuditLog() = default;

void AuditLog::Append(AuditEntry entry) { state_->Append(std::move(entry)); }
void AuditLog::AppendRefusal(AuditEntry entry) { state_->AppendRefusal(std::move(entry)); }

std::vector<AuditEntry> AuditLog::After(std::uint64_t number, std::size_t limit,
                                        const std::string& subject) const {
  return state_->After(number, limit, subject);
}

Status AuditLog::Reopen() { return state_->Reopen(); }
std::uint64_t AuditLog::lost() const { return state_->lost(); }

bool AuditLog::WaitUntilWritten(Seconds timeout) const { return state_->WaitUntilWritten(timeout); }

}  // namespace zeus::daemon
