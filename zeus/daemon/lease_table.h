#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "zeus/daemon/audit_log.h"
#include "zeus/daemon/knob_desk.h"
#include "zeus/daemon/lease_book.h"
#include "zeus/daemon/lease_record.h"
#include "zeus/wire/node/lease.h"

namespace zeus::daemon {

// A lease and where it stands.
struct Lease {
  LeaseRecord record{};
  wire::LeaseState state = wire::LeaseState::kApplying;
  std::uint64_t version = 1;
  std::optional<EndReason> end_reason{};
  Seconds ending_since{};  // By the boot clock.
  std::optional<Error> trouble{};
  bool adopted = false;                 // From an earlier run: trouble does not end it.
  std::vector<wire::KnobView> shown{};  // One for each request, in its order.
  // The requests that a replacement is to be taken back to while it is being applied.
  std::optional<std::vector<HeldRequest>> previous{};
  // Knobs that have to be without this lease before it has ended, from which version on.
  std::map<wire::KnobKey, std::uint64_t> awaited{};

  bool live() const { return !end_reason.has_value(); }
};

// One change of the table: when it happens, and what is to be told about it afterwards.
struct Change {
  Seconds now{};  // By the boot clock.
  std::set<wire::KnobKey> wake{};
  std::set<std::string> changed{};  // Ids of leases whose view is another one.
  std::vector<AuditEntry> audit{};
  std::vector<Seconds> restored{};  // Times from the end of leases until their knobs were back.
  bool leases_to_keep = false;      // The file of leases is outdated.
  bool standing_to_keep = false;    // That of standing leases is.
};

// All leases with the claims that they make, and the transitions between their states. It decides
// nothing about who may do what. Every function that changes something notes in a Change who is to
// be told. Not thread-safe: it lives under the lock of a LeaseBook.
class LeaseTable {
 public:
  // At most so many leases that have ended are remembered for long.
  explicit LeaseTable(std::size_t most_ended) : most_ended_(most_ended) {}

  const Lease* Find(std::string_view id) const;
  Lease* Find(std::string_view id);
  const std::map<std::string, Lease, std::less<>>& leases() const { return leases_; }
  // The lease that a subject made with this request id, or null.
  const Lease* FindRequest(const Caller& caller, const std::string& request_id) const;

  // Leases that have not ended.
  std::size_t present() const { return leases_.size() - ended_.size(); }
  std::size_t CountOf(std::string_view subject) const;

  // The claim in the way of a request, or null. It may be one of a request that is being replaced.
  const Claim* FindConflict(const LeaseRecord& asking, const wire::KnobRequest& asked) const;

  // The requests of the record need no order or version. Returns the lease in its first state.
  Lease& Add(LeaseRecord record, Change& change);
  // A lease of an earlier run whose holder is gone: it is remembered, and claims nothing.
  void AddEnded(LeaseRecord record, EndReason reason, Change& change);
  void Replace(Lease& lease, const std::vector<wire::KnobRequest>& requests, Change& change);
  // The ttl of a lease with a fallback has passed: that holds from now on, without a deadline.
  void FallBack(Lease& lease, Change& change);
  void ChangeHolder(Lease& lease, Holder holder, Change& change);
  // False when it is ending already.
  bool BeginEnd(Lease& lease, EndReason reason, Change& change);
  void Settle(const wire::KnobKey& knob, const KnobReport& report, Change& change);
  // Forgets leases that had ended by then, and the oldest ones of too many.
  void ForgetEnded(Seconds before);

  Claims ClaimsOn(const wire::KnobKey& knob) const;
  std::vector<wire::KnobKey> ClaimedKnobs() const;
  std::vector<wire::KnobKey> TurnedKnobs() const;
  LeaseBook::Counts Count() const;
  wire::LeaseView View(const Lease& lease, Seconds now) const;

 private:
  struct KnobRow {
    std::uint64_t version = 0;
    std::vector<Claim> claims{};
    std::vector<Claim> reserved{};    // For replacements that may have to be taken back.
    std::set<std::string> waiting{};  // Leases that end when the knob is without them.
    std::optional<KnobReport> report{};
  };

  void Place(Lease& lease, std::vector<HeldRequest> next, Change& change);
  void PutClaim(const Lease& lease, HeldRequest& held, Change& change);
  std::uint64_t DropClaim(const Lease& lease, const wire::KnobKey& knob, Change& change);
  void Reserve(const Lease& lease);
  void Unreserve(Lease& lease);

  void Advance(Lease& lease, const wire::KnobKey& knob, Change& change);
  void AdvanceEnd(Lease& lease, const wire::KnobKey& knob, Change& change);
  void Fail(Lease& lease, const Error& trouble, Change& change);
  void SetState(Lease& lease);
  void Finish(Lease& lease, Change& change);

  wire::KnobView ViewOf(const Lease& lease, const wire::KnobRequest& request) const;
  // Whether the view became another one.
  bool Refresh(Lease& lease, const wire::KnobKey& knob) const;
  void RefreshAll(Lease& lease) const;

  const std::size_t most_ended_;
  std::map<std::string, Lease, std::less<>> leases_{};
  std::map<wire::KnobKey, KnobRow> knobs_{};
  std::map<std::string, std::size_t, std::less<>> present_of_{};  // By subject.
  std::multimap<std::pair<std::string, std::string>, std::string> requests_{};
  std::deque<std::pair<Seconds, std::string>> ended_{};  // In the order in which they ended.
  std::map<EndReason, std::uint64_t> ended_by_{};
  std::uint64_t counter_ = 0;  // The last order or version that was given.
};

}  // namespace zeus::daemon
