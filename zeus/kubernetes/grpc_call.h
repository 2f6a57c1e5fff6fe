#pragma once

#include <cstddef>
#include <string>

#include "zeus/base/clock.h"
#include "zeus/base/result.h"

namespace zeus::kubernetes {

struct GrpcCall {
  std::string socket{};          // The path of a Unix socket.
  std::string method{};          // "/v1.PodResourcesLister/List"
  std::string message{};         // The encoded request; empty where it has no field.
  Seconds timeout{2};            // For everything together.
  std::size_t limit = 16 << 20;  // Bytes of the answer.
};

// Calls a gRPC server on this machine and returns the encoded message of its answer. Blocks until
// then, at most as long as the timeout. kNotFound without a socket, kPermissionDenied where this
// user may not connect, kNotSupported when the server does not know the method, else kUnavailable.
Result<std::string> CallGrpc(const GrpcCall& call, const Clock& clock);

}  // namespace zeus::kubernetes
