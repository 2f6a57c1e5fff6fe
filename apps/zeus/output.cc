#include "apps/zeus/output.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <system_error>

#include "apps/zeus/terminal.h"
#include "zeus/base/json.h"
#include "zeus/base/terminal_text.h"

namespace zeus::cli {

void PrintText(std::string_view text) { fmt::print("{}", ForTerminal(text)); }
void PrintErrorText(std::string_view text) { fmt::print(stderr, "{}", ForTerminal(text)); }

void PrintJsonText(std::string_view json) { fmt::print("{}", JsonForTerminal(json)); }

void PrintJson(const Json& json) {
  // If standard output is ASCII (see terminal.h), \\u escapes preserve other characters.
  PrintJsonText(json.dump(2, ' ', !LocaleIsUnicode(), Json::error_handler_t::replace) + "\n");
}

Status FlushOutput() {
  errno = 0;
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return Ok();
  return Error{ErrorCode::kUnavailable,
               fmt::format("cannot write the output: {}",
                           errno != 0 ? std::generic_category().message(errno) : "write error")};
}

bool OutputHasReader() {
  pollfd output{.fd = STDOUT_FILENO, .events = 0, .revents = 0};
  return ::poll(&output, 1, 0) <= 0 || (output.revents & (POLLERR | POLLHUP)) == 0;
}

void AbandonOutput() {
  // If even /dev/null cannot be opened there is no output left that could fail.
  if (std::freopen("/dev/null", "w", stdout) == nullptr) std::clearerr(stdout);
}

}  // namespace zeus::cli
