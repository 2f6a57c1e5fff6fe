// zeusd, the privileged process of a machine that lends knobs. This file only composes the verbs.
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "apps/zeus/command_line.h"
#include "apps/zeus/manual/manual_verbs.h"
#include "apps/zeus/terminal.h"
#include "apps/zeusd/commands.h"
#include "zeus/base/detached_call.h"
#include "zeus/base/version.h"

namespace zeus::daemon::cli {
namespace {

int Main(int argc, char** argv) {
  if (!zeus::cli::LocaleIsUnicode()) zeus::cli::WriteInAscii();
  zeus::cli::CommandLine line("zeusd",
                              "Lends power limits and clocks of this machine, and puts them back.");
  line.AddVersion(std::string("zeusd ") + Version());
  const Verb app = line.program();
  app.RequireVerb();
  Action action;
  AddServeCommand(app, action);
  AddCheckConfigCommand(app, action);
  AddTokenCommand(app, action);
  AddRestoreCommand(app, action);
  AddStatusCommand(app, action);
  zeus::cli::AddManualVerbs(line, action,
                            {.section = "8", .version = std::string("zeusd ") + Version()});
  app.Footer("zeusd help VERB, or zeusd VERB --help, tells more.");
  return line.Run(argc, argv, [&action] { return action(); });
}

// With a closed standard stream the next file would get its number, and be written to.
void OpenStandardStreams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(stream, F_GETFD) < 0) {
      [[maybe_unused]] const int opened = ::open("/dev/null", O_RDWR);  // Gets this number.
    }
}

}  // namespace
}  // namespace zeus::daemon::cli

int main(int argc, char** argv) {
  zeus::daemon::cli::OpenStandardStreams();
  const int code = zeus::daemon::cli::Main(argc, argv);
  if (zeus::AbandonedCalls() == 0) return code;
  // A call hangs in a driver: destructors of static objects must not run concurrently with it.
  std::fflush(stdout);
  std::_Exit(code);
}
