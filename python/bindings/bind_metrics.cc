#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "python/bindings/bind.h"
#include "python/bindings/closeable.h"
#include "python/bindings/errors.h"
#include "python/bindings/measurement.h"
#include "python/bindings/monitor.h"
#include "zeus/base/clock.h"
#include "zeus/base/ticker.h"
#include "zeus/base/units.h"
#include "zeus/base/version.h"
#include "zeus/export/prometheus.h"
#include "zeus/export/sample.h"
#include "zeus/metrics/metric.h"
#include "zeus/metrics/metric_catalogue.h"
#include "zeus/metrics/metrics_server.h"
#include "zeus/monitor/measurement.h"
#include "zeus/monitor/node_monitor.h"

namespace zeus::python {

// Upper bounds of the buckets of a histogram, by kind of device.
struct EnergyBuckets {
  std::vector<double> gpu;
  std::vector<double> cpu;
  std::vector<double> dram;
};

// The energy of a program's windows as metrics, with the labels `window` and `index` and the names
// of the reference implementation. A device without a measurement has no value. Thread-safe.
class MetricBoard {
 public:
  // Windows beyond this number of names are counted together as "other": a program that names a
  // window per step must not fill a database.
  static constexpr std::size_t kMostNames = 200;

  void Observe(const std::string& window, const Measurement& measurement,
               const EnergyBuckets& buckets);

  // Shows the energy of an open window so far in addition to finished ones of its name. Totals
  // never decrease, even if the estimates at the edges do.
  void Update(const std::string& window, const Measurement& so_far);
  void Finish(const std::string& window, const Measurement& measurement);

  // Shows the present power of the GPUs.
  void ShowPower(const std::string& window, const EnergyMonitor& monitor);

  void AddTo(MetricSet& metrics, const Labels& labels) const;

  // Increases with every change.
  std::size_t version() const;

 private:
  struct Total {
    double finished = 0;
    double shown = 0;
  };
  using Value = std::variant<double, Total, Histogram>;
  // The key is metric, window and index.
  using Key = std::tuple<const MetricDescription*, std::string, std::string>;

  std::string BoundedName(const std::string& window);  // The caller must hold mutex_.
  void Count(const std::string& window, const Measurement& measurement, bool finished);

