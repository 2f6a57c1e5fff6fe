#include "zeus/recording/replay_node.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "zeus/base/file.h"
#include "zeus/base/file_descriptor.h"
#include "zeus/base/text.h"
#include "zeus/device/sim/node_layout.h"

namespace zeus::recording {
namespace {

constexpr std::uint64_t kReplayMagic = 0x31'59'4c'50'53'55'45'5a;  // "ZEUSPLY1"
constexpr std::string_view kPrefix = "zeus-replay-";
constexpr mode_t kMode = 0644;  // As of simulated nodes: all may look, the owner counts.
constexpr std::size_t kMaxFunctions = 1024;
constexpr std::size_t kMatches = 3;

std::filesystem::path NodeFile(const std::filesystem::path& folder, std::string_view name) {
  return folder / fmt::format("{}{}", kPrefix, name);
}

bool IsAlive(std::uint32_t pid) {
  return pid != 0 && (::kill(static_cast<pid_t>(pid), 0) == 0 || errno == EPERM);
}

}  // namespace

// The beginning of the file. The recording follows it.
struct ReplayNode::State {
  struct Player {
    std::atomic<std::uint32_t> pid;
    std::atomic<std::uint32_t> plays;
  };

  std::uint64_t magic;
  std::uint64_t recording_size;
  std::atomic<std::uint64_t> begin;  // Monotonic time; zero before the first program.
  std::array<std::array<std::atomic<std::uint64_t>, kMatches>, kMaxFunctions> counts;
  std::array<Player, kMaxProcesses> players;
};

Result<std::unique_ptr<ReplayNode>> ReplayNode::Create(const std::filesystem::path& folder,
                                                       const std::string& name,
                                                       const std::filesystem::path& path) {
  ZEUS_RETURN_IF_ERROR(sim::CheckNodeName(name));
  ZEUS_TRY(const Recording recording, ReadRecording(path));
  if (recording.calls.empty())
    return InvalidArgument(
        fmt::format("{} holds no call of a driver: there is nothing to replay; the recorded "
                    "program did not load libnvidia-ml.so.1 by its name",
                    Printable(path.string())));
  constexpr std::size_t kMaxReplayFile = std::size_t{1} << 28U;
  ZEUS_TRY(const std::string bytes, ReadSmallFile(path, kMaxReplayFile));
  // A file without a name: it vanishes with this process unless it is complete.
  const FileDescriptor file(::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, kMode));
  if (!file.valid()) return FileError(folder, errno).While("start a replay");
  const std::size_t size = sizeof(State) + bytes.size();
  if (const int failure = ::posix_fallocate(file.get(), 0, static_cast<off_t>(size)); failure != 0)
    return FileError(folder, failure).While("start a replay");
  if (::fchmod(file.get(), kMode) != 0) return FileError(folder, errno);
  void* const address = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (address == MAP_FAILED) return FileError(folder, errno).While("start a replay");
  auto* const state = static_cast<State*>(address);
  state->magic = kReplayMagic;
  state->recording_size = bytes.size();
  std::memcpy(static_cast<char*>(address) + sizeof(State), bytes.data(), bytes.size());
  ::munmap(address, size);
  const std::string self = fmt::format("/proc/self/fd/{}", file.get());
  const auto target = NodeFile(folder, name);
  if (::linkat(AT_FDCWD, self.c_str(), AT_FDCWD, target.c_str(), AT_SYMLINK_FOLLOW) != 0) {
    if (errno != EEXIST) return FileError(target, errno);
    return Error{ErrorCode::kUnavailable,
                 fmt::format("a replay named \"{}\" runs already; stop it with: zeus sim stop "
                             "--name {}",
                             name, name)};
  }
  return Open(folder, name);
}

