// The zeus command: one executable, one verb per capability. This file only composes them.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/zeus/command_line.h"
#include "apps/zeus/commands.h"
#include "apps/zeus/configuration/config_command.h"
#include "apps/zeus/configuration/configuration.h"
#include "apps/zeus/exit_code.h"
#include "apps/zeus/help_topics.h"
#include "apps/zeus/manual/manual_verbs.h"
#include "apps/zeus/terminal.h"
#include "apps/zeus/verbs.h"
#include "zeus/base/detached_call.h"
#include "zeus/base/version.h"

namespace zeus::cli {
namespace {

// Removes the command that `zeus run`, `profile`, `record` or `train` is to run from the command
// line, so that its words are not parsed as options of Zeus.
CommandTail SplitOffCommand(int& argc, char** argv) {
  CommandTail tail;
  if (argc < 2) return tail;
  const std::string_view verb(argv[1]);
  if (verb != "run" && verb != "profile" && verb != "record" && verb != "train") return tail;
  char** const dashes =
      std::find_if(argv, argv + argc, [](std::string_view word) { return word == "--"; });
  if (dashes == argv + argc) return tail;
  tail.present = true;
  tail.words.assign(dashes + 1, argv + argc);
  argc = static_cast<int>(dashes - argv);
  return tail;
}

// Declares all verbs, those that tell about the others included.
void DeclareAll(CommandLine& line, Action& action, const CommandTail& tail) {
  for (const VerbEntry& verb : Verbs()) verb.add(line.program(), action, tail);
  AddConfigCommand(line, action);
  AddManualVerbs(line, action, {.section = "1", .version = std::string("zeus ") + Version()});
}

VerbDescription DescribeAll() {
  CommandLine line("zeus", "");
  Action action;
  const CommandTail tail;
  DeclareAll(line, action, tail);
  return line.Describe();
}

// Declares what the help of the program and of all verbs needs.
void DeclareForHelp(CommandLine& line, Action& action, const CommandTail& tail) {
  DeclareAll(line, action, tail);
  std::string topics;
  for (Topic& topic : HelpTopics()) {
    topics += (topics.empty() ? "" : ", ") + topic.name;
    line.AddTopic(std::move(topic));
  }
  line.program().Footer(
      "zeus help VERB, or zeus VERB --help, tells more. zeus help TOPIC: " + topics + ".");
}

int Main(int argc, char** argv) {
  if (!LocaleIsUnicode()) WriteInAscii();
  const CommandTail tail = SplitOffCommand(argc, argv);
  CommandLine line("zeus", "Measures and lowers the energy of deep-learning work.");
  line.AddVersion(std::string("zeus ") + Version());
  const Verb app = line.program();
  app.RequireVerb();
  Action action;
  const std::string_view first = argc > 1 ? argv[1] : "";
  // To declare the options of all verbs takes longer than the rest of a short command, so only the
  // verb is declared that the command line begins with; all of them if it begins with none.
  const std::vector<VerbEntry> verbs = Verbs();
  const auto named = std::ranges::find(verbs, first, &VerbEntry::name);
  if (named != verbs.end())
    named->add(app, action, tail);
  else if (first != "--version")
    DeclareForHelp(line, action, tail);
  ConfigurationPlaces places = UserConfiguration();
  places.checked = !kHasAllVerbs;  // By zeus, which started this program.
  line.UseConfiguration(std::move(places), DescribeAll);

  const auto perform = [&action] { return action(); };
  return line.Run(argc, argv, perform, [first](ErrorCode code) {
    return first == "diff" ? DiffExitCode(code) : ExitCode(code);
  });
}

// With a closed standard stream (`>&-`) the next file, as a database, would get its number, and
// what is printed would end up in it.
void OpenStandardStreams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(stream, F_GETFD) < 0) {
      [[maybe_unused]] const int opened = ::open("/dev/null", O_RDWR);  // Gets this number.
    }
}

}  // namespace
}  // namespace zeus::cli

int main(int argc, char** argv) {
  zeus::cli::OpenStandardStreams();
  const int code = zeus::cli::Main(argc, argv);
  if (zeus::AbandonedCalls() == 0) return code;
  // A call hangs in a driver: destructors of static objects must not run concurrently with it.
  std::fflush(stdout);
  std::_Exit(code);
}