  mutable std::mutex mutex_;
  std::set<std::string> names_;  // Guarded by mutex_, as are the following members.
  std::map<Key, Value> series_;
  std::size_t version_ = 0;
};

namespace {

// The metrics of a kind of device. Rails have none, because the reference has no rails.
struct DeviceMetrics {
  std::string_view kind;
  const MetricDescription* histogram;
  const MetricDescription* counter;
  std::vector<double> EnergyBuckets::*buckets;
};
constexpr std::array kDeviceMetrics = {
    DeviceMetrics{"gpu", &metrics::kReferenceGpuHistogram, &metrics::kReferenceGpuCounter,
                  &EnergyBuckets::gpu},
    DeviceMetrics{"cpu", &metrics::kReferenceCpuHistogram, &metrics::kReferenceCpuCounter,
                  &EnergyBuckets::cpu},
    DeviceMetrics{"dram", &metrics::kReferenceDramHistogram, &metrics::kReferenceDramCounter,
                  &EnergyBuckets::dram},
};

// Calls `use` with the metrics, the index and the joules of every device that has a measurement.
template <class Use>
void ForEachEnergy(const Measurement& measurement, Use use) {
  for (const DeviceMeasurement& device : measurement.devices) {
    const DeviceIdentity identity{.name = device.device, .model = {}, .uuid = {}};
    const auto metric = std::ranges::find(kDeviceMetrics, identity.kind(), &DeviceMetrics::kind);
    if (metric == kDeviceMetrics.end() || !device.energy.ok()) continue;
    const double joules = device.energy.value().energy.value();
    if (std::isfinite(joules)) use(*metric, std::string(identity.index()), joules);
  }
}

}  // namespace

std::string MetricBoard::BoundedName(const std::string& window) {
  if (names_.contains(window)) return window;
  if (names_.size() >= kMostNames) return "other";
  names_.insert(window);
  return window;
}

void MetricBoard::Observe(const std::string& window, const Measurement& measurement,
                          const EnergyBuckets& buckets) {
  const std::lock_guard lock(mutex_);
  const std::string name = BoundedName(window);
  ForEachEnergy(
      measurement, [&](const DeviceMetrics& metric, const std::string& index, double joules) {
        const auto [entry, added] = series_.try_emplace(
            Key(metric.histogram, name, index), Histogram(std::span(buckets.*metric.buckets)));
        std::get<Histogram>(entry->second).Observe(joules);
      });
  ++version_;
}

void MetricBoard::Count(const std::string& window, const Measurement& measurement, bool finished) {
  const std::lock_guard lock(mutex_);
  const std::string name = BoundedName(window);
  ForEachEnergy(
      measurement, [&](const DeviceMetrics& metric, const std::string& index, double joules) {
        const auto entry = series_.try_emplace(Key(metric.counter, name, index), Total()).first;
        Total& total = std::get<Total>(entry->second);
        total.shown = std::max(total.shown, total.finished + joules);
        if (finished) total.finished += joules;
      });
  ++version_;
}

void MetricBoard::Update(const std::string& window, const Measurement& so_far) {
  Count(window, so_far, false);
}

void MetricBoard::Finish(const std::string& window, const Measurement& measurement) {
  Count(window, measurement, true);
}

void MetricBoard::ShowPower(const std::string& window, const EnergyMonitor& monitor) {
  const std::lock_guard lock(mutex_);
  const std::string name = BoundedName(window);
  for (std::size_t i = 0; i < monitor.device_count(); ++i) {
    const DeviceIdentity identity{.name = monitor.device_name(i), .model = {}, .uuid = {}};
    if (identity.kind() != "gpu") continue;
    const Key key(&metrics::kReferenceGpuPower, name, std::string(identity.index()));
    const auto power = monitor.Now(i).power;
    if (power.ok()) {
      series_.insert_or_assign(key, power.value().value());
    } else {
      series_.erase(key);  // A lost GPU's last value would look like its present one.
    }
  }
  ++version_;
}

void MetricBoard::AddTo(MetricSet& metrics, const Labels& labels) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [key, value] : series_) {
    const auto& [metric, window, index] = key;
    Labels all = {{"window", window}, {"index", index}};
    all.insert(all.end(), labels.begin(), labels.end());
    if (const auto* histogram = std::get_if<Histogram>(&value)) {
      metrics.Add(*metric, all, *histogram);
    } else if (const auto* total = std::get_if<Total>(&value)) {
      metrics.Add(*metric, all, total->shown);
    } else {
      metrics.Add(*metric, all, std::get<double>(value));
    }
  }
}

std::size_t MetricBoard::version() const {
  const std::lock_guard lock(mutex_);
  return version_;
}

// The metrics of one job, with a native thread that updates those of open windows and pushes them
// to a gateway. Training neither waits for the gateway nor fails when it is down: one log message
// says so.
class Publisher final : public Closeable {
 public:
  enum class Kind { kCounter, kGauge };

  // Nothing is pushed without a URL. Throws Failure.
  static std::shared_ptr<Publisher> Open(const PushTarget& target);
  ~Publisher() override { Close(); }

  // Begins to show a window that was opened as `key` of that monitor.
  void Begin(Kind kind, const Monitor& monitor, const std::string& key, const std::string& window,
             Seconds period);
  // Must be called when the window has ended; `measurement` is null if it has no result.
  void End(Kind kind, const std::string& key, const std::string& window,
           const Measurement* measurement);
  void Observe(const std::string& window, const Measurement& measurement,
               const EnergyBuckets& buckets);

