#include "apps/zeus/manual/man_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <sstream>
#include <string_view>

namespace zeus::cli {
namespace {

// Escapes a text for roff. Hyphens become minus signs, so that options can be copied from the page.
std::string Escaped(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\\')
      escaped += "\\e";
    else if (c == '-')
      escaped += "\\-";
    else
      escaped += c;
  }
  return escaped;
}

// Escapes a whole line: at its beginning a dot or a quote would be a request to roff.
std::string EscapedLine(std::string_view line) {
  const bool request = !line.empty() && (line.front() == '.' || line.front() == '\'');
  return (request ? "\\&" : "") + Escaped(line);
}

std::string Paragraphs(const std::string& text) {
  std::string page;
  bool literal = false;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const bool shown_as_is = line.starts_with(' ');
    if (shown_as_is != literal && !line.empty()) {
      page += shown_as_is ? ".PP\n.nf\n" : ".fi\n.PP\n";
      literal = shown_as_is;
    }
    page += line.empty() ? (literal ? "" : ".PP\n") : EscapedLine(line) + "\n";
  }
  return page + (literal ? ".fi\n" : "");
}

std::string Joined(const std::vector<std::string>& parts) {
  std::string all;
  for (const std::string& part : parts)
    all += fmt::format("{}\\fB{}\\fP", all.empty() ? "" : ", ", Escaped(part));
  return all;
}

std::string OptionEntry(const OptionDescription& option) {
  std::string entry = ".TP\n" + Joined(option.names);
  if (!option.value.empty() && !option.positional)
    entry += fmt::format(" \\fI{}\\fP", Escaped(option.value));
  entry +=
      "\n" + (option.description.empty() ? std::string("\\&") : EscapedLine(option.description));
  std::string notes;
  if (option.positional && !option.value.empty()) notes = option.value;
  if (option.required) notes += notes.empty() ? "required" : ", required";
  if (!option.default_text.empty())
    notes += fmt::format("{}default: {}", notes.empty() ? "" : ", ", option.default_text);
  if (!notes.empty()) entry += fmt::format("\n({})", Escaped(notes));
  return entry + "\n";
}

std::string OptionEntries(const VerbDescription& verb) {
  std::string entries;
  std::string group = "Options";
  for (const OptionDescription& option : verb.options) {
    if (!option.positional && option.group != group) {
      group = option.group;
      entries += ".PP\n" + Escaped(group) + ":\n";
    }
    entries += OptionEntry(option);
  }
  return entries;
}

std::string Synopsis(const VerbDescription& verb) {
  std::string line = "\\fB" + Escaped(verb.path) + "\\fP [\\fIOPTIONS\\fP]";
  for (const OptionDescription& option : verb.options)
    if (option.positional)
      line += fmt::format(" {}\\fI{}\\fP{}{}", option.required ? "" : "[",
                          Escaped(option.names.front()), option.required ? "" : "]",
                          option.list ? "..." : "");
  if (!verb.verbs.empty()) line += " \\fIVERB\\fP";
  return line + "\n";
}

std::string Header(const std::string& name, const std::string& summary, const ManPageFrame& frame) {
  std::string upper = name;
  std::ranges::transform(upper, upper.begin(),
                         [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return fmt::format(".TH \"{}\" {} \"\" \"{}\" \"Zeus\"\n.SH NAME\n{} \\- {}\n", Escaped(upper),
                     frame.section, Escaped(frame.version), Escaped(name), Escaped(summary));
}

std::string SeeAlso(const ManPageFrame& frame) {
  return frame.see_also.empty() ? "" : ".SH SEE ALSO\n" + EscapedLine(frame.see_also) + "\n";
}

void AppendBelow(const VerbDescription& verb, std::string& page) {
  for (const VerbDescription& below : verb.verbs) {
    page += fmt::format(".SH {}\n", Escaped(below.path));
    page += Synopsis(below) + ".PP\n" + Paragraphs(below.description);
    page += OptionEntries(below);
    if (!below.footer.empty()) page += ".PP\n" + Paragraphs(below.footer);
    AppendBelow(below, page);
  }
}

}  // namespace

std::string ManPageName(const std::string& path) {
  std::string name = path;
  std::ranges::replace(name, ' ', '-');
  return name;
}

std::string ProgramManPage(const VerbDescription& program, const ManPageFrame& frame) {
  std::string page = Header(program.path, program.description, frame) + ".SH SYNOPSIS\n" +
                     Synopsis(program) + ".SH DESCRIPTION\n" + Paragraphs(program.description) +
                     ".SH VERBS\n";
  for (const VerbDescription& verb : program.verbs)
    page +=
        fmt::format(".TP\n\\fB{}\\fP\n{}\nSee \\fB{}\\fP({}).\n", Escaped(verb.name()),
                    EscapedLine(verb.description), Escaped(ManPageName(verb.path)), frame.section);
  page += ".SH OPTIONS\n" + OptionEntries(program);
  return page + SeeAlso(frame);
}

std::string VerbManPage(const VerbDescription& verb, const ManPageFrame& frame) {
  std::string page = Header(ManPageName(verb.path), verb.description, frame) + ".SH SYNOPSIS\n" +
                     Synopsis(verb) + ".SH DESCRIPTION\n" + Paragraphs(verb.description);
  page += ".SH OPTIONS\n" + OptionEntries(verb);
  AppendBelow(verb, page);
  if (!verb.footer.empty()) page += ".SH NOTES\n" + Paragraphs(verb.footer);
  return page + SeeAlso(frame);
}

std::string TopicManPage(const std::string& program, const Topic& topic,
                         const ManPageFrame& frame) {
  return Header(program + "-" + topic.name, topic.summary, frame) + ".SH DESCRIPTION\n" +
         Paragraphs(topic.text) + SeeAlso(frame);
}

}  // namespace zeus::cli
