#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "apps/zeus/exit_code.h"
#include "zeus/base/result.h"

namespace CLI {  // NOLINT(readability-identifier-naming): CLI11 is called so.
class App;
class Option;
}  // namespace CLI

// The command lines of our programs. CLI11 reads them: its header costs each file that includes it
// tens of seconds of compile time, so command_line.cc is the only one that does.
namespace zeus::cli {

// Judges the value of an option.
struct Validator {
  // Returns what is wrong with the text, or nothing. It may put the text into another form, as 10
  // for 010, which the option then takes.
  std::function<std::string(std::string& text)> complaint;
  std::string description{};  // The help shows it after the type of the value.

  std::string operator()(std::string& text) const { return complaint(text); }
};

// A handle on an option that was declared: copies mean the same option, and are valid as long as
// the CommandLine. Each function returns the handle, so that calls can be chained.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}

  Option Check(const Validator& validator) const;
  Option Required() const;

  // The option is refused without, or together with, another one.
  Option Needs(Option other) const;
  Option Excludes(Option other) const;
  Option Excludes(const std::string& name) const;

  // A list is written with this character between its elements.
  Option Delimiter(char character) const;

  // The help shows the value that the variable has now, a word for what the value is, and a heading
  // for options that belong together.
  Option ShowDefault() const;
  Option TypeName(const std::string& name) const;
  Option Group(const std::string& heading) const;

 private:
  CLI::Option* option_;
};

// A handle on a verb, or on the program itself: copies mean the same verb, and are valid as long as
// the CommandLine. Variables that options fill must live until the command line is parsed.
class Verb {
 public:
  explicit Verb(CLI::App* app) : app_(app) {}

  // Names are as in "--json", "--progress-regex,--progress", or "file" for a value that is given by
  // its place. The end of command_line.cc lists the types that a value can have.
  template <typename T>
  Option AddOption(const std::string& names, T& value, const std::string& description) const;

  // A bool becomes true. A text becomes that in the braces of "--name{text}", or what is given as
  // --name=text.
  template <typename T>
  Option AddFlag(const std::string& names, T& value, const std::string& description) const;

  Verb AddVerb(const std::string& name, const std::string& description) const;
  void RequireVerb() const;

  // Calls `function` when the whole command line is understood and this verb is on it.
  void OnChosen(std::function<void()> function) const;

  // The first word that is no option of the verb ends its options: that word and all behind it are
  // the remaining ones.
  void StopAtUnknown() const;
  std::vector<std::string> remaining() const;

  // The complaint about a word that is neither an option nor a verb here: it names the one that was
  // probably meant, and where there is help.
  Error Unknown(const std::string& word) const;

  // "run" of "zeus run".
  const std::string& name() const;

  // The help ends with this text.
  void Footer(const std::string& text) const;

 private:
  CLI::App* app_;
};

// The command line of one program. One owner.
class CommandLine {
 public:
  // Whether the program goes on to act, or has printed what was asked for and ends.
  enum class Next { kAct, kEnd };

  CommandLine(const std::string& name, const std::string& description);
  ~CommandLine();

  Verb program() const { return Verb(app_.get()); }

  // Declares --version, which prints this text.
  void AddVersion(const std::string& text);

  // Fills the variables of the options. kEnd: help (--help, or "help VERB") or the version was
  // asked for and is printed. kInvalidArgument says in one sentence what is wrong, and where there
  // is help.
  Result<Next> Parse(std::vector<std::string> words);

  // Parses the command line, performs `action`, whose value is an exit code, and flushes the
  // output: all that a main() does. An error is complained about and becomes its `exit_code`; an
  // exception that leaves the action is one, too (kInternal).
  int Run(int argc, const char* const* argv, const std::function<Result<int>()>& action,
          const std::function<int(ErrorCode)>& exit_code = ExitCode);

  // Whether this verb is on the command line that was parsed last.
  bool Chose(const std::string& verb) const;

 private:
  std::unique_ptr<CLI::App> app_;
};

// Prints "program: message" on standard error, the program in red where there are colours.
void Complain(const std::string& program, const Error& error);

}  // namespace zeus::cli
