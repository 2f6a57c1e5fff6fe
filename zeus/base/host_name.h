#pragma once

#include <string>

namespace zeus {

// Returns the name of this machine; empty when the system does not know it.
std::string HostName();

}  // namespace zeus
