#pragma once

#include <string>
#include <vector>

// The description of a command line. Help, man pages, completion and the configuration file are
// all made from this one description, which CommandLine::Describe() takes from the declared
// options.
namespace zeus::cli {

struct OptionDescription {
  std::vector<std::string> names;    // "-h", "--help"; for a positional value its one name.
  std::string value;                 // "TEXT", "FLOAT:NUMBER in [0 - 1]"; empty for a flag.
  std::string default_text;          // Empty where the help shows none.
  std::vector<std::string> choices;  // The words that may be given; empty: others, too.
  std::string description;
  std::string group;
  bool positional = false;
  bool required = false;
  bool list = false;  // Takes more than one value.
};

struct VerbDescription {
  std::string path;  // "zeus sim start"
  std::string description;
  std::string footer;
  std::vector<OptionDescription> options;
  std::vector<VerbDescription> verbs;

  // The last word of the path.
  std::string name() const { return path.substr(path.rfind(' ') + 1); }
};

// An article of the help that belongs to no single verb. Lines that begin with blanks are shown as
// they are; others are parts of paragraphs, which empty lines separate.
struct Topic {
  std::string name;
  std::string summary;
  std::string text;
};

}  // namespace zeus::cli
