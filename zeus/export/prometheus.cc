#include "zeus/export/prometheus.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <chrono>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "zeus/base/text.h"
#include "zeus/http/url.h"
#include "zeus/metrics/metric.h"
#include "zeus/metrics/metric_catalogue.h"

namespace zeus {
namespace {

using Present = EnergyMonitor::Present;

constexpr std::array kWindowBounds = {1e-1, 1.0, 1e1, 5e1, 1e2, 2e2, 5e2, 1e3, 5e3, 1e4, 1e5, 1e6};

// How the reference implementation names a kind of device, and the buckets it has by default.
struct ReferenceMetrics {
  std::string_view kind;
  const MetricDescription* histogram;
  const MetricDescription* counter;
  std::array<double, 5> bounds;
};
constexpr std::array kReference = {
    ReferenceMetrics{"gpu",
                     &metrics::kReferenceGpuHistogram,
                     &metrics::kReferenceGpuCounter,
                     {50, 100, 200, 500, 1000}},
    ReferenceMetrics{"cpu",
                     &metrics::kReferenceCpuHistogram,
                     &metrics::kReferenceCpuCounter,
                     {10, 50, 100, 500, 1000}},
    ReferenceMetrics{"dram",
                     &metrics::kReferenceDramHistogram,
                     &metrics::kReferenceDramCounter,
                     {5, 10, 20, 50, 150}},
};

const ReferenceMetrics* FindReference(std::string_view kind) {
  const auto found = std::ranges::find(kReference, kind, &ReferenceMetrics::kind);
  return found == kReference.end() ? nullptr : &*found;
}

Labels With(Labels labels, std::string_view name, std::string value) {
  labels.emplace_back(name, std::move(value));
  return labels;
}

// A value that is not known has no line: an absent series is not a zero.
template <class Unit>
void AddKnown(MetricSet& set, const MetricDescription& metric, const Labels& labels,
              const Result<Quantity<Unit>>& value) {
  if (value.ok()) set.Add(metric, labels, value.value().value());
}

void AddLimits(const DeviceSample& gpu, const Labels& labels, MetricSet& set) {
  const auto add = [&](const char* kind, const Result<Watts>& limit) {
    AddKnown(set, metrics::kGpuPowerLimit, With(labels, "kind", kind), limit);
  };
  add("requested", gpu.present.requested_limit);
  add("enforced", gpu.present.enforced_limit);
  if (gpu.default_limit) add("default", *gpu.default_limit);
  if (gpu.limit_range) {
    add("min", gpu.limit_range->min);
    add("max", gpu.limit_range->max);
  }
}

void AddPowers(const Present& present, const Labels& labels, MetricSet& set) {
  const auto add = [&](const char* kind, const Result<Watts>& power) {
    AddKnown(set, metrics::kGpuPower, With(labels, "kind", kind), power);
  };
  add("update", present.power);
  add("instant", present.instant_power);
  add("average", present.average_power);
  add("memory", present.memory_power);
}

void AddGpu(const DeviceSample& gpu, MetricSet& set) {
  const Present& present = gpu.present;
  const Labels labels = {{"gpu", std::string(gpu.identity.index())},
                         {"uuid", gpu.identity.uuid},
                         {"model", gpu.identity.model}};
  AddKnown(set, metrics::kGpuEnergy, With(labels, "source", EnergySourceName(present.source)),
           present.total);
  if (present.total.ok()) set.Add(metrics::kGpuEnergySigma, labels, present.total_sigma.value());
  AddPowers(present, labels, set);
  AddLimits(gpu, labels, set);
  AddKnown(set, metrics::kGpuTemperature, labels, present.temperature);
  if (present.utilization.ok()) {
    const Utilization& used = present.utilization.value();
    set.Add(metrics::kGpuUtilization, With(labels, "kind", "compute"), used.compute);
    set.Add(metrics::kGpuUtilization, With(labels, "kind", "memory"), used.memory);
  }
  AddKnown(set, metrics::kGpuClock, With(labels, "domain", "graphics"), present.graphics_clock);
}

void AddCpu(const DeviceSample& cpu, const char* zone, MetricSet& set) {
  const Labels labels = {
      {"cpu", std::string(cpu.identity.index())}, {"zone", zone}, {"model", cpu.identity.model}};
  AddKnown(set, metrics::kCpuEnergy, labels, cpu.present.total);
  AddKnown(set, metrics::kCpuPower, labels, cpu.present.power);
}

void AddRail(const DeviceSample& rail, MetricSet& set) {
  const Labels labels = {{"rail", std::string(rail.identity.index())}};
  AddKnown(set, metrics::kRailEnergy, labels, rail.present.total);
  AddKnown(set, metrics::kRailPower, labels, rail.present.power);
}

void AddReferenceNames(const DeviceSample& device, MetricSet& set) {
  const Labels labels = {{"window", metrics::kWholeRecording},
                         {"index", std::string(device.identity.index())}};
  if (const ReferenceMetrics* reference = FindReference(device.identity.kind()))
    AddKnown(set, *reference->counter, labels, device.present.total);
  if (device.identity.kind() == "gpu")
    AddKnown(set, metrics::kReferenceGpuPower, labels, device.present.power);
}

void AddDevice(const DeviceSample& device, MetricSet& set) {
  const Labels labels = {{"device", device.identity.name}};
  set.Add(metrics::kDeviceUp, labels, WhyUnreadable(device.present) == nullptr ? 1 : 0);
  for (const std::string_view flag : device.present.flags.Names())
    set.Add(metrics::kDeviceFlag, With(labels, "flag", std::string(flag)), 1);
  const std::string_view kind = device.identity.kind();
  if (kind == "gpu") AddGpu(device, set);
  if (kind == "cpu") AddCpu(device, "package", set);
  if (kind == "dram") AddCpu(device, "dram", set);
  if (kind == "rail") AddRail(device, set);
  AddReferenceNames(device, set);
}

Seconds ToSeconds(const timeval& time) {
  return std::chrono::seconds(time.tv_sec) + std::chrono::microseconds(time.tv_usec);
}

}  // namespace

void AddSample(const Sample& sample, MetricSet& set) {
  for (const DeviceSample& device : sample.devices) AddDevice(device, set);
}

void AddProcess(std::string_view version, Seconds cpu_time, MetricSet& set) {
  set.Add(metrics::kSelfCpu, {}, cpu_time.count());
  set.Add(metrics::kBuildInfo, {{"version", std::string(version)}}, 1);
}

Seconds ProcessCpuTime() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return ToSeconds(usage.ru_utime) + ToSeconds(usage.ru_stime);
}

