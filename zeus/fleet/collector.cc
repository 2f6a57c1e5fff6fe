#include "zeus/fleet/collector.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "zeus/base/json.h"
#include "zeus/base/log.h"
#include "zeus/base/text.h"
#include "zeus/http/url.h"

namespace zeus::fleet {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kNodesPerThread = 32;
constexpr std::size_t kMostThreads = 32;
constexpr Seconds kConnectTimeout = 2s;
constexpr Seconds kAnswerTimeout = 5s;
constexpr std::size_t kLargestAnswer = 4 << 20;
constexpr std::size_t kLargestPrometheusAnswer = 64 << 20;
constexpr Seconds kFactsAge = 60s;  // Models, faults and limits of a node change seldom.
constexpr int kMostPatience = 6;    // Intervals between two looks at a node that does not answer.

Result<Json> Ask(http::Client& client, const std::string& path) {
  ZEUS_TRY(const http::Reply reply, client.Send({.path = path}));
  if (reply.status == 401 || reply.status == 403)
    return Error{ErrorCode::kPermissionDenied, "it wants a token: --token-file"};
  if (reply.status != 200)
    return Error{
        ErrorCode::kUnavailable,
        fmt::format("it answered {} with status {}", path.substr(0, path.find('?')), reply.status)};
  return ParseJson(reply.body);
}

}  // namespace

// A node that is looked at. One thread at a time.
class Collector::Target {
 public:
  Target(std::string name_, std::unique_ptr<http::Client> client_)
      : name(std::move(name_)), client(std::move(client_)) {}

  const std::string name;
  const std::unique_ptr<http::Client> client;
  TimePoint due{};  // Guarded by the collector's mutex, as is `busy`.
  bool busy = false;
  int failures = 0;
  Json facts{};
  TimePoint facts_at{};
  bool has_facts = false;
  double since = 0;
};

Collector::Collector(const CollectorOptions& options, Clock& clock, FleetTable& table)
    : options_(options), clock_(clock), table_(table) {}

Collector::~Collector() {
  for (const auto& target : targets_) target->client->Cancel();
  if (prometheus_) prometheus_->Cancel();
  threads_.clear();
}

Result<std::unique_ptr<Collector>> Collector::Start(const CollectorOptions& options, Clock& clock,
                                                    FleetTable& table) {
  std::unique_ptr<Collector> collector(new Collector(options, clock, table));
  const TimePoint now = clock.Now();
  for (std::size_t number = 0; number < options.nodes.size(); ++number) {
    ZEUS_TRY(const http::Url url, http::ParseUrl(options.nodes[number]));
    ZEUS_TRY(auto client, http::Client::Create({.url = options.nodes[number],
                                                .token = options.token,
                                                .authorities = options.authorities,
                                                .connect_timeout = kConnectTimeout,
                                                .answer_timeout = kAnswerTimeout,
                                                .largest_body = kLargestAnswer}));
    const bool has_page = url.scheme != http::Url::Scheme::kUnix;
    const std::string name =
        has_page ? http::Authority(url.host, url.port.value_or(80)) : options.nodes[number];
    table.Add(name, has_page ? url.server() + url.path : "");
    collector->targets_.push_back(std::make_unique<Target>(name, std::move(client)));
    // Spread over the interval, so that a thousand nodes are not asked in the same moment.
    const double share = static_cast<double>(number) / static_cast<double>(options.nodes.size());
    collector->targets_.back()->due = now + share * std::min(options.interval, Seconds(2));
  }
  const std::size_t threads =
      std::min(kMostThreads, (options.nodes.size() + kNodesPerThread - 1) / kNodesPerThread);
  for (std::size_t i = 0; i < threads; ++i)
    collector->threads_.push_back(std::make_unique<Ticker>(
        "zeus-fleet", [self = collector.get()] { return self->LookAtDue(); }));
  if (!options.prometheus.empty()) {
    ZEUS_TRY(collector->prometheus_,
             http::Client::Create({.url = options.prometheus,
                                   .authorities = options.authorities,
                                   .connect_timeout = kConnectTimeout,
                                   .largest_body = kLargestPrometheusAnswer}));
    collector->threads_.push_back(std::make_unique<Ticker>(
        "zeus-prometheus", [self = collector.get()] { return self->AskPrometheus(); }));
  }
  return collector;
}

