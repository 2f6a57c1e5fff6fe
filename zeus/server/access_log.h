#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "zeus/base/clock.h"
#include "zeus/base/file_descriptor.h"
#include "zeus/base/result.h"
#include "zeus/base/ticker.h"
#include "zeus/server/http_message.h"

namespace zeus::server {

// One JSON line per request. Lines are collected and written by a thread of its own, so that a slow
// disk holds no request up; a disk that is too slow for good loses lines, which is counted and
// logged. Thread-safe.
class AccessLog {
 public:
  // Appends to the file; "-" is standard error. kUnavailable and so on when it cannot be written.
  static Result<std::unique_ptr<AccessLog>> Open(const std::string& path, const Clock& clock);
  ~AccessLog();  // Writes what is left.
  AccessLog(const AccessLog&) = delete;
  AccessLog& operator=(const AccessLog&) = delete;

  void Add(const FinishedRequest& request);

 private:
  AccessLog(int descriptor, const Clock& clock);

  TimePoint Step();
  void Flush();

  const Clock& clock_;
  const FileDescriptor file_;
  std::mutex mutex_;
  std::string lines_{};  // Guarded by mutex_, as is the next.
  std::uint64_t lost_ = 0;
  Ticker writer_;
};

}  // namespace zeus::server
