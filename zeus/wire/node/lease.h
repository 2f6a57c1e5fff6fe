#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/device/gpu.h"
#include "zeus/device/knobs/knob.h"

// Leases of knobs as clients and the daemon exchange them: POST /v1/leases and its relatives.
// docs/daemon.md has the messages.
namespace zeus::wire {

// The knobs that the daemon lends: those of the journal, and persistence mode.
enum class LeaseKnob { kGpuPowerLimit, kGraphicsClock, kMemoryClock, kCpuPowerLimit, kPersistence };
// "gpu_power_limit", "graphics_clock", "memory_clock", "cpu_power_limit", "persistence"
std::string_view Name(LeaseKnob knob);
Result<LeaseKnob> ParseLeaseKnob(std::string_view name);
// The unit of its values: true for hertz, false for watts. Persistence has none.
constexpr bool IsClock(LeaseKnob knob) {
  return knob == LeaseKnob::kGraphicsClock || knob == LeaseKnob::kMemoryClock;
}

// One knob of one device.
struct KnobKey {
  std::string device{};  // UUID of a GPU ("GPU-…"), its PCI address where it has no UUID, "cpu:0".
  LeaseKnob knob = LeaseKnob::kGpuPowerLimit;

  friend auto operator<=>(const KnobKey&, const KnobKey&) = default;
};

// The demand of a lease on a knob.
struct Exactly {
  Setting value;
  friend bool operator==(const Exactly&, const Exactly&) = default;
};
struct AtMost {
  Setting value;
  friend bool operator==(const AtMost&, const AtMost&) = default;
};
struct InRange {  // Clocks only.
  Hertz lowest;
  Hertz highest;
  friend bool operator==(const InRange&, const InRange&) = default;
};
struct SwitchedOn {  // Persistence only.
  friend bool operator==(const SwitchedOn&, const SwitchedOn&) = default;
};
using Demand = std::variant<Exactly, AtMost, InRange, SwitchedOn>;

struct KnobRequest {
  KnobKey key{};
  Demand demand{SwitchedOn{}};
  friend bool operator==(const KnobRequest&, const KnobRequest&) = default;
};

// Ordered: a higher class may take an exclusive knob from a lower one.
enum class LeaseClass { kUser, kJob, kSite };
std::string_view Name(LeaseClass lease_class);
Result<LeaseClass> ParseLeaseClass(std::string_view name);

// The thing whose end is the end of the lease.
enum class HolderKind { kConnection, kProcess, kTtl, kJob, kStanding };
std::string_view Name(HolderKind kind);
Result<HolderKind> ParseHolderKind(std::string_view name);

// The body of POST /v1/leases.
struct LeaseSpec {
  std::string name{};                  // For people: "bert power limit".
  std::optional<HolderKind> holder{};  // nullopt: process on a Unix socket, ttl over TCP.
  std::optional<Seconds> ttl{};        // May be added to any holder; 1 to 3600 s.
  std::string job{};                   // For HolderKind::kJob: "slurm:1234".
  LeaseClass lease_class = LeaseClass::kUser;
  std::string request_id{};  // A repeated POST with the same id finds the same lease.
  std::vector<KnobRequest> requests{};
  // The requests from when the ttl has passed without a sign of life, instead of an end of the
  // lease; empty: it ends. For budgets alone, so no field of the body.
  std::vector<KnobRequest> fallback{};

