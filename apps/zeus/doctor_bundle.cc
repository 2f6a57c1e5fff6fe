#include "apps/zeus/doctor_bundle.h"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "apps/zeus/output.h"
#include "zeus/base/clock.h"
#include "zeus/base/file.h"
#include "zeus/base/json.h"
#include "zeus/base/own_program.h"
#include "zeus/base/random.h"
#include "zeus/base/text.h"
#include "zeus/base/version.h"
#include "zeus/base/wall_time_text.h"
#include "zeus/device/knobs/knob_journal.h"
#include "zeus/process/run_command.h"
#include "zeus/recording/bundle.h"
#include "zeus/recording/identities.h"
#include "zeus/recording/scrubber.h"

extern char** environ;  // NOLINT(readability-identifier-naming): POSIX names it.

namespace zeus::cli {
namespace {

using namespace std::chrono_literals;

constexpr Seconds kDriverTimeout = 60s;
constexpr Seconds kLogTimeout = 10s;
constexpr const char* kLogLines = "300";
constexpr std::size_t kLargestRecording = std::size_t{64} << 20U;
constexpr std::size_t kLargestConfiguration = std::size_t{256} << 10U;
constexpr int kIndent = 2;

struct Entry {
  recording::BundleFile file;
  std::string description;
};

Entry Text(std::string name, std::string content, std::string description) {
  return {.file = {.name = std::move(name), .content = std::move(content)},
          .description = std::move(description)};
}

// The value of a line "model name : …" of /proc/cpuinfo, and how often it stands there.
std::map<std::string, int> ProcessorModels() {
  std::ifstream file("/proc/cpuinfo");
  std::map<std::string, int> models;
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::string_view key = Trim(std::string_view(line).substr(0, colon));
    if (key == "model name" || key == "CPU part")
      ++models[std::string(Trim(std::string_view(line).substr(colon + 1)))];
  }
  return models;
}

Json Versions() {
  struct utsname system {};
  ::uname(&system);
  std::array<char, 64> libc{};
  ::confstr(_CS_GNU_LIBC_VERSION, libc.data(), libc.size());
  const SystemClock clock;
  Json versions{{"zeus", std::string(Version())},
                {"kernel", std::string(system.release)},
                {"machine", std::string(system.machine)},
                {"libc", std::string(libc.data())},
                {"time", zeus::ToText(clock.WallNow())}};
  for (const char* file : {"/proc/driver/nvidia/version", "/sys/module/amdgpu/version"})
    if (const auto line = ReadLine(file); line.ok()) versions[file] = line.value();
  const auto distribution = ReadSmallFile("/etc/os-release");
  if (distribution.ok()) versions["os_release"] = distribution.value();
  return versions;
}

// Folders of sysfs whose names say what the machine has.
Json Topology() {
  Json topology{{"processors", ProcessorModels()}};
  for (const char* folder : {"/sys/devices/system/node", "/sys/class/powercap", "/sys/class/drm",
                             "/sys/class/hwmon", "/dev/dri", "/sys/fs/cgroup"}) {
    std::set<std::string> names;
    std::error_code ignored;
    for (std::filesystem::directory_iterator entry(folder, ignored), end; entry != end;
         entry.increment(ignored))
      names.insert(entry->path().filename().string());
    topology[folder] = names;
  }
  std::error_code ignored;
  Json devices = Json::array();
  for (std::filesystem::directory_iterator entry("/dev", ignored), end; entry != end;
       entry.increment(ignored))
    if (entry->path().filename().string().starts_with("nvidia"))
      devices.push_back(entry->path().filename().string());
  topology["/dev/nvidia*"] = std::move(devices);
  return topology;
}

// Variables that change what Zeus and drivers do. Others concern nobody.
std::string Variables() {
  constexpr std::array<std::string_view, 9> kPrefixes = {
      "ZEUS",       "CUDA_VISIBLE",   "NVIDIA_",         "HIP_VISIBLE", "ROCR_VISIBLE",
      "GPU_DEVICE", "SLURM_JOB_GPUS", "LD_LIBRARY_PATH", "NVML"};
  std::vector<std::string> lines;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view line(*variable);
    if (std::ranges::any_of(kPrefixes, [&](std::string_view p) { return line.starts_with(p); }))
      lines.emplace_back(line);
  }
  std::ranges::sort(lines);
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

void AddConfiguration(std::vector<Entry>& entries, const recording::Scrubber& scrubber) {
  entries.push_back(Text("environment.txt", scrubber.Text(Variables()),
                         "variables that Zeus and drivers look at"));
  std::vector<std::filesystem::path> files = {"/etc/zeus/zeus.toml", "/etc/zeus/zeusd.toml"};
  if (const char* const given = std::getenv("ZEUS_CONFIG"); given != nullptr)
    files.emplace_back(given);
  if (const auto folder = UserFolder(ProcessEnvironment(), ""))
    files.push_back(folder->parent_path() / "zeus.toml");
  for (const auto& file : files) {
    const auto content = ReadSmallFile(file, kLargestConfiguration);
    if (!content.ok()) continue;
    entries.push_back(Text(fmt::format("configuration-{}.toml", entries.size()),
                           scrubber.Text(fmt::format("# {}\n", file.string()) + content.value()),
                           "configuration, secrets removed"));
  }
}

void AddLog(std::vector<Entry>& entries, const recording::Scrubber& scrubber) {
  const auto log = RunCommand(
      {"journalctl", "--unit", "zeusd", "--lines", kLogLines, "--no-pager", "--output", "cat"},
      kLogTimeout);
  std::string text = log.ok() ? log.value().output : log.error().message;
  if (const char* const file = std::getenv("ZEUSD_LOG"); file != nullptr) {
    const auto content = ReadSmallFile(file, kLargestRecording);
    if (content.ok()) text = content.value();
  }
  entries.push_back(
      Text("zeusd.log", scrubber.Text(text), "the last lines of the node daemon's log"));
}

Json JournalState() {
  const auto folder = KnobFolder();
  if (!folder.ok()) return {{"error", folder.error().message}};
  SystemClock clock;
  const KnobJournal journal(clock, folder.value());
  const auto records = journal.List();
  if (!records.ok()) return {{"error", records.error().message}};
  Json state = Json::array();
  for (const auto& [entry, standing] : records.value()) {
    Json knob = ToJson(entry);
    knob["left"] = standing == KnobJournal::Standing::kLeft;
    state.push_back(std::move(knob));
  }
  return {{"folder", folder.value().string()}, {"knobs", std::move(state)}};
}

// The driver is asked by a doctor of its own, which is recorded.
void AddDriver(std::vector<Entry>& entries, const std::filesystem::path& bundle) {
  const auto recorded = std::filesystem::path(bundle.string() + ".driver");
  const auto own = OwnProgram();
  const std::string program = own.ok() ? own.value().string() : "/proc/self/exe";
  const auto done = RunCommand({program, "record", "--out", recorded.string(), "--", program,
                                "doctor", "--json", "--seconds", "1"},
                               kDriverTimeout);
  auto content = ReadSmallFile(recorded, kLargestRecording);
  std::error_code ignored;
  std::filesystem::remove(recorded, ignored);
  if (content.ok() && !content.value().empty())
    entries.push_back(Text("driver.zst", std::move(content).value(),
                           "what the driver answers to zeus doctor: zeus recording show, or zeus "
                           "sim start --recording"));
  else
    entries.push_back(Text("driver.txt",
                           done.ok() ? done.value().output.substr(0, done.value().output.find('\n'))
                                     : done.error().message,
                           "the reason why there is no recording of the driver"));
}

}  // namespace

