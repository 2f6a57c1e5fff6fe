#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "zeus/base/clock.h"
#include "zeus/budget/messages.h"

namespace zeus::budget {

// A node's memory of its grants: which answer counts, until when, and what the next report says of
// it. The caps themselves are held by whoever sets devices. One owner.
class NodeLease {
 public:
  // `session` differs for every start of the daemon, so that no answer to an earlier one counts.
  explicit NodeLease(std::string session) : session_(std::move(session)) {}

  // The head of the next report; devices and jobs are the caller's.
  NodeReport BeginReport() {
    return {.session = session_, .sequence = ++sequence_, .applied = applied_};
  }

  // How long the grant may be held from now on. nullopt: it is older than one that was seen, or has
  // expired on its way, and must not be applied. It counts from the moment at which the report was
  // sent: the server counts from a later one.
  std::optional<Seconds> Accept(const Grant& grant, TimePoint sent_at, TimePoint now) {
    if (grant.number <= seen_) return std::nullopt;
    const Seconds left = grant.valid - (now - sent_at);
    if (left <= Seconds(0)) return std::nullopt;
    seen_ = grant.number;
    return left;
  }

  // All devices obey the caps of this grant.
  void NoteApplied(std::uint64_t number) {
    if (number > applied_) applied_ = number;
  }

  std::uint64_t seen() const { return seen_; }
  std::uint64_t applied() const { return applied_; }
  const std::string& session() const { return session_; }

 private:
  std::string session_;
  std::uint64_t sequence_ = 0;
  std::uint64_t seen_ = 0;
  std::uint64_t applied_ = 0;
};

}  // namespace zeus::budget
