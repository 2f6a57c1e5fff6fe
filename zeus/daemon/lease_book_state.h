#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/daemon/lease_book.h"
#include "zeus/daemon/lease_record.h"
#include "zeus/daemon/lease_rules.h"
#include "zeus/daemon/lease_table.h"
#include "zeus/daemon/set_quota.h"

namespace zeus::daemon {

// The answers of the desk about requests, asked before the lock of the book is taken: its workers
// hold their own locks when they ask the book.
struct DeskAnswers {
  std::vector<std::optional<KnobFacts>> facts{};
  std::vector<Status> ready{};
};

// An entry with the caller's part filled in.
AuditEntry EntryFor(const Caller& caller, std::string event);
wire::LeaseRefusal UnknownLease(std::string_view lease);
wire::LeaseRefusal EndedLease(const Lease& lease);

// The lock of the book is held around the table and the quotas, and for nothing else: the desk, the
// audit log, the listener and the files are called when it is free.
class LeaseBook::State {
 public:
  State(Clock& clock, KnobDesk& desk, AuditLog* audit, Options options);

  // Calls `act` with the table's lock held, and then tells everybody about the change.
  template <class Act>
  auto Do(Act act) {
    Change change{.now = Now()};
    auto outcome = [&] {
      const std::lock_guard lock(mutex_);
      auto result = act(change);
      if (change.leases_to_keep) ++leases_generation_;
      if (change.standing_to_keep) ++standing_generation_;
      return result;
    }();
    Tell(change);
    return outcome;
  }

  OrRefusal<wire::LeaseView> Create(const Caller& caller, const Grant& grant,
                                    const wire::LeaseSpec& spec);
  OrRefusal<wire::LeaseView> Replace(const Caller& caller, const Grant& grant, std::string_view id,
                                     const std::vector<wire::KnobRequest>& requests,
                                     const std::optional<Renewal>& renewal);
  OrRefusal<wire::LeaseView> HandOver(const Caller& caller, const Grant& grant, std::string_view id,
                                      const Holder& holder);
  OrRefusal<wire::LeaseView> End(const Caller& caller, const Grant& grant, std::string_view id,
                                 EndReason reason);
  // Ends all leases for which `ends` is true.
  template <class Predicate>
  std::size_t EndWhere(EndReason reason, Predicate ends);

  Seconds Now() const { return options_.boot_clock().since; }
  void NoteRefusal(const Caller& caller, const wire::LeaseRefusal& refusal, std::string_view lease);
  // Writes the files if they are outdated.
  void WriteFiles();

  // These need the lock.
  Lease* FindOwn(const Caller& caller, const Grant& grant, std::string_view id);
  Refused CheckQuota(const Caller& caller, const Grant& grant,
                     const std::vector<wire::KnobRequest>& requests) const;
  Refused CheckFree(const LeaseRecord& asking, const std::vector<wire::KnobRequest>& requests,
                    const Caller& caller, const Grant& grant) const;
  Refused CheckSets(const LeaseRecord& lease, const std::vector<wire::KnobRequest>& requests,
                    const DeskAnswers& answers, const Caller& caller, const Grant& grant) const;
  void TakeSets(const Caller& caller, const Grant& grant,
                const std::vector<wire::KnobRequest>& requests);
  Seconds StepLeases(Change& change);
  void Expire(Lease& lease, Change& change);
  void Adopt(LeaseRecord record, Change& change);

  Clock& clock_;
  KnobDesk& desk_;
  AuditLog* const audit_;
  const Options options_;
  mutable std::mutex mutex_;
  LeaseTable table_;  // Guarded by mutex_, like all below.
  SetQuota quota_{};
  static constexpr std::uint64_t kNotWritten = ~std::uint64_t{0};
  std::uint64_t leases_generation_ = 0;  // Grows when a file is outdated.
  std::uint64_t standing_generation_ = 0;

  std::mutex files_mutex_;  // One writer at a time; taken before mutex_.
  std::uint64_t leases_written_ = 0;
  std::uint64_t standing_written_ = 0;
  TimePoint last_write_{};
  bool write_failed_ = false;

 private:
  void Tell(const Change& change);
  LeaseRecord NewRecord(const Caller& caller, const wire::LeaseSpec& spec, Holder holder);
  Refused CheckRequests(const Caller& caller, const Grant& grant, wire::LeaseClass lease_class,
                        const std::vector<wire::KnobRequest>& requests) const;
  Refused CheckFallback(const Caller& caller, const Grant& grant, wire::LeaseClass lease_class,
                        const std::vector<wire::KnobRequest>& fallback) const;
  bool WriteFile(const std::filesystem::path& file, const std::vector<LeaseRecord>& records,
                 Durability durability);
};

template <class Predicate>
std::size_t LeaseBook::State::EndWhere(EndReason reason, Predicate ends) {
  return Do([&](Change& change) {
    std::vector<std::string> ids;
    for (const auto& [id, lease] : table_.leases())
      if (lease.live() && ends(lease)) ids.push_back(id);
    for (const std::string& id : ids) table_.BeginEnd(*table_.Find(id), reason, change);
    return ids.size();
  });
}

}  // namespace zeus::daemon
