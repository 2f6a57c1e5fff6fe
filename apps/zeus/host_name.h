#pragma once

#include <string>

namespace zeus::cli {

// Of this machine; empty when it does not tell.
std::string HostName();

}  // namespace zeus::cli
