#include <fmt/format.h>

#include <string>
#include <utility>

#include "zeus/base/field_reader.h"
#include "zeus/base/json.h"
#include "zeus/base/text.h"
#include "zeus/daemon/api/node_routes.h"

// Routes for administrators.
namespace zeus::daemon {
namespace {

constexpr double kLongestMaintenance = 24 * 3600.0;

http::Answer BeginMaintenance(Daemon& daemon, const Call& call) {
  const auto device = FindDevice(daemon, call.request.parameters[0]);
  if (!device.ok()) return ToAnswer(device.error());
  const auto body = BodyOf(call.request);
  if (!body.ok()) return ToAnswer(body.error());
  double seconds = 600;
  FieldReader reader("a maintenance", body.value());
  reader.Read("seconds", seconds);
  if (const Status read = reader.Finish(); !read.ok()) return ToAnswer(read.error());
  if (!(seconds > 0 && seconds <= kLongestMaintenance))
    return ToAnswer(FieldError("seconds", "must be more than 0, and a day at most"));
  const Status begun = daemon.desk().BeginMaintenance(device.value()->id, Seconds(seconds));
  if (!begun.ok()) return ToAnswer(begun.error());
  return http::JsonAnswer(200, {{"device", device.value()->id}, {"seconds", seconds}});
}

http::Answer EndMaintenance(Daemon& daemon, const Call& call) {
  const auto device = FindDevice(daemon, call.request.parameters[0]);
  if (!device.ok()) return ToAnswer(device.error());
  const Status ended = daemon.desk().EndMaintenance(device.value()->id);
  if (!ended.ok()) return ToAnswer(ended.error());
  return http::JsonAnswer(200, {{"device", device.value()->id}});
}

http::Answer PostRestore(Daemon& daemon, const Call& call) {
  const auto body = BodyOf(call.request);
  if (!body.ok()) return ToAnswer(body.error());
  LeaseBook::Which which;
  bool all = false;
  FieldReader reader("a restore", body.value());
  reader.Read("device", which.device);
  reader.Read("subject", which.subject);
  reader.Read("all", all);
  if (const Status read = reader.Finish(); !read.ok()) return ToAnswer(read.error());
  if (!all && which.device.empty() && which.subject.empty())
    return ToAnswer(InvalidArgument("all: say which leases end: device, subject or all"));
  const std::size_t ended = daemon.book().EndAll(which, EndReason::kRevoked);
  return http::JsonAnswer(200, {{"ended", ended}});
}

}  // namespace

void AddOperatorRoutes(Daemon& daemon, RouteTable& table) {
  const auto add = [&daemon, &table](NodeRoute route, auto handler) {
    route.handler = [&daemon, handler](const Call& call) { return handler(daemon, call); };
    table.Add(std::move(route));
  };
  add({.method = "POST",
       .pattern = "/v1/gpus/{uuid}/maintenance",
       .summary = "Put the knobs of a device back and let go of it for some time",
       .statuses = {200, 400, 404, 503},
       .request_schema = "Maintenance",
       .scope = Scope::kAdmin,
       .work = http::Work::kSlow},
      BeginMaintenance);
  add({.method = "DELETE",
       .pattern = "/v1/gpus/{uuid}/maintenance",
       .summary = "End a maintenance early",
       .statuses = {200, 404, 503},
       .scope = Scope::kAdmin,
       .work = http::Work::kSlow},
      EndMaintenance);
  add({.method = "POST",
       .pattern = "/v1/restore",
       .summary = "End the leases of a device, of a subject, or all",
       .statuses = {200, 400},
       .request_schema = "Restore",
       .scope = Scope::kAdmin},
      PostRestore);
}

}  // namespace zeus::daemon
