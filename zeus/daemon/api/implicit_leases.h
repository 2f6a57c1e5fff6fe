#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "zeus/daemon/api/call.h"
#include "zeus/daemon/api/daemon.h"
#include "zeus/wire/node/lease.h"

namespace zeus::daemon {

// The leases behind the reference's requests, which know none: one for each caller and device. Over
// a Unix socket the calling process holds it, over TCP it lasts for Configuration::compat_hold
// after the last request; changes of administrators stay until they are reset, unless the header
// Zeus-Hold says otherwise. Thread-safe; the daemon must outlive it.
class ImplicitLeases {
 public:
  explicit ImplicitLeases(Daemon& daemon) : daemon_(daemon) {}

  // A change of one knob. Without a demand, the caller asks for nothing any more.
  struct Change {
    wire::LeaseKnob knob;
    std::optional<wire::Demand> demand{};
  };
  // The lease whose knobs are then to be waited for; empty when nothing had to be done.
  OrRefusal<std::string> Apply(const Call& call, const std::string& device,
                               const std::vector<Change>& changes);

 private:
  struct Key {
    std::string subject{};
    std::int64_t pid = 0;
    std::uint64_t start = 0;
    wire::HolderKind holder{};
    std::string device{};
    friend auto operator<=>(const Key&, const Key&) = default;
  };

  wire::HolderKind HolderOf(const Call& call) const;
  std::optional<wire::LeaseView> Find(const Call& call, const Key& key);
  OrRefusal<std::string> Create(const Call& call, const Key& key,
                                std::vector<wire::KnobRequest> requests);

  Daemon& daemon_;
  std::mutex mutex_;
  std::map<Key, std::string> leases_{};  // Guarded by mutex_.
};

}  // namespace zeus::daemon
