#pragma once

#include <filesystem>

#include "apps/zeus/command_line.h"
#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"
#include "zeus/report/report.h"

// Where the results of verbs that make reports go: the same flags for each of them.
namespace zeus::cli {

struct OutputFlags {
  bool json = false;
  std::filesystem::path html{};
  std::filesystem::path csv{};
  std::filesystem::path figures{};
};

// --json, --html FILE, --csv FILE, --figures DIR.
void AddOutputFlags(Verb app, OutputFlags& flags);

// Whether everything asked for can be written: found out before the work, not after it.
Status CheckOutputs(const OutputFlags& flags);

// Writes the files asked for, each completely or not at all.
Status WriteFiles(const OutputFlags& flags, const report::Report& report);

// Columns of the terminal; as many as people like to read where the output is none.
int OutputWidth();

// Prints `result` as JSON or the report's tables as text, and writes the files asked for, each
// completely or not at all.
Status WriteOutputs(const OutputFlags& flags, const Json& result, const report::Report& report);

}  // namespace zeus::cli
