#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>

#include "zeus/base/clock.h"
#include "zeus/base/file_descriptor.h"
#include "zeus/base/result.h"
#include "zeus/monitor/activity_layout.h"

namespace zeus::activity {

// The shared file, mapped. Thread-safe as far as its content is.
class ActivityFile {
 public:
  // Creates the file if there is none, and replaces one that is damaged or of another version of
  // Zeus if no process uses it. kPermissionDenied when it belongs to somebody else or others may
  // write it; kUnavailable when it is a link, or cannot be used and is in use.
  static Result<std::unique_ptr<ActivityFile>> Open(const std::filesystem::path& path,
                                                    Clock& clock);
  ~ActivityFile();
  ActivityFile(const ActivityFile&) = delete;
  ActivityFile& operator=(const ActivityFile&) = delete;

  Layout& layout() const { return *layout_; }

  // Held while owners of slots or keys change; a dying process gives it back.
  class Lock {
   public:
    explicit Lock(int descriptor) : descriptor_(descriptor) {}
    Lock(Lock&& other) noexcept : descriptor_(other.descriptor_) { other.descriptor_ = -1; }
    Lock& operator=(Lock&&) = delete;
    ~Lock();

   private:
    int descriptor_;
  };
  // kUnavailable when somebody holds it for a second: a stopped process.
  Result<Lock> Acquire(Clock& clock);

  // Reserves memory for a slot's journal, so that a full file system is an error here and not a
  // SIGBUS later.
  Status ReserveJournal(std::size_t slot);

 private:
  ActivityFile(std::filesystem::path path, int descriptor);

  enum class State { kUsable, kUnknown, kReplaced };
  static Result<std::unique_ptr<ActivityFile>> OpenOnce(const std::filesystem::path& path);
  Result<State> Prepare(Clock& clock);
  Result<bool> IsStillThere() const;
  Status RemoveUnlessInUse();
  Status MarkInUse();
  Status CheckOwner() const;
  Result<State> FormatOrCheck();
  Status Reserve(std::size_t offset, std::size_t size);
  Status Map();

  const std::filesystem::path path_;
  const FileDescriptor file_;
  Layout* layout_ = nullptr;
};

// The file of this user: zeus-activity-<uid> in ZEUS_ACTIVITY_DIR, else in /dev/shm, else in
// XDG_RUNTIME_DIR. kNotFound when there is no such directory.
Result<std::filesystem::path> DefaultActivityPath();

}  // namespace zeus::activity
