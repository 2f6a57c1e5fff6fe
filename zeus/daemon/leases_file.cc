#include "zeus/daemon/leases_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "zeus/base/field_reader.h"
#include "zeus/base/file.h"
#include "zeus/base/json.h"
#include "zeus/base/text.h"
#include "zeus/daemon/trusted_file.h"

namespace zeus::daemon {
namespace {

constexpr const char* kLeasesSchema = "zeus.leases/1";
// 4096 leases of 256 requests fit; the daemon wrote the file itself.
constexpr std::size_t kLargestFile = 256U << 20U;

Json SecondsJson(const std::optional<Seconds>& seconds) {
  return seconds ? Json(seconds->count()) : Json(nullptr);
}

Json HolderJson(const Holder& holder) {
  Json json = {{"kind", Name(holder.kind)}, {"job", holder.job}, {"process", nullptr}};
  if (holder.process)
    json["process"] = {{"pid", holder.process->pid},
                       {"start_ticks", holder.process->start_ticks},
                       {"pid_namespace", holder.process->pid_namespace}};
  return json;
}

Json OwnerJson(const LeaseOwner& owner) {
  Json json = {{"subject", owner.subject},
               {"over_tcp", owner.transport == Caller::Transport::kTcp},
               {"contained", owner.contained},
               {"uid", owner.uid ? Json(*owner.uid) : Json()},
               {"gid", owner.gid},
               {"groups", owner.groups},
               {"cgroup", owner.cgroup},
               {"token_scopes", nullptr}};
  if (owner.token_scopes) json["token_scopes"] = owner.token_scopes->names();
  return json;
}

Json RecordJson(const LeaseRecord& lease) {
  Json json = {{"id", lease.id}, {"name", lease.name}};
  json["owner"] = OwnerJson(lease.owner);
  json["class"] = Name(lease.lease_class);
  json["holder"] = HolderJson(lease.holder);
  json["ttl_seconds"] = SecondsJson(lease.ttl);
  json["deadline_seconds"] = SecondsJson(lease.deadline);
  json["request_id"] = lease.request_id;
  json["since"] = lease.since;
  json["requests"] = Json::array();
  for (const HeldRequest& held : lease.requests) json["requests"].push_back(ToJson(held.request));
  if (lease.fallback.empty()) return json;
  json["fell_back"] = lease.fell_back;
  json["fallback"] = Json::array();
  for (const wire::KnobRequest& request : lease.fallback)
    json["fallback"].push_back(ToJson(request));
  return json;
}

Result<Holder> ParseHolder(const Json& json) {
  FieldReader reader("holder", json);
  Holder holder;
  std::string kind;
  Json process;
  reader.Require("kind", kind);
  reader.Require("job", holder.job);
  reader.Require("process", process);
  ZEUS_RETURN_IF_ERROR(reader.FinishAllowingOthers());
  ZEUS_TRY(holder.kind, wire::ParseHolderKind(kind));
  if (process.is_null()) return holder;
  FieldReader fields("process", process);
  ProcessIdentity& identity = holder.process.emplace();
  fields.Require("pid", identity.pid);
  fields.Require("start_ticks", identity.start_ticks);
  fields.Require("pid_namespace", identity.pid_namespace);
  ZEUS_RETURN_IF_ERROR(fields.FinishAllowingOthers());
  return holder;
}

Result<LeaseOwner> ParseOwner(const Json& json) {
  FieldReader reader("owner", json);
  LeaseOwner owner;
  bool over_tcp = false;
  reader.Require("subject", owner.subject);
  reader.Require("over_tcp", over_tcp);
  reader.Require("contained", owner.contained);
  std::optional<std::vector<std::string>> scopes;
  reader.Read("uid", owner.uid);
  reader.Read("gid", owner.gid);
  reader.Read("groups", owner.groups);
  reader.Read("cgroup", owner.cgroup);
  reader.Read("token_scopes", scopes);
  ZEUS_RETURN_IF_ERROR(reader.FinishAllowingOthers());
  if (over_tcp) owner.transport = Caller::Transport::kTcp;
  // Earlier versions wrote the subject alone.
  if (!owner.uid && owner.subject.starts_with("uid:"))
    if (const auto uid = ParseUnsigned(std::string_view(owner.subject).substr(4)); uid.ok())
      owner.uid = static_cast<uid_t>(uid.value());
  if (scopes) owner.token_scopes.emplace();
  for (const std::string& name : scopes.value_or(std::vector<std::string>())) {
    ZEUS_TRY(const Scope scope, ParseScope(name));
    owner.token_scopes->Add(scope);
  }
  return owner;
}

Result<std::vector<HeldRequest>> ParseRequests(const Json& json) {
  ZEUS_TRY(const auto requests, wire::ParseKnobRequests(json));
  std::vector<HeldRequest> held;
  for (const wire::KnobRequest& request : requests) held.push_back({.request = request});
  return held;
}

Result<LeaseRecord> ParseRecord(const Json& json) {
  FieldReader reader("a lease", json);
  LeaseRecord lease;
  std::string lease_class;
  std::optional<double> ttl;
  std::optional<double> deadline;
  Json owner;
  Json holder;
  Json requests;
  Json fallback = Json::array();
  reader.Require("id", lease.id);
  reader.Require("name", lease.name);
  reader.Require("owner", owner);
  reader.Require("class", lease_class);
  reader.Require("holder", holder);
  reader.Require("ttl_seconds", ttl);
  reader.Require("deadline_seconds", deadline);
  reader.Require("request_id", lease.request_id);
  reader.Require("since", lease.since);
  reader.Require("requests", requests);
  reader.Read("fallback", fallback);
  reader.Read("fell_back", lease.fell_back);
  if (lease.id.empty()) reader.Fail("id", "is empty");
  ZEUS_RETURN_IF_ERROR(reader.FinishAllowingOthers());
  if (ttl) lease.ttl = Seconds(*ttl);
  if (deadline) lease.deadline = Seconds(*deadline);
  ZEUS_TRY(lease.owner, ParseOwner(owner));
  ZEUS_TRY(lease.lease_class, wire::ParseLeaseClass(lease_class));
  ZEUS_TRY(lease.holder, ParseHolder(holder));
  ZEUS_TRY(lease.requests, ParseRequests(requests));
  ZEUS_TRY(lease.fallback, wire::ParseKnobRequests(fallback));
  return lease;
}

Result<KeptLeases> ParseLeasesFile(const std::string& text) {
  ZEUS_TRY(const Json json, ParseJson(text));
  FieldReader reader("a file of leases", json);
  KeptLeases kept;
  std::string schema;
  Json leases;
  reader.Require("schema", schema);
  reader.Require("boot", kept.boot);
  reader.Require("leases", leases);
  if (schema != kLeasesSchema) reader.Fail("schema", fmt::format("is not {}", kLeasesSchema));
  if (!leases.is_array()) reader.Fail("leases", "must be a list");
  ZEUS_RETURN_IF_ERROR(reader.FinishAllowingOthers());
  for (const Json& element : leases) {
    ZEUS_TRY(LeaseRecord lease, ParseRecord(element));
    kept.leases.push_back(std::move(lease));
  }
  return kept;
}

}  // namespace

Status WriteLeases(const std::filesystem::path& file, const std::string& boot,
                   const std::vector<LeaseRecord>& leases, Durability durability) {
  Json json = {{"schema", kLeasesSchema}, {"boot", boot}, {"leases", Json::array()}};
  for (const LeaseRecord& lease : leases) json["leases"].push_back(RecordJson(lease));
  return WriteStateFile(file, JsonText(json) + "\n", durability);
}

Result<KeptLeases> ReadLeases(const std::filesystem::path& file) {
  const auto text = ReadStateFile(file, kLargestFile);
  if (!text.ok() && text.error().code == ErrorCode::kNotFound) return KeptLeases{};
  if (!text.ok()) return text.error();
  // The machine lost its power before a file of the last boot reached the disk.
  if (text.value().empty()) return KeptLeases{};
  auto kept = ParseLeasesFile(text.value());
  if (!kept.ok()) return std::move(kept).error().While(Printable(file.string()));
  return kept;
}

std::map<std::string, Watts> BudgetCapsOf(const KeptLeases& kept) {
  std::map<std::string, Watts> caps;
  for (const LeaseRecord& lease : kept.leases) {
    if (lease.lease_class != wire::LeaseClass::kSite) continue;
    for (const wire::KnobRequest& request : lease.fallback) {
      const auto* most = std::get_if<wire::AtMost>(&request.demand);
      const auto* watts = most == nullptr ? nullptr : std::get_if<Watts>(&most->value);
      if (watts == nullptr || request.key.knob != wire::LeaseKnob::kGpuPowerLimit) continue;
      const auto [place, added] = caps.emplace(request.key.device, *watts);
      if (!added) place->second = std::min(place->second, *watts);
    }
  }
  return caps;
}

}  // namespace zeus::daemon
