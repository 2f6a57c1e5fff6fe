#include "apps/nvml_replay/player.h"

#include <fmt/format.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "zeus/base/clock.h"
#include "zeus/base/file.h"
#include "zeus/device/nvml/nvml_abi.h"
#include "zeus/device/sim/node_directory.h"
#include "zeus/recording/answers.h"
#include "zeus/recording/replay_node.h"

namespace zeus::nvml_replay {
namespace {

using recording::Call;
using recording::Function;
using recording::Match;
using recording::Question;
using recording::Registers;

constexpr double kNanosecondsPerSecond = 1e9;
constexpr std::uint64_t kNanosecondsPerMicrosecond = 1000;

// A handle is the address of one of these bytes: it is cheap to check, and a wrong one does no
// harm.
std::array<char, recording::kMaxHandles> devices;
std::array<char, recording::kMaxHandles> others;

class Handles final : public recording::HandleNumbers {
 public:
  std::uint32_t DeviceNumber(std::uintptr_t device) override { return Number(devices, device); }
  std::uint32_t OtherNumber(std::uintptr_t handle) override { return Number(others, handle); }
  std::uintptr_t Device(std::uint32_t number) override { return Handle(devices, number); }
  std::uintptr_t Other(std::uint32_t number) override { return Handle(others, number); }

 private:
  using Bytes = std::array<char, recording::kMaxHandles>;

  static std::uint32_t Number(const Bytes& bytes, std::uintptr_t handle) {
    if (handle == 0) return recording::kNoHandle;
    const std::uintptr_t number = handle - reinterpret_cast<std::uintptr_t>(bytes.data());
    return number < bytes.size() ? static_cast<std::uint32_t>(number) : recording::kUnknownHandle;
  }
  static std::uintptr_t Handle(Bytes& bytes, std::uint32_t number) {
    if (number == recording::kNoHandle) return 0;
    return reinterpret_cast<std::uintptr_t>(&bytes[number % bytes.size()]);
  }
};

// The functions that are more than a question.
struct Special {
  std::uint16_t error_string;
  std::uint16_t shutdown;
  std::uint16_t field_values;
  std::set<std::uint16_t> initialize;
};

Special FindSpecial() {
  const auto find = [](std::string_view name) {
    return recording::FindFunction(name).value_or(std::uint16_t{0xffff});
  };
  return {.error_string = find("nvmlErrorString"),
          .shutdown = find("nvmlShutdown"),
          .field_values = find("nvmlDeviceGetFieldValues"),
          .initialize = {find("nvmlInit"), find("nvmlInit_v2"), find("nvmlInitWithFlags")}};
}

// The recording, opened for one process: another one, as a forked child, opens it again.
struct Session {
  std::unique_ptr<recording::ReplayNode> node;
  std::unique_ptr<recording::Answers> answers;
  bool has_track = false;
  recording::Answers::Track track;
  std::map<const std::vector<const Call*>*, std::size_t> asked;  // How often, by question.
  std::uint64_t begin = 0;        // First call of this process, in monotonic nanoseconds.
  std::uint64_t track_begin = 0;  // First call of the process that it plays.
  unsigned references = 0;
  std::uint16_t threads = 0;
};

// The process-wide state: there is one, because C functions have no object to hold it.
class Player {
 public:
  static Player& Instance() {
    // Never destroyed, because programs call NVML from exit handlers.
    static Player* const instance = [] {
      ::pthread_atfork([] { Instance().mutex_->lock(); }, [] { Instance().mutex_->unlock(); },
                       [] { Instance().BeginChild(); });
      return new Player;
    }();
    return *instance;
  }

  std::uintptr_t Answer(std::uint16_t number, const Registers& registers) {
    const TimePoint begin = clock_.Now();
    Reply reply;
    {
      const std::lock_guard lock(*mutex_);
      if (number == special_.error_string) return ErrorText(registers[0]);
      reply = Find(number, registers, begin);
    }
    // A call that took long takes as long again.
    constexpr Seconds kNoticeable{0.001};
    if (reply.duration >= kNoticeable) clock_.SleepUntil(begin + reply.duration);
    return static_cast<std::uintptr_t>(reply.code);
  }

