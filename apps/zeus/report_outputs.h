#pragma once

#include <filesystem>

#include "apps/zeus/command_line.h"
#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"
#include "zeus/report/report.h"

// Flags and outputs that all verbs with reports share.
namespace zeus::cli {

struct OutputFlags {
  bool json = false;
  std::filesystem::path html{};
  std::filesystem::path csv{};
  std::filesystem::path figures{};
};

// Declares --json, --html FILE, --csv FILE and --figures DIR.
void AddOutputFlags(Verb app, OutputFlags& flags);

// Checks that all requested outputs can be written, before the work begins.
Status CheckOutputs(const OutputFlags& flags);

// Writes the requested files, each completely or not at all.
Status WriteFiles(const OutputFlags& flags, const report::Report& report);

// Returns the columns of the terminal, or a readable width if the output is not a terminal.
int OutputWidth();

// Prints `result` as JSON or the report's tables as text, and writes the requested files, each
// completely or not at all.
Status WriteOutputs(const OutputFlags& flags, const Json& result, const report::Report& report);

}  // namespace zeus::cli
