#include "zeus/client/node/node_daemon_client.h"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "zeus/base/field_reader.h"
#include "zeus/base/json.h"
#include "zeus/base/random.h"
#include "zeus/http/url.h"

namespace zeus::client {
namespace {

using wire::LeaseRefusal;
using wire::LeaseView;

constexpr int kFirstError = 400;
constexpr int kUnauthorized = 401;
constexpr int kGone = 410;
constexpr Seconds kFirstPause{0.05};
constexpr Seconds kLongestPause{0.5};
// A lease is answered when the device has taken the setting: up to twelve seconds.
constexpr Seconds kAnswerTimeout{25};

Error ErrorOfAnswer(const http::Reply& reply) {
  LeaseRefusal refusal{.kind = LeaseRefusal::Kind::kUnavailable};
  for (const auto kind : {LeaseRefusal::Kind::kMalformed, LeaseRefusal::Kind::kForbidden,
                          LeaseRefusal::Kind::kUnknown, LeaseRefusal::Kind::kHeld,
                          LeaseRefusal::Kind::kEnded, LeaseRefusal::Kind::kOutOfBounds,
                          LeaseRefusal::Kind::kQuota, LeaseRefusal::Kind::kUnavailable})
    if (wire::StatusOf(kind) == reply.status) refusal.kind = kind;
  if (reply.status == kUnauthorized) refusal.kind = LeaseRefusal::Kind::kForbidden;
  refusal.message = fmt::format("the node daemon answers with status {}", reply.status);
  if (const auto body = ParseJson(reply.body); body.ok() && body.value().is_object()) {
    const Json error = body.value().value("error", Json());
    if (error.is_object() && error.contains("message") && error["message"].is_string())
      refusal.message = error["message"].get<std::string>();
  }
  Error error = wire::ToError(refusal);
  // A lease that has ended is as good as one that never was: nothing is to be retried.
  if (reply.status == kGone) error.code = ErrorCode::kNotFound;
  return error;
}

Json ToJson(const std::vector<wire::KnobRequest>& requests) {
  Json list = Json::array();
  for (const wire::KnobRequest& request : requests) list.push_back(wire::ToJson(request));
  return {{"requests", std::move(list)}};
}

std::string LeasePath(const std::string& id) { return "/v1/leases/" + http::PercentEncoded(id); }

}  // namespace

DaemonAddress AddressOfSocket(const std::string& path) {
  return {.url = "unix:" + path,
          .board_socket = (std::filesystem::path(path).parent_path() / "board.sock").string()};
}

Result<std::unique_ptr<NodeDaemonClient>> NodeDaemonClient::Create(const DaemonAddress& address,
                                                                   Clock& clock) {
  ZEUS_TRY(std::unique_ptr<http::Client> made,
           http::Client::Create({.url = address.url,
                                 .token = address.token,
                                 .keep_connection = true,
                                 .connect_timeout = Seconds(2),
                                 .answer_timeout = kAnswerTimeout}));
  std::shared_ptr<http::Client> client = std::move(made);
  return std::make_unique<NodeDaemonClient>(
      [client](const http::Call& call) { return client->Send(call); }, clock);
}

// Only calls that may be made twice come here.
Result<Json> NodeDaemonClient::Ask(const http::Call& call) {
  const TimePoint deadline = clock_.Now() + kRestartTime;
  Seconds pause = kFirstPause;
  for (;;) {
    auto reply = send_(call);
    if (reply.ok()) {
      if (reply.value().status >= kFirstError) return ErrorOfAnswer(reply.value());
      if (reply.value().body.empty()) return Json();
      return ParseJson(reply.value().body);
    }
    if (!reply.error().retryable() || clock_.Now() + pause >= deadline)
      return std::move(reply).error();
    clock_.SleepFor(pause);
    pause = std::min(2 * pause, kLongestPause);
  }
}

Result<Json> NodeDaemonClient::Get(const std::string& path) { return Ask({.path = path}); }

Status NodeDaemonClient::CheckAnswers() {
  auto reply = send_({.path = "/healthz"});
  if (!reply.ok()) return std::move(reply).error();
  return Ok();
}

Result<NodeView> NodeDaemonClient::Node() {
  ZEUS_TRY(const Json json, Get("/v1/node"));
  return ParseNodeView(json);
}

Result<Json> NodeDaemonClient::WhoAmI() { return Get("/v1/whoami"); }

Result<std::vector<ReadingView>> NodeDaemonClient::Readings() {
  ZEUS_TRY(const Json json, Get("/v1/readings"));
  return ParseReadings(json);
}

Result<Json> NodeDaemonClient::Job(const std::string& id) {
  return Get("/v1/jobs/" + http::PercentEncoded(id));
}

Result<std::vector<LeaseView>> NodeDaemonClient::Leases(Ended ended) {
  ZEUS_TRY(const Json json, Get("/v1/leases"));
  std::vector<Json> list;
  FieldReader reader("the leases", json);
  reader.Require("leases", list);
  ZEUS_RETURN_IF_ERROR(reader.FinishAllowingOthers());
  std::vector<LeaseView> leases;
  for (const Json& one : list) {
    ZEUS_TRY(LeaseView lease, wire::ParseLeaseView(one));
    if (ended == Ended::kInclude || lease.state != wire::LeaseState::kEnded)
      leases.push_back(std::move(lease));
  }
  return leases;
}

Result<LeaseView> NodeDaemonClient::Lease(const std::string& id) {
  ZEUS_TRY(const Json json, Get(LeasePath(id)));
  return wire::ParseLeaseView(json);
}

Result<LeaseView> NodeDaemonClient::CreateLease(wire::LeaseSpec spec) {
  if (spec.request_id.empty())
    spec.request_id = fmt::format("{:016x}{:016x}", SystemEntropy(), SystemEntropy());
  ZEUS_TRY(const Json json, Ask({.method = http::Method::kPost,
                                 .path = "/v1/leases",
                                 .body = JsonText(wire::ToJson(spec))}));
  return wire::ParseLeaseView(json);
}

Result<LeaseView> NodeDaemonClient::ReplaceRequests(
    const std::string& id, const std::vector<wire::KnobRequest>& requests) {
  ZEUS_TRY(const Json json, Ask({.method = http::Method::kPut,
                                 .path = LeasePath(id) + "/requests",
                                 .body = JsonText(ToJson(requests))}));
  return wire::ParseLeaseView(json);
}

Status NodeDaemonClient::Heartbeat(const std::string& id) {
  ZEUS_RETURN_IF_ERROR(Ask({.method = http::Method::kPost, .path = LeasePath(id) + "/heartbeat"}));
  return Ok();
}

Status NodeDaemonClient::EndLease(const std::string& id) {
  auto ended = Ask({.method = http::Method::kDelete, .path = LeasePath(id)});
  if (ended.ok() || ended.error().code == ErrorCode::kNotFound) return Ok();
  return std::move(ended).error();
}

}  // namespace zeus::client
