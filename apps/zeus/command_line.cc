#include "apps/zeus/command_line.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <new>
#include <optional>
#include <sstream>
#include <utility>

#include "apps/zeus/configuration/configuration.h"
#include "apps/zeus/output.h"
#include "apps/zeus/terminal.h"
#include "zeus/base/log.h"
#include "zeus/base/log_form.h"
#include "zeus/base/terminal_text.h"
#include "zeus/base/text.h"

namespace zeus::cli {
namespace {

constexpr std::size_t kWidestHelp = 100;
constexpr std::size_t kHelpColumn = 30;

// Formats the help as CLI11 does, but with lines that fit the terminal, at most 100 characters
// long.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_description(const CLI::App* app) const override {
    return Wrapped(CLI::Formatter::make_description(app));
  }
  std::string make_footer(const CLI::App* app) const override {
    return Wrapped(CLI::Formatter::make_footer(app));
  }
  std::string make_subcommand(const CLI::App* verb) const override {
    return Entry(verb->get_display_name(true), verb->get_description());
  }
  std::string make_option(const CLI::Option* option, bool is_positional) const override {
    return Entry(make_option_name(option, is_positional) + make_option_opts(option),
                 make_option_desc(option));
  }

 private:
  // Wraps the text as it will be shown: in ASCII "..." is wider than the character that it
  // replaces.
  static std::string Wrapped(const std::string& text, std::size_t indent = 0) {
    const std::size_t width = std::min(kWidestHelp, DescribeTerminal(STDOUT_FILENO).columns);
    return WrappedText(LocaleIsUnicode() ? text : InAscii(text), width, indent);
  }

  // Formats a name with its description beside it, or below it if the name is long.
  static std::string Entry(const std::string& name, const std::string& description) {
    constexpr std::size_t kIndent = 2;
    std::string entry = Wrapped(std::string(kIndent, ' ') + name, kIndent);
    if (description.empty()) return entry + "\n";
    std::string text = Wrapped(std::string(kHelpColumn, ' ') + description);
    if (TextWidth(entry) < kHelpColumn) {
      text.erase(0, TextWidth(entry));
      return entry + text + "\n";
    }
    return entry + "\n" + text + "\n";
  }
};

// Returns "zeus sim start": the verb after those above it.
std::string VerbPath(const CLI::App& verb) {
  const CLI::App* const above = verb.get_parent();
  return above == nullptr ? verb.get_name() : VerbPath(*above) + " " + verb.get_name();
}

const CLI::App& DeepestChosen(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  return chosen.empty() ? app : DeepestChosen(*chosen.front());
}

// Returns the options and verbs that are allowed after `verb`.
std::vector<std::string> KnownWords(const CLI::App& verb) {
  std::vector<std::string> words;
  for (const CLI::App* const below : verb.get_subcommands([](const CLI::App*) { return true; }))
    words.push_back(below->get_name());
  for (const CLI::Option* const option : verb.get_options())
    if (!option->get_group().empty())
      for (const std::string& name : option->get_lnames()) words.push_back("--" + name);
  return words;
}

// Makes an error message that suggests what was probably meant and names the help.
Error Mistake(const CLI::App& verb, const std::string& message,
              const std::optional<std::string>& meant = std::nullopt) {
  return {ErrorCode::kInvalidArgument,
          meant
              ? fmt::format("{}: did you mean {}? (see {} --help)", message, *meant, VerbPath(verb))
              : fmt::format("{} (see {} --help)", message, VerbPath(verb))};
}

Error UnknownWord(const CLI::App& verb, const std::string& word) {
  return Mistake(verb, fmt::format("{} is not known here", Quote(word)),
                 ClosestWord(word.substr(0, word.find('=')), KnownWords(verb)));
}

// Turns any mistake on the command line into one sentence.
Error ToMistake(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App& chosen = DeepestChosen(app);
  if (const auto unknown = app.remaining(true); !unknown.empty())
    return UnknownWord(chosen, unknown.front());
  std::string message = error.what();
  if (!message.empty())
    message.front() = static_cast<char>(std::tolower(static_cast<unsigned char>(message.front())));
  return Mistake(chosen, message);
}

