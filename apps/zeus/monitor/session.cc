#include "apps/zeus/monitor/session.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <memory>
#include <utility>

#include "apps/zeus/monitor/outputs.h"
#include "apps/zeus/monitor/signals.h"
#include "apps/zeus/output.h"
#include "zeus/base/ticker.h"
#include "zeus/export/metric.h"
#include "zeus/export/metrics_server.h"
#include "zeus/export/node_sampler.h"
#include "zeus/export/prometheus.h"
#include "zeus/export/push_gateway.h"

namespace zeus::cli {
namespace {

constexpr Seconds kShortestPushInterval{1};
constexpr double kRounding = 1e-9;  // Of intervals: a sample is not taken twice.

Result<std::unique_ptr<NodeMonitor>> OpenNode(Clock& clock, const MonitorOptions& options) {
  ZEUS_TRY(Node node, Discover(RealSurroundings(clock)));
  NodeMonitorOptions wanted;
  if (!options.gpus.empty()) wanted.gpus = options.gpus;
  wanted.cpus = !options.no_cpu;
  wanted.share = false;  // It only watches: it must not take a part of others' energy.
  ZEUS_TRY(auto monitor, NodeMonitor::Open(clock, std::move(node), std::move(wanted)));
  if (monitor->monitor().device_count() == 0)
    return Error{ErrorCode::kNotFound, "nothing to monitor here: see zeus doctor"};
  monitor->monitor().Step();  // So that the first sample has something to show.
  return monitor;
}

std::string MetricsText(const NodeSampler& sampler) {
  MetricSet metrics;
  AddSample(sampler.Take(), metrics);
  AddProcess(ZEUS_VERSION, ProcessCpuTime(), metrics);
  return metrics.Text();
}

std::string HostName() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0') return "localhost";
  return name.data();
}

// Pushes metrics regularly, and once more at the end if the gateway was there.
class Pusher {
 public:
  Pusher(std::unique_ptr<PushGateway> gateway, const NodeSampler& sampler, Clock& clock,
         Seconds interval)
      : gateway_(std::move(gateway)), sampler_(sampler) {
    ticker_ = std::make_unique<Ticker>("zeus-push", [this, &clock, interval] {
      gateway_->TryPush(MetricsText(sampler_));
      return clock.Now() + interval;
    });
  }
  ~Pusher() {
    ticker_.reset();
    if (gateway_->working()) gateway_->TryPush(MetricsText(sampler_));
  }
  Pusher(const Pusher&) = delete;
  Pusher& operator=(const Pusher&) = delete;

 private:
  const std::unique_ptr<PushGateway> gateway_;
  const NodeSampler& sampler_;
  std::unique_ptr<Ticker> ticker_;
};

// Everything that receives what is measured.
class Receivers {
 public:
  Status Open(const MonitorOptions& options, NodeMonitor& node, const NodeSampler& sampler) {
    ZEUS_RETURN_IF_ERROR(OpenFiles(options, node, sampler));
    ZEUS_RETURN_IF_ERROR(OpenMetrics(options, node, sampler));
    const LineFormat format = options.csv ? LineFormat::kCsv : LineFormat::kJson;
    if ((options.json || options.csv) && options.output.empty()) {
      shown_ = LinesOnStandardOutput(format);
    } else if (!options.quiet) {
      shown_ = std::make_unique<TableOutput>(PowerTable(node.node().absent));
    }
    return Ok();
  }

  Status Write(const Sample& sample) {
    for (const auto& file : files_) ZEUS_RETURN_IF_ERROR(file->Write(sample));
    return Show(sample);
  }
  // Only what a person sees.
  Status Show(const Sample& sample) { return shown_ ? shown_->Write(sample) : Ok(); }

  // Closes everything. An error when a file lacks something.
  Status Close() {
    shown_.reset();
    server_.reset();
    pusher_.reset();
    for (const auto& file : files_) ZEUS_RETURN_IF_ERROR(file->Completeness());
    return Ok();
  }