Result<std::unique_ptr<ReplayNode>> ReplayNode::Open(const std::filesystem::path& folder,
                                                     const std::string& name) {
  ZEUS_RETURN_IF_ERROR(sim::CheckNodeName(name));
  const auto path = NodeFile(folder, name);
  constexpr int kFlags = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  int mode = MAP_SHARED;
  int descriptor = ::open(path.c_str(), O_RDWR | kFlags);
  if (descriptor < 0 && (errno == EACCES || errno == EPERM)) {
    // Another user's replay: this process plays for itself.
    mode = MAP_PRIVATE;
    descriptor = ::open(path.c_str(), O_RDONLY | kFlags);
  }
  const FileDescriptor file(descriptor);
  struct stat status {};
  if (!file.valid() || ::fstat(file.get(), &status) != 0) return FileError(path, errno);
  const auto size = static_cast<std::size_t>(status.st_size);
  const auto damaged = [&] {
    return Error{ErrorCode::kUnavailable,
                 fmt::format("{} is damaged; remove it with: zeus sim stop --name {}",
                             Printable(path.string()), name)};
  };
  if (!S_ISREG(status.st_mode) || size < sizeof(State)) return damaged();
  void* const address = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, mode, file.get(), 0);
  if (address == MAP_FAILED) return FileError(path, errno);
  auto* const state = static_cast<State*>(address);
  const bool sound = state->magic == kReplayMagic && state->recording_size == size - sizeof(State);
  auto recording = sound ? ParseRecording({reinterpret_cast<const char*>(state + 1),
                                           static_cast<std::size_t>(state->recording_size)},
                                          path.string())
                         : Result<Recording>(damaged());
  if (!recording.ok()) {
    ::munmap(address, size);
    return std::move(recording).error();
  }
  return std::unique_ptr<ReplayNode>(
      new ReplayNode(Mapping{.address = address, .size = size}, std::move(recording).value()));
}

ReplayNode::~ReplayNode() { ::munmap(mapping_.address, mapping_.size); }

Status ReplayNode::Remove(const std::filesystem::path& folder, const std::string& name) {
  ZEUS_RETURN_IF_ERROR(sim::CheckNodeName(name));
  const auto path = NodeFile(folder, name);
  if (::unlink(path.c_str()) != 0) return FileError(path, errno).While("stop a replay");
  return Ok();
}

bool ReplayNode::Exists(const std::filesystem::path& folder, const std::string& name) {
  struct stat status {};
  return sim::CheckNodeName(name).ok() && ::lstat(NodeFile(folder, name).c_str(), &status) == 0;
}

std::vector<std::string> ReplayNode::List(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (std::filesystem::directory_iterator entry(folder, ignored), end; entry != end;
       entry.increment(ignored)) {
    const std::string file = entry->path().filename().string();
    if (!file.starts_with(kPrefix)) continue;
    const std::string name = file.substr(kPrefix.size());
    if (sim::CheckNodeName(name).ok()) names.push_back(name);
  }
  std::ranges::sort(names);
  return names;
}

std::optional<std::uint32_t> ReplayNode::TakeTrack(std::uint16_t name_hash, std::uint32_t pid) {
  // Two attempts: one that another process wins is repeated.
  for (int attempt = 0; attempt < 2; ++attempt) {
    const RecordedProcess* chosen = nullptr;
    for (const RecordedProcess& process : recording_.processes) {
      const State::Player& player = state().players[process.number];
      if (process.name_hash != name_hash || IsAlive(player.pid.load())) continue;
      if (chosen == nullptr || player.plays.load() < state().players[chosen->number].plays.load())
        chosen = &process;
    }
    if (chosen == nullptr) return std::nullopt;
    State::Player& player = state().players[chosen->number];
    std::uint32_t former = player.pid.load();
    if (IsAlive(former) || !player.pid.compare_exchange_strong(former, pid)) continue;
    player.plays.fetch_add(1);
    return chosen->number;
  }
  return std::nullopt;
}

std::uint64_t ReplayNode::Time(std::uint64_t now) {
  std::uint64_t begin = 0;
  if (state().begin.compare_exchange_strong(begin, now)) return 0;
  // A begin in the future is of an earlier boot of the machine.
  if (begin > now) state().begin.store(now);
  return begin > now ? 0 : now - begin;
}

void ReplayNode::Count(std::uint16_t function, Match match) {
  if (function >= kMaxFunctions) return;
  state().counts[function][static_cast<std::size_t>(match)].fetch_add(1, std::memory_order_relaxed);
}

std::vector<AnswerCount> ReplayNode::Counts() const {
  std::vector<AnswerCount> counts;
  const std::size_t known = std::min(kMaxFunctions, Functions().size());
  for (std::size_t i = 0; i < known; ++i) {
    const auto& of = state().counts[i];
    const AnswerCount count{.function = static_cast<std::uint16_t>(i),
                            .in_order = of[0].load(),
                            .nearest = of[1].load(),
                            .unknown = of[2].load()};
    if (count.in_order + count.nearest + count.unknown > 0) counts.push_back(count);
  }
  return counts;
}

}  // namespace zeus::recording
