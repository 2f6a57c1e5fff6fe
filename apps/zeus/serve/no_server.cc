// Replaces serve_session.cc where Zeus is built without its server (-DZEUS_SERVER=OFF).
#include "apps/zeus/serve/serve_session.h"

namespace zeus::cli {
namespace {

Error WithoutServer() {
  return {ErrorCode::kNotSupported,
          "this zeus was built without its server: ./dev build builds it with everything"};
}

}  // namespace

Result<int> RunServe(const ServeOptions& /*options*/) { return WithoutServer(); }

Result<int> MakeToken(const ServeOptions& /*options*/) { return WithoutServer(); }

}  // namespace zeus::cli
