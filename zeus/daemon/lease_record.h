#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "zeus/base/units.h"
#include "zeus/daemon/caller.h"
#include "zeus/daemon/lease_book.h"
#include "zeus/daemon/scope.h"
#include "zeus/wire/node/lease.h"

namespace zeus::daemon {

// The caller to whom a lease belongs. A token that is named like a user is not that user, and root
// of a container is not root of the host.
struct LeaseOwner {
  std::string subject{};
  Caller::Transport transport = Caller::Transport::kUnixSocket;
  bool contained = false;
  // The parts that rules may ask for, so that a lease is judged alike after a restart of the
  // daemon.
  std::optional<uid_t> uid{};
  gid_t gid = 0;
  std::vector<gid_t> groups{};
  std::string cgroup{};
  std::optional<ScopeSet> token_scopes{};

  static LeaseOwner Of(const Caller& caller) {
    return {.subject = caller.subject,
            .transport = caller.transport,
            .contained = caller.contained,
            .uid = caller.uid,
            .gid = caller.gid,
            .groups = caller.groups,
            .cgroup = caller.cgroup,
            .token_scopes = caller.token_scopes};
  }
  // Without what ends with its connection.
  Caller ToCaller() const {
    return {.transport = transport,
            .subject = subject,
            .uid = uid,
            .gid = gid,
            .groups = groups,
            .contained = contained,
            .cgroup = cgroup,
            .token_scopes = token_scopes};
  }
  bool Is(const Caller& caller) const {
    if (subject != caller.subject || transport != caller.transport) return false;
    return caller.uid != uid_t{0} || contained == caller.contained;
  }
};

// A request of a lease and where it stands among all requests.
struct HeldRequest {
  wire::KnobRequest request{};
  std::uint64_t order = 0;    // The order of the claim that it makes.
  std::uint64_t version = 0;  // The first version of the knob's claims that has this one.
  bool settled = false;       // The device has obeyed it once.
};

// The parts of a lease that outlast the daemon.
struct LeaseRecord {
  std::string id{};
  std::string name{};
  LeaseOwner owner{};
  wire::LeaseClass lease_class = wire::LeaseClass::kUser;
  Holder holder{};
  std::optional<Seconds> ttl{};
  std::optional<Seconds> deadline{};  // By the boot clock.
  std::string request_id{};
  std::string since{};  // RFC 3339.
  std::vector<HeldRequest> requests{};
  std::vector<wire::KnobRequest> fallback{};  // As LeaseSpec has it.
  bool fell_back = false;                     // It holds by now.
};

}  // namespace zeus::daemon
