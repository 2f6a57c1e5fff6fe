#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "apps/zeus/configuration/places.h"
#include "apps/zeus/exit_code.h"
#include "apps/zeus/manual/description.h"
#include "zeus/base/result.h"

namespace CLI {  // NOLINT(readability-identifier-naming): CLI11 is called so.
class App;
class Option;
}  // namespace CLI

// The command lines of our programs. CLI11 reads them: its header costs each file that includes it
// tens of seconds of compile time, so command_line.cc is the only one that does.
namespace zeus::cli {

// Checks the value of an option.
struct Validator {
  // Returns an error message, or an empty text if the value is valid. It may normalise the text, as
  // 10 for 010; the option then gets the normalised text.
  std::function<std::string(std::string& text)> complaint;
  std::string description{};  // Shown by the help after the type of the value.

  std::string operator()(std::string& text) const { return complaint(text); }
};

// A handle on a declared option. Copies refer to the same option and are valid as long as the
// CommandLine. Each function returns the handle, so that calls can be chained.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}

  Option Check(const Validator& validator) const;
  Option Required() const;

  // Rejects the option without, or together with, another one.
  Option Needs(Option other) const;
  Option Excludes(Option other) const;
  Option Excludes(const std::string& name) const;

  // Sets the character between the elements of a list.
  Option Delimiter(char character) const;

  // These make the help show the present value of the variable, a name for the type of the value,
  // and a heading for related options.
  Option ShowDefault() const;
  Option TypeName(const std::string& name) const;
  Option Group(const std::string& heading) const;

 private:
  CLI::Option* option_;
};

// A handle on a verb, or on the program itself. Copies refer to the same verb and are valid as long
// as the CommandLine. Variables that options fill must live until the command line is parsed.
class Verb {
 public:
  explicit Verb(CLI::App* app) : app_(app) {}

  // `names` is like "--json", "--progress-regex,--progress", or "file" for a positional value. The
  // end of command_line.cc lists the supported types.
  template <typename T>
  Option AddOption(const std::string& names, T& value, const std::string& description) const;

  // A flag sets a bool to true. It sets a text to the one in the braces of "--name{text}", or to
  // that of --name=text.
  template <typename T>
  Option AddFlag(const std::string& names, T& value, const std::string& description) const;

  Verb AddVerb(const std::string& name, const std::string& description) const;
  void RequireVerb() const;

  // Calls `function` after the whole command line was parsed, if this verb is on it.
  void OnChosen(std::function<void()> function) const;

  // The first word that is not an option of the verb ends its options: that word and all after it
  // become the remaining ones.
  void StopAtUnknown() const;
  std::vector<std::string> remaining() const;

  // Returns the error for a word that is neither an option nor a verb here. It suggests the one
  // that was probably meant, and names the help.
  Error Unknown(const std::string& word) const;

  // "run" of "zeus run".
  const std::string& name() const;

  // Sets the last paragraph of the help.
  void Footer(const std::string& text) const;

 private:
  CLI::App* app_;
};

// The command line of one program. Not thread-safe.
class CommandLine {
 public:
  // Whether the program continues, or has printed what was asked for and ends.
  enum class Next { kAct, kEnd };

  CommandLine(const std::string& name, const std::string& description);
  ~CommandLine();

  Verb program() const { return Verb(app_.get()); }

  // Declares --version, which prints this text.
  void AddVersion(const std::string& text);

  // Adds an article that "help NAME" prints.
  void AddTopic(Topic topic) { topics_.push_back(std::move(topic)); }
  const std::vector<Topic>& topics() const { return topics_; }

  // From now on options that are not on the command line are taken from the environment and from
  // these files (configuration/configuration.h). If there is a file, `describe` is called to know
  // all verbs and options, which this CommandLine need not have.
  void UseConfiguration(ConfigurationPlaces places, std::function<VerbDescription()> describe);
  const ConfigurationPlaces& configuration_places() const { return places_; }

  // Describes all verbs and options that were declared.
  VerbDescription Describe() const;

  // Parses and fills the variables of the options. Returns kEnd after printing the help (--help, or
  // "help VERB"), a topic ("help TOPIC") or the version. kInvalidArgument describes the mistake in
  // one sentence and names the help.
  Result<Next> Parse(std::vector<std::string> words);

  // Does all that a main() does: parses the command line, performs `action`, whose value is the
  // exit code, and flushes the output. An error is printed and mapped by `exit_code`; an exception
  // that leaves the action counts as kInternal.
  int Run(int argc, const char* const* argv, const std::function<Result<int>()>& action,
          const std::function<int(ErrorCode)>& exit_code = ExitCode);

  // Returns whether this verb was on the command line that was parsed last.
  bool Chose(const std::string& verb) const;

 private:
  // Fills options of the chosen verbs that are not on the command line.
  Status ApplyConfiguration() const;

  std::unique_ptr<CLI::App> app_;
  std::vector<Topic> topics_;
  ConfigurationPlaces places_;
  std::function<VerbDescription()> describe_all_;
  Status configured_ = Ok();  // The first mistake in the configuration.
};

// Prints "program: message" on standard error, with the program in red if the terminal has colours.
void Complain(const std::string& program, const Error& error);

}  // namespace zeus::cli
