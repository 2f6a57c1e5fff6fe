#pragma once

#include <string_view>

namespace zeus {

enum class Privilege { kRoot, kUser };

// Returns the privilege of this process's effective user.
Privilege CurrentPrivilege();

// Returns the advice for a caller whose setter the driver refused. Advice to become root is of no
// use to root.
std::string_view RefusalAdvice(Privilege privilege = CurrentPrivilege());

}  // namespace zeus
