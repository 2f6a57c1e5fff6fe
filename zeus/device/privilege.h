#pragma once

#include <string_view>

namespace zeus {

enum class Privilege { kRoot, kUser };

// Of the effective user of this process.
Privilege CurrentPrivilege();

// What to tell somebody whom a driver refused to change a setting. Advice to become root is of no
// use to root.
std::string_view RefusalAdvice(Privilege privilege = CurrentPrivilege());

}  // namespace zeus