  // Returns whether the gateway got everything that is known now within `seconds`.
  bool Flush(double seconds);

  std::string Text() const;
  // Returns a function that adds the metrics with the labels job and instance, as a gateway would
  // show them. It works on any thread, and after the publisher is closed.
  using Source = std::function<void(MetricSet&)>;
  Source source() const {
    return [work = work_](MetricSet& metrics) { work->AddTo(metrics); };
  }

 private:
  // Everything that the thread uses.
  class Work {
   public:
    Work(PushTarget target, std::unique_ptr<PushGateway> gateway)
        : target_(std::move(target)), gateway_(std::move(gateway)) {}

    struct Window {
      Kind kind;
      std::shared_ptr<NodeMonitor> recording;
      std::string key;
      std::string name;
      Seconds period;
      TimePoint next;
    };
    void Begin(Window window);
    void End(Kind kind, const std::string& key, const std::string& window,
             const Measurement* measurement);

    TimePoint Step();
    // Pushes everything now, whether due or not.
    void Finish();
    void AddTo(MetricSet& metrics) const;
    bool UpToDate() const { return pushed_ >= board.version(); }
    bool pushes() const { return gateway_ != nullptr; }

    MetricBoard board;

   private:
    enum class Which { kDue, kAll };
    TimePoint UpdateOpenWindows(Which which);
    void Push();

    SystemClock clock_;
    const PushTarget target_;
    const std::unique_ptr<PushGateway> gateway_;  // Used only by the thread.
    std::mutex mutex_;
    // Guarded by mutex_. The second part is the key.
    std::map<std::pair<Kind, std::string>, Window> open_;
    std::atomic<std::size_t> pushed_ = 0;  // The version of the board that was pushed last.
  };

  explicit Publisher(std::shared_ptr<Work> work);
  void DoClose() override;
  void Abandon() override;

  std::shared_ptr<Work> work_;
  std::unique_ptr<Ticker> ticker_;
};

namespace {

using namespace std::chrono_literals;

constexpr Seconds kBeforeNextAttempt = 5s;  // After a failure of the gateway.

}  // namespace

void Publisher::Work::Begin(Window window) {
  const std::lock_guard lock(mutex_);
  window.next = clock_.Now();
  std::pair key(window.kind, window.key);
  open_.insert_or_assign(std::move(key), std::move(window));
}

void Publisher::Work::End(Kind kind, const std::string& key, const std::string& window,
                          const Measurement* measurement) {
  // The lock keeps the thread from adding an older state after this one.
  const std::lock_guard lock(mutex_);
  open_.erase({kind, key});
  if (measurement != nullptr && kind == Kind::kCounter) board.Finish(window, *measurement);
}

TimePoint Publisher::Work::UpdateOpenWindows(Which which) {
  const std::lock_guard lock(mutex_);
  const TimePoint now = clock_.Now();
  TimePoint next = Ticker::kWhenWoken;
  for (auto& [_, window] : open_) {
    if (window.next <= now || which == Which::kAll) {
      const EnergyMonitor& monitor = window.recording->monitor();
      if (window.kind == Kind::kGauge) {
        board.ShowPower(window.name, monitor);
      } else if (const auto so_far = monitor.PeekWindow(window.key); so_far.ok()) {
        board.Update(window.name, so_far.value());
      }
      window.next = now + window.period;
    }
    next = std::min(next, window.next);
  }
  return next;
}

void Publisher::Work::Push() {
  const std::size_t version = board.version();
  if (gateway_ == nullptr || version == pushed_) return;
  MetricSet metrics;
  board.AddTo(metrics, {});
  gateway_->TryPush(metrics.Text());
  if (gateway_->working()) pushed_ = version;
}

TimePoint Publisher::Work::Step() {
  const TimePoint next = UpdateOpenWindows(Which::kDue);
  Push();
  const bool failed = gateway_ != nullptr && !gateway_->working();
  return failed ? std::min(next, clock_.Now() + kBeforeNextAttempt) : next;
}

