#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "zeus/base/field_reader.h"
#include "zeus/base/json.h"
#include "zeus/daemon/api/node_routes.h"

namespace zeus::daemon {
namespace {

using namespace std::chrono_literals;
using wire::LeaseRefusal;
using wire::LeaseState;
using wire::LeaseView;

constexpr double kLongestWait = 30;       // A client waits no longer for a change.
constexpr Seconds kLongestRestore = 20s;  // A client waits no longer for its knobs.
constexpr double kLongestBudget = 3600;   // Seconds that a budget is valid without the next one.

const std::string& LeaseOf(const Call& call) { return call.request.parameters[0]; }

http::Answer ViewAnswer(int status, const LeaseView& lease) {
  return http::JsonAnswer(status, wire::ToJson(lease));
}

// A caller that looks at its lease, also after its request was handled.
class Viewer {
 public:
  Viewer(Daemon& daemon, const Call& call, std::string lease)
      : daemon_(daemon),
        caller_(call.caller),
        grant_(call.shared_grant),
        lease_(std::move(lease)) {}

  // nullopt when the lease is forgotten.
  std::optional<LeaseView> Look() const {
    auto found = daemon_.book().View(*caller_, *grant_, lease_);
    if (auto* view = std::get_if<LeaseView>(&found)) return std::move(*view);
    return std::nullopt;
  }

