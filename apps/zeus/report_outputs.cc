#include "apps/zeus/report_outputs.h"

#include <fmt/format.h>
#include <unistd.h>

#include <string>
#include <system_error>

#include "apps/zeus/numbers.h"
#include "apps/zeus/output.h"
#include "apps/zeus/output_file.h"
#include "apps/zeus/terminal.h"
#include "zeus/base/file.h"
#include "zeus/base/json.h"
#include "zeus/base/text.h"

namespace zeus::cli {
namespace {

namespace fs = std::filesystem;

// The first table is the one that a verb is about; the others are among the figures.
std::string MainTable(const report::Report& report) {
  for (const report::Section& section : report.sections)
    if (!section.tables.empty()) return ToCsv(section.tables.front());
  return "";
}

// Whether files can be made in the folder, or the folder itself where there is none.
Status CheckFolder(const fs::path& folder) {
  std::error_code ignored;
  fs::path parent = fs::absolute(folder, ignored);
  while (!fs::exists(parent, ignored) && parent.has_relative_path()) parent = parent.parent_path();
  if (!fs::is_directory(parent, ignored)) return FileError(folder, ENOTDIR).While("cannot write");
  const Status possible = CheckWritable(parent / "zeus-output");
  if (possible.ok()) return Ok();
  return Error{possible.error().code,
               fmt::format("cannot write: {}: no file can be made in {}",
                           Printable(folder.string()), Printable(parent.string()))};
}

// A file, that is: two outputs may well go to one terminal.
bool IsSameFile(const fs::path& a, const fs::path& b) {
  std::error_code failed;
  const fs::path target = fs::weakly_canonical(a, failed);
  if (failed || target != fs::weakly_canonical(b, failed) || failed) return false;
  const fs::file_status status = fs::status(target, failed);
  return !fs::exists(status) || fs::is_regular_file(status);
}

}  // namespace

int OutputWidth() { return static_cast<int>(DescribeTerminal(STDOUT_FILENO).columns); }

void AddOutputFlags(Verb app, OutputFlags& flags) {
  app.AddFlag("--json", flags.json, "Print JSON instead of tables");
  app.AddOption("--html", flags.html, "Write a report to read in a browser: one file")
      .Check(NotEmpty())
      .TypeName("FILE");
  app.AddOption("--csv", flags.csv, "Write the main table as CSV")
      .Check(NotEmpty())
      .TypeName("FILE");
  app.AddOption("--figures", flags.figures,
                "Write each figure as SVG, PNG and CSV, and each table as CSV, into a folder")
      .Check(NotEmpty())
      .TypeName("DIR");
}

Status CheckOutputs(const OutputFlags& flags) {
  if (!flags.html.empty() && !flags.csv.empty() && IsSameFile(flags.html, flags.csv))
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("--html and --csv name the same file, {}: give each its own",
                             Quote(flags.csv.string()))};
  if (!flags.html.empty()) {
    ZEUS_TRY([[maybe_unused]] const std::string page, report::ToHtml({}));
    ZEUS_RETURN_IF_ERROR(CheckWritable(flags.html));
  }
  if (!flags.csv.empty()) ZEUS_RETURN_IF_ERROR(CheckWritable(flags.csv));
  if (!flags.figures.empty()) ZEUS_RETURN_IF_ERROR(CheckFolder(flags.figures));
  return Ok();
}

Status WriteFiles(const OutputFlags& flags, const report::Report& report) {
  if (!flags.html.empty()) {
    ZEUS_TRY(const std::string page, ToHtml(report));
    ZEUS_RETURN_IF_ERROR(WriteWhole(flags.html, page));
  }
  if (!flags.csv.empty()) ZEUS_RETURN_IF_ERROR(WriteWhole(flags.csv, MainTable(report)));
  if (!flags.figures.empty()) {
    ZEUS_TRY(const std::string left_out, report::WriteFiles(report, flags.figures));
    if (!left_out.empty()) PrintErrorText(fmt::format("zeus: {}\n", left_out));
  }
  return Ok();
}

Status WriteOutputs(const OutputFlags& flags, const Json& result, const report::Report& report) {
  ZEUS_RETURN_IF_ERROR(WriteFiles(flags, report));
  if (flags.json)
    PrintJson(result);
  else
    PrintText(ToText(report, OutputWidth()));
  return FlushOutput();
}

}  // namespace zeus::cli
