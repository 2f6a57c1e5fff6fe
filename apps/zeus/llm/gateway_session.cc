#include "apps/zeus/llm/gateway_session.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "apps/zeus/llm/clock_knob.h"
#include "apps/zeus/output.h"
#include "zeus/base/clock.h"
#include "zeus/base/file.h"
#include "zeus/base/log.h"
#include "zeus/base/text.h"
#include "zeus/base/version.h"
#include "zeus/client/node/open_node.h"
#include "zeus/device/knobs/knob_repair.h"
#include "zeus/device/nvml/compute_processes.h"
#include "zeus/export/prometheus.h"
#include "zeus/export/sample.h"
#include "zeus/gateway/clock_driver.h"
#include "zeus/gateway/gateway.h"
#include "zeus/gateway/listening_process.h"
#include "zeus/http/access_log.h"
#include "zeus/http/limits.h"
#include "zeus/http/url.h"
#include "zeus/monitor/node_monitor.h"
#include "zeus/process/signal_watch.h"

namespace zeus::cli {
namespace {

constexpr Seconds kLongWait = std::chrono::hours(24 * 365);
constexpr std::size_t kMostConnections = 100'000;
constexpr std::size_t kFilesPerClient = 2;  // Its own and that of the upstream.

// A stream needs two open files, so the limit is raised as far as the system allows.
std::size_t RaiseOpenFiles() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return http::ConnectionsByOpenFiles();
  limit.rlim_cur = limit.rlim_max;
  (void)::setrlimit(RLIMIT_NOFILE, &limit);
  (void)::getrlimit(RLIMIT_NOFILE, &limit);
  constexpr std::size_t kReserve = 128;
  const std::size_t files =
      std::min<std::size_t>(limit.rlim_cur, kFilesPerClient * kMostConnections + kReserve);
  return std::max<std::size_t>(16, files > kReserve ? (files - kReserve) / kFilesPerClient : 0);
}

// The values of a repeated option, one for each upstream.
Status CheckCount(const std::vector<std::string>& values, std::size_t upstreams,
                  std::string_view option) {
  if (values.empty() || values.size() == upstreams) return Ok();
  return InvalidArgument(fmt::format(
      "{} is given {} times for {} upstreams: give it once for each --upstream, in the same order, "
      "or not at all",
      option, values.size(), upstreams));
}

// The device of the monitor that is the GPU with this number or UUID.
Result<std::size_t> FindGpu(NodeMonitor& node, std::string_view text) {
  std::string_view number = text;
  if (number.starts_with("gpu:")) number.remove_prefix(4);
  const std::string name = fmt::format("gpu:{}", number);
  for (std::size_t i = 0; i < node.monitor().device_count(); ++i) {
    const Gpu* const gpu = node.gpu(i);
    if (gpu == nullptr) continue;
    if (gpu->name() == name || gpu->identity().uuid == text) return i;
  }
  return Error{
      ErrorCode::kNotFound,
      fmt::format("there is no GPU {} here: zeus doctor lists those that there are", Quote(text))};
}

std::vector<std::size_t> AllGpus(NodeMonitor& node) {
  std::vector<std::size_t> devices;
  for (std::size_t i = 0; i < node.monitor().device_count(); ++i)
    if (node.gpu(i) != nullptr) devices.push_back(i);
  return devices;
}

// Finds the GPUs on which the upstream's listening process, or a child of it, computes. Where that
// cannot be seen, the only GPU of the machine must be it.
void FindGpusByProcess(NodeMonitor& node, gateway::GatewayUpstream& upstream) {
  const auto all = AllGpus(node);
  if (all.empty()) {
    upstream.absent_reason = "this machine has no GPU whose energy can be read (see zeus doctor)";
    return;
  }
  const http::Url& url = upstream.url;
  const bool here = url.scheme != http::Url::Scheme::kUnix && http::IsLoopback(url.host);
  const std::uint16_t port = url.port.value_or(url.scheme == http::Url::Scheme::kHttps ? 443 : 80);
  const auto servers = here ? gateway::ListeningProcesses(port) : std::vector<int>();
  for (const std::size_t device : all) {
    const auto computing = ComputeProcesses(node.gpu(device)->identity().uuid);
    if (!computing.ok()) continue;
    if (std::ranges::find_first_of(computing.value(), servers) != computing.value().end())
      upstream.devices.push_back(device);
  }
  if (!upstream.devices.empty()) return;
  if (all.size() == 1 && here)
    upstream.devices = all;
  else
    upstream.absent_reason = fmt::format(
        "no GPU of this machine is known to work for {}: name its GPUs with --gpus", url.server());
}

// Finds the GPUs of an upstream, or the reason why its energy is not known.
Status FindGpus(NodeMonitor& node, const std::string& text, gateway::GatewayUpstream& upstream) {
  if (text != "auto") {
    for (const std::string_view part : SplitAtCommas(text)) {
      ZEUS_TRY(const std::size_t device, FindGpu(node, part));
      if (std::ranges::find(upstream.devices, device) == upstream.devices.end())
        upstream.devices.push_back(device);
    }
    return Ok();
  }
  FindGpusByProcess(node, upstream);
  return Ok();
}

Result<std::vector<gateway::GatewayUpstream>> MakeUpstreams(const LlmGatewayOptions& options,
                                                            NodeMonitor& node) {
  ZEUS_RETURN_IF_ERROR(CheckCount(options.gpus, options.upstreams.size(), "--gpus"));
  ZEUS_RETURN_IF_ERROR(CheckCount(options.models, options.upstreams.size(), "--models"));
  std::vector<gateway::GatewayUpstream> upstreams;
  for (std::size_t i = 0; i < options.upstreams.size(); ++i) {
    gateway::GatewayUpstream upstream;
    ZEUS_TRY(upstream.url, http::ParseUrl(options.upstreams[i]));
    if (!options.models.empty() && options.models[i] != "-")
      for (const std::string_view model : SplitAtCommas(options.models[i]))
        upstream.models.emplace_back(model);
    ZEUS_RETURN_IF_ERROR(FindGpus(node, options.gpus.empty() ? "auto" : options.gpus[i], upstream));
    if (!upstream.absent_reason.empty())
      log::Warning("requests to {} are not metered in joules: {}", upstream.url.server(),
                   upstream.absent_reason);
    upstreams.push_back(std::move(upstream));
  }
  return upstreams;
}

gateway::ProxyLimits MakeLimits(const LlmGatewayOptions& options) {
  gateway::ProxyLimits limits;
  const std::size_t possible = RaiseOpenFiles();
  limits.head.bytes = options.max_header;
  limits.body = options.max_body;
  limits.bodies = std::max<std::size_t>(limits.bodies, options.max_body);
  limits.connections =
      options.max_connections > 0 ? static_cast<std::size_t>(options.max_connections) : possible;
  limits.connect_time = Seconds(options.connect_timeout);
  limits.first_byte_time = Seconds(options.first_byte_timeout);
  limits.idle_time = Seconds(options.idle_timeout);
  return limits;
}

Result<std::unique_ptr<NodeMonitor>> OpenGpus(Clock& clock) {
  // Nothing is shared: the gateway divides all of the GPUs' energy itself.
  return NodeMonitor::OpenThisMachine(clock, {.cpus = false,
                                              .rails = false,
                                              .share = false,
                                              .telemetry_interval = Seconds(0.25),
                                              .find_devices = client::OpenThisNode});
}

// Returns the grams of energy that was used evenly between two moments.
std::optional<double> Grams(const CarbonAccounting& accounting, WallTime begin, WallTime end,
                            Joules energy) {
  const CarbonReport report =
      accounting.Of({.pieces = {{.begin = begin, .end = end, .energy = energy}}, .sigma = {}});
  if (!report.emissions || !report.emissions->accounted.complete()) return std::nullopt;
  return report.emissions->amount.value();
}

// Reads the energy of devices from the monitor's recording.
std::optional<Joules> RecordedEnergy(const EnergyMonitor& monitor,
                                     const std::vector<std::size_t>& devices) {
  Joules sum;
  for (const std::size_t device : devices) {
    const auto total = monitor.Now(device).total;
    if (!total.ok()) return std::nullopt;
    sum += total.value();
  }
  return sum;
}

Status CheckNotShared(const std::vector<gateway::GatewayUpstream>& upstreams, std::size_t index,
                      NodeMonitor& node) {
  for (std::size_t other = 0; other < index; ++other)
    for (const std::size_t device : upstreams[index].devices)
      if (std::ranges::find(upstreams[other].devices, device) != upstreams[other].devices.end())
        return InvalidArgument(fmt::format(
            "--slo cannot govern {}: {} and {} share it, and a clock serves one engine; "
            "give each its own GPU, or run without --slo",
            node.monitor().device_name(device), upstreams[other].url.server(),
            upstreams[index].url.server()));
  return Ok();
}

// The GPUs of one upstream with the knob of their clock.
Result<gateway::GovernedGpus> MakeGoverned(const std::vector<gateway::GatewayUpstream>& upstreams,
                                           std::size_t index, NodeMonitor& node, bool observe) {
  ZEUS_RETURN_IF_ERROR(CheckNotShared(upstreams, index, node));
  const std::vector<std::size_t>& devices = upstreams[index].devices;
  gateway::GovernedGpus governed;
  governed.upstream = index;
  governed.upstream_name = upstreams[index].url.server();
  std::vector<Gpu*> gpus;
  for (const std::size_t device : devices) {
    gpus.push_back(node.gpu(device));
    governed.gpus += (governed.gpus.empty() ? "" : ",") + node.monitor().device_name(device);
  }
  governed.gpu_model = fmt::format("{} x {}", gpus.size(), gpus.front()->identity().model);
  auto knob = GuardedClockKnob::Make(gpus);
  if (!knob.ok()) return std::move(knob).error().While("--slo");
  if (const Status allowed = observe ? Ok() : knob.value()->CheckPermission(); !allowed.ok())
    return Error{allowed.error().code,
                 fmt::format("--slo may not lock the clock of {}: {}; --slo-observe needs no "
                             "permission",
                             governed.gpus, allowed.error().message)};
  governed.knob = std::move(knob).value();
  governed.energy = [&monitor = node.monitor(), devices] {
    return RecordedEnergy(monitor, devices);
  };
  return governed;
}

// Puts back the clocks and limits that killed programs left.
void RepairGatewayKnobs(Clock& clock) {
  const auto folder = KnobFolder();
  if (!folder.ok()) return;  // The knob will say so.
  KnobJournal journal(clock, folder.value());
  const auto repairs = RepairKnobs(journal, RealSurroundings(clock));
  if (!repairs.ok()) return log::Warning("{}", repairs.error().message);
  for (const KnobRepair& repair : repairs.value()) log::Warning("{}", ToText(repair));
}

// The driver of the governors; null without --slo.
Result<std::unique_ptr<gateway::ClockDriver>> MakeGovernor(
    const LlmGatewayOptions& options, const std::vector<gateway::GatewayUpstream>& upstreams,
    NodeMonitor& node, Clock& clock) {
  if (options.slo.empty()) return std::unique_ptr<gateway::ClockDriver>();
  gateway::ClockDriverOptions wanted;
  auto targets = ParseServiceTargets(options.slo);
  if (!targets.ok()) return std::move(targets).error().While("--slo");
  wanted.targets = targets.value();
  if (options.slo_observe)
    wanted.mode = gateway::GovernorSwitch::kObserve;
  else
    RepairGatewayKnobs(clock);
  for (std::size_t i = 0; i < upstreams.size(); ++i) {
    if (upstreams[i].devices.empty()) continue;
    ZEUS_TRY(auto governed, MakeGoverned(upstreams, i, node, options.slo_observe));
    wanted.groups.push_back(std::move(governed));
  }
  if (wanted.groups.empty())
    return InvalidArgument(
        fmt::format("--slo has no clock to govern: {}", upstreams.front().absent_reason));
  wanted.knowledge_folder = UserDataFolder(ProcessEnvironment(), "governor");
  return gateway::ClockDriver::Create(std::move(wanted), clock);
}

void PrintLines(const std::vector<std::string>& lines) {
  for (const std::string& line : lines) PrintText(line + "\n");
}

// Waits for the signals that end the program. SIGHUP opens the log again.
bool DrainAfterSignal(gateway::Gateway& gateway, SignalWatch& signals, http::AccessLog* log,
                      const Clock& clock, Seconds timeout) {
  while (true) {
    const SignalWatch::Event event = signals.WaitUntil(clock.Now() + kLongWait, clock);
    if (event == SignalWatch::Event::kReopen && log != nullptr) log->Reopen();
    if (event == SignalWatch::Event::kStop) break;
  }
  // A second signal ends it at once.
  const TimePoint deadline = clock.Now() + timeout;
  constexpr Seconds kSlice{0.1};
  gateway.BeginShutdown();
  while (!gateway.WaitForShutdown(std::clamp(deadline - clock.Now(), Seconds(0), kSlice)))
    if (clock.Now() >= deadline ||
        signals.WaitUntil(clock.Now(), clock) == SignalWatch::Event::kStop)
      return false;
  return true;
}

}  // namespace