 private:
  struct Reply {
    nvml::Return code = nvml::kUninitialized;
    Seconds duration{};
  };

  Reply Find(std::uint16_t number, const Registers& registers, TimePoint now) {
    const bool initializes = special_.initialize.contains(number);
    if (initializes && !session_.node)
      if (const nvml::Return failure = Open(Nanoseconds(now)); failure != nvml::kSuccess)
        return {.code = failure};
    if (!session_.node || (session_.references == 0 && !initializes)) return {};
    const Reply reply = Look(number, registers, now);
    if (reply.code != nvml::kSuccess) return reply;
    if (initializes) ++session_.references;
    if (number == special_.shutdown) --session_.references;
    return reply;
  }

  nvml::Return Open(std::uint64_t now) {
    const auto directory = sim::NodeDirectory::FromEnvironment(clock_);
    if (!directory.ok()) return Refuse(directory.error());
    const std::string name = sim::ChosenNodeName();
    auto node = recording::ReplayNode::Open(directory.value().NodeFile(name).parent_path(), name);
    if (!node.ok()) return Refuse(node.error());
    session_.node = std::move(node).value();
    const auto& calls = session_.node->recording().calls;
    session_.answers = std::make_unique<recording::Answers>(calls);
    session_.begin = now;
    const auto own = ReadLine("/proc/self/comm");
    const auto track =
        session_.node->TakeTrack(recording::NameHash(own.ok() ? own.value() : std::string()),
                                 static_cast<std::uint32_t>(::getpid()));
    if (!track) return nvml::kSuccess;
    session_.has_track = true;
    session_.track = session_.answers->TrackOf(calls, *track);
    const auto first = std::ranges::find(calls, *track, &recording::RecordedCall::process);
    if (first != calls.end()) session_.track_begin = first->call.header.begin;
    return nvml::kSuccess;
  }

  nvml::Return Refuse(const Error& error) {
    refusal_ = error.message;
    return nvml::kDriverNotLoaded;
  }

  Reply Look(std::uint16_t number, const Registers& registers, TimePoint now) {
    const Function& function = recording::Functions()[number];
    recording::ReadQuestion(function, registers, handles_, question_);
    asked_.clear();
    for (std::size_t i = 0; i < function.arguments.size(); ++i) {
      recording::Append(asked_, static_cast<std::uint16_t>(question_.parts[i].size()));
      asked_ += question_.parts[i];
    }
    const std::uint64_t time = TimeInRecording(Nanoseconds(now));
    const recording::FoundAnswer found = FindCall(number, time);
    session_.node->Count(number, found.match);
    if (found.call == nullptr) return Unknown(number, registers, time);
    const std::int64_t later =
        Microseconds(clock_.WallNow()) - WallTimeOf(found.call->header.begin);
    return {.code = recording::WriteAnswer(function, registers, question_, *found.call, later,
                                           handles_),
            .duration = Seconds(found.call->header.duration / kNanosecondsPerSecond)};
  }

  recording::FoundAnswer FindCall(std::uint16_t number, std::uint64_t time) {
    const auto in_track = session_.track.find({Thread(), recording::Answers::Key(number, asked_)});
    if (in_track != session_.track.end()) {
      std::size_t& asked = session_.asked[&in_track->second];
      if (asked < in_track->second.size())
        return {.match = Match::kInOrder, .call = in_track->second[asked++]};
    }
    return session_.answers->Nearest(number, asked_, time);
  }

  // This was never asked. Fields are put together from calls that asked for others as well; all
  // else is what this driver does not support, as far as anybody knows.
  Reply Unknown(std::uint16_t number, const Registers& registers, std::uint64_t time) {
    const Function& function = recording::Functions()[number];
    // The recorded program may have begun otherwise, or have been killed before its end.
    if (number == special_.shutdown || special_.initialize.contains(number))
      return {.code = nvml::kSuccess};
    if (number == special_.field_values && registers[2] != 0) return Fields(registers, time);
    for (std::size_t i = 0; i < function.arguments.size(); ++i) {
      const recording::Kind kind = function.arguments[i].kind;
      if (kind == recording::Kind::kDevice &&
          handles_.DeviceNumber(registers[i]) >= recording::kUnknownHandle)
        return {.code = nvml::kInvalidArgument};
      const bool is_name = kind == recording::Kind::kInUuid || kind == recording::Kind::kInSerial ||
                           kind == recording::Kind::kInText;
      if (is_name) return {.code = nvml::kNotFound};
      if (kind == recording::Kind::kOutDevice) return {.code = nvml::kInvalidArgument};
    }
    return {.code = nvml::kNotSupported};
  }

