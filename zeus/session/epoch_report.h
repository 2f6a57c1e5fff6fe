#pragma once

#include <poll.h>

#include <cstddef>
#include <filesystem>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/file_descriptor.h"
#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"
#include "zeus/base/units.h"

namespace zeus {

// The report of a command about an epoch that it completed. Its own time and energy replace the
// measured ones: the command may know better.
struct EpochReport {
  double metric = 0;
  std::optional<int> epoch{};      // Counts from 1; nullopt means the next one.
  std::optional<Seconds> time{};   // Since the start of the command.
  std::optional<Joules> energy{};  // Since the start of the command.
  std::optional<Watts> power_limit{};
  std::optional<Seconds> epoch_time{};   // Expected time of one epoch from now on.
  std::optional<Joules> epoch_energy{};  // Expected energy of one epoch from now on.
  std::optional<TimePoint> arrived{};    // When the report was read; nullopt means now.
};

// Parses {"metric": 0.93, "epoch": 3, "time_seconds": 12.5, "energy_joules": 2100,
// "power_limit_watts": 175, "epoch_time_seconds": 4.1, "epoch_energy_joules": 700}. Only the metric
// is required; it may be null, which is how JSON writes not-a-number. kInvalidArgument names the
// field. Unknown fields are ignored.
Result<EpochReport> ParseEpochReport(std::string_view line);

// How well the end of an epoch is known. Programs that buffer their output report several at once.
enum class EpochTiming {
  kKnown,    // The report arrived when the epoch ended.
  kLumped,   // The epoch ended earlier, together with others.
  kTooSoon,  // The report belongs to the lump before it.
};

// Tells epochs that were reported as they ended from those that arrived in a lump. One owner.
class EpochArrivals {
 public:
  explicit EpochArrivals(TimePoint begun) : last_(begun), begun_(begun) {}

  // Judges `epochs` reports that were read together now, `blind` after the reader last looked.
  EpochTiming Judge(std::size_t epochs, TimePoint now, Seconds blind);
  // When the last reports arrived; the begin at first.
  TimePoint last() const { return last_; }

 private:
  TimePoint last_;
  TimePoint begun_;
  std::size_t epochs_ = 0;  // Reported so far.
};

// A Unix socket on which a command reports its epochs: one line of JSON each, or HTTP POST to any
// path. Every report is answered, by a line or by a JSON body. It never blocks. One owner.
class ReportSocket {
 public:
  // The socket is in a temporary folder that only this user can enter; both are removed with the
  // object.
  static Result<std::unique_ptr<ReportSocket>> Open();
  ~ReportSocket();
  ReportSocket(const ReportSocket&) = delete;
  ReportSocket& operator=(const ReportSocket&) = delete;

  std::filesystem::path path() const { return folder_ / "report.sock"; }

  // The descriptors to wait for.
  std::vector<::pollfd> WaitFor() const;

  // Receives a report and returns the answer to it. An answer with an "error" has HTTP status 400.
  using Handler = std::function<Json(const std::string& report)>;
  void Serve(const Handler& handler);

 private:
  struct Connection {
    explicit Connection(int descriptor) : socket(descriptor) {}
    FileDescriptor socket;
    std::string received{};
  };

  explicit ReportSocket(std::filesystem::path folder, int listener)
      : folder_(std::move(folder)), listener_(listener) {}

  void Accept();
  // Returns false when the connection is to be closed.
  static bool Serve(Connection& connection, const Handler& handler);

  std::filesystem::path folder_;
  FileDescriptor listener_;
  std::list<Connection> connections_;
};

}  // namespace zeus
