#include "apps/zeus/train/metric_sources.h"

#include <chrono>
#include <utility>

#include "zeus/base/json.h"
#include "zeus/base/log.h"
#include "zeus/base/text.h"

namespace zeus::cli {
namespace {

using namespace std::chrono_literals;

constexpr Seconds kPipeStamp = 1ms;  // How far from the truth the time of a line may be.

}  // namespace

Result<std::unique_ptr<MetricSources>> MetricSources::Open(const TrainOptions& options,
                                                           Clock& clock,
                                                           const Placeholders& placeholders,
                                                           Listener listener, Output output) {
  std::unique_ptr<MetricSources> sources(new MetricSources(options, std::move(listener)));
  if (options.progress) sources->series_.emplace(kPipeStamp);
  if (options.metric || options.progress || output == Output::kTap) {
    ZEUS_TRY(sources->tap_,
             OutputTap::Open(clock, [raw = sources.get()](const auto& line) { raw->Look(line); }));
    if (!options.metric && !options.progress) sources->tap_->StopListening();
  }
  if (!options.metric_file.empty()) {
    sources->file_.emplace(Substitute(options.metric_file, placeholders));
    ZEUS_RETURN_IF_ERROR(sources->file_->BeginAnew());
  } else if (!options.metric) {
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
  if (file_) ReadLines(file_->NewLines());
  if (socket_ != nullptr) socket_->Serve([this](const std::string& text) { return Take(text); });
}

void MetricSources::Finish() {
  Pump();
  if (tap_ != nullptr) tap_->Finish();
  if (file_) ReadLines(file_->LastLines());
}

void MetricSources::Look(const LineCutter::Line& line) {
  if (options_.progress) {
    if (const auto steps = options_.progress->Count(line.text, steps_)) {
      steps_ = *steps;
      series_->Observe(line.when, *steps);
    }
  }
  if (!options_.metric) return;
  for (const double metric : options_.metric->Metrics(line.text))
    listener_.epoch({.metric = metric});
}

void MetricSources::ReadLines(const std::vector<std::string>& lines) {
  for (const std::string& line : lines) Take(line);
}

Json MetricSources::Take(const std::string& text) {
  const auto report = ParseEpochReport(text);
  if (report.ok()) return listener_.epoch(report.value());
  if (!std::exchange(complained_, true))
    log::Warning("a report of the command is not understood, {}: {}", Quote(text),
                 report.error().message);
  return {{"error", report.error().message}};
}

}  // namespace zeus::cli
