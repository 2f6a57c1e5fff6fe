// Writes figures and tables as files.
#include <sys/wait.h>
#include <unistd.h>

#include <map>
#include <system_error>

#include "zeus/base/file.h"
#include "zeus/base/spawn.h"
#include "zeus/base/user_files.h"
#include "zeus/report/report.h"

namespace zeus::report {
namespace {

namespace fs = std::filesystem;

// Runs rsvg-convert. Returns "" when it wrote the picture, else the reason why it did not.
std::string ConvertToPng(const fs::path& svg, const fs::path& png) {
  const auto converter =
      Spawn({.command = {"rsvg-convert", "--zoom=2", "--output=" + png.string(), svg.string()}});
  if (!converter.ok() && converter.error().code == ErrorCode::kNotFound)
    return "no PNG files: rsvg-convert is not installed (Debian: librsvg2-bin)";
  if (!converter.ok()) return "no PNG files: " + converter.error().message;
  const int status = WaitForEnd(converter.value());
  const bool written = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  return written ? "" : "no PNG files: rsvg-convert failed on " + svg.filename().string();
}

class Folder {
 public:
  explicit Folder(fs::path folder) : folder_(std::move(folder)) {}

  Status Write(const Figure& figure) {
    const std::string name = NameFor(figure.id);
    ZEUS_RETURN_IF_ERROR(ReplaceFile(folder_ / (name + ".csv"), ToCsv(figure)));
    const fs::path svg = folder_ / (name + ".svg");
    ZEUS_RETURN_IF_ERROR(ReplaceFile(svg, ToSvg(figure)));
    // Every picture would fail for the same reason.
    if (!left_out_.empty()) return Ok();
    // No other process uses this name.
    const fs::path part = folder_ / ("." + name + "." + std::to_string(::getpid()) + ".png.part");
    left_out_ = ConvertToPng(svg, part);
    std::error_code failed;
    if (left_out_.empty()) {
      fs::rename(part, folder_ / (name + ".png"), failed);
      if (failed) return FileError(folder_ / (name + ".png"), failed.value());
    } else {
      fs::remove(part, failed);
    }
    return Ok();
  }

  Status Write(const Table& table) {
    return ReplaceFile(folder_ / (NameFor(table.id) + ".csv"), ToCsv(table));
  }

  const std::string& left_out() const { return left_out_; }

 private:
  // A second figure of the same id gets another name.
  std::string NameFor(const std::string& id) {
    std::string name = FileNamePart(id);
    const int seen = ++names_[name];
    return seen == 1 ? name : name + "-" + std::to_string(seen);
  }

  fs::path folder_;
  std::map<std::string, int> names_;
  std::string left_out_;
};

}  // namespace

Result<std::string> WriteFiles(const Report& report, const fs::path& folder) {
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed) return FileError(folder, failed.value());
  Folder files(folder);
  for (const Section& section : report.sections) {
    for (const Table& table : section.tables) ZEUS_RETURN_IF_ERROR(files.Write(table));
    for (const Figure& figure : section.figures) ZEUS_RETURN_IF_ERROR(files.Write(figure));
  }
  return files.left_out();
}

}  // namespace zeus::report