void Publisher::Work::Finish() {
  UpdateOpenWindows(Which::kAll);
  Push();
}

void Publisher::Work::AddTo(MetricSet& metrics) const {
  board.AddTo(metrics, {{"job", target_.job}, {"instance", target_.instance}});
}

Publisher::Publisher(std::shared_ptr<Work> work) : work_(std::move(work)) {}

std::shared_ptr<Publisher> Publisher::Open(const PushTarget& target) {
  std::unique_ptr<PushGateway> gateway;
  if (!target.url.empty()) gateway = Unwrap(PushGateway::Create(target));
  std::shared_ptr<Publisher> publisher(
      new Publisher(std::make_shared<Work>(target, std::move(gateway))));
  publisher->ticker_ = std::make_unique<Ticker>(
      "zeus-metrics", [work = publisher->work_.get()] { return work->Step(); });
  return publisher;
}

void Publisher::Begin(Kind kind, const Monitor& monitor, const std::string& key,
                      const std::string& window, Seconds period) {
  CheckOpen("metric");
  work_->Begin({.kind = kind,
                .recording = monitor.recording(),
                .key = key,
                .name = window,
                .period = period,
                .next = {}});
  ticker_->Wake();
}

void Publisher::End(Kind kind, const std::string& key, const std::string& window,
                    const Measurement* measurement) {
  CheckOpen("metric");
  {
    const WithoutGil released;
    work_->End(kind, key, window, measurement);
  }
  ticker_->Wake();
}

void Publisher::Observe(const std::string& window, const Measurement& measurement,
                        const EnergyBuckets& buckets) {
  CheckOpen("metric");
  work_->board.Observe(window, measurement, buckets);
  ticker_->Wake();
}

bool Publisher::Flush(double seconds) {
  CheckOpen("metric");
  const std::shared_ptr<Work> work = work_;
  if (!work->pushes()) return true;
  ticker_->Wake();
  return WaitUntil([work] { return work->UpToDate(); }, seconds);
}

std::string Publisher::Text() const {
  CheckOpen("metric");
  MetricSet metrics;
  work_->board.AddTo(metrics, {});
  return metrics.Text();
}

void Publisher::DoClose() {
  auto ticker = std::move(ticker_);
  const std::shared_ptr<Work> work = work_;
  const WithoutGil released;
  ticker.reset();
  work->Finish();
}

void Publisher::Abandon() {
  // In a forked child the thread does not exist, and the holders of locks may not either.
  static auto* const abandoned = new std::vector<std::shared_ptr<Work>>();
  abandoned->push_back(work_);
  (void)ticker_.release();
}

namespace {

// The metrics of a server. It uses neither the interpreter nor the GIL, because its threads are not
// Python's.
class Sources {
 public:
  void Add(Publisher::Source source) {
    const std::lock_guard lock(mutex_);
    sources_.push_back(std::move(source));
  }
  std::string Text() const {
    MetricSet metrics;
    {
      const std::lock_guard lock(mutex_);
      for (const auto& source : sources_) source(metrics);
    }
    AddProcess(Version(), ProcessCpuTime(), metrics);
    return metrics.Text();
  }

 private:
  mutable std::mutex mutex_;
  std::vector<Publisher::Source> sources_;
};

// Serves the metrics of jobs to Prometheus and, with a monitor, the readings of its devices.
class Server final : public Closeable {
 public:
  Server(const std::string& address, const std::shared_ptr<Monitor>& monitor)
      : Closeable(monitor.get()) {
    const http::ListenAddress listen = Unwrap(http::ParseListenAddress(address));
    const std::shared_ptr<NodeMonitor> recording = monitor ? monitor->recording() : nullptr;
    const WithoutGil released;
    if (recording) {
      sources_->Add([recording, sampler = std::make_shared<NodeSampler>(*recording)](
                        MetricSet& metrics) { AddSample(sampler->Take(), metrics); });
    }
    server_ =
        Unwrap(MetricsServer::Start(listen, [sources = sources_] { return sources->Text(); }));
  }
  ~Server() override { Close(); }

