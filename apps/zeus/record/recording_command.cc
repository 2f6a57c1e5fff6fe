#include <memory>
#include <string>

#include "apps/zeus/commands.h"
#include "apps/zeus/output.h"
#include "zeus/base/json.h"
#include "zeus/recording/recording_file.h"
#include "zeus/recording/summary.h"

namespace zeus::cli {
namespace {

struct ShowOptions {
  std::string file;
  bool json = false;
};

Result<int> ShowRecording(const ShowOptions& options) {
  ZEUS_TRY(const recording::Recording recording, recording::ReadRecording(options.file));
  const recording::Summary summary = recording::Summarise(recording);
  if (options.json)
    PrintJson(ToJson(recording, summary));
  else
    PrintText(ToText(recording, summary));
  return 0;
}

}  // namespace

void AddRecordingCommand(Verb app, Action& action) {
  const Verb recording = app.AddVerb("recording", "Recordings of a GPU driver");
  recording.RequireVerb();
  auto options = std::make_shared<ShowOptions>();
  const Verb show =
      recording.AddVerb("show", "Say what a recording holds: GPUs, calls, failures, energies");
  show.AddOption("file", options->file, "The recording").Required();
  show.AddFlag("--json", options->json, "Print JSON");
  show.OnChosen([&action, options] { action = [options] { return ShowRecording(*options); }; });
}

}  // namespace zeus::cli