void WindowMetrics::Observe(const Measurement& measurement) {
  const std::scoped_lock lock(mutex_);
  std::string window = "other";
  if (names_.size() < most_names_ || names_.contains(measurement.window)) {
    names_.insert(measurement.window);
    window = measurement.window;
  }
  for (const DeviceMeasurement& device : measurement.devices) {
    if (!device.energy.ok()) continue;
    const DeviceIdentity identity{.name = device.device, .model = "", .uuid = ""};
    const ReferenceMetrics* reference = FindReference(identity.kind());
    const std::span<const double> bounds =
        reference != nullptr ? std::span<const double>(reference->bounds) : kWindowBounds;
    Series& series =
        series_.try_emplace({window, device.device}, Histogram(kWindowBounds), Histogram(bounds))
            .first->second;
    const double energy = device.energy.value().energy.value();
    series.ours.Observe(energy);
    series.reference.Observe(energy);
  }
}

void WindowMetrics::AddTo(MetricSet& set) const {
  const std::scoped_lock lock(mutex_);
  for (const auto& [key, series] : series_) {
    const auto& [window, device] = key;
    const DeviceIdentity identity{.name = device, .model = "", .uuid = ""};
    set.Add(metrics::kWindowEnergy, {{"window", window}, {"device", device}}, series.ours);
    const ReferenceMetrics* reference = FindReference(identity.kind());
    if (reference == nullptr) continue;
    // A window that is called as the whole recording is must not be taken for it.
    const std::string shown = window == metrics::kWholeRecording ? "window all" : window;
    const Labels labels = {{"window", shown}, {"index", std::string(identity.index())}};
    set.Add(*reference->histogram, labels, series.reference);
    set.Add(*reference->counter, labels, series.reference.sum());
  }
}

namespace {

using namespace std::chrono_literals;

constexpr Seconds kConnectTimeout = 2s;
constexpr Seconds kAnswerTimeout = 5s;
constexpr int kLowestFailure = 300;

std::string Base64Url(std::string_view bytes) {
  constexpr std::string_view kAlphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  std::string text;
  unsigned buffer = 0;
  int bits = 0;
  for (const char c : bytes) {
    buffer = (buffer << 8U) | static_cast<unsigned char>(c);
    for (bits += 8; bits >= 6; bits -= 6) text += kAlphabet[(buffer >> (bits - 6)) & 63U];
  }
  if (bits > 0) text += kAlphabet[(buffer << (6 - bits)) & 63U];
  while (text.size() % 4 != 0) text += '=';
  return text;
}

bool FitsAPath(std::string_view value) {
  return std::ranges::all_of(value, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '.' || c == '_' || c == '-' || c == ':';
  });
}

std::string GroupingPart(std::string_view label, std::string_view value) {
  return FitsAPath(value) ? fmt::format("/{}/{}", label, value)
                          : fmt::format("/{}@base64/{}", label, Base64Url(value));
}

}  // namespace

std::string PushPath(const PushTarget& target) {
  return "/metrics" + GroupingPart("job", target.job) + GroupingPart("instance", target.instance);
}

PushGateway::PushGateway(std::unique_ptr<http::Client> client, std::string path,
                         const std::string& url)
    : client_(std::move(client)), path_(std::move(path)), notice_("push to " + url) {}

PushGateway::~PushGateway() = default;

Result<std::unique_ptr<PushGateway>> PushGateway::Create(const PushTarget& target) {
  const auto url = http::ParseUrl(target.url);
  if (!url.ok() || url.value().scheme == http::Url::Scheme::kUnix)
    return InvalidArgument(fmt::format("{} is not the URL of a push gateway: use http://host:port",
                                       Quote(target.url)));
  if (target.job.empty() || target.instance.empty())
    return InvalidArgument("a push needs the name of a job and of an instance that are not empty");
  ZEUS_TRY(auto client, http::Client::Create({.url = target.url,
                                              .keep_connection = true,
                                              .connect_timeout = kConnectTimeout,
                                              .answer_timeout = kAnswerTimeout}));
  return std::unique_ptr<PushGateway>(
      new PushGateway(std::move(client), PushPath(target), target.url));
}

Status PushGateway::Push(const std::string& text) {
  ZEUS_TRY(const http::Reply reply, client_->Send({.method = http::Method::kPut,
                                                   .path = path_,
                                                   .body = text,
                                                   .content_type = MetricSet::kContentType}));
  if (reply.status < kLowestFailure) return Ok();
  return Error{ErrorCode::kUnavailable,
               fmt::format("answered {}: {}", reply.status, Printable(Trim(reply.body)))};
}

}  // namespace zeus