// Takes the node that has waited longest. Returns when to come again.
TimePoint Collector::LookAtDue() {
  Target* chosen = nullptr;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& target : targets_)
      if (!target->busy && (chosen == nullptr || target->due < chosen->due)) chosen = target.get();
    if (chosen == nullptr) return clock_.Now() + Seconds(0.1);
    if (chosen->due > clock_.Now()) return std::min(chosen->due, clock_.Now() + Seconds(1));
    chosen->busy = true;
  }
  const Status looked = LookAt(*chosen);
  if (!looked.ok()) table_.Fail(chosen->name, looked.error().message);
  const std::lock_guard lock(mutex_);
  chosen->failures = looked.ok() ? 0 : std::min(chosen->failures + 1, kMostPatience);
  chosen->due =
      clock_.Now() + static_cast<double>(std::max(chosen->failures, 1)) * options_.interval;
  chosen->busy = false;
  return clock_.Now();
}

Status Collector::LookAt(Target& target) {
  if (!target.has_facts || clock_.Now() - target.facts_at > kFactsAge) {
    ZEUS_TRY(target.facts, Ask(*target.client, "/v1/node"));
    target.facts_at = clock_.Now();
    target.has_facts = true;
  }
  std::string path = "/v1/history?step=10";
  if (target.since > 0) path += fmt::format("&since={:.0f}", target.since);
  ZEUS_TRY(const Json history, Ask(*target.client, path));
  ZEUS_TRY(const NodeReport report, ReportOf(target.facts, history, options_.best_limits));
  target.since = NextSince(history);
  table_.Report(target.name, report);
  return Ok();
}

TimePoint Collector::AskPrometheus() {
  if (const Status asked = ReadPrometheus(); !asked.ok())
    log::Warning("Prometheus: {}", asked.error().message);
  return clock_.Now() + options_.interval;
}

Status Collector::ReadPrometheus() {
  const auto ask = [this](const std::string& query) -> Result<std::map<std::string, double>> {
    ZEUS_TRY(const Json answer,
             Ask(*prometheus_, "/api/v1/query?query=" + http::PercentEncoded(query)));
    return ByInstance(answer);
  };
  constexpr const char* kPower = R"(zeus_gpu_power_watts{kind="update"})";
  constexpr const char* kBusy = R"(zeus_gpu_utilization_ratio{kind="compute"})";
  ZEUS_TRY(const auto power, ask(fmt::format("sum by (instance) ({})", kPower)));
  ZEUS_TRY(const auto cpus, ask("sum by (instance) (zeus_cpu_power_watts)"));
  ZEUS_TRY(const auto gpus, ask(fmt::format("count by (instance) ({})", kPower)));
  ZEUS_TRY(
      const auto idle,
      ask(fmt::format("sum by (instance) ({} and on (instance, gpu) {} < 0.05)", kPower, kBusy)));
  ZEUS_TRY(const auto heat, ask("max by (instance) (zeus_gpu_temperature_celsius)"));
  ZEUS_TRY(const auto down, ask("count by (instance) (zeus_device_up == 0)"));
  std::map<std::string, double> above;
  for (const auto& [model, limit] : options_.best_limits) {
    ZEUS_TRY(const auto more,
             ask(fmt::format(R"(sum by (instance) ((zeus_gpu_power_watts{{kind="update",model={}}})"
                             R"( - {} > 0) and on (instance, gpu) {} >= 0.05))",
                             JsonText(Json(model)), limit.value(), kBusy)));
    for (const auto& [instance, watts] : more) above[instance] += watts;
  }
  const auto value = [](const std::map<std::string, double>& values, const std::string& key) {
    const auto found = values.find(key);
    return found == values.end() ? std::optional<double>() : found->second;
  };
  for (const auto& [instance, watts] : power) {
    NodeReport report{.host = http::HostOfAuthority(instance),
                      .gpus = static_cast<std::size_t>(value(gpus, instance).value_or(0)),
                      .power = Watts(watts + value(cpus, instance).value_or(0)),
                      .idle = Watts(value(idle, instance).value_or(0)),
                      .above = Watts(value(above, instance).value_or(0))};
    if (const auto celsius = value(heat, instance)) report.temperature = Celsius(*celsius);
    if (const auto lost = value(down, instance))
      report.faults.push_back(fmt::format("{:.0f} devices cannot be read", *lost));
    table_.Report(instance, report);
  }
  return Ok();
}

}  // namespace zeus::fleet
