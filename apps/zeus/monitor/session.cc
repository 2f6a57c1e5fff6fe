#include "apps/zeus/monitor/session.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/zeus/monitor/outputs.h"
#include "apps/zeus/monitor/site.h"
#include "apps/zeus/output.h"
#include "zeus/base/process.h"
#include "zeus/base/ticker.h"
#include "zeus/base/version.h"
#include "zeus/client/node/open_node.h"
#include "zeus/export/prometheus.h"
#include "zeus/export/sample.h"
#include "zeus/metrics/metric.h"
#include "zeus/process/signal_watch.h"

namespace zeus::cli {
namespace {

constexpr Seconds kShortestPushInterval{1};
// Relative to the interval; keeps a sample from being taken twice.
constexpr double kRounding = 1e-9;

Result<std::unique_ptr<NodeMonitor>> OpenNode(Clock& clock, const MonitorOptions& options) {
  NodeMonitorOptions wanted;
  if (!options.gpus.empty()) wanted.gpus = options.gpus;
  wanted.cpus = !options.no_cpu;
  wanted.find_devices = client::OpenThisNode;
  wanted.share = false;  // A mere observer must not be attributed a part of others' energy.
  ZEUS_TRY(auto monitor, NodeMonitor::OpenThisMachine(clock, std::move(wanted)));
  if (monitor->monitor().device_count() == 0)
    return Error{ErrorCode::kNotFound, "nothing to monitor here: see zeus doctor"};
  monitor->monitor().Step();  // The first sample then has values.
  return monitor;
}

struct MetricSources {
  const NodeSampler& sampler;
  std::shared_ptr<const WindowMetrics> windows;
  std::function<std::vector<std::string>()> costs{};  // Null: neither carbon nor prices are wanted.
};

std::string MetricsText(const MetricSources& sources) {
  MetricSet metrics;
  AddSample(sources.sampler.Take(), metrics);
  sources.windows->AddTo(metrics);
  AddProcess(Version(), ProcessCpuTime(), metrics);
  return metrics.Text();
}

// Pushes metrics regularly, and at the end once more if the gateway was reachable.
class Pusher {
 public:
  Pusher(std::unique_ptr<PushGateway> gateway, MetricSources sources, Clock& clock,
         Seconds interval)
      : gateway_(std::move(gateway)), sources_(std::move(sources)) {
    ticker_ = std::make_unique<Ticker>("zeus-push", [this, &clock, interval] {
      gateway_->TryPush(MetricsText(sources_));
      return clock.Now() + interval;
    });
  }
  ~Pusher() {
    ticker_.reset();
    if (gateway_->working()) gateway_->TryPush(MetricsText(sources_));
  }
  Pusher(const Pusher&) = delete;
  Pusher& operator=(const Pusher&) = delete;

 private:
  const std::unique_ptr<PushGateway> gateway_;
  const MetricSources sources_;
  std::unique_ptr<Ticker> ticker_;
};

// All outputs of the samples: standard output, files, trace, HTTP server, gateway.
class Receivers {
 public:
  Status Open(const MonitorOptions& options, NodeMonitor& node, const MetricSources& sources) {
    ZEUS_RETURN_IF_ERROR(OpenFiles(options, node, sources.sampler));
    ZEUS_RETURN_IF_ERROR(OpenMetrics(options, node, sources));
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
  // Updates only what a person sees.
  Status Show(const Sample& sample) { return shown_ ? shown_->Write(sample) : Ok(); }

  // Closes everything. Returns an error when samples are missing in a file.
  Status Close() {
    shown_.reset();
    site_.reset();
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
      files_.push_back(std::make_unique<TolerantOutput>(std::move(lines), options.output));
    }
    if (!options.trace.empty()) {
      if (options.trace == options.output)
        return Error{ErrorCode::kInvalidArgument, "--output and --trace cannot share a file"};
      ZEUS_TRY(auto trace, TraceInFile(options.trace, sampler.devices(), node.monitor()));
      files_.push_back(std::make_unique<TolerantOutput>(std::move(trace), options.trace));
    }
    return Ok();
  }

  Status OpenMetrics(const MonitorOptions& options, NodeMonitor& node,
                     const MetricSources& sources) {
    if (!options.serve.empty()) {
      ZEUS_TRY(site_, StartMonitorSite(options.serve, node,
                                       {.metrics = [sources] { return MetricsText(sources); },
                                        .costs = sources.costs}));
      PrintErrorText(fmt::format("serving {}/metrics\n", site_->url()));
      if (site_->has_pages())
        PrintErrorText(fmt::format("watch it in a browser: {}\n", site_->url()));
    }
    if (!options.push.empty()) {
      ZEUS_TRY(auto gateway,
               PushGateway::Create(
                   {.url = options.push,
                    .job = options.job,
                    .instance = options.instance.empty() ? HostName() : options.instance}));
      pusher_ =
          std::make_unique<Pusher>(std::move(gateway), sources, node.monitor().clock(),
                                   std::max(Seconds(options.interval), kShortestPushInterval));
    }
    return Ok();
  }

  std::vector<std::unique_ptr<TolerantOutput>> files_;
  std::unique_ptr<SampleOutput> shown_;  // On standard output.
  std::unique_ptr<MonitorSite> site_;
  std::unique_ptr<Pusher> pusher_;
};

// The times of the samples: multiples of the interval, and the end.
class Schedule {
 public:
  Schedule(TimePoint start, const MonitorOptions& options)
      : start_(start), interval_(options.interval), duration_(options.duration) {}

