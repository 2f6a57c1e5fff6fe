// write_samples DIR: pages and drawings of the sample reports, for the tests of the page and for
// looking at. Exit code 4 where the page was not built.
#include <fmt/format.h>

#include <filesystem>

#include "zeus/base/file.h"
#include "zeus/base/json.h"
#include "zeus/report/report.h"
#include "zeus/report/testing/sample_reports.h"

namespace {

using zeus::report::Report;

zeus::Status WriteSample(const Report& report, const std::filesystem::path& folder,
                         const std::string& name) {
  ZEUS_RETURN_IF_ERROR(
      zeus::ReplaceFile(folder / (name + ".json"), zeus::JsonText(ToJson(report))));
  ZEUS_TRY(const std::string page, ToHtml(report));
  return zeus::ReplaceFile(folder / (name + ".html"), page);
}

zeus::Status WriteSamples(const std::filesystem::path& folder) {
  using namespace zeus::report::testing;
  const auto files = WriteFiles(SampleReport(), folder / "sample");
  if (!files.ok()) return files.error();
  ZEUS_RETURN_IF_ERROR(WriteSample(SampleReport(), folder, "sample"));
  return WriteSample(AdverseReport(), folder, "adverse");
}

}  // namespace

int main(int count, char** words) {
  if (count != 2) {
    fmt::print(stderr, "usage: write_samples DIR\n");
    return 2;
  }
  const zeus::Status written = WriteSamples(words[1]);
  if (written.ok()) return 0;
  fmt::print(stderr, "write_samples: {}\n", written.error().message);
  return written.error().code == zeus::ErrorCode::kNotSupported ? 4 : 1;
}