  Reply Fields(const Registers& registers, std::uint64_t time) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr)
    auto* const fields = reinterpret_cast<nvml::FieldValue*>(registers[2]);
    constexpr std::size_t kKey = 2 * sizeof(std::uint32_t);
    for (std::size_t i = 0; i * kKey < question_.parts[2].size(); ++i) {
      const auto field = session_.answers->NearestField(
          question_.parts[0], std::string_view(question_.parts[2]).substr(i * kKey, kKey), time);
      fields[i].nvml_return = nvml::kNotSupported;
      if (!field) continue;
      if (field->code != nvml::kSuccess) return {.code = field->code};
      std::memcpy(&fields[i], field->value.data(), sizeof fields[i]);
      if (fields[i].timestamp > 0)
        fields[i].timestamp += Microseconds(clock_.WallNow()) - WallTimeOf(field->begin);
    }
    return {.code = nvml::kSuccess};
  }

  std::uint64_t TimeInRecording(std::uint64_t now) {
    const std::uint64_t of_node = session_.node->Time(now);
    if (!session_.has_track) return of_node;
    return session_.track_begin + (now - std::min(now, session_.begin));
  }

  std::int64_t WallTimeOf(std::uint64_t time) const {
    return session_.node->recording().wall_begin +
           static_cast<std::int64_t>(time / kNanosecondsPerMicrosecond);
  }

  static std::int64_t Microseconds(WallTime time) { return time.time_since_epoch().count(); }
  static std::uint64_t Nanoseconds(TimePoint time) {
    return static_cast<std::uint64_t>(time.time_since_epoch().count() * kNanosecondsPerSecond);
  }

  // Threads are counted as the recorder counts them.
  std::uint16_t Thread() {
    thread_local int process = 0;
    thread_local std::uint16_t thread = 0;
    if (process != ::getpid()) {
      process = ::getpid();
      thread = session_.threads++;
    }
    return thread;
  }

  // The driver's own text for a code, where the recorded program asked for it. Texts live for ever:
  // C callers keep pointers.
  std::uintptr_t ErrorText(std::uintptr_t code) {
    const auto number = static_cast<std::uint32_t>(code);
    std::string text = fmt::format("Error {} (replayed)", number);
    if (number == nvml::kDriverNotLoaded && !refusal_.empty()) text = refusal_;
    if (session_.node)
      for (const auto& recorded : session_.node->recording().calls)
        if (recorded.call.header.function == special_.error_string &&
            recorded.call.inputs[0].size() == sizeof number &&
            recording::Load<std::uint32_t>(recorded.call.inputs[0].data()) == number)
          text = std::string(recorded.call.outputs[0]);
    return reinterpret_cast<std::uintptr_t>(texts_.insert(text).first->c_str());
  }

  // The lock and the session may have been in use by threads that the child does not have.
  void BeginChild() {
    mutex_.release();  // NOLINT(bugprone-unused-return-value)
    mutex_ = std::make_unique<std::mutex>();
    abandoned_.push_back(std::make_unique<Session>(std::exchange(session_, Session{})));
  }

  // Protects all below. Replaced in a forked child.
  std::unique_ptr<std::mutex> mutex_ = std::make_unique<std::mutex>();
  SystemClock clock_;
  const Special special_ = FindSpecial();
  Handles handles_;
  Session session_;
  Question question_;
  std::string asked_;
  std::string refusal_;
  std::set<std::string> texts_;
  std::vector<std::unique_ptr<Session>> abandoned_;  // Sessions of parents.
};

}  // namespace

std::uintptr_t Answer(std::uint16_t function, const Registers& registers) {
  return Player::Instance().Answer(function, registers);
}

}  // namespace zeus::nvml_replay
