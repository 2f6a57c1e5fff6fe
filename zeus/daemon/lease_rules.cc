#include "zeus/daemon/lease_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "zeus/base/text.h"

namespace zeus::daemon {
namespace {

using wire::AtMost;
using wire::Exactly;
using wire::HolderKind;
using wire::InRange;
using wire::KnobRequest;
using wire::LeaseClass;
using wire::LeaseKnob;
using wire::LeaseRefusal;
using Kind = LeaseRefusal::Kind;

Scope ControlScope(LeaseKnob knob) {
  return knob == LeaseKnob::kCpuPowerLimit ? Scope::kCpuControl : Scope::kGpuControl;
}

// The settings that the request must be compared with: a cap has only an upper one.
struct Extent {
  std::optional<Setting> lowest{};
  Setting highest;
};

Extent ExtentOf(const wire::Demand& demand) {
  if (const auto* exactly = std::get_if<Exactly>(&demand)) return {exactly->value, exactly->value};
  if (const auto* range = std::get_if<InRange>(&demand)) return {range->lowest, range->highest};
  return {std::nullopt, std::get<AtMost>(demand).value};
}

std::string KnobText(const KnobRequest& request) {
  return fmt::format("the {} of {}", wire::Words(request.key.knob), request.key.device);
}

Refused OutOfBounds(const KnobRequest& request, std::string_view why) {
  return Refuse(
      Kind::kOutOfBounds,
      fmt::format("{} cannot be {}: {}", KnobText(request), wire::ToText(request.demand), why),
      request.key);
}

// The caller's own bounds; those of the device are in its choices.
Refused CheckOwnBounds(const KnobBounds& bounds, const KnobChoices& choices,
                       const KnobRequest& request) {
  const Extent extent = ExtentOf(request.demand);
  const Watts* power = std::get_if<Watts>(&extent.highest);
  if (bounds.min_watts && power != nullptr && *power < *bounds.min_watts)
    return OutOfBounds(request,
                       fmt::format("you may go down to {}", zeus::ToText(*bounds.min_watts)));
  const Hertz* clock = std::get_if<Hertz>(&extent.highest);
  if (bounds.min_hertz && clock != nullptr && *clock < *bounds.min_hertz)
    return OutOfBounds(request,
                       fmt::format("you may go down to {}", zeus::ToText(*bounds.min_hertz)));
  // A cap above the share raises nothing.
  if (!bounds.max_share || !extent.lowest) return std::nullopt;
  const double highest = ToNumber(choices.highest) * *bounds.max_share;
  constexpr double kRounding = 1e-6;
  if (ToNumber(extent.highest) <= highest + kRounding) return std::nullopt;
  return OutOfBounds(request,
                     fmt::format("you may go up to {:g} {}, {:g} % of the highest", highest,
                                 power != nullptr ? "W" : "MHz", *bounds.max_share * 100));
}

Refused CheckChoices(const KnobChoices& choices, const KnobRequest& request) {
  const Extent extent = ExtentOf(request.demand);
  const std::string range =
      fmt::format("{} to {} are possible", ToText(choices.lowest), ToText(choices.highest));
  if (extent.highest < choices.lowest) return OutOfBounds(request, range);
  if (!extent.lowest) return std::nullopt;
  if (std::holds_alternative<Exactly>(request.demand) && extent.highest > choices.highest)
    return OutOfBounds(request, range);
  if (*extent.lowest > choices.highest) return OutOfBounds(request, range);
  if (choices.steps.empty() || std::holds_alternative<Exactly>(request.demand)) return std::nullopt;
  const bool has_step = std::ranges::any_of(choices.steps, [&extent](const Setting& step) {
    return step >= *extent.lowest && step <= extent.highest;
  });
  return has_step ? std::nullopt : OutOfBounds(request, "the device has no clock in this range");
}

OrRefusal<Holder> ProcessHolder(const Caller& caller) {
  if (!caller.process && caller.pidfd == nullptr)
    return *Refuse(Kind::kMalformed,
                   "holder: the daemon cannot see your process; use connection or ttl");
  return Holder{.kind = HolderKind::kProcess, .process = caller.process, .pidfd = caller.pidfd};
}

OrRefusal<Holder> JobHolder(const Caller& caller, const Grant& grant, const std::string& job,
                            const LeaseBook::Options& options) {
  if (job.empty()) return *Refuse(Kind::kMalformed, "job: the holder \"job\" needs a job's name");
  const bool may = grant.scopes.Has(Scope::kJob) ||
                   (options.belongs_to_job && options.belongs_to_job(caller, job));
  if (!may)
    return *Refuse(Kind::kForbidden,
                   fmt::format("{} is not a job of yours; register it first", Quote(job)));
  if (options.job_runs && !options.job_runs(job))
    return *Refuse(Kind::kMalformed,
                   fmt::format("job: {} does not run here; register it first", Quote(job)));
  return Holder{.kind = HolderKind::kJob, .job = job};
}

}  // namespace

Refused Refuse(Kind kind, std::string message, std::optional<wire::KnobKey> knob) {
  LeaseRefusal refusal{.kind = kind, .message = std::move(message)};
  refusal.key = std::move(knob);
  return refusal;
}

Refused CheckShape(const std::vector<KnobRequest>& requests, std::size_t most) {
  if (requests.size() > most)
    return Refuse(Kind::kOutOfBounds, fmt::format("a lease may have up to {} requests", most));
  std::set<wire::KnobKey> seen;
  for (const KnobRequest& request : requests) {
    if (const Status fits = wire::CheckDemand(request.key.knob, request.demand); !fits.ok())
      return Refuse(Kind::kMalformed,
                    fmt::format("{}: {}", KnobText(request), fits.error().message), request.key);
    if (!seen.insert(request.key).second)
      return Refuse(Kind::kMalformed, KnobText(request) + " is asked for twice", request.key);
  }
  return std::nullopt;
}

Refused CheckScopes(const Grant& grant, LeaseClass lease_class,
                    const std::vector<KnobRequest>& requests) {
  const auto lacks = [](Scope scope, std::string_view what) {
    return Refuse(Kind::kForbidden, fmt::format("{} needs the scope {}", what, Name(scope)));
  };
  if (lease_class == LeaseClass::kJob && !grant.scopes.Has(Scope::kJob))
    return lacks(Scope::kJob, "a lease of the class job");
  const bool site = lease_class == LeaseClass::kSite;
  if (site && !grant.scopes.Has(Scope::kBudget))
    return lacks(Scope::kBudget, "a lease of the class site");
  for (const KnobRequest& request : requests) {
    if (site && std::holds_alternative<AtMost>(request.demand)) continue;
    const Scope scope = ControlScope(request.key.knob);
    if (grant.scopes.Has(scope)) continue;
    auto refusal = lacks(scope, "turning " + KnobText(request));
    refusal->key = request.key;
    return refusal;
  }
  return std::nullopt;
}

Refused CheckDevices(const Grant& grant, const std::set<std::string>& devices_of_jobs,
                     const std::vector<KnobRequest>& requests) {
  if (grant.all_devices || grant.admin()) return std::nullopt;
  for (const KnobRequest& request : requests) {
    const std::string& device = request.key.device;
    if (grant.devices.contains(device)) continue;
    if (grant.devices_of_jobs && devices_of_jobs.contains(device)) continue;
    return Refuse(Kind::kForbidden,
                  fmt::format("{} is not among the devices that you may turn{}", Printable(device),
                              grant.devices_of_jobs ? ": those of your jobs" : ""),
                  request.key);
  }
  return std::nullopt;
}

Refused CheckBounds(const Grant& grant, const KnobFacts& facts, const KnobRequest& request) {
  if (!facts.choices || request.key.knob == LeaseKnob::kPersistence) return std::nullopt;
  if (Refused refusal = CheckChoices(*facts.choices, request)) return refusal;
  const auto own = grant.bounds.find(request.key.knob);
  if (own == grant.bounds.end()) return std::nullopt;
  return CheckOwnBounds(own->second, *facts.choices, request);
}

OrRefusal<Holder> HolderFor(const Caller& caller, const Grant& grant, const wire::LeaseSpec& spec,
                            const LeaseBook::Options& options) {
  const bool over_tcp = caller.transport == Caller::Transport::kTcp;
  switch (spec.holder.value_or(over_tcp ? HolderKind::kTtl : HolderKind::kProcess)) {
    case HolderKind::kConnection:
      return Holder{.kind = HolderKind::kConnection, .connection = caller.connection};
    case HolderKind::kProcess:
      return ProcessHolder(caller);
    case HolderKind::kTtl:
      return Holder{.kind = HolderKind::kTtl};
    case HolderKind::kJob:
      return JobHolder(caller, grant, spec.job, options);
    case HolderKind::kStanding:
      break;
  }
  if (!grant.admin())
    return *Refuse(Kind::kForbidden, "a standing lease needs the scope admin; use another holder");
  if (options.standing_file.empty())
    return *Refuse(Kind::kUnavailable, "this daemon has no file for standing leases");
  return Holder{.kind = HolderKind::kStanding};
}

}  // namespace zeus::daemon
