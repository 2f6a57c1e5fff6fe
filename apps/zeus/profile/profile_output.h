#pragma once

#include <string>
#include <vector>

#include "apps/zeus/profile/profile_options.h"
#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"
#include "zeus/report/figure.h"
#include "zeus/session/profile_report.h"

// The result of `zeus profile` for people and for files.
namespace zeus::cli {

// Sentences about what did not go as planned, and how to improve it.
std::vector<std::string> NotesOn(const ProfileReport& report);

// "zeus.profile/1", see docs/formats.md.
Json ToJson(const ProfileReport& report);
// Names of columns, and a row per setting. Unknown values are empty cells.
std::string ProfileCsvHeader();
std::string ToCsv(const ProfileReport& report);

// A table with the notes below it, ending in a newline.
std::string ToTable(const ProfileReport& report);

// A ProfileReport as figures and tables, drawn by zeus/report.

// A panel each for energy and time per step against the setting (one for power where steps are
// unknown), with a band of one standard deviation and a mark at each row that an objective chooses.
report::Figure ToFigure(const ProfileReport& report);

// Energy and time per step in per cent of those at the first row, in one panel for the terminal;
// power where steps are unknown.
report::Panel ToRelativePanel(const ProfileReport& report);

// The whole page: findings, the figure, a table with the same numbers, and the circumstances.
report::Report ToReport(const ProfileReport& report);

// Whether all files can be written: found out before the command has cost an hour.
Status CheckFiles(const ProfileFiles& files);

// Writes all of them; the first error.
Status WriteResults(const ProfileReport& report, const ProfileFiles& files);

// Table and plot on standard error, as plain as that can show.
void ShowResults(const ProfileReport& report);

}  // namespace zeus::cli
