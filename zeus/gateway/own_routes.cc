#include "zeus/gateway/own_routes.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "zeus/base/json.h"
#include "zeus/base/text.h"
#include "zeus/http/url.h"

namespace zeus::gateway {
namespace {

constexpr std::size_t kMostListed = 1000;

// Decodes "%41" and "+". Malformed escapes stay as they are.
std::string DecodedQueryText(std::string_view text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto code = text[i] == '%' && i + 2 < text.size()
                          ? ParseUnsigned(text.substr(i + 1, 2), 16)
                          : Result<std::uint64_t>(InvalidArgument(""));
    if (code.ok()) {
      decoded += static_cast<char>(code.value());
      i += 2;
    } else {
      decoded += text[i] == '+' ? ' ' : text[i];
    }
  }
  return decoded;
}

std::map<std::string, std::string> ParseRequestQuery(std::string_view query) {
  std::map<std::string, std::string> values;
  while (!query.empty()) {
    const std::size_t end = query.find('&');
    const std::string_view part = query.substr(0, end);
    query.remove_prefix(end == std::string_view::npos ? query.size() : end + 1);
    const std::size_t equals = part.find('=');
    if (part.empty()) continue;
    values[DecodedQueryText(part.substr(0, equals))] =
        equals == std::string_view::npos ? "" : DecodedQueryText(part.substr(equals + 1));
  }
  return values;
}

constexpr std::string_view kGovernor = "/zeus/governor";

http::Answer NoGovernor() {
  return ErrorAnswer(404, "not_found",
                     "this gateway governs no clock: start it with --slo or --slo-observe");
}

// Why a client may not change the gateway; empty when it may. Everybody who reaches the gateway may
// read its own paths, but only programs of this machine may change something: no page in a browser,
// and nobody behind another proxy.
std::string_view ReasonToRefuse(const ProxyRequest& request) {
  if (request.remote != "unix" && !http::IsLoopback(request.remote))
    return "the governor is switched from the gateway's own machine only";
  for (const char* name : {"origin", "forwarded", "x-forwarded-for", "via"})
    if (request.head.fields.Find(name) != nullptr)
      return "the governor is switched by programs of this machine, not by browsers or through "
             "proxies";
  return {};
}

}  // namespace

http::Answer OwnRoutes::Answer(const ProxyRequest& request) const {
  const RequestHead& head = request.head;
  const std::string_view path = PathOfTarget(head.target);
  if (path == kGovernor && head.method == "PUT") return SwitchGovernor(request);
  if (head.method == "GET" || head.method == "HEAD") return Read(head);
  return ErrorAnswer(405, "invalid_request_error",
                     path == kGovernor
                         ? std::string("/zeus/governor is read with GET and switched with PUT")
                         : fmt::format("{} can only be read, with GET", Printable(path)));
}

http::Answer OwnRoutes::Governor() const {
  return governor_ == nullptr ? NoGovernor() : http::JsonAnswer(200, governor_->ToJson());
}

http::Answer OwnRoutes::SwitchGovernor(const ProxyRequest& request) const {
  if (governor_ == nullptr) return NoGovernor();
  if (const std::string_view reason = ReasonToRefuse(request); !reason.empty())
    return ErrorAnswer(403, "permission_error", std::string(reason));
  const auto body = ParseJson(request.body);
  const auto text = body.ok() && body.value().is_object()
                        ? GetField<std::string>(body.value(), "mode")
                        : Result<std::string>(InvalidArgument(""));
  if (!text.ok())
    return ErrorAnswer(400, "invalid_request_error",
                       R"(the body must be {"mode": "off"}, "observe" or "on")");
  const auto mode = ParseGovernorSwitch(text.value());
  if (!mode.ok()) return ErrorAnswer(400, "invalid_request_error", mode.error().message);
  if (const Status switched = governor_->Switch(mode.value()); !switched.ok())
    return ErrorAnswer(409, "conflict", switched.error().message);
  return http::JsonAnswer(200, governor_->ToJson());
}

http::Answer OwnRoutes::Read(const RequestHead& head) const {
  constexpr std::string_view kRequests = "/zeus/requests";
  const std::string_view path = PathOfTarget(head.target);
  const std::string_view query = head.target.size() > path.size()
                                     ? std::string_view(head.target).substr(path.size() + 1)
                                     : std::string_view();
  if (path == "/zeus/healthz") return Health();
  if (path == "/zeus/metrics") return Metrics();
  if (path == "/zeus/models") return http::JsonAnswer(200, metering_.ModelsJson());
  if (path == kGovernor) return Governor();
  if (path == kRequests) return Requests(query);
  if (path.starts_with("/zeus/requests/")) return OneRequest(path.substr(kRequests.size() + 1));
  return ErrorAnswer(404, "invalid_request_error",
                     fmt::format("there is no {}: the gateway has /zeus/requests, /zeus/models, "
                                 "/zeus/governor, /zeus/live, /zeus/metrics and /zeus/healthz",
                                 Printable(path)));
}

http::Answer OwnRoutes::OneRequest(std::string_view id) const {
  const RequestRecord* const record = metering_.records().Find(std::string(id));
  if (record == nullptr)
    return ErrorAnswer(404, "not_found",
                       fmt::format("the request {} is unknown: it was never metered, or is older "
                                   "than the requests that are kept (--keep)",
                                   Quote(id)));
  return http::JsonAnswer(200, ToJson(*record, clock_.Now()));
}

http::Answer OwnRoutes::Requests(std::string_view query) const {
  auto values = ParseRequestQuery(query);
  std::size_t limit = 100;
  if (values.contains("limit")) {
    const auto wanted = ParseUnsigned(values["limit"]);
    if (!wanted.ok() || wanted.value() == 0)
      return ErrorAnswer(400, "invalid_request_error",
                         fmt::format("limit must be a number from 1 to {}", kMostListed));
    limit = static_cast<std::size_t>(std::min<std::uint64_t>(wanted.value(), kMostListed));
  }
  Json list = Json::array();
  const auto found = metering_.records().List(values["after"], values["model"], limit);
  for (const RequestRecord* record : found) list.push_back(ToJson(*record, clock_.Now()));
  Json answer{{"requests", std::move(list)}};
  if (!found.empty()) answer["last"] = found.back()->id;
  return http::JsonAnswer(200, answer);
}

http::Answer OwnRoutes::Health() const {
  Json upstreams = Json::array();
  for (const EnergyGroups::Group& group : metering_.energy().groups())
    if (!group.lost_reason.empty()) upstreams.push_back(group.lost_reason);
  return http::JsonAnswer(200, Json{{"status", "ok"},
                                    {"clients", counts_.clients.load()},
                                    {"in_flight", counts_.exchanges.load()},
                                    {"resent", counts_.resent.load()},
                                    {"energy_problems", std::move(upstreams)}});
}

http::Answer OwnRoutes::Metrics() const {
  MetricSet set;
  metering_.AddMetrics(set);
  if (governor_ != nullptr) governor_->AddMetrics(set);
  if (machine_metrics_) machine_metrics_(set);
  return {.body = set.Text(), .content_type = MetricSet::kContentType};
}

}  // namespace zeus::gateway