// The objects of a running gateway, in the order of their construction.
struct LlmGateway::Parts {
  explicit Parts(CarbonAccounting accounting) : carbon(std::move(accounting)) {}

  CarbonAccounting carbon;
  std::unique_ptr<NodeMonitor> node{};
  std::optional<NodeSampler> sampler{};
  std::unique_ptr<http::AccessLog> log{};
  std::unique_ptr<gateway::ClockDriver> governor{};
  std::unique_ptr<gateway::Gateway> gateway{};
};

namespace {

gateway::MeteringOptions MakeMetering(const LlmGatewayOptions& options,
                                      const CarbonAccounting& carbon, http::AccessLog* log) {
  gateway::MeteringOptions metering{
      .annotate = options.annotate == "none" ? llm::Annotate::kNone : llm::Annotate::kAll,
      .store_text = options.store_text,
      .spread_idle = options.spread_idle,
      .kept_requests = static_cast<std::size_t>(options.keep)};
  if (!options.carbon.carbon.empty())
    metering.carbon = [&carbon](WallTime begin, WallTime end, Joules energy) {
      return Grams(carbon, begin, end, energy);
    };
  if (log != nullptr) metering.log = [log](const std::string& line) { log->AddLine(line); };
  return metering;
}

}  // namespace

LlmGateway::LlmGateway(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
LlmGateway::~LlmGateway() = default;

Result<std::unique_ptr<LlmGateway>> LlmGateway::Start(const LlmGatewayOptions& options,
                                                      Clock& clock) {
  CarbonOptions carbon_options = options.carbon;
  carbon_options.timeout = Seconds(0);
  ZEUS_TRY(CarbonAccounting carbon, CarbonAccounting::Open(clock, carbon_options));
  auto parts = std::make_unique<Parts>(std::move(carbon));
  ZEUS_TRY(parts->node, OpenGpus(clock));
  parts->sampler.emplace(*parts->node);
  if (!options.log.empty()) {
    ZEUS_TRY(parts->log, http::AccessLog::Open(options.log, clock));
  }
  gateway::GatewayOptions wanted;
  wanted.listen = options.listen;
  wanted.authorities = options.authorities;
  wanted.limits = MakeLimits(options);
  ZEUS_TRY(wanted.upstreams, MakeUpstreams(options, *parts->node));
  ZEUS_TRY(parts->governor, MakeGovernor(options, wanted.upstreams, *parts->node, clock));
  wanted.governor = parts->governor.get();
  if (!options.tls_certificate.empty())
    wanted.tls = http::TlsFiles{.certificate = options.tls_certificate, .key = options.tls_key};
  wanted.ask_usage =
      options.ask_usage.empty() ? options.annotate != "none" : options.ask_usage == "yes";
  wanted.key_header = options.key_header;
  wanted.metering = MakeMetering(options, parts->carbon, parts->log.get());
  wanted.machine_metrics = [&sampler = *parts->sampler](MetricSet& set) {
    AddSample(sampler.Take(), set);
    AddProcess(Version(), ProcessCpuTime(), set);
  };
  if (parts->governor) parts->governor->StartThread();
  ZEUS_TRY(parts->gateway,
           gateway::Gateway::Start(std::move(wanted), &parts->node->monitor(), clock));
  return std::unique_ptr<LlmGateway>(new LlmGateway(std::move(parts)));
}

const std::string& LlmGateway::url() const { return parts_->gateway->url(); }

Result<int> LlmGateway::ServeUntil(SignalWatch& signals, const Clock& clock, Seconds timeout) {
  PrintText(fmt::format("listening on {}\n", url()));
  if (parts_->governor) PrintLines(parts_->governor->Announcement());
  ZEUS_RETURN_IF_ERROR(FlushOutput());
  const bool drained =
      DrainAfterSignal(*parts_->gateway, signals, parts_->log.get(), clock, timeout);
  if (!drained) log::Warning("some responses were cut off (--shutdown-timeout)");
  parts_->gateway.reset();  // The governor hears of the last requests.
  if (!parts_->governor) return 0;
  ZEUS_RETURN_IF_ERROR(parts_->governor->Stop());
  PrintLines(parts_->governor->Summary());
  ZEUS_RETURN_IF_ERROR(FlushOutput());
  return 0;
}

Result<int> RunLlmGateway(const LlmGatewayOptions& options) {
  SystemClock clock;
  ZEUS_TRY(const auto signals, SignalWatch::Start(SignalWatch::Program::kService));
  ZEUS_TRY(const auto gateway, LlmGateway::Start(options, clock));
  return gateway->ServeUntil(*signals, clock, Seconds(options.shutdown_timeout));
}

}  // namespace zeus::cli
