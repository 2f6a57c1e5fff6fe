#pragma once

#include <memory>

#include "zeus/base/result.h"
#include "zeus/http/client_connection.h"

// The functions of the module libzeus_http_client.so, through which the zeus command speaks HTTP.
// Both are built together, and the version tells when they were not.
namespace zeus::cli {

constexpr const char* kHttpModule = "zeus/libzeus_http_client.so";

using HttpModuleVersion = const char*();
using HttpModuleConnect = void(http::ConnectionPlan& plan,
                               Result<std::unique_ptr<http::ClientConnection>>& connection);

}  // namespace zeus::cli