  void Add(const Publisher& publisher) {
    CheckOpen("server");
    sources_->Add(publisher.source());
  }
  std::string Url() const {
    CheckOpen("server");
    return server_->url();
  }

 private:
  void DoClose() override {
    auto server = std::move(server_);
    auto sources = std::move(sources_);
    const WithoutGil released;
    server.reset();
    sources.reset();
  }
  void Abandon() override {
    static auto* const abandoned = new std::vector<std::shared_ptr<Sources>>();
    abandoned->push_back(std::move(sources_));
    (void)server_.release();
  }

  std::shared_ptr<Sources> sources_ = std::make_shared<Sources>();
  std::unique_ptr<MetricsServer> server_;
};

// Returns the recorded temperatures of the GPUs that have one, in degrees Celsius.
std::vector<double> GpuTemperatures(const Monitor& monitor) {
  std::vector<double> known;
  const EnergyMonitor& energy = monitor.energy();
  for (std::size_t i = 0; i < energy.device_count(); ++i) {
    const auto temperature = energy.Now(i).temperature;
    if (temperature.ok()) known.push_back(temperature.value().value());
  }
  return known;
}

}  // namespace

void BindMetrics(py::module_& core) {
  py::module_ module = core.def_submodule("metrics");
  module.def("gpu_temperatures", &GpuTemperatures, py::arg("monitor"));
  py::enum_<Publisher::Kind>(module, "Kind")
      .value("COUNTER", Publisher::Kind::kCounter)
      .value("GAUGE", Publisher::Kind::kGauge);
  py::class_<Publisher, std::shared_ptr<Publisher>>(module, "Publisher")
      .def(py::init([](std::string url, std::string job, std::string instance) {
             return Publisher::Open(
                 {.url = std::move(url), .job = std::move(job), .instance = std::move(instance)});
           }),
           py::arg("url"), py::arg("job"), py::arg("instance"))
      .def(
          "begin",
          [](Publisher& publisher, Publisher::Kind kind, const Monitor& monitor,
             const std::string& key, const std::string& window,
             double period) { publisher.Begin(kind, monitor, key, window, Seconds(period)); },
          py::arg("kind"), py::arg("monitor"), py::arg("key"), py::arg("window"), py::arg("period"))
      .def(
          "end",
          [](Publisher& publisher, Publisher::Kind kind, const std::string& key,
             const std::string& window, const MeasurementObject* measurement) {
            publisher.End(kind, key, window,
                          measurement == nullptr ? nullptr : &measurement->get());
          },
          py::arg("kind"), py::arg("key"), py::arg("window"), py::arg("measurement"))
      .def(
          "observe",
          [](Publisher& publisher, const std::string& window, const MeasurementObject& measurement,
             std::vector<double> gpu, std::vector<double> cpu, std::vector<double> dram) {
            publisher.Observe(
                window, measurement.get(),
                {.gpu = std::move(gpu), .cpu = std::move(cpu), .dram = std::move(dram)});
          },
          py::arg("window"), py::arg("measurement"), py::arg("gpu_buckets"), py::arg("cpu_buckets"),
          py::arg("dram_buckets"))
      .def("flush", &Publisher::Flush, py::arg("timeout"))
      .def("text", &Publisher::Text)
      .def("close", &Publisher::Close)
      .def_property_readonly("closed", &Publisher::closed);
  py::class_<Server>(module, "Server")
      .def(py::init<std::string, std::shared_ptr<Monitor>>(), py::arg("address"),
           py::arg("monitor"))
      .def("add", &Server::Add, py::arg("publisher"))
      .def("close", &Server::Close)
      .def_property_readonly("closed", &Server::closed)
      .def_property_readonly("url", &Server::Url);
}

}  // namespace zeus::python
