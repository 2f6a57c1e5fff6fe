#include "zeus/daemon/api/reference_routes.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "zeus/base/json.h"
#include "zeus/base/text.h"

namespace zeus::daemon {
namespace {

constexpr ApiGroup kGroups[] = {ApiGroup::kGpuControl, ApiGroup::kGpuRead, ApiGroup::kCpuRead};

Scope ScopeOf(ApiGroup group) {
  if (group == ApiGroup::kGpuControl) return Scope::kGpuControl;
  return group == ApiGroup::kGpuRead ? Scope::kGpuRead : Scope::kCpuRead;
}

// The groups that this caller can use: those that are served, and that its rules grant. A caller
// that has yet to show a token sees all that are served.
Json EnabledGroups(const ReferenceOptions& options, const Call& call, bool token_needed) {
  Json names = Json::array();
  for (const ApiGroup group : kGroups)
    if (options.groups.contains(group) && (token_needed || call.grant.scopes.Has(ScopeOf(group))))
      names.push_back(Name(group));
  return names;
}

// The parts of /discover that never change.
struct Discovered {
  Json gpus = Json::array();
  Json cpus = Json::array();
};

Discovered Discover(const NodeDevices& devices) {
  Discovered found;
  for (const NodeDevice& device : devices.gpus())
    found.gpus.push_back({{"id", device.index},
                          {"name", device.gpu->identity().model},
                          {"pci_address", device.gpu->identity().pci_address},
                          {"cumulative_energy_available", device.gpu->Energy().ok()},
                          {"uuid", device.gpu->identity().uuid}});
  for (const NodeDevice& device : devices.cpus())
    found.cpus.push_back({{"id", device.index}, {"dram_available", device.cpu->dram() != nullptr}});
  return found;
}

http::Answer Whoami(const ReferenceOptions& options, const Call& call) {
  const bool tcp = call.caller->transport == Caller::Transport::kTcp;
  if (tcp && !options.tokens)
    return ToAnswer(Error{ErrorCode::kNotFound, "tokens are not in use here"});
  Json answer = {{"sub", call.caller->subject}, {"scopes", call.grant.scopes.names()}};
  if (call.token_expires) answer["exp"] = Milliseconds(*call.token_expires) / 1000;
  return http::JsonAnswer(200, answer);
}

}  // namespace

std::string_view Name(ApiGroup group) {
  switch (group) {
    case ApiGroup::kGpuControl:
      return "gpu-control";
    case ApiGroup::kGpuRead:
      return "gpu-read";
    case ApiGroup::kCpuRead:
      return "cpu-read";
    case ApiGroup::kNone:
      break;
  }
  return "";
}

Result<ApiGroup> ParseApiGroup(std::string_view name) {
  for (const ApiGroup group : kGroups)
    if (Name(group) == name) return group;
  return Error{
      ErrorCode::kInvalidArgument,
      fmt::format("{} is no group of requests: gpu-control, gpu-read or cpu-read", Quote(name))};
}

std::int64_t Milliseconds(WallTime time) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count();
}

Result<std::vector<const NodeDevice*>> NumberedDevices(const Call& call, const std::string& name,
                                                       const std::vector<NodeDevice>& devices) {
  std::vector<const NodeDevice*> found;
  const auto text = call.Query(name);
  if (!text) {
    for (const NodeDevice& device : devices) found.push_back(&device);
    return found;
  }
  std::set<std::uint64_t> numbers;
  for (const std::string_view part : SplitAtCommas(*text)) {
    const auto number = ParseUnsigned(part);
    if (!number.ok())
      return InvalidArgument(
          fmt::format("{}: must be numbers with commas: {}", name, Quote(*text)));
    numbers.insert(number.value());
  }
  for (const std::uint64_t number : numbers) {
    const auto device = std::ranges::find(devices, number, &NodeDevice::index);
    if (device == devices.end())
      return InvalidArgument(
          fmt::format("{}: there is no {}: there are {}", name, number, devices.size()));
    found.push_back(&*device);
  }
  return found;
}

void AnswersByDevice::Fail(std::size_t index, int status, const std::string& message) {
  status_ = std::max(status_, status);
  errors_[index] = message;
}

void AnswersByDevice::Fail(std::size_t index, const Error& error) {
  switch (error.code) {
    case ErrorCode::kInvalidArgument:
    case ErrorCode::kNotSupported:
    case ErrorCode::kNotFound:
      return Fail(index, 400, error.message);
    case ErrorCode::kPermissionDenied:
      return Fail(index, 403, error.message);
    case ErrorCode::kConflict:
      return Fail(index, 409, error.message);
    case ErrorCode::kUnavailable:
    case ErrorCode::kInternal:
      break;
  }
  Fail(index, 500, error.message);
}

http::Answer AnswersByDevice::Failure() const {
  Json errors = Json::object();
  for (const auto& [index, message] : errors_) errors[std::to_string(index)] = message;
  return http::JsonAnswer(status_, {{"errors", std::move(errors)}});
}

void AddReferenceRoutes(Daemon& daemon, const ReferenceOptions& options, RouteTable& table) {
  table.Add({.method = "GET",
             .pattern = "/discover",
             .handler =
                 [options, found = Discover(daemon.devices())](const Call& call) {
                   const bool token_needed =
                       options.tokens && call.caller->transport == Caller::Transport::kTcp;
                   return http::JsonAnswer(
                       200, {{"gpus", found.gpus},
                             {"cpus", found.cpus},
                             {"enabled_api_groups", EnabledGroups(options, call, token_needed)},
                             {"auth_required", token_needed}});
                 },
             .summary = "Devices and groups of requests, as the reference has it",
             .answer_schema = "Discover",
             .open = true,
             .work = http::Work::kImmediate});
  table.Add({.method = "GET",
             .pattern = "/time",
             .handler =
                 [&daemon](const Call&) {
                   return http::JsonAnswer(
                       200, {{"timestamp_ms", Milliseconds(daemon.clock().WallNow())}});
                 },
             .summary = "The time of day, as the reference has it",
             .answer_schema = "Time",
             .open = true,
             .work = http::Work::kImmediate});
  table.Add({.method = "GET",
             .pattern = "/auth/whoami",
             .handler = [options](const Call& call) { return Whoami(options, call); },
             .summary = "The caller, as the reference has it",
             .statuses = {200, 404},
             .answer_schema = "Whoami",
             .work = http::Work::kImmediate});
  AddReferenceControls(daemon, table);
  AddReferenceReads(daemon, table);
}

}  // namespace zeus::daemon