Status WriteDoctorBundle(const std::filesystem::path& path, const Json& findings) {
  // An unwritable place is found out before the driver is asked.
  ZEUS_RETURN_IF_ERROR(recording::WriteBundle(path, {}));
  const recording::IdentityMask mask(recording::Identities::kHidden, SystemEntropy());
  const recording::Scrubber scrubber(mask, recording::IdentitiesOfThisProcess());
  const auto document = [&](const Json& json) {
    return JsonText(scrubber.Document(json), kIndent) + "\n";
  };
  std::vector<Entry> entries;
  entries.push_back(Text("versions.json", document(Versions()), "Zeus, kernel, drivers"));
  entries.push_back(Text("doctor.json", document(findings), "the findings of zeus doctor"));
  entries.push_back(
      Text("machine.json", document(Topology()), "processors and devices of the machine"));
  entries.push_back(Text("knobs.json", document(JournalState()),
                         "limits and clocks that were changed and not put back"));
  AddConfiguration(entries, scrubber);
  AddLog(entries, scrubber);
  AddDriver(entries, path);
  std::string readme =
      "Written by zeus doctor --bundle. UUIDs, serial numbers, names of users and machines, home\n"
      "folders, addresses, passwords and tokens are replaced or removed; look before you send "
      "it.\n\n";
  std::vector<recording::BundleFile> files;
  PrintText(fmt::format("{} holds:\n", Printable(path.string())));
  for (const Entry& entry : entries) {
    const std::string line = fmt::format("{:<22} {:>8} bytes  {}\n", entry.file.name,
                                         entry.file.content.size(), entry.description);
    readme += line;
    PrintText("  " + line);
    files.push_back(entry.file);
  }
  files.insert(files.begin(), {.name = "README.txt", .content = std::move(readme)});
  return recording::WriteBundle(path, files);
}

}  // namespace zeus::cli
