#include "apps/zeus/output.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <system_error>

namespace zeus::cli {

void PrintJson(const Json& json) {
  fmt::print("{}\n", json.dump(2, ' ', false, Json::error_handler_t::replace));
}

Status FlushOutput() {
  errno = 0;
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return Ok();
  return Error{ErrorCode::kUnavailable,
               fmt::format("cannot write the output: {}",
                           errno != 0 ? std::generic_category().message(errno) : "write error")};
}

}  // namespace zeus::cli
