// The definition of http::MakeConnection() for the zeus command: it loads the module that speaks
// HTTP and TLS, so that commands which call no server start without cpp-httplib and OpenSSL.
#include "apps/zeus/http_module.h"

#include <fmt/format.h>

#include <optional>
#include <string_view>
#include <utility>

#include "apps/zeus/companion.h"
#include "zeus/base/shared_library.h"
#include "zeus/base/text.h"
#include "zeus/base/version.h"

namespace zeus::cli {
namespace {

struct HttpModule {
  HttpModuleConnect* connect = nullptr;
};

Result<HttpModule> LoadHttpModule() {
  ZEUS_TRY(const std::filesystem::path file, FindCompanion(kHttpModule));
  ZEUS_TRY(SharedLibrary library, SharedLibrary::Open(file.string(), {}));
  HttpModuleVersion* version = nullptr;
  HttpModule module;
  library.FindRequired(version, {"ZeusHttpModuleVersion"});
  library.FindRequired(module.connect, {"ZeusHttpModuleConnect"});
  ZEUS_RETURN_IF_ERROR(library.CheckComplete("the HTTP module of Zeus"));
  if (std::string_view(version()) != Version())
    return Error{ErrorCode::kConflict,
                 fmt::format("{} belongs to Zeus {}, and this is Zeus {}: install Zeus completely",
                             Printable(file.string()), version(), Version())};
  return module;
}

}  // namespace
}  // namespace zeus::cli

namespace zeus::http {

Result<std::unique_ptr<ClientConnection>> MakeConnection(ConnectionPlan plan) {
  static const Result<cli::HttpModule> module = cli::LoadHttpModule();
  if (!module.ok()) return module.error();
  Result<std::unique_ptr<ClientConnection>> connection =
      Error{ErrorCode::kInternal, "the HTTP module gave no answer"};
  module.value().connect(plan, connection);
  return connection;
}

}  // namespace zeus::http