// Returns the topic that "help NAME" asks for; a verb of the same name is stronger.
const Topic* ChosenTopic(const CLI::App& app, const std::vector<Topic>& topics,
                         const std::vector<std::string>& words) {
  if (words.size() != 2 || words.front() != "help") return nullptr;
  const auto same = [&words](const CLI::App* verb) { return verb->get_name() == words[1]; };
  if (!app.get_subcommands(same).empty()) return nullptr;
  const auto topic = std::ranges::find(topics, words[1], &Topic::name);
  return topic == topics.end() ? nullptr : &*topic;
}

// Prints paragraphs as wide as the terminal, and lines that begin with blanks as they are.
void PrintTopic(const Topic& topic) {
  std::string text = topic.summary + "\n\n";
  std::istringstream lines(topic.text);
  bool in_paragraph = false;
  for (std::string line; std::getline(lines, line);) {
    const bool continues = in_paragraph && !line.empty() && !line.starts_with(' ');
    if (continues) text.back() = ' ';
    text += line + "\n";
    in_paragraph = !line.empty() && !line.starts_with(' ');
  }
  const std::size_t width = std::min(kWidestHelp, DescribeTerminal(STDOUT_FILENO).columns);
  std::fputs(WrappedText(LocaleIsUnicode() ? text : InAscii(text), width).c_str(), stdout);
}

// Turns "help sim start" into "sim start --help".
Result<std::vector<std::string>> HelpWords(const CLI::App& app, const std::vector<Topic>& topics,
                                           std::vector<std::string> words) {
  if (words.empty() || words.front() != "help") return words;
  words.erase(words.begin());
  const CLI::App* verb = &app;
  for (const std::string& word : words) {
    const auto below =
        verb->get_subcommands([&word](const CLI::App* one) { return one->get_name() == word; });
    if (below.empty()) {
      auto known = KnownWords(*verb);
      if (verb == &app)
        for (const Topic& topic : topics) known.push_back(topic.name);
      return Mistake(*verb, fmt::format("{} is not known here", Quote(word)),
                     ClosestWord(word, known));
    }
    verb = below.front();
  }
  words.emplace_back("--help");
  return words;
}

bool IsFlag(const CLI::Option& option) { return option.get_items_expected_max() == 0; }

std::vector<std::string> Choices(const std::string& type) {
  std::vector<std::string> choices;
  const std::size_t begin = type.find('{');
  const std::size_t end = type.find('}', begin);
  if (begin == std::string::npos || end == std::string::npos) return choices;
  const std::string words = type.substr(begin + 1, end - begin - 1);
  for (const std::string_view word : SplitAtCommas(words)) choices.emplace_back(word);
  return choices;
}

OptionDescription DescribeOption(const CLI::Option& option) {
  OptionDescription described{
      .names = {},
      .value = IsFlag(option) ? "" : option.get_type_name(),
      .default_text = option.get_default_str(),
      .choices = {},
      .description = option.get_description(),
      .group = option.get_group(),
      .positional = option.get_lnames().empty() && option.get_snames().empty(),
      .required = option.get_required(),
      .list = option.get_items_expected_max() > 1,
  };
  for (const std::string& name : option.get_snames()) described.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) described.names.push_back("--" + name);
  if (described.positional) described.names.push_back(option.get_name(true));
  if (!IsFlag(option)) described.choices = Choices(described.value);
  return described;
}

VerbDescription DescribeVerb(const CLI::App& verb) {
  VerbDescription described{.path = VerbPath(verb),
                            .description = verb.get_description(),
                            .footer = verb.get_footer(),
                            .options = {},
                            .verbs = {}};
  for (const CLI::Option* const option : verb.get_options())
    if (!option->get_group().empty()) described.options.push_back(DescribeOption(*option));
  for (const CLI::App* const below : verb.get_subcommands([](const CLI::App*) { return true; }))
    described.verbs.push_back(DescribeVerb(*below));
  return described;
}

// Returns the verb below that is on the command line.
CLI::App* FirstChosen(const CLI::App& verb) {
  const auto below = verb.get_subcommands();
  return below.empty() ? nullptr : below.front();
}

// Returns what the configuration says about an option that is not on the command line, and that the
// command line does not rule out.
std::optional<ConfiguredValue> Wanted(const Configuration& configuration, CLI::App& verb,
                                      const CLI::Option& option) {
  const auto given = [](const CLI::Option* one) { return one->count() > 0; };
  if (given(&option) || option.get_lnames().empty() || option.get_positional()) return std::nullopt;
  const std::string path = VerbPath(verb);
  const OptionKey key{.verb = path.substr(path.find(' ') + 1),
                      .names = option.get_lnames(),
                      .flag = IsFlag(option)};
  auto value = configuration.Find(key);
  if (!value || configuration.HasStrongerRival(key, *value)) return std::nullopt;
  if (std::ranges::any_of(option.get_excludes(), given)) return std::nullopt;
  const auto rival = RivalOf(value->option);
  const CLI::Option* const other = rival ? verb.get_option_no_throw("--" + *rival) : nullptr;
  if (other != nullptr && given(other)) return std::nullopt;
  return value;
}

