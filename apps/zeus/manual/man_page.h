#pragma once

#include <string>

#include "apps/zeus/manual/description.h"

// Man pages in roff, which man(1) shows.
namespace zeus::cli {

struct ManPageFrame {
  std::string section;     // "1" for commands of everybody, "8" for those of administrators.
  std::string version;     // "zeus 0.1.0"
  std::string see_also{};  // Names of other pages: "zeus(1)".
};

// The page of the program itself: its verbs by name, each with the page that tells more.
std::string ProgramManPage(const VerbDescription& program, const ManPageFrame& frame);

// The page of a verb and all verbs below it.
std::string VerbManPage(const VerbDescription& verb, const ManPageFrame& frame);

// The page of a topic. `program` begins its name: "zeus-configuration".
std::string TopicManPage(const std::string& program, const Topic& topic, const ManPageFrame& frame);

// "zeus-sim" for "zeus sim": the name of the page of a verb.
std::string ManPageName(const std::string& path);

}  // namespace zeus::cli
