#include "zeus/daemon/access_rules.h"

#include <fnmatch.h>

#include <algorithm>
#include <utility>

#include "zeus/daemon/trusted_file.h"

namespace zeus::daemon {
namespace {

bool HasGroup(const Caller& caller, gid_t group) {
  if (group == kUnknownGroup) return false;
  return caller.gid == group || std::ranges::find(caller.groups, group) != caller.groups.end();
}

// A condition on something that is not known does not hold.
bool MatchesProcess(const RuleMatch& match, const Caller& caller) {
  if (!caller.uid) return match.uids.empty() && match.groups.empty() && !match.contained;
  if (!match.uids.empty() && std::ranges::find(match.uids, *caller.uid) == match.uids.end())
    return false;
  if (!match.groups.empty() &&
      std::ranges::none_of(match.groups, [&](gid_t group) { return HasGroup(caller, group); }))
    return false;
  return !match.contained || *match.contained == caller.contained;
}

bool MatchesPlace(const RuleMatch& match, const Caller& caller, const CallerContext& context) {
  // Without FNM_PATHNAME "*" also matches slashes.
  if (!match.cgroup.empty() &&
      (caller.cgroup.empty() || ::fnmatch(match.cgroup.c_str(), caller.cgroup.c_str(), 0) != 0))
    return false;
  return match.name_space.empty() || match.name_space == context.pod_name_space;
}

// Over TCP nothing is known of the process, so "not contained" or no condition at all would let
// everybody in: there a rule must name its subjects.
bool Matches(const RuleMatch& match, const Caller& caller, const CallerContext& context) {
  if (caller.transport == Caller::Transport::kTcp && match.subjects.empty()) return false;
  if (!match.subjects.empty() &&
      std::ranges::find(match.subjects, caller.subject) == match.subjects.end())
    return false;
  return MatchesProcess(match, caller) && MatchesPlace(match, caller, context);
}

void Narrow(std::map<wire::LeaseKnob, KnobBounds>& bounds,
            const std::map<wire::LeaseKnob, KnobBounds>& others) {
  for (const auto& [knob, more] : others) bounds[knob] = bounds[knob].And(more);
}

// Puts together what the parts of a configuration grant.
class GrantBuilder {
 public:
  GrantBuilder(const Configuration& configuration, const Caller& caller)
      : with_token_(caller.token_scopes.has_value()),
        only_token_(with_token_ && caller.transport == Caller::Transport::kTcp) {
    grant_.bounds = configuration.bounds;
    grant_.leases = configuration.defaults.leases;
    grant_.sets_per_second = configuration.defaults.sets_per_second;
    if (with_token_) token_ = *caller.token_scopes;
    grant_.scopes.Add(token_);
  }

  // Devices count only where there is a right to turn their knobs: a rule that lets people read
  // everything must not widen one that lets them control a single GPU.
  void Add(const Grant& part, std::string name) {
    if (!only_token_) grant_.scopes.Add(part.scopes);
    if (part.scopes.controls() || token_.controls()) {
      grant_.all_devices |= part.all_devices;
      grant_.devices_of_jobs |= part.devices_of_jobs;
      grant_.devices.insert(part.devices.begin(), part.devices.end());
    }
    Narrow(grant_.bounds, part.bounds);
    grant_.rules.push_back(std::move(name));
  }

  void AddQuotas(const AccessRule& rule) {
    if (rule.leases) leases_ = std::min(leases_.value_or(*rule.leases), *rule.leases);
    for (const auto& [knob, rate] : rule.grant.sets_per_second) {
      const auto [known, fresh] = rates_.try_emplace(knob, rate);
      if (!fresh) known->second = std::min(known->second, rate);
    }
  }

  Grant Build() && {
    if (leases_) grant_.leases = *leases_;
    for (const auto& [knob, rate] : rates_) grant_.sets_per_second[knob] = rate;
    const bool narrowed = grant_.devices_of_jobs || !grant_.devices.empty();
    if (grant_.admin() || (token_.controls() && !narrowed)) grant_.all_devices = true;
    return std::move(grant_);
  }

 private:
  const bool with_token_;
  const bool only_token_;  // The token's scopes stand for those of rules.
  ScopeSet token_{};
  Grant grant_{};
  std::optional<std::size_t> leases_{};
  std::map<wire::LeaseKnob, double> rates_{};
};

}  // namespace

Configuration DefaultConfiguration() {
  Configuration configuration;
  configuration.defaults.scopes = {Scope::kGpuRead};
  return configuration;
}

Result<Configuration> ReadConfiguration(const std::filesystem::path& file) {
  ZEUS_TRY(const std::string text, ReadTrustedFile(file));
  return ParseConfiguration(text, file.string());
}

Grant GrantFor(const Configuration& configuration, const Caller& caller,
               const CallerContext& context) {
  GrantBuilder builder(configuration, caller);
  if (caller.transport == Caller::Transport::kUnixSocket) {
    builder.Add(configuration.defaults, "defaults");
    if (caller.is_host_root()) builder.Add({.scopes = {Scope::kAdmin}}, "root of this machine");
  }
  for (const AccessRule& rule : configuration.rules) {
    if (!Matches(rule.match, caller, context)) continue;
    builder.Add(rule.grant, rule.name);
    builder.AddQuotas(rule);
  }
  return std::move(builder).Build();
}

}  // namespace zeus::daemon
