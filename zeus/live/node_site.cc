#include "zeus/live/node_site.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <utility>

#include "zeus/base/json.h"
#include "zeus/base/log.h"
#include "zeus/base/random.h"
#include "zeus/base/text.h"
#include "zeus/base/version.h"
#include "zeus/live/node_documents.h"

namespace zeus::live {
namespace {

using namespace std::chrono_literals;

constexpr Seconds kHistoryPeriod = 5s;
constexpr double kShortestPeriod = 0.02;
constexpr double kLongestPeriod = 60;
constexpr const char* kMetricsType = "text/plain; version=0.0.4; charset=utf-8";

http::Answer ErrorAnswer(const Error& error) {
  switch (error.code) {
    case ErrorCode::kInvalidArgument:
      return http::RefusalAnswer(400, "invalid_argument", error.message);
    case ErrorCode::kNotFound:
      return http::RefusalAnswer(404, "not_found", error.message);
    case ErrorCode::kUnavailable:
      return http::RefusalAnswer(503, "unavailable", error.message);
    default:
      return http::RefusalAnswer(500, "internal", error.message);
  }
}

Result<std::optional<double>> NumberOf(const http::Request& request, const std::string& name) {
  const auto found = request.query.find(name);
  if (found == request.query.end()) return std::optional<double>();
  const auto number = ParseDouble(found->second);
  if (!number.ok() || !std::isfinite(number.value()))
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{}: must be a number: {}", name, Quote(found->second))};
  return std::optional<double>(number.value());
}

std::vector<std::string> Features(bool costs) {
  std::vector<std::string> features = {"node"};
  if (costs) features.emplace_back("costs");
  return features;
}

}  // namespace

NodeSite::NodeSite(NodeMonitor& recorder, Options options)
    : recorder_(recorder),
      options_(std::move(options)),
      guard_(options_.origins),
      application_({.program = "zeus monitor",
                    .version = Version(),
                    .features = Features(options_.costs != nullptr),
                    .origins = options_.origins}),
      devices_(recorder),
      history_(recorder),
      events_(recorder.monitor().clock(), fmt::format("{:x}", SystemEntropy())) {
  AddRoutes();
  ticker_ = std::make_unique<Ticker>("zeus-site", [this] { return Step(); });
}

NodeSite::~NodeSite() {
  events_.EndAll();
  ticker_.reset();
}

TimePoint NodeSite::Step() {
  history_.Update();
  const TimePoint next =
      events_.Step([this](const std::set<std::string>& devices) { return ReadingsOf(devices); });
  return std::min(next, recorder_.monitor().clock().Now() + kHistoryPeriod);
}

void NodeSite::AddRoutes() {
  const auto add = [this](std::string_view pattern, std::vector<std::string_view> query,
                          bool immediate, auto handler) {
    router_.Add({.method = "GET",
                 .pattern = pattern,
                 .handler = handler,
                 .query = std::move(query),
                 .immediate = immediate,
                 .vital = pattern == "/-/healthy" || pattern == "/metrics"});
  };
  using Request = const http::Request&;
  add("/metrics", {}, false, [this](Request) -> Result<http::Answer> {
    return http::Answer{.body = options_.metrics(), .content_type = kMetricsType};
  });
  add("/-/healthy", {}, true, [](Request) -> Result<http::Answer> {
    return http::Answer{.body = "zeus is healthy\n", .content_type = "text/plain"};
  });
  add("/v1/node", {}, false, [this](Request) { return GetNode(); });
  add("/v1/readings", {"devices"}, true, [this](Request request) -> Result<http::Answer> {
    ZEUS_TRY(const auto devices, Chosen(request));
    return http::Answer{.body = ReadingText(recorder_).Document(devices)};
  });
  add("/v1/energy", {"devices", "since", "until"}, false,
      [this](Request request) { return GetEnergy(request); });
  add("/v1/history", {"devices", "since", "step"}, false,
      [this](Request request) { return GetHistory(request); });
  add("/v1/stream", {"devices", "period"}, true,
      [this](Request request) { return GetStream(request); });
  if (options_.costs)
    add("/v1/costs", {}, false, [this](Request) -> Result<http::Answer> {
      return http::JsonAnswer(200, {{"lines", options_.costs()}});
    });
}

Result<std::vector<const NodeDevice*>> NodeSite::Chosen(const http::Request& request) const {
  std::vector<const NodeDevice*> devices;
  const auto names = request.query.find("devices");
  if (names == request.query.end()) {
    for (const auto* list : {&devices_.gpus(), &devices_.cpus()})
      for (const NodeDevice& device : *list) devices.push_back(&device);
    return devices;
  }
  for (const std::string_view name : SplitAtCommas(names->second)) {
    const NodeDevice* device = devices_.Find(name);
    if (device == nullptr)
      return Error{ErrorCode::kNotFound,
                   fmt::format("there is no device {}: GET /v1/node lists them", Quote(name))};
    devices.push_back(device);
  }
  return devices;
}

Result<http::Answer> NodeSite::GetNode() const {
  Json node = DescribeNode(recorder_.node());
  node["gpus"] = Json::array();
  node["cpus"] = Json::array();
  for (const NodeDevice& gpu : devices_.gpus())
    if (gpu.recorded) node["gpus"].push_back(DescribeGpu(gpu, recorder_.monitor()));
  for (const NodeDevice& cpu : devices_.cpus())
    if (cpu.recorded) node["cpus"].push_back(DescribeCpu(cpu));
  return http::JsonAnswer(200, node);
}

Result<http::Answer> NodeSite::GetEnergy(const http::Request& request) const {
  ZEUS_TRY(auto devices, Chosen(request));
  ZEUS_TRY(const auto since, NumberOf(request, "since"));
  ZEUS_TRY(const auto until, NumberOf(request, "until"));
  if (!since)
    return Error{ErrorCode::kInvalidArgument,
                 "since: is missing: at_seconds of an earlier reading"};
  const double now = recorder_.monitor().clock().Now().time_since_epoch().count();
  ZEUS_TRY(const Json document,
           EnergyDocument(
               recorder_.monitor(),
               {.devices = std::move(devices), .since = *since, .until = until.value_or(now)}));
  return http::JsonAnswer(200, document);
}

Result<http::Answer> NodeSite::GetHistory(const http::Request& request) {
  ZEUS_TRY(auto devices, Chosen(request));
  ZEUS_TRY(const auto since, NumberOf(request, "since"));
  ZEUS_TRY(const auto step, NumberOf(request, "step"));
  const double wanted = std::clamp(step.value_or(1), 0.0, 1e6);
  // A step that is no whole number is none of those that are kept.
  const bool whole = wanted == std::floor(wanted);
  ZEUS_TRY(std::string document,
           history_.Document({.devices = std::move(devices),
                              .since = since,
                              .step = whole ? static_cast<std::int64_t>(wanted) : 0}));
  return http::Answer{.body = std::move(document)};
}

Result<http::Answer> NodeSite::GetStream(const http::Request& request) {
  ZEUS_TRY(const auto devices, Chosen(request));
  ZEUS_TRY(const auto period, NumberOf(request, "period"));
  EventFilter filter{
      .kinds = {EventKind::kReading},
      .period = Seconds(std::clamp(period.value_or(1), kShortestPeriod, kLongestPeriod))};
  if (request.query.contains("devices"))
    for (const NodeDevice* device : devices) filter.devices.insert(device->id);
  ZEUS_TRY(auto response, events_.Open(filter, request.last_event_id, ReadingsOf(filter.devices)));
  recorder_.Wake();
  ticker_->Wake();
  return http::Answer{.pushed = std::move(response)};
}

std::string NodeSite::ReadingsOf(const std::set<std::string>& devices) const {
  std::vector<const NodeDevice*> chosen;
  for (const auto* list : {&devices_.gpus(), &devices_.cpus()})
    for (const NodeDevice& device : *list)
      if (device.recorded && (devices.empty() || devices.contains(device.id)))
        chosen.push_back(&device);
  return chosen.empty() ? "" : ReadingText(recorder_).Document(chosen);
}

http::Work NodeSite::Classify(const http::Request& request) const {
  if (web::Application::Has(request)) return http::Work::kImmediate;
  const auto target = http::ParseTarget(request.target);
  if (!target.ok()) return http::Work::kImmediate;
  return http::RouteWork(router_.Find(request.method, target.value().segments).route);
}

http::Admission NodeSite::Admit(const http::Request& header) {
  if (web::Application::Has(header)) return {};
  const auto target = http::ParseTarget(header.target);
  if (!target.ok())
    return {.refusal = http::RefusalAnswer(400, "bad_request", target.error().message)};
  const auto match = router_.Find(header.method, target.value().segments);
  if (match.route == nullptr) return {.refusal = http::NoRouteAnswer(header, match)};
  return {.vital = match.route->vital};
}

http::Answer NodeSite::Answer(http::Request& request) {
  if (web::Application::Has(request)) return application_.Answer(request);
  if (const auto why = guard_.Refuse(request, false))
    return http::RefusalAnswer(403, "permission_denied", *why);
  auto target = http::ParseTarget(request.target);
  if (!target.ok()) return http::RefusalAnswer(400, "bad_request", target.error().message);
  auto match = router_.Find(request.method, target.value().segments);
  if (match.route == nullptr) return http::NoRouteAnswer(request, match);
  request.query = std::move(target.value().query);
  if (const Status known = http::CheckQuery(*match.route, request); !known.ok())
    return ErrorAnswer(known.error());
  Result<http::Answer> handled = match.route->handler(request);
  return handled.ok() ? std::move(handled).value() : ErrorAnswer(handled.error());
}

http::Answer NodeSite::Handle(http::Request& request) {
  try {
    return Answer(request);
  } catch (const std::exception& error) {
    log::Failure("{} {}: {}", request.method, Printable(request.target), error.what());
    return http::RefusalAnswer(500, "internal", "the server failed to answer: its log says why");
  }
}

http::Answer NodeSite::Refusal(int status, const std::string& why) {
  return http::RefusalAnswer(status, status == 503 ? "unavailable" : "bad_request", why);
}

void NodeSite::Finished(const http::FinishedRequest& /*request*/) {}

}  // namespace zeus::live
