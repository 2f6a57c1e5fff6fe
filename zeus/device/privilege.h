#pragma once

#include <string_view>

namespace zeus {

enum class Privilege {
  kRoot,  // CAP_SYS_ADMIN is in the effective set, whatever the user is: root, or a daemon.
  kUser,
};

// Returns the privilege of the calling thread, as drivers ask for it with every call. One system
// call, so that a change of user or capabilities is seen at once.
Privilege CurrentPrivilege();

// The advice for a caller without privilege.
inline constexpr std::string_view kPrivilegeNeeded =
    "needs root (CAP_SYS_ADMIN in containers), or zeusd: see docs/daemon.md";

// Returns the advice for a caller whose setter the driver refused. Advice to become root is of no
// use to root.
std::string_view RefusalAdvice(Privilege privilege = CurrentPrivilege());

}  // namespace zeus