  friend bool operator==(const LeaseSpec&, const LeaseSpec&) = default;
};

enum class LeaseState { kApplying, kActive, kSuspended, kRestoring, kEnded };
std::string_view Name(LeaseState state);
Result<LeaseState> ParseLeaseState(std::string_view name);

// The value that holds on a knob: a setting, a range of clocks, or persistence. nullopt: the knob
// is at its default (clocks that are not locked), or nothing tells.
using KnobValue = std::variant<Setting, ClockRange, Persistence>;

// A lease's view of one of its knobs.
struct KnobView {
  KnobRequest request{};
  std::optional<KnobValue> effective{};  // By the rule of all leases on the knob.
  std::optional<KnobValue> enforced{};   // As the device reports it; a BMC may be stricter.
  bool overruled = false;                // A higher class holds the knob; the request is kept.
  bool foreign = false;                  // Another program turned it: the request is not applied.
  // The lease that decides the effective value; empty for the baseline and for this lease itself.
  std::string bound_by{};
  std::string bound_by_class{};
  std::string bound_by_name{};  // Empty where the caller may not see it.

  friend bool operator==(const KnobView&, const KnobView&) = default;
};

// A lease as GET /v1/leases/{id} shows it.
struct LeaseView {
  std::string id{};  // "lease_4k2…"
  std::string name{};
  std::string subject{};  // "uid:1001" or the subject of a token.
  LeaseState state = LeaseState::kApplying;
  std::uint64_t version = 1;  // Grows with every change of what this view shows.
  LeaseClass lease_class = LeaseClass::kUser;
  HolderKind holder = HolderKind::kProcess;
  std::int64_t pid = 0;  // Pid of a process holder in the daemon's namespace; else 0.
  std::string job{};     // Name of the job of a job holder.
  std::optional<Seconds> expires_in{};
  std::string since{};  // RFC 3339.
  std::vector<KnobView> knobs{};
  bool fell_back = false;    // The ttl of a budget has passed, and its fallback holds.
  std::string end_reason{};  // "holder gone", "expired", "deleted", "revoked", …; empty before.

  friend bool operator==(const LeaseView&, const LeaseView&) = default;
};

Json ToJson(const LeaseSpec& spec);
Json ToJson(const LeaseView& view);
Json ToJson(const KnobRequest& request);
// {"watts": 200}, {"hertz": 1.38e9}, {"lowest_hertz": …, "highest_hertz": …}, {"on": true}
Json ToJson(const KnobValue& value);
// "power limit", "graphics clock", …: the knob in a sentence.
std::string_view Words(LeaseKnob knob);
// "at most 200 W", "1300 MHz to 1400 MHz", "on": for messages and the audit log.
std::string ToText(const Demand& demand);

// Whether the demand means something for the knob: kInvalidArgument for a wrong unit, a value that
// is no positive number, or an empty range.
Status CheckDemand(LeaseKnob knob, const Demand& demand);

// kInvalidArgument begins with the name of the field. Unknown fields are refused.
Result<LeaseSpec> ParseLeaseSpec(const Json& json);
Result<std::vector<KnobRequest>> ParseKnobRequests(const Json& json);
// Unknown fields are ignored.
Result<LeaseView> ParseLeaseView(const Json& json);

// Why the daemon refuses a request, beyond the codes of the library.
struct LeaseRefusal {
  enum class Kind {
    kMalformed,    // 400
    kForbidden,    // 403: the caller lacks the scope or the device.
    kUnknown,      // 404
    kHeld,         // 409: another lease of the same or a higher class has the knob.
    kEnded,        // 410
    kOutOfBounds,  // 422
    kQuota,        // 429
    kUnavailable,  // 503: the device is stuck, lost or in maintenance; the journal is unusable.
  };
  Kind kind = Kind::kMalformed;
  std::string message{};
  std::optional<KnobKey> key{};
  std::string since{};        // Moment or class of the lease in the way.
  std::string lease_class{};  // Moment or class of the lease in the way.
  std::optional<Seconds> retry_after{};
};
int StatusOf(LeaseRefusal::Kind kind);
// {"error": {"code": "conflict", "message": "…", "device": "…", "knob": "…", …}}
Json ToJson(const LeaseRefusal& refusal);
// The refusal as an error of the library, for callers that only need a code and a sentence.
Error ToError(const LeaseRefusal& refusal);

}  // namespace zeus::wire