// Gives an option what the configuration says, as if it were on the command line. A mistake in the
// value names the place where it stands.
Status Configure(CLI::Option& option, const ConfiguredValue& setting) {
  try {
    if (!IsFlag(option))
      option.add_result(setting.values);
    else if (setting.values.front() != "false")
      option.add_result(
          option.get_flag_value(option.get_lnames().front(),
                                setting.values.front() == "true" ? "" : setting.values.front()));
    if (!option.empty()) option.run_callback();
    return Ok();
  } catch (const CLI::Error& error) {
    return InvalidArgument(fmt::format("{}: {}", setting.origin, Printable(error.what())));
  }
}

// No verb should throw. If one does all the same (no memory, or a full disk under fmt), the program
// still ends in an orderly way.
Result<int> Perform(const std::function<Result<int>()>& action) {
  try {
    ZEUS_TRY(const int code, action());
    ZEUS_RETURN_IF_ERROR(FlushOutput());
    return code;
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::kInternal, "there is not enough memory for what was asked"};
  } catch (const std::exception& error) {
    ZEUS_RETURN_IF_ERROR(FlushOutput());
    return Error{ErrorCode::kInternal, error.what()};
  }
}

}  // namespace

Option Option::Check(const Validator& validator) const {
  // CLI11's check() passes validators a copy of the text, so it would read 010 as eight.
  return Option(option_->transform(CLI::Validator(validator.complaint, validator.description)));
}

Option Option::Required() const { return Option(option_->required()); }

Option Option::Needs(Option other) const { return Option(option_->needs(other.option_)); }

Option Option::Excludes(Option other) const { return Option(option_->excludes(other.option_)); }

Option Option::Excludes(const std::string& name) const { return Option(option_->excludes(name)); }

Option Option::Delimiter(char character) const { return Option(option_->delimiter(character)); }

Option Option::ShowDefault() const { return Option(option_->capture_default_str()); }

Option Option::TypeName(const std::string& name) const { return Option(option_->type_name(name)); }

Option Option::Group(const std::string& heading) const { return Option(option_->group(heading)); }

template <typename T>
Option Verb::AddOption(const std::string& names, T& value, const std::string& description) const {
  return Option(app_->add_option(names, value, description));
}

template <typename T>
Option Verb::AddFlag(const std::string& names, T& value, const std::string& description) const {
  return Option(app_->add_flag(names, value, description));
}

Verb Verb::AddVerb(const std::string& name, const std::string& description) const {
  return Verb(app_->add_subcommand(name, description));
}

void Verb::RequireVerb() const { app_->require_subcommand(1); }

void Verb::OnChosen(std::function<void()> function) const { app_->callback(std::move(function)); }

void Verb::StopAtUnknown() const { app_->prefix_command(); }

std::vector<std::string> Verb::remaining() const { return app_->remaining(); }

Error Verb::Unknown(const std::string& word) const { return UnknownWord(*app_, word); }

const std::string& Verb::name() const { return app_->get_name(); }

void Verb::Footer(const std::string& text) const { app_->footer(text); }

CommandLine::CommandLine(const std::string& name, const std::string& description)
    : app_(std::make_unique<CLI::App>(description, name)) {
  app_->formatter(std::make_shared<HelpFormatter>());
}

CommandLine::~CommandLine() = default;

void CommandLine::AddVersion(const std::string& text) { app_->set_version_flag("--version", text); }

void CommandLine::UseConfiguration(ConfigurationPlaces places,
                                   std::function<VerbDescription()> describe) {
  places_ = std::move(places);
  describe_all_ = std::move(describe);
  // Options of the program are processed first, after all words were read: this one, which nobody
  // gives, is the hook for what happens in between.
  app_->add_option_function<std::string>(
          "--configuration-hook",
          [this](const std::string&) { configured_ = ApplyConfiguration(); })
      ->group("")
      ->default_str("on")
      ->force_callback();
}

