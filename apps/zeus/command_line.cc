#include "apps/zeus/command_line.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <new>
#include <optional>
#include <utility>

#include "apps/zeus/output.h"
#include "zeus/base/text.h"

namespace zeus::cli {
namespace {

// "zeus sim start": the deepest verb that was chosen, after those above it.
std::string ChosenPath(const CLI::App& app) {
  std::string path = app.get_name();
  for (const CLI::App* verb = &app; !verb->get_subcommands().empty();) {
    verb = verb->get_subcommands().front();
    path += " " + verb->get_name();
  }
  return path;
}

// One sentence for every mistake on the command line.
Error MistakeOf(const CLI::App& app, const CLI::ParseError& error) {
  std::string message = error.what();
  if (const auto unknown = app.remaining(true); !unknown.empty()) {
    message = fmt::format("{} is not known here", Quote(unknown.front()));
  } else if (!message.empty()) {
    message.front() = static_cast<char>(std::tolower(static_cast<unsigned char>(message.front())));
  }
  return {ErrorCode::kInvalidArgument, fmt::format("{} (see {} --help)", message, ChosenPath(app))};
}

// Nothing may throw out of a verb; what does all the same (no memory, a full disk under fmt) ends
// the program in an orderly way.
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
  // CLI11's own check() gives validators a copy of the text, and would read 010 as eight.
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

void Verb::Footer(const std::string& text) const { app_->footer(text); }

CommandLine::CommandLine(const std::string& name, const std::string& description)
    : app_(std::make_unique<CLI::App>(description, name)) {}

CommandLine::~CommandLine() = default;

void CommandLine::AddVersion(const std::string& text) { app_->set_version_flag("--version", text); }

Result<CommandLine::Next> CommandLine::Parse(std::vector<std::string> words) {
  std::ranges::reverse(words);  // CLI11 takes them from the back.
  try {
    app_->parse(std::move(words));
    return Next::kAct;
  } catch (const CLI::Success& ending) {
    app_->exit(ending);
    ZEUS_RETURN_IF_ERROR(FlushOutput());
    return Next::kEnd;
  } catch (const CLI::ParseError& error) {
    return MistakeOf(*app_, error);
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
  std::fputs((program + ": " + error.message + "\n").c_str(), stderr);
}

// The types that values can have.
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
