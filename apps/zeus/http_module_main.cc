// The module libzeus_http_client.so: see http_module.h.
#include <exception>
#include <utility>

#include "apps/zeus/http_module.h"
#include "zeus/base/version.h"

extern "C" {

[[gnu::visibility("default")]] const char* ZeusHttpModuleVersion() { return zeus::Version(); }

[[gnu::visibility("default")]] void ZeusHttpModuleConnect(
    zeus::http::ConnectionPlan& plan,
    zeus::Result<std::unique_ptr<zeus::http::ClientConnection>>& connection) {
  connection = zeus::http::MakeConnection(std::move(plan));
}

}  // extern "C"
