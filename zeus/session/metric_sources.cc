#include "zeus/session/metric_sources.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cmath>
#include <limits>
#include <system_error>

#include "zeus/base/file.h"
#include "zeus/base/json.h"
#include "zeus/base/log.h"
#include "zeus/base/text.h"

namespace zeus {
namespace {

constexpr std::size_t kLongestReportLine = 64 * 1024;

}  // namespace

Status MetricFile::BeginAnew() {
  read_ = 0;
  pending_.clear();
  std::error_code error;
  const auto found = std::filesystem::status(path_, error);
  if (std::filesystem::exists(found) && !std::filesystem::is_regular_file(found))
    return Error{ErrorCode::kInvalidArgument,
                 "metric-file takes a regular file: " + Quote(path_.string()) + " is none"};
  held_.emplace(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666));
  if (!held_->valid()) return FileError(path_, errno);
  if (::flock(held_->get(), LOCK_EX | LOCK_NB) != 0)
    return Error{ErrorCode::kConflict,
                 "another run reports to " + Quote(path_.string()) +
                     ": give each a file of its own, with {trial} in its name"};
  if (::ftruncate(held_->get(), 0) != 0) return FileError(path_, errno);
  return Ok();
}

std::vector<std::string> MetricFile::NewLines() {
  std::vector<std::string> lines;
  // O_NONBLOCK, because the path may name a pipe without a writer.
  const FileDescriptor file(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct ::stat status {};
  if (file.get() < 0 || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return lines;
  const auto size = static_cast<std::uint64_t>(status.st_size);
  if (inode_ != status.st_ino || size < read_) {
    read_ = 0;
    pending_.clear();
    inode_ = status.st_ino;
  }
  std::array<char, 65536> piece{};
  ssize_t got = 0;
  while ((got = ::pread(file.get(), piece.data(), piece.size(), static_cast<::off_t>(read_))) > 0) {
    read_ += static_cast<std::uint64_t>(got);
    pending_.append(piece.data(), static_cast<std::size_t>(got));
    CutLines(lines);
  }
  return lines;
}

void MetricFile::CutLines(std::vector<std::string>& lines) {
  std::size_t begin = 0;
  for (std::size_t end = 0; (end = pending_.find('\n', begin)) != std::string::npos;
       begin = end + 1) {
    std::string line(Trim(std::string_view(pending_).substr(begin, end - begin)));
    if (!line.empty()) lines.push_back(std::move(line));
  }
  pending_.erase(0, begin);
  // An endless line is not a report: its beginning is dropped.
  if (pending_.size() > kLongestReportLine) pending_.erase(0, pending_.size() - kLongestReportLine);
}

std::vector<std::string> MetricFile::LastLines() {
  std::vector<std::string> lines = NewLines();
  std::string rest(Trim(pending_));
  if (!rest.empty()) lines.push_back(std::move(rest));
  pending_.clear();
  return lines;
}

MetricSources::MetricSources(Options options, Listener listener)
    : options_(std::move(options)), listener_(std::move(listener)) {}

Result<std::unique_ptr<MetricSources>> MetricSources::Open(Options options, Clock& clock,
                                                           Listener listener) {
  std::unique_ptr<MetricSources> sources(
      new MetricSources(std::move(options), std::move(listener)));
  const Options& wanted = sources->options_;
  if (wanted.progress) sources->series_.emplace(ProgressSeries::kPipeStamp);
  if (wanted.metric || wanted.progress || wanted.tap_output) {
    ZEUS_TRY(sources->tap_, OutputTap::Open(clock, [raw = sources.get()](const auto& line) {
               raw->ReadOutput(line);
             }));
    if (!wanted.metric && !wanted.progress) sources->tap_->StopListening();
  }
  if (!wanted.metric_file.empty()) {
    sources->file_.emplace(wanted.metric_file);
    ZEUS_RETURN_IF_ERROR(sources->file_->BeginAnew());
  } else if (!wanted.metric) {
    ZEUS_TRY(sources->socket_, ReportSocket::Open());
  }
  return sources;
}

void MetricSources::Equip(ChildOptions& child) const {
  if (tap_ != nullptr) child.streams = tap_->streams();
  if (socket_ != nullptr)
    child.environment.push_back("ZEUS_REPORT_SOCKET=" + socket_->path().string());
}

void MetricSources::CommandStarted() {
  if (tap_ != nullptr) tap_->CloseCommandEnds();
}

std::vector<::pollfd> MetricSources::WaitFor() const {
  std::vector<::pollfd> events;
  if (tap_ != nullptr) events = tap_->WaitFor();
  if (socket_ != nullptr)
    for (const ::pollfd& event : socket_->WaitFor()) events.push_back(event);
  return events;
}

bool MetricSources::OutputWaits() const {
  if (tap_ == nullptr) return false;
  std::vector<::pollfd> events = tap_->WaitFor();
  return ::poll(events.data(), events.size(), 0) > 0;
}

void MetricSources::Pump() {
  if (tap_ != nullptr) tap_->Pump();
  if (file_) ReadReports(file_->NewLines());
  if (socket_ != nullptr)
    socket_->Serve([this](const std::string& text) { return ReadReport(text); });
}

void MetricSources::Finish() {
  Pump();
  if (tap_ != nullptr) tap_->Finish();
  if (file_) ReadReports(file_->LastLines());
}

void MetricSources::ReadOutput(const LineCutter::Line& line) {
  if (options_.progress) {
    if (const auto steps = options_.progress->Count(line.text, steps_)) {
      steps_ = *steps;
      series_->Observe(line.when, *steps);
    }
  }
  if (!options_.metric) return;
  for (const double metric : options_.metric->Metrics(line.text)) listener_({.metric = metric});
}

void MetricSources::ReadReports(const std::vector<std::string>& lines) {
  for (const std::string& line : lines) ReadReport(line);
}

Json MetricSources::ReadReport(const std::string& text) {
  const auto report = ParseEpochReport(text);
  if (report.ok()) return listener_(report.value());
  if (!std::exchange(complained_, true))
    log::Warning("a report of the command is not understood, {}: {}", Quote(text),
                 report.error().message);
  return {{"error", report.error().message}};
}

}  // namespace zeus
