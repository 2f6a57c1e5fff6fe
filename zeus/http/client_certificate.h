#pragma once

#include <string>

#include "zeus/base/clock.h"

namespace zeus::http {

// A certificate by which a client has shown who it is.
struct ClientCertificate {
  std::string name{};  // The common name of its subject: printable, without blanks.
  WallTime expires{};
};

}  // namespace zeus::http
