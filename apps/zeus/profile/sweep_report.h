#pragma once

#include <string>
#include <vector>

#include "zeus/base/json_fwd.h"
#include "zeus/session/sweep_report.h"

// A sweep for people and for files.
namespace zeus::cli {

// Sentences about what did not go as planned, and how to improve it.
std::vector<std::string> NotesOn(const SweepReport& report);

// "zeus.profile/1", see docs/formats.md.
Json ToJson(const SweepReport& report);
// Names of columns, and a row per setting. Unknown values are empty cells.
std::string SweepCsvHeader();
std::string ToCsv(const SweepReport& report);

// A table with the notes below it, ending in a newline.
std::string ToTable(const SweepReport& report);

}  // namespace zeus::cli
