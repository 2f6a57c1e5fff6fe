#pragma once

#include <poll.h>

#include <cstdint>
#include <filesystem>
#include <functional>
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
#include "zeus/process/child.h"
#include "zeus/process/output_tap.h"
#include "zeus/session/epoch_report.h"
#include "zeus/session/progress.h"

// Where the metric of a foreign command comes from: its output, a file, or a socket.
namespace zeus {

// A file to which a program appends a line for each epoch. One owner.
class MetricFile {
 public:
  explicit MetricFile(std::filesystem::path path) : path_(std::move(path)) {}

  // Empties and locks the file: the epochs of an earlier run are not those of the next one.
  // kConflict when another run reports to it, kInvalidArgument when it is not a regular file.
  Status BeginAnew();

  // Returns the lines that were completed since the last call. Only the last 64 KB of a longer line
  // are kept.
  std::vector<std::string> NewLines();
  // The same, with the unfinished last line of the file.
  std::vector<std::string> LastLines();

  const std::filesystem::path& path() const { return path_; }

 private:
  void CutLines(std::vector<std::string>& lines);

  std::filesystem::path path_;
  std::optional<FileDescriptor> held_{};  // Holds the lock.
  std::uint64_t read_ = 0;                // Bytes that were read …
  std::uint64_t inode_ = 0;               // … of this file: another one is read from its start.
  std::string pending_;
};

// All sources of one run. A report that cannot be parsed is logged once and skipped. It never
// blocks. One owner.
class MetricSources {
 public:
  struct Options {
    std::optional<MetricPattern> metric{};
    std::filesystem::path metric_file{};  // Without a pattern and a file, a socket is opened.
    std::optional<ProgressPattern> progress{};
    // Routes the command's output through this process even if neither pattern is given.
    bool tap_output = false;
  };
  // Called for every completed epoch; its result answers reports on the socket.
  using Listener = std::function<Json(const EpochReport&)>;

  // The clock must outlive the object.
  static Result<std::unique_ptr<MetricSources>> Open(Options options, Clock& clock,
                                                     Listener listener);

  // Adds streams and variables to what the command is started with.
  void Equip(ChildOptions& child) const;
  void CommandStarted();

  // The descriptors to wait for. Files have none: they must be polled by Pump().
  std::vector<::pollfd> WaitFor() const;
  void Pump();
  // Call it when the command has ended: reads the rest.
  void Finish();

  // Null without a progress pattern.
  ProgressSeries* progress() { return series_ ? &*series_ : nullptr; }
  // Whether the command has printed something that Pump() will pass on.
  bool OutputWaits() const;
  // Whether the command has printed an unfinished line.
  bool LineIsOpen() const { return tap_ != nullptr && tap_->LineIsOpen(); }

 private:
  MetricSources(Options options, Listener listener);

  void ReadOutput(const LineCutter::Line& line);
  void ReadReports(const std::vector<std::string>& lines);
  Json ReadReport(const std::string& text);

  const Options options_;
  Listener listener_;
  std::unique_ptr<OutputTap> tap_;
  std::optional<MetricFile> file_;
  std::unique_ptr<ReportSocket> socket_;
  std::optional<ProgressSeries> series_;
  double steps_ = 0;
  bool complained_ = false;
};

}  // namespace zeus
