#include "zeus/daemon/api/node_metrics.h"

#include <array>

#include "zeus/base/version.h"
#include "zeus/export/prometheus.h"
#include "zeus/metrics/metric_catalogue.h"

namespace zeus::daemon {
namespace {

constexpr std::array kBounds = {0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005,
                                0.01,    0.025,  0.05,    0.1,    0.25,  1.0,    10.0};
constexpr std::array<const char*, 3> kDenials = {"token", "no_token", "scope"};
constexpr std::size_t kMostJobs = 1024;

double ToDouble(std::uint64_t count) { return static_cast<double>(count); }

void AddLeases(const LeaseBook::Counts& counts, MetricSet& set) {
  for (const auto& [key, count] : counts.present)
    set.Add(metrics::kLeases,
            {{"class", std::string(wire::Name(key.first))},
             {"state", std::string(wire::Name(key.second))}},
            ToDouble(count));
  for (const auto& [reason, count] : counts.ended)
    set.Add(metrics::kLeasesEnded, {{"reason", std::string(Name(reason))}}, ToDouble(count));
  set.Add(metrics::kKnobRestorePending, {}, ToDouble(counts.restore_pending));
}

void AddKnobValue(const wire::KnobKey& knob, const char* kind,
                  const std::optional<wire::KnobValue>& value, MetricSet& set) {
  if (!value) return;
  const auto* setting = std::get_if<Setting>(&*value);
  if (setting == nullptr) return;
  if (const auto* watts = std::get_if<Watts>(setting))
    set.Add(metrics::kKnobWatts,
            {{"uuid", knob.device}, {"knob", std::string(wire::Name(knob.knob))}, {"kind", kind}},
            watts->value());
}

void AddKnobs(const DeviceDesk& desk, MetricSet& set) {
  for (const KnobFacts& facts : desk.Knobs()) {
    const auto report = desk.Latest(facts.key);
    if (!report) continue;
    AddKnobValue(facts.key, "baseline", report->baseline, set);
    AddKnobValue(facts.key, "effective", report->resolution.effective, set);
    AddKnobValue(facts.key, "enforced", report->enforced, set);
  }
  for (const DeviceDesk::DeviceState& device : desk.Devices()) {
    set.Add(metrics::kDeviceStuck, {{"device", device.name}}, device.stuck ? 1 : 0);
    set.Add(metrics::kForeignChanges, {{"device", device.name}}, ToDouble(device.foreign_changes));
  }
}

// Energy of CPUs tells what runs on them: those who may not read it get none of it from here.
bool MayRead(const Grant& reader, bool is_gpu) {
  return is_gpu || reader.scopes.Has(Scope::kCpuRead);
}

std::string LabelOf(const JobBook::View& job, const char* name) {
  const auto found = job.spec.labels.find(name);
  return found == job.spec.labels.end() ? std::string() : found->second;
}

std::string UserOf(const JobBook::View& job) {
  return job.spec.uid ? std::to_string(*job.spec.uid) : "";
}

void AddJobInfo(const JobBook::View& job, MetricSet& set) {
  set.Add(metrics::kJobInfo,
          {{"job", job.spec.id},
           {"user", UserOf(job)},
           {"user_name", LabelOf(job, "user")},
           {"job_name", LabelOf(job, "job_name")},
           {"partition", LabelOf(job, "partition")},
           {"account", LabelOf(job, "account")},
           {"namespace", LabelOf(job, "namespace")}},
          1);
}

// The energy of a device that belongs to a job, and to a pod where the job is one.
void AddShare(const JobBook::View& job, const JobBook::DeviceShare& share, MetricSet& set) {
  set.Add(metrics::kJobEnergy,
          {{"job", job.spec.id}, {"user", UserOf(job)}, {"uuid", share.device}},
          share.energy.value());
  if (!job.spec.id.starts_with(kContainerJob) && !job.spec.id.starts_with("pod:")) return;
  const auto label = [&job](const char* name) { return LabelOf(job, name); };
  set.Add(metrics::kPodEnergy,
          {{"namespace", label("namespace")},
           {"pod", label("pod")},
           {"container", label("container")},
           {"uuid", share.device}},
          share.energy.value());
}

void AddJobs(const Daemon& daemon, const JobBook& jobs, const Grant& reader, MetricSet& set) {
  const auto may_read = [&](const std::string& id) {
    const NodeDevice* device = daemon.devices().Find(id);
    return MayRead(reader, device != nullptr && device->gpu != nullptr);
  };
  std::size_t series = 0;
  for (const JobBook::View& job : jobs.List()) {
    for (const JobBook::DeviceShare& share : job.devices)
      if (may_read(share.device) && ++series <= kMostJobs) AddShare(job, share, set);
    if (++series > kMostJobs) continue;
    AddJobInfo(job, set);
    const Labels labels = {{"job", job.spec.id}, {"user", UserOf(job)}};
    set.Add(metrics::kJobCpuTime, labels, job.cpu_time.count());
    if (job.cpu_energy && MayRead(reader, false))
      set.Add(metrics::kJobCpuEnergy, labels, job.cpu_energy->value());
  }
  for (const auto& [device, total] : jobs.Totals())
    if (may_read(device))
      set.Add(metrics::kSharedIdleEnergy, {{"uuid", device}}, total.shared_idle.value());
}

void AddPods(const PodWatch* pods, MetricSet& set) {
  if (pods == nullptr) return;
  const PodWatch::State state = pods->state();
  set.Add(metrics::kKubeletUp, {}, state.asked && state.trouble.empty() ? 1 : 0);
  set.Add(metrics::kPodContainers, {}, ToDouble(state.containers));
  set.Add(metrics::kPodUnknownDevices, {}, ToDouble(state.unknown_devices));
}

}  // namespace

void NodeMetrics::Observe(const http::FinishedRequest& request) {
  // Clients can invent any path, so unknown ones share one label.
  const std::string route = request.route.empty() ? "none" : request.route;
  const std::lock_guard lock(mutex_);
  ++requests_[{route, request.status}];
  durations_.try_emplace(route, kBounds).first->second.Observe(request.duration.count());
}

void NodeMetrics::AddRequests(MetricSet& set) const {
  set.Add(metrics::kDaemonConnections, {{"transport", "unix"}},
          ToDouble(unix_connections_.open.load()));
  set.Add(metrics::kDaemonConnections, {{"transport", "tcp"}},
          ToDouble(tcp_connections_.open.load()));
  for (std::size_t reason = 0; reason < denials_.size(); ++reason)
    set.Add(metrics::kDaemonDenied, {{"reason", kDenials[reason]}},
            ToDouble(denials_[reason].load()));
  for (const auto& [key, count] : requests_)
    set.Add(metrics::kDaemonRequests,
            {{"route", key.first}, {"status", std::to_string(key.second)}}, ToDouble(count));
  for (const auto& [route, histogram] : durations_)
    set.Add(metrics::kDaemonRequestDuration, {{"route", route}}, histogram);
}

std::string NodeMetrics::Text(Daemon& daemon, const Grant& reader) {
  MetricSet set;
  {
    const std::lock_guard lock(mutex_);
    if (!sampler_) sampler_ = std::make_unique<NodeSampler>(daemon.recorder());
    Sample sample = sampler_->Take();
    std::erase_if(sample.devices, [&](const DeviceSample& device) {
      return !MayRead(reader, device.identity.kind() == "gpu");
    });
    AddSample(sample, set);
    AddRequests(set);
  }
  set.Add(metrics::kDaemonStreams, {},
          ToDouble(daemon.events().counts().streams + daemon.streams().size()));
  set.Add(metrics::kDaemonStreamDropped, {}, ToDouble(daemon.events().counts().dropped));
  set.Add(metrics::kDaemonAuditLost, {}, ToDouble(daemon.audit().lost()));
  AddLeases(daemon.book().CountLeases(), set);
  AddKnobs(daemon.desk(), set);
  daemon.timings().AddTo(set);
  AddJobs(daemon, daemon.jobs(), reader, set);
  AddPods(daemon.pods(), set);
  AddProcess(Version(), ProcessCpuTime(), set);
  return set.Text();
}

}  // namespace zeus::daemon
