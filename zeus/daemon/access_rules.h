#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/daemon/caller.h"
#include "zeus/daemon/grant.h"
#include "zeus/daemon/scope.h"

namespace zeus::daemon {

// No process has this group: the kernel takes it for "no change".
inline constexpr gid_t kUnknownGroup = static_cast<gid_t>(-1);

// The conditions of a rule; all that are set must hold.
struct RuleMatch {
  std::vector<uid_t> uids{};
  // Any of them; names are looked up when the file is read. kUnknownGroup stands for a name that
  // nobody knew then, and matches nobody.
  std::vector<gid_t> groups{};
  std::optional<bool> contained{};
  std::string cgroup{};                 // A shell pattern: "*/kubepods*/*"; empty: any.
  std::string name_space{};             // Kubernetes namespace of the caller's pod; empty: any.
  std::vector<std::string> subjects{};  // Tokens are "ci", certificates "cert:ci".
};

struct AccessRule {
  std::string name{};
  RuleMatch match{};
  // Its `leases` is not used: a rule that says nothing about them leaves the number to others.
  Grant grant{};
  std::optional<std::size_t> leases{};
};

enum class ForeignPolicy { kRespect, kReassert };
enum class StopPolicy { kRestore, kLeave };

// The content of /etc/zeus/zeusd.toml. Immutable.
//
// `devices` of a rule says whose knobs may be turned; everything may be read. It counts together
// with a scope that controls (gpu-control, cpu-control, budget), and such a rule without `devices`
// means all. Numbers of leases and of settings per second in [defaults] hold where no rule that
// matches says its own.
struct Configuration {
  Grant defaults{};  // For everybody on the Unix socket.
  std::vector<AccessRule> rules{};
  // For everybody, also administrators and the reference's endpoints.
  std::map<wire::LeaseKnob, KnobBounds> bounds{};
  Seconds cpu_energy_period{0.01};  // The finest resolution of CPU energy: RAPL is a side channel.
  ForeignPolicy foreign = ForeignPolicy::kRespect;
  StopPolicy stop_policy = StopPolicy::kRestore;
  Seconds compat_hold{3600};
  std::optional<Seconds> max_token_lifetime{};
  // The GPUs in the order of Slurm's gres.conf: UUIDs, PCI addresses or device files. Empty: the
  // number of a device file is the position.
  std::vector<std::string> slurm_gpus{};
  // Sentences about groups that the machine does not know, or not yet: a directory service may
  // answer late at boot. The file is to be read again then.
  std::vector<std::string> unknown_groups{};
};

// The configuration without a file: everybody may read GPUs, root may do everything.
Configuration DefaultConfiguration();

// kInvalidArgument names the file, the line and the fix; unknown keys are refused. `source` is the
// name of the file.
Result<Configuration> ParseConfiguration(std::string_view toml, const std::string& source);
// kPermissionDenied for a file that is a symbolic link, does not belong to root or to this user, or
// that others may write. kNotFound without a file.
Result<Configuration> ReadConfiguration(const std::filesystem::path& file);

// The extra knowledge about a caller that rules may ask for.
struct CallerContext {
  std::string pod_name_space{};  // Kubernetes; empty when there is none, or it is not known.
};

// A pure function of the configuration: the scopes of all rules that match unite, the strictest of
// their bounds holds. Root of the host is an administrator. A token's scopes replace those of rules
// over TCP, and limit nothing on the Unix socket, where they add to the rules. Over TCP only rules
// match that name the subject.
Grant GrantFor(const Configuration& configuration, const Caller& caller,
               const CallerContext& context = {});

}  // namespace zeus::daemon