 private:
  Status OpenFiles(const MonitorOptions& options, NodeMonitor& node, const NodeSampler& sampler) {
    if (!options.output.empty()) {
      if (!options.json && !options.csv)
        return Error{ErrorCode::kInvalidArgument, "--output needs a format: --json or --csv"};
      const LineFormat format = options.csv ? LineFormat::kCsv : LineFormat::kJson;
      ZEUS_TRY(auto lines, LinesInFile(options.output, format));
      files_.push_back(std::make_unique<PatientOutput>(std::move(lines), options.output));
    }
    if (!options.trace.empty()) {
      ZEUS_TRY(auto trace, TraceInFile(options.trace, sampler.devices(), node.monitor()));
      files_.push_back(std::make_unique<PatientOutput>(std::move(trace), options.trace));
    }
    return Ok();
  }

  Status OpenMetrics(const MonitorOptions& options, NodeMonitor& node, const NodeSampler& sampler) {
    if (!options.serve.empty()) {
      ZEUS_TRY(const ListenAddress address, ParseListenAddress(options.serve));
      ZEUS_TRY(server_, MetricsServer::Start(address, [&] { return MetricsText(sampler); }));
      fmt::print(stderr, "serving {}/metrics\n", server_->url());
    }
    if (!options.push.empty()) {
      ZEUS_TRY(auto gateway,
               PushGateway::Create(
                   {.url = options.push,
                    .job = options.job,
                    .instance = options.instance.empty() ? HostName() : options.instance}));
      pusher_ =
          std::make_unique<Pusher>(std::move(gateway), sampler, node.monitor().clock(),
                                   std::max(Seconds(options.interval), kShortestPushInterval));
    }
    return Ok();
  }

  std::vector<std::unique_ptr<PatientOutput>> files_;
  std::unique_ptr<SampleOutput> shown_;  // On standard output.
  std::unique_ptr<MetricsServer> server_;
  std::unique_ptr<Pusher> pusher_;
};

// The moments of the samples: at multiples of the interval, and at the end.
class Schedule {
 public:
  Schedule(TimePoint start, const MonitorOptions& options)
      : start_(start), interval_(options.interval), duration_(options.duration) {}

  bool IsOver(TimePoint now) const { return duration_ > Seconds(0) && now >= start_ + duration_; }
  // The first one after `now`: samples that were missed are not made up for.
  TimePoint Next(TimePoint now) const {
    const double rounds = std::floor((now - start_) / interval_ + kRounding);
    const TimePoint next = start_ + (rounds + 1) * interval_;
    return duration_ > Seconds(0) ? std::min(next, start_ + duration_) : next;
  }

 private:
  const TimePoint start_;
  const Seconds interval_;
  const Seconds duration_;
};

Status Watch(const Schedule& schedule, const NodeSampler& sampler, Clock& clock, Signals& signals,
             Receivers& receivers) {
  ZEUS_RETURN_IF_ERROR(receivers.Write(sampler.Take()));
  while (!schedule.IsOver(clock.Now())) {
    switch (signals.WaitUntil(schedule.Next(clock.Now()), clock)) {
      case Signals::Event::kResize:
        ZEUS_RETURN_IF_ERROR(receivers.Show(sampler.Take()));
        break;
      case Signals::Event::kStop:
        return receivers.Write(sampler.Take());
      case Signals::Event::kTime:
        ZEUS_RETURN_IF_ERROR(receivers.Write(sampler.Take()));
        break;
    }
  }
  return Ok();
}

}  // namespace

Result<int> RunMonitor(const MonitorOptions& options) {
  SystemClock clock;
  ZEUS_TRY(const auto node, OpenNode(clock, options));
  Signals signals;  // From here on there are things to put in order at the end.
  const NodeSampler sampler(*node);
  Receivers receivers;
  ZEUS_RETURN_IF_ERROR(receivers.Open(options, *node, sampler));

  const Status watched = Watch(Schedule(clock.Now(), options), sampler, clock, signals, receivers);
  const bool unread = !watched.ok() && !OutputHasReader();
  const Sample last = sampler.Take();
  const Status closed = receivers.Close();
  if (unread) {  // `zeus monitor | head` is no mistake.
    AbandonOutput();
    return 0;
  }
  ZEUS_RETURN_IF_ERROR(watched);
  // Lines for programs stay alone on standard output.
  const bool for_people =
      !options.quiet && (!(options.json || options.csv) || !options.output.empty());
  fmt::print(for_people ? stdout : stderr, "{}\n", Summary(last));
  ZEUS_RETURN_IF_ERROR(closed);
  return 0;
}

}  // namespace zeus::cli