  bool IsOver(TimePoint now) const { return duration_ > Seconds(0) && now >= start_ + duration_; }
  // Returns the first time after `now`: missed samples are skipped.
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

// Makes the time between two samples a window, so that the energy per interval becomes a histogram.
class IntervalWindows {
 public:
  explicit IntervalWindows(EnergyMonitor& monitor)
      : monitor_(monitor), metrics_(std::make_shared<WindowMetrics>()) {
    monitor.OnRefined(
        [metrics = metrics_](const Measurement& window) { metrics->Observe(window); });
  }
  void Next() {
    WindowOptions options;
    options.if_open = IfOpen::kRestart;
    (void)monitor_.EndWindow(kName);
    (void)monitor_.BeginWindow(kName, options);
  }
  const std::shared_ptr<WindowMetrics>& metrics() const { return metrics_; }

 private:
  static constexpr const char* kName = "interval";

  EnergyMonitor& monitor_;
  std::shared_ptr<WindowMetrics> metrics_;
};

// The energy of all devices from sample to sample, for emissions and prices that change over time.
// Thread-safe.
class EnergyOverTime {
 public:
  void Add(const Sample& sample) {
    Joules total;
    double variance = 0;
    for (const DeviceSample& device : sample.devices) {
      if (!device.present.total.ok() || !device.in_total) continue;
      total += device.present.total.value();
      variance += device.present.total_sigma.value() * device.present.total_sigma.value();
    }
    const std::lock_guard lock(mutex_);
    if (last_) use_.pieces.push_back({last_->first, sample.taken, total - last_->second});
    last_ = {sample.taken, total};
    use_.sigma = Joules(std::sqrt(variance));
  }
  EnergyUse use() const {
    const std::lock_guard lock(mutex_);
    return use_;
  }

 private:
  mutable std::mutex mutex_;
  // Guarded by mutex_, to the end of the class.
  std::optional<std::pair<WallTime, Joules>> last_;
  EnergyUse use_;
};

// The parts that take part in a sample.
struct Rounds {
  const NodeSampler& sampler;
  IntervalWindows& windows;
  EnergyOverTime energy{};

  Sample Next() {
    windows.Next();
    Sample sample = sampler.Take();
    energy.Add(sample);
    return sample;
  }
};

Status Watch(const Schedule& schedule, Rounds& rounds, Clock& clock, SignalWatch& signals,
             Receivers& receivers) {
  ZEUS_RETURN_IF_ERROR(receivers.Write(rounds.Next()));
  while (!schedule.IsOver(clock.Now())) {
    switch (signals.WaitUntil(schedule.Next(clock.Now()), clock)) {
      case SignalWatch::Event::kResize:
        ZEUS_RETURN_IF_ERROR(receivers.Show(rounds.sampler.Take()));
        break;
      case SignalWatch::Event::kReopen:  // Only services get this event.
      case SignalWatch::Event::kStop:
        return receivers.Write(rounds.Next());
      case SignalWatch::Event::kTime:
        ZEUS_RETURN_IF_ERROR(receivers.Write(rounds.Next()));
        break;
    }
  }
  return Ok();
}

}  // namespace

Result<int> RunMonitor(const MonitorOptions& options) {
  if (!options.serve.empty()) ZEUS_RETURN_IF_ERROR(PrepareMonitorSite());
  SystemClock clock;
  CarbonOptions wanted = options.carbon;
  wanted.timeout = Seconds(0);
  ZEUS_TRY(const CarbonAccounting carbon, CarbonAccounting::Open(clock, wanted));
  // Signals must be taken over before threads are started, which must not receive them; from here
  // on there is something to clean up at the end.
  ZEUS_TRY(const std::unique_ptr<SignalWatch> signals,
           SignalWatch::Start(SignalWatch::Program::kInteractive));
  ZEUS_TRY(const auto node, OpenNode(clock, options));
  const NodeSampler sampler(*node);
  IntervalWindows windows(node->monitor());
  Rounds rounds{.sampler = sampler, .windows = windows};
  Receivers receivers;
  MetricSources sources{.sampler = sampler, .windows = windows.metrics()};
  if (carbon.wanted())
    sources.costs = [&carbon, &rounds] { return ToLines(carbon.Of(rounds.energy.use())); };
  ZEUS_RETURN_IF_ERROR(receivers.Open(options, *node, sources));

  const Status watched = Watch(Schedule(clock.Now(), options), rounds, clock, *signals, receivers);
  const bool unread = !watched.ok() && !OutputHasReader();
  const Sample last = sampler.Take();
  const Status closed = receivers.Close();
  if (unread) {  // `zeus monitor | head` is not an error.
    AbandonOutput();
    return 0;
  }
  ZEUS_RETURN_IF_ERROR(watched);
  // Standard output holds only the lines for programs if these were asked for.
  const bool for_people =
      !options.quiet && (!(options.json || options.csv) || !options.output.empty());
  const auto print = for_people ? PrintText : PrintErrorText;
  print(Summary(last) + "\n");
  if (carbon.wanted())
    for (const std::string& line : ToLines(carbon.Of(rounds.energy.use()))) print(line + "\n");
  ZEUS_RETURN_IF_ERROR(closed);
  return 0;
}

}  // namespace zeus::cli