Status CommandLine::ApplyConfiguration() const {
  ZEUS_TRY(const Configuration configuration, Configuration::Read(places_, describe_all_));
  configuration.SetUpLog();
  // All are looked up before any is set: those that exclude each other would look given.
  std::vector<std::pair<CLI::Option*, ConfiguredValue>> todo;
  for (CLI::App* verb = FirstChosen(*app_); verb != nullptr; verb = FirstChosen(*verb))
    for (CLI::Option* const option : verb->get_options())
      if (auto value = Wanted(configuration, *verb, *option))
        todo.emplace_back(option, std::move(*value));
  for (const auto& [option, value] : todo) ZEUS_RETURN_IF_ERROR(Configure(*option, value));
  return Ok();
}

VerbDescription CommandLine::Describe() const { return DescribeVerb(*app_); }

Result<CommandLine::Next> CommandLine::Parse(std::vector<std::string> words) {
  if (const Topic* const topic = ChosenTopic(*app_, topics_, words); topic != nullptr) {
    PrintTopic(*topic);
    ZEUS_RETURN_IF_ERROR(FlushOutput());
    return Next::kEnd;
  }
  ZEUS_TRY(words, HelpWords(*app_, topics_, std::move(words)));
  std::ranges::reverse(words);  // CLI11 takes words from the back.
  try {
    configured_ = Ok();
    app_->parse(std::move(words));
    ZEUS_RETURN_IF_ERROR(configured_);
    return Next::kAct;
  } catch (const CLI::Success& ending) {
    std::ostringstream text;
    app_->exit(ending, text, text);
    std::fputs(text.str().c_str(), stdout);
    ZEUS_RETURN_IF_ERROR(FlushOutput());
    return Next::kEnd;
  } catch (const CLI::ParseError& error) {
    ZEUS_RETURN_IF_ERROR(configured_);  // A required option may stand after the mistake.
    return ToMistake(*app_, error);
  }
}

int CommandLine::Run(int argc, const char* const* argv, const std::function<Result<int>()>& action,
                     const std::function<int(ErrorCode)>& exit_code) {
  const auto parse_and_act = [&]() -> Result<int> {
    ZEUS_TRY(const Next next, Parse({argv + std::min(argc, 1), argv + argc}));
    return next == Next::kEnd ? 0 : Perform(action);
  };
  const Result<int> outcome = parse_and_act();
  if (outcome.ok()) return outcome.value();
  Complain(app_->get_name(), outcome.error());
  return exit_code(outcome.error().code);
}

bool CommandLine::Chose(const std::string& verb) const { return app_->got_subcommand(verb); }

void Complain(const std::string& program, const Error& error) {
  if (log::CurrentForm() == log::Form::kJson && log::Enabled(log::Level::kError)) {
    log::Write(log::Level::kError, error.message);
    return;
  }
  const std::string name = Painted(program + ":", Colour::kRed, DescribeTerminal(STDERR_FILENO));
  Show(stderr, fmt::format("{} {}\n", name, error.message));
}

// The supported types of values.
template Option Verb::AddFlag(const std::string&, bool&, const std::string&) const;
template Option Verb::AddFlag(const std::string&, std::string&, const std::string&) const;
template Option Verb::AddOption(const std::string&, double&, const std::string&) const;
template Option Verb::AddOption(const std::string&, int&, const std::string&) const;
template Option Verb::AddOption(const std::string&, unsigned&, const std::string&) const;
template Option Verb::AddOption(const std::string&, std::int64_t&, const std::string&) const;
template Option Verb::AddOption(const std::string&, std::uint64_t&, const std::string&) const;
template Option Verb::AddOption(const std::string&, std::string&, const std::string&) const;
template Option Verb::AddOption(const std::string&, std::filesystem::path&,
                                const std::string&) const;
template Option Verb::AddOption(const std::string&, std::optional<double>&,
                                const std::string&) const;
template Option Verb::AddOption(const std::string&, std::optional<int>&, const std::string&) const;
template Option Verb::AddOption(const std::string&, std::optional<unsigned>&,
                                const std::string&) const;
template Option Verb::AddOption(const std::string&, std::optional<std::uint64_t>&,
                                const std::string&) const;
template Option Verb::AddOption(const std::string&, std::vector<int>&, const std::string&) const;
template Option Verb::AddOption(const std::string&, std::vector<unsigned>&,
                                const std::string&) const;
template Option Verb::AddOption(const std::string&, std::vector<std::string>&,
                                const std::string&) const;

}  // namespace zeus::cli
