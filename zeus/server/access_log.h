#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "zeus/base/clock.h"
#include "zeus/base/file_descriptor.h"
#include "zeus/base/result.h"
#include "zeus/base/ticker.h"
#include "zeus/metrics/metric.h"
#include "zeus/server/http_message.h"

namespace zeus::server {

// One JSON line per request. Lines are collected and written by a thread of its own, so that
// neither a slow disk nor a reader of our standard error that does not read holds anything up: what
// does not fit is lost, which is counted and logged once. Thread-safe.
class AccessLog {
 public:
  // Appends to the file; "-" is standard error. kUnavailable and so on when it cannot be written.
  static Result<std::unique_ptr<AccessLog>> Open(const std::string& path, const Clock& clock);
  ~AccessLog();  // Writes what is left, as far as that takes no time.
  AccessLog(const AccessLog&) = delete;
  AccessLog& operator=(const AccessLog&) = delete;

  void Add(const FinishedRequest& request);
  // Soon opens the file by its name again: somebody has moved it away.
  void Reopen() { reopen_ = true; }
  void AddTo(MetricSet& metrics) const;

 private:
  AccessLog(std::string path, std::unique_ptr<FileDescriptor> file, const Clock& clock);

  TimePoint Step();
  void OpenAnew();
  // Writes until all is written, or the file takes no more for `patience`.
  void Flush(Seconds patience);
  void TakeLines();
  bool WriteSome();  // False when the file takes nothing at the moment.
  void TellLoss();
  void Lose(int error_number);

  const std::string path_;
  const Clock& clock_;
  std::atomic<bool> reopen_ = false;
  std::atomic<std::uint64_t> lost_ = 0;  // Lines.
  std::mutex mutex_;
  std::string lines_{};  // Guarded by mutex_.
  // Of the writer, and of the destructor after it.
  std::unique_ptr<FileDescriptor> file_;
  std::string text_{};           // What is being written,
  std::size_t written_ = 0;      // and how much of it is.
  bool in_line_ = false;         // The file ends within a line.
  bool failing_ = false;         // The last write failed, and that was said.
  std::uint64_t lost_said_ = 0;  // Of lost_.
  std::optional<Ticker> writer_{};
};

}  // namespace zeus::server
