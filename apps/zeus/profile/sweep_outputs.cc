#include "apps/zeus/profile/sweep_outputs.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "apps/zeus/output.h"
#include "apps/zeus/output_file.h"
#include "apps/zeus/profile/sweep_drawing.h"
#include "apps/zeus/terminal.h"
#include "zeus/base/json.h"
#include "zeus/optimizer/power_limit/profile_json.h"
#include "zeus/report/report.h"

namespace zeus::cli {
namespace {

constexpr const char* kStandardOutput = "-";

Status Save(const SweepReport& report, const std::string& file) {
  if (report.profile.points.empty()) {
    return Error{
        ErrorCode::kUnavailable,
        fmt::format("no profile was saved to {}: it needs the throughput at every setting", file)};
  }
  return WriteWhole(file, ProfileToJson(report.profile));
}

report::Glyphs TerminalGlyphs() {
  const bool unicode = DescribeTerminal(STDERR_FILENO).redraws && LocaleIsUnicode();
  return unicode ? report::Glyphs::kUnicode : report::Glyphs::kAscii;
}

Status WritePage(const SweepReport& report, const std::string& file) {
  ZEUS_TRY(const std::string page, report::ToHtml(ToReport(report)));
  return WriteWhole(file, page);
}

}  // namespace

Status CheckFiles(const ProfileFiles& files) {
  if (!files.json.empty() && files.json != kStandardOutput)
    ZEUS_RETURN_IF_ERROR(CheckWritable(files.json));
  for (const std::string& file : {files.svg, files.html, files.save})
    if (!file.empty()) ZEUS_RETURN_IF_ERROR(CheckWritable(file));
  if (!files.csv.empty()) ZEUS_RETURN_IF_ERROR(Append(files.csv, "", ""));
  return Ok();
}

Status WriteResults(const SweepReport& report, const ProfileFiles& files) {
  Status first = Ok();
  const auto keep = [&first](Status status) {
    if (first.ok()) first = std::move(status);
  };
  if (files.json == kStandardOutput) {
    PrintJson(ToJson(report));
    keep(FlushOutput());
  } else if (!files.json.empty()) {
    keep(WriteWhole(files.json, JsonText(ToJson(report), 2) + "\n"));
  }
  if (!files.csv.empty()) keep(Append(files.csv, SweepCsvHeader(), ToCsv(report)));
  if (!files.svg.empty()) keep(WriteWhole(files.svg, report::ToSvg(ToFigure(report))));
  if (!files.html.empty()) keep(WritePage(report, files.html));
  if (!files.save.empty()) keep(Save(report, files.save));
  return first;
}

void ShowResults(const SweepReport& report) {
  Show(stderr, ToTable(report));
  std::fputs(report::ToTextPlot(ToRelativePanel(report), TerminalGlyphs()).c_str(), stderr);
}

}  // namespace zeus::cli
