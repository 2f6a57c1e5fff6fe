#include "apps/zeus/replay/replay_outputs.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <string>
#include <system_error>

#include "apps/zeus/numbers.h"
#include "apps/zeus/output.h"
#include "apps/zeus/output_file.h"
#include "zeus/base/file.h"

namespace zeus::cli {
namespace {

namespace fs = std::filesystem;

constexpr int kUsualWidth = 110;  // Where the output is no terminal.

int OutputWidth() {
  struct ::winsize size {};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kUsualWidth;
  return size.ws_col;
}

// The first table is the one that a verb is about; the others are among the figures.
std::string MainTable(const report::Report& report) {
  for (const report::Section& section : report.sections)
    if (!section.tables.empty()) return ToCsv(section.tables.front());
  return "";
}

Status CheckFolder(const fs::path& folder) {
  std::error_code ignored;
  if (fs::exists(folder, ignored) && !fs::is_directory(folder, ignored))
    return FileError(folder, ENOTDIR).While("cannot write");
  return Ok();
}

}  // namespace

void AddOutputFlags(CLI::App& app, OutputFlags& flags) {
  app.add_flag("--json", flags.json, "Print JSON instead of tables");
  app.add_option("--html", flags.html, "Write a report to read in a browser: one file")
      ->check(NotEmpty())
      ->type_name("FILE");
  app.add_option("--csv", flags.csv, "Write the main table as CSV")
      ->check(NotEmpty())
      ->type_name("FILE");
  app.add_option("--figures", flags.figures,
                 "Write each figure as SVG, PNG and CSV, and each table as CSV, into a folder")
      ->check(NotEmpty())
      ->type_name("DIR");
}

Status CheckOutputs(const OutputFlags& flags) {
  if (!flags.html.empty()) {
    ZEUS_TRY([[maybe_unused]] const std::string page, report::ToHtml({}));
    ZEUS_RETURN_IF_ERROR(CheckWritable(flags.html));
  }
  if (!flags.csv.empty()) ZEUS_RETURN_IF_ERROR(CheckWritable(flags.csv));
  if (!flags.figures.empty()) ZEUS_RETURN_IF_ERROR(CheckFolder(flags.figures));
  return Ok();
}

Status WriteOutputs(const OutputFlags& flags, const Json& result, const report::Report& report) {
  if (!flags.html.empty()) {
    ZEUS_TRY(const std::string page, ToHtml(report));
    ZEUS_RETURN_IF_ERROR(WriteWhole(flags.html, page));
  }
  if (!flags.csv.empty()) ZEUS_RETURN_IF_ERROR(WriteWhole(flags.csv, MainTable(report)));
  if (!flags.figures.empty()) {
    ZEUS_TRY(const std::string left_out, WriteFiles(report, flags.figures));
    if (!left_out.empty()) fmt::print(stderr, "zeus: {}\n", left_out);
  }
  if (flags.json)
    PrintJson(result);
  else
    fmt::print("{}", ToText(report, OutputWidth()));
  return FlushOutput();
}

}  // namespace zeus::cli
