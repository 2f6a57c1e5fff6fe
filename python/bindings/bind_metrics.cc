#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "python/bindings/bind.h"
#include "python/bindings/errors.h"
#include "python/bindings/measurement.h"
#include "python/bindings/publisher.h"
#include "python/bindings/without_gil.h"
#include "zeus/base/version.h"
#include "zeus/export/metrics_server.h"
#include "zeus/export/node_sampler.h"
#include "zeus/export/prometheus.h"

namespace zeus::python {
namespace {

// What a server tells. Of neither the interpreter nor its lock: its threads are not Python's.
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

// Answers Prometheus for the metrics of jobs and, with a monitor, for what its devices show.
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

// Of the GPUs whose temperature is known, in degrees Celsius, from the recording.
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
