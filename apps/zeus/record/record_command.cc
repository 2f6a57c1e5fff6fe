#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "apps/zeus/commands.h"
#include "apps/zeus/companion.h"
#include "apps/zeus/output.h"
#include "apps/zeus/run/run_options.h"
#include "zeus/base/clock.h"
#include "zeus/base/random.h"
#include "zeus/base/text.h"
#include "zeus/process/child.h"
#include "zeus/process/signal_watch.h"
#include "zeus/recording/identities.h"
#include "zeus/recording/recording_file.h"
#include "zeus/recording/spool.h"

namespace zeus::cli {
namespace {

using namespace std::chrono_literals;

// Calls of this time before a SIGKILL of the recorder are not in the recording.
constexpr Seconds kFlushInterval = 500ms;
constexpr double kNanosecondsPerSecond = 1e9;

struct RecordOptions {
  std::string out = "zeus-recording.zst";
  bool keep_identities = false;
};

// The library that the command would load: the one of ZEUS_NVML_LIBRARY, else the loader's choice.
Result<std::string> FindDriver() {
  const char* const given = std::getenv("ZEUS_NVML_LIBRARY");
  if (given != nullptr && *given != '\0') return std::filesystem::absolute(given).string();
  for (const char* name : {"libnvidia-ml.so.1", "/usr/lib/wsl/lib/libnvidia-ml.so.1"}) {
    void* const library = ::dlopen(name, RTLD_LAZY | RTLD_LOCAL);
    struct link_map* map = nullptr;
    if (library != nullptr && ::dlinfo(library, RTLD_DI_LINKMAP, &map) == 0)
      return std::filesystem::absolute(map->l_name).string();
  }
  return Error{ErrorCode::kNotFound,
               "there is no driver to record: libnvidia-ml.so.1 is not found; install the NVIDIA "
               "driver, or choose a simulated node with eval \"$(zeus sim env)\""};
}

std::vector<std::string> RecordedEnvironment(const std::string& driver,
                                             const std::filesystem::path& library,
                                             const std::filesystem::path& spool) {
  const char* const folders = std::getenv("LD_LIBRARY_PATH");
  const bool more = folders != nullptr && *folders != '\0';
  return {fmt::format("{}={}", recording::kDriverVariable, driver),
          fmt::format("{}={}", recording::kSpoolVariable, spool.string()),
          fmt::format("ZEUS_NVML_LIBRARY={}", library.string()),
          fmt::format("LD_LIBRARY_PATH={}{}", library.parent_path().string(),
                      more ? std::string(":") + folders : std::string())};
}

// Takes what the processes have written and puts it into the file.
class RecordSession {
 public:
  RecordSession(recording::SpoolReader& spool, recording::RecordingWriter& writer,
                recording::IdentityMask& mask, std::uint64_t begin)
      : spool_(spool), writer_(writer), mask_(mask), converter_(mask, begin) {}

  Status Collect() {
    for (const recording::Collected& collected : spool_.Collect()) {
      ZEUS_TRY(const recording::RecordedProcess* process, Process(collected));
      if (process == nullptr) continue;
      if (writer_.full()) {
        ++left_out_;
        continue;
      }
      std::string calls;
      converter_.Convert(collected.calls, calls);
      ZEUS_RETURN_IF_ERROR(writer_.WriteCalls(process->number, calls));
    }
    return Ok();
  }

  bool stopped_early() const { return left_out_ > 0; }
  std::size_t processes() const { return processes_.size(); }
  std::uint64_t lost() const {
    std::uint64_t lost = 0;
    for (const auto& [id, process] : processes_) lost += process.lost;
    return lost;
  }

 private:
  // Returns null for a process beyond the number that a recording may have.
  Result<const recording::RecordedProcess*> Process(const recording::Collected& collected) {
    auto known = processes_.find(collected.process);
    if (known == processes_.end()) {
      if (processes_.size() >= recording::kMaxProcesses) return nullptr;
      const auto number = static_cast<std::uint32_t>(processes_.size());
      const auto parent = processes_.find(collected.parent);
      known =
          processes_
              .emplace(collected.process,
                       recording::RecordedProcess{
                           .number = number,
                           .parent = parent == processes_.end() ? number : parent->second.number,
                           .name = mask_.ProcessName(collected.name),
                           .name_hash = recording::NameHash(collected.name),
                           .lost = collected.lost})
              .first;
      ZEUS_RETURN_IF_ERROR(writer_.WriteProcess(known->second));
    }
    if (collected.lost > known->second.lost) {
      known->second.lost = collected.lost;
      ZEUS_RETURN_IF_ERROR(writer_.WriteProcess(known->second));
    }
    return &known->second;
  }