 private:
  Daemon& daemon_;
  std::shared_ptr<const Caller> caller_;
  std::shared_ptr<const Grant> grant_;
  std::string lease_;
};

http::Answer Failure(const Status& settled) {
  return ToAnswer(
      LeaseRefusal{.kind = LeaseRefusal::Kind::kUnavailable, .message = settled.error().message});
}

// The answer when the knobs of the lease agree with it. What cannot be applied is not held.
http::Answer AnswerWhenSettled(Daemon& daemon, const Call& call, const std::string& lease,
                               int status) {
  const auto look = [&daemon, viewer = Viewer(daemon, call, lease),
                     status]() -> std::optional<http::Answer> {
    const auto view = viewer.Look();
    if (!view) return Failure(Error{ErrorCode::kUnavailable, "the lease has ended"});
    const auto settled = daemon.Settled(*view);
    if (!settled) return std::nullopt;
    return settled->ok() ? ViewAnswer(status, *view) : Failure(*settled);
  };
  const auto give_up = [&daemon, lease] {
    (void)daemon.book().End(DaemonItself(), EverythingGranted(), lease, EndReason::kFailed);
    return Failure(Error{ErrorCode::kUnavailable,
                         "the device did not take the setting in time: nothing is held"});
  };
  return daemon.waiting().Wait({.topics = {lease},
                                .look = look,
                                .give_up = give_up,
                                .timeout = daemon.options().longest_apply});
}

http::Answer Create(Daemon& daemon, const Call& call, const wire::LeaseSpec& spec) {
  const auto created = daemon.Create(*call.caller, call.grant, spec);
  if (const auto* refusal = std::get_if<LeaseRefusal>(&created)) return ToAnswer(*refusal);
  return AnswerWhenSettled(daemon, call, std::get<LeaseView>(created).id, 201);
}

http::Answer PostLease(Daemon& daemon, const Call& call) {
  const auto body = BodyOf(call.request);
  if (!body.ok()) return ToAnswer(body.error());
  const auto spec = wire::ParseLeaseSpec(body.value());
  if (!spec.ok()) return ToAnswer(spec.error());
  return Create(daemon, call, spec.value());
}

http::Answer ListLeases(Daemon& daemon, const Call& call) {
  Json leases = Json::array();
  for (const LeaseView& lease : daemon.book().List(*call.caller, call.grant))
    leases.push_back(wire::ToJson(lease));
  return http::JsonAnswer(200, {{"leases", std::move(leases)}});
}

http::Answer GetLease(Daemon& daemon, const Call& call) {
  const auto found = daemon.book().View(*call.caller, call.grant, LeaseOf(call));
  if (const auto* refusal = std::get_if<LeaseRefusal>(&found)) return ToAnswer(*refusal);
  const auto after = WholeParameter(call, "after_version", 0, ~std::uint64_t{0} >> 1);
  if (!after.ok()) return ToAnswer(after.error());
  const auto wait = NumberParameter(call, "wait_seconds");
  if (!wait.ok()) return ToAnswer(wait.error());
  const LeaseView& view = std::get<LeaseView>(found);
  const double seconds = std::clamp(wait.value().value_or(0), 0.0, kLongestWait);
  if (!call.Query("after_version") || seconds == 0) return ViewAnswer(200, view);
  const Viewer viewer(daemon, call, view.id);
  const auto present = [viewer, last = view] {
    return ViewAnswer(200, viewer.Look().value_or(last));
  };
  const auto look = [viewer, version = after.value(), present]() -> std::optional<http::Answer> {
    const auto now = viewer.Look();
    if (now && now->version <= version) return std::nullopt;
    return present();
  };
  return daemon.waiting().Wait(
      {.topics = {view.id}, .look = look, .give_up = present, .timeout = Seconds(seconds)});
}

http::Answer PutRequests(Daemon& daemon, const Call& call) {
  const auto body = BodyOf(call.request);
  if (!body.ok()) return ToAnswer(body.error());
  Json list;
  FieldReader reader("a change of requests", body.value());
  reader.Require("requests", list);
  if (const Status read = reader.Finish(); !read.ok()) return ToAnswer(read.error());
  const auto requests = wire::ParseKnobRequests(list);
  if (!requests.ok()) return ToAnswer(requests.error());
  const auto changed =
      daemon.book().Replace(*call.caller, call.grant, LeaseOf(call), requests.value());
  if (const auto* refusal = std::get_if<LeaseRefusal>(&changed)) return ToAnswer(*refusal);
  return AnswerWhenSettled(daemon, call, std::get<LeaseView>(changed).id, 200);
}

http::Answer Heartbeat(Daemon& daemon, const Call& call) {
  const auto beaten = daemon.book().Heartbeat(*call.caller, call.grant, LeaseOf(call));
  if (const auto* refusal = std::get_if<LeaseRefusal>(&beaten)) return ToAnswer(*refusal);
  return {.status = 204};
}

http::Answer PutHolder(Daemon& daemon, const Call& call) {
  const auto body = BodyOf(call.request);
  if (!body.ok()) return ToAnswer(body.error());
  std::int64_t pid = 0;
  FieldReader reader("a holder", body.value());
  reader.Require("pid", pid);
  if (const Status read = reader.Finish(); !read.ok()) return ToAnswer(read.error());
  const auto changed = daemon.HandOver(*call.caller, call.grant, LeaseOf(call), pid);
  if (const auto* refusal = std::get_if<LeaseRefusal>(&changed)) return ToAnswer(*refusal);
  return ViewAnswer(200, std::get<LeaseView>(changed));
}

http::Answer DeleteLease(Daemon& daemon, const Call& call) {
  const auto wait = BoolParameter(call, "wait");
  if (!wait.ok()) return ToAnswer(wait.error());
  const auto ended = daemon.book().End(*call.caller, call.grant, LeaseOf(call));
  if (const auto* refusal = std::get_if<LeaseRefusal>(&ended)) return ToAnswer(*refusal);
  const LeaseView& view = std::get<LeaseView>(ended);
  if (!wait.value().value_or(true)) return ViewAnswer(200, view);
  const auto look = [viewer = Viewer(daemon, call, view.id),
                     last = view]() -> std::optional<http::Answer> {
    const auto now = viewer.Look();
    if (now && now->state != LeaseState::kEnded) return std::nullopt;
    return ViewAnswer(200, now.value_or(last));
  };
  const auto give_up = [] {
    return Failure(
        Error{ErrorCode::kUnavailable, "the knobs are not back yet: the daemon goes on trying"});
  };
  return daemon.waiting().Wait(
      {.topics = {view.id}, .look = look, .give_up = give_up, .timeout = kLongestRestore});
}

// The caps of a cluster's budget, with a validity. The next ones replace them; where there is a
// fallback it holds when they come too late.
Result<wire::LeaseSpec> ParseBudget(const http::Request& request) {
  ZEUS_TRY(const Json body, BodyOf(request));
  wire::LeaseSpec spec{.name = "cluster budget",
                       .holder = wire::HolderKind::kTtl,
                       .lease_class = wire::LeaseClass::kSite};
  double valid = 20;
  std::optional<double> fallback;
  Json list;
  FieldReader reader("a budget", body);
  reader.Read("name", spec.name);
  reader.Read("valid_seconds", valid);
  reader.Read("fallback_watts", fallback);
  reader.Require("requests", list);
  ZEUS_RETURN_IF_ERROR(reader.Finish());
  if (!(valid >= 1 && valid <= kLongestBudget))
    return FieldError("valid_seconds", fmt::format("must be 1 to {}", kLongestBudget));
  if (fallback && !(*fallback > 0 && std::isfinite(*fallback)))
    return FieldError("fallback_watts", "must be more than 0");
  // Name and requests obey the rules of every lease.
  ZEUS_TRY(wire::LeaseSpec lease, wire::ParseLeaseSpec({{"name", spec.name}, {"requests", list}}));
  spec.requests = std::move(lease.requests);
  spec.ttl = Seconds(valid);
  for (const wire::KnobRequest& asked : spec.requests) {
    if (!std::holds_alternative<wire::AtMost>(asked.demand))
      return FieldError("requests", "a budget has at_most requests alone");
    if (!fallback) continue;
    if (wire::IsClock(asked.key.knob))
      return FieldError("fallback_watts", "is for power limits, and a request is for a clock");
    spec.fallback.push_back({.key = asked.key, .demand = wire::AtMost{Watts(*fallback)}});
  }
  return spec;
}

// Whether the lease is the one that a budget of this caller replaces.
bool IsBudget(const LeaseView& lease, const wire::LeaseSpec& spec, const Caller& caller) {
  return lease.lease_class == spec.lease_class && lease.name == spec.name &&
         lease.subject == caller.subject && lease.state != LeaseState::kRestoring &&
         lease.state != LeaseState::kEnded;
}

http::Answer PutBudget(Daemon& daemon, const Call& call) {
  const auto spec = ParseBudget(call.request);
  if (!spec.ok()) return ToAnswer(spec.error());
  const LeaseBook::Renewal renewal{.ttl = *spec.value().ttl, .fallback = spec.value().fallback};
  for (const LeaseView& old : daemon.book().List(*call.caller, call.grant)) {
    if (!IsBudget(old, spec.value(), *call.caller)) continue;
    const auto changed =
        daemon.book().Replace(*call.caller, call.grant, old.id, spec.value().requests, renewal);
    const auto* refusal = std::get_if<LeaseRefusal>(&changed);
    // It may have ended since the look.
    if (refusal != nullptr && refusal->kind == LeaseRefusal::Kind::kEnded) continue;
    if (refusal != nullptr) return ToAnswer(*refusal);
    daemon.DeadlinesChanged();
    return AnswerWhenSettled(daemon, call, old.id, 200);
  }
  return Create(daemon, call, spec.value());
}

}  // namespace

void AddLeaseRoutes(Daemon& daemon, RouteTable& table) {
  const auto add = [&daemon, &table](NodeRoute route, auto handler) {
    route.handler = [&daemon, handler](const Call& call) { return handler(daemon, call); };
    // The book never waits for a device, so that the thread of the sockets can call it.
    route.work = http::Work::kImmediate;
    table.Add(std::move(route));
  };
  add({.method = "POST",
       .pattern = "/v1/leases",
       .summary = "Take a lease: knobs are set when it answers, and put back when its holder ends",
       .statuses = {201, 400, 409, 422},
       .request_schema = "LeaseSpec",
       .answer_schema = "Lease"},
      PostLease);
  add({.method = "GET",
       .pattern = "/v1/leases",
       .summary = "The caller's leases; those of everybody for administrators",
       .answer_schema = "Leases"},
      ListLeases);
  add({.method = "GET",
       .pattern = "/v1/leases/{id}",
       .summary = "A lease; with after_version it waits for a change, up to wait_seconds",
       .query = {"after_version", "wait_seconds"},
       .statuses = {200, 400, 404},
       .answer_schema = "Lease"},
      GetLease);
  add({.method = "PUT",
       .pattern = "/v1/leases/{id}/requests",
       .summary = "Replace the requests of a lease, all or none",
       .statuses = {200, 400, 404, 409, 410, 422},
       .request_schema = "KnobRequests",
       .answer_schema = "Lease"},
      PutRequests);
  add({.method = "POST",
       .pattern = "/v1/leases/{id}/heartbeat",
       .summary = "Keep a lease with a ttl alive",
       .statuses = {204, 404, 410}},
      Heartbeat);
  add({.method = "PUT",
       .pattern = "/v1/leases/{id}/holder",
       .summary = "Make another process of the same user the holder",
       .statuses = {200, 400, 403, 404, 410},
       .request_schema = "Holder",
       .answer_schema = "Lease"},
      PutHolder);
  add({.method = "DELETE",
       .pattern = "/v1/leases/{id}",
       .summary = "End a lease; answers when its knobs are back",
       .query = {"wait"},
       .statuses = {200, 400, 404, 410},
       .answer_schema = "Lease"},
      DeleteLease);
  add({.method = "PUT",
       .pattern = "/v1/budget",
       .summary = "Caps of a cluster's budget, of class site, for valid_seconds",
       .statuses = {200, 201, 400, 422},
       .request_schema = "Budget",
       .answer_schema = "Lease",
       .scope = Scope::kBudget},
      PutBudget);
}

}  // namespace zeus::daemon
