#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "zeus/base/clock.h"
#include "zeus/base/file_descriptor.h"
#include "zeus/base/result.h"
#include "zeus/base/ticker.h"
#include "zeus/http/message.h"

namespace zeus::http {

// Writes one JSON line per request. A thread of its own writes the lines, so that neither a slow
// disk nor a stalled reader of standard error delays a request: lines that do not fit into the
// buffer are dropped, counted, and mentioned in the log once. Thread-safe.
class AccessLog {
 public:
  // Appends to the file; "-" is standard error. Returns an error when the file cannot be opened.
  static Result<std::unique_ptr<AccessLog>> Open(const std::string& path, const Clock& clock);
  ~AccessLog();  // Writes the remaining lines for a fraction of a second at most.
  AccessLog(const AccessLog&) = delete;
  AccessLog& operator=(const AccessLog&) = delete;

  void Add(const FinishedRequest& request);
  // Adds a line that the caller has made, without its end.
  void AddLine(std::string_view line);
  // Makes the writer open the file by its name again soon, after a rotation of logs moved it away.
  void Reopen() { reopen_ = true; }
  std::uint64_t dropped_lines() const { return dropped_; }

 private:
  AccessLog(std::string path, std::unique_ptr<FileDescriptor> file, const Clock& clock);

  TimePoint Step();
  void OpenAgain();
  // Writes until everything is written, or the file accepts nothing for `timeout`.
  void Flush(Seconds timeout);
  void FetchLines();
  bool WriteSome();  // Returns false when the file accepts nothing at the moment.
  void ReportRecovery();
  void DropRest(int error_number);

  const std::string path_;
  const Clock& clock_;
  std::atomic<bool> reopen_ = false;
  std::atomic<std::uint64_t> dropped_ = 0;  // Counted in lines.
  std::mutex mutex_;
  std::string lines_{};  // Guarded by mutex_.
  // The writer thread, and after its end the destructor, use the following.
  std::unique_ptr<FileDescriptor> file_;
  std::string text_{};                // The lines that are being written.
  std::size_t written_ = 0;           // Bytes of text_ that the file has.
  bool in_line_ = false;              // The file ends within a line.
  bool failing_ = false;              // The last write failed, and that was logged.
  std::uint64_t dropped_logged_ = 0;  // The part of dropped_ that was logged.
  std::optional<Ticker> writer_{};
};

}  // namespace zeus::http