  recording::SpoolReader& spool_;
  recording::RecordingWriter& writer_;
  recording::IdentityMask& mask_;
  recording::CallConverter converter_;
  std::size_t left_out_ = 0;  // Collections that did not fit.
  std::map<std::uint64_t, recording::RecordedProcess> processes_;
};

Result<ChildOutcome> RunRecorded(const std::vector<std::string>& command,
                                 const std::vector<std::string>& environment,
                                 RecordSession& session) {
  ZEUS_TRY(const std::unique_ptr<SignalWatch> signals, SignalWatch::Start());
  ChildOptions options;
  options.environment = environment;
  ZEUS_TRY(Child child, Child::Start(command, *signals, options));
  while (true) {
    const auto outcome = child.WaitFor(kFlushInterval);
    if (outcome) return *outcome;
    ZEUS_RETURN_IF_ERROR(session.Collect());
  }
}

Result<int> Execute(const RecordOptions& options, const Verb& verb, const CommandTail& tail) {
  ZEUS_TRY(const std::vector<std::string> command, CommandToRun(verb, tail));
  ZEUS_TRY(const std::string driver, FindDriver());
  ZEUS_TRY(const auto library, FindCompanion("zeus/recorder/libnvidia-ml.so.1"));
  if (driver == library.string())
    return InvalidArgument(
        "this program is being recorded already: a recording of a recording "
        "would hold each call twice");
  const auto path = std::filesystem::absolute(options.out);
  const SystemClock clock;
  ZEUS_TRY(const auto spool, recording::SpoolReader::Create(path.string() + ".parts"));
  ZEUS_TRY(const auto writer,
           recording::RecordingWriter::Create(path, clock.WallNow().time_since_epoch().count(),
                                              options.keep_identities));
  const auto begin =
      static_cast<std::uint64_t>(clock.Now().time_since_epoch().count() * kNanosecondsPerSecond);
  recording::IdentityMask mask(
      options.keep_identities ? recording::Identities::kKept : recording::Identities::kHidden,
      SystemEntropy());
  RecordSession session(*spool, *writer, mask, begin);
  auto outcome =
      RunRecorded(command, RecordedEnvironment(driver, library, path.string() + ".parts"), session);
  if (!outcome.ok()) return CommandNotStarted(std::move(outcome).error());
  ZEUS_RETURN_IF_ERROR(session.Collect());
  ZEUS_RETURN_IF_ERROR(writer->WriteEnd(outcome.value().exit_code));
  const std::string lost = session.lost() == 0
                               ? std::string()
                               : fmt::format("; {} calls could not be written", session.lost());
  fmt::print(stderr,
             "zeus record: {} from {} process{}{}; look at it with: zeus recording show {}\n",
             Printable(options.out), session.processes(), session.processes() == 1 ? "" : "es",
             lost, Printable(options.out));
  return outcome.value().exit_code;
}

}  // namespace

void AddRecordCommand(Verb app, Action& action, const CommandTail& tail) {
  auto options = std::make_shared<RecordOptions>();
  const Verb verb = app.AddVerb(
      "record",
      "Write down every call of the GPU driver and its answer: zeus record [OPTIONS] -- COMMAND");
  verb.StopAtUnknown();
  verb.AddOption("--out", options->out, "The recording").ShowDefault();
  verb.AddFlag("--keep-identities", options->keep_identities,
               "Keep UUIDs, serial numbers, process numbers and names, instead of replacing them");
  verb.Footer(
      "Play it with: zeus sim start --recording FILE\n"
      "The exit code is that of the command, as with zeus run.");
  verb.OnChosen([&action, &tail, options, verb] {
    action = [&tail, options, verb] { return Execute(*options, verb, tail); };
  });
}

}  // namespace zeus::cli
