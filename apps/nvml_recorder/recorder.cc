#include "apps/nvml_recorder/recorder.h"

#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/random.h"
#include "zeus/device/nvml/nvml_abi.h"
#include "zeus/recording/spool.h"

namespace zeus::nvml_recorder {
namespace {

using recording::Function;
using recording::Registers;

using DriverFunction = std::uintptr_t (*)(std::uintptr_t, std::uintptr_t, std::uintptr_t,
                                          std::uintptr_t, std::uintptr_t, std::uintptr_t);

std::uint64_t Nanoseconds(TimePoint time) {
  constexpr double kNanosecondsPerSecond = 1e9;
  return static_cast<std::uint64_t>(time.time_since_epoch().count() * kNanosecondsPerSecond);
}

// The driver's own functions, by number; null where this driver lacks one.
class Driver {
 public:
  Driver() : functions_(recording::Functions().size()) {
    const char* const path = std::getenv(recording::kDriverVariable);
    void* const library = path == nullptr ? nullptr : ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return;
    loaded_ = true;
    for (std::size_t i = 0; i < functions_.size(); ++i)
      functions_[i] = reinterpret_cast<DriverFunction>(
          ::dlsym(library, std::string(recording::Functions()[i].name).c_str()));
  }

  std::uintptr_t Call(std::uint16_t function, const Registers& r) const {
    const DriverFunction driver = functions_[function];
    if (driver != nullptr) return driver(r[0], r[1], r[2], r[3], r[4], r[5]);
    return static_cast<std::uintptr_t>(loaded_ ? nvml::kFunctionNotFound : nvml::kLibraryNotFound);
  }

 private:
  std::vector<DriverFunction> functions_;
  bool loaded_ = false;
};

// GPUs are known by a number that follows from their UUID, so that it is the same in all processes;
// other handles are counted.
class Handles final : public recording::HandleNumbers {
 public:
  explicit Handles(const Driver& driver)
      : driver_(driver), uuid_(recording::FindFunction("nvmlDeviceGetUUID").value_or(0)) {}

  // Asks the driver for the identity of a handle that it has just given, the first time.
  void Meet(std::uintptr_t device) {
    if (device == 0 || devices_.contains(device)) return;
    std::array<char, nvml::kUuidBufferSize> uuid{};
    const auto code = static_cast<nvml::Return>(
        driver_.Call(uuid_, {device, reinterpret_cast<std::uintptr_t>(uuid.data()), uuid.size()}));
    std::uint32_t number = 2166136261U;  // FNV-1a
    const auto add = [&](unsigned char byte) { number = (number ^ byte) * 16777619U; };
    if (code == nvml::kSuccess)
      for (const char c : uuid) add(static_cast<unsigned char>(c));
    else
      for (std::size_t i = 0; i < sizeof device; ++i)
        add(static_cast<unsigned char>(device >> (8 * i)));
    devices_.emplace(device, std::min(number, recording::kUnknownHandle - 1));
  }

  std::uint32_t DeviceNumber(std::uintptr_t device) override {
    if (device == 0) return recording::kNoHandle;
    const auto known = devices_.find(device);
    return known == devices_.end() ? recording::kUnknownHandle : known->second;
  }
  std::uint32_t OtherNumber(std::uintptr_t handle) override {
    if (handle == 0) return recording::kNoHandle;
    const auto next = static_cast<std::uint32_t>(others_.size());
    return others_.try_emplace(handle, next).first->second;
  }
  std::uintptr_t Device(std::uint32_t /*number*/) override { return 0; }
  std::uintptr_t Other(std::uint32_t /*number*/) override { return 0; }

 private:
  const Driver& driver_;
  const std::uint16_t uuid_;
  std::unordered_map<std::uintptr_t, std::uint32_t> devices_;
  std::unordered_map<std::uintptr_t, std::uint32_t> others_;
};

// The process-wide state: there is one, because C functions have no object to hold it.
class Recorder {
 public:
  static Recorder& Instance() {
    // Never destroyed, because programs call NVML from exit handlers.
    static Recorder* const instance = [] {
      ::pthread_atfork([] { Instance().mutex_->lock(); }, [] { Instance().mutex_->unlock(); },
                       [] { Instance().BeginChild(); });
      return new Recorder;
    }();
    return *instance;
  }

  std::uintptr_t Forward(std::uint16_t number, const Registers& registers) {
    const Function& function = recording::Functions()[number];
    Scratch& scratch = OfThisThread();
    // A driver that calls its own functions by name may reach this library.
    if (scratch.busy) return driver_.Call(number, registers);
    scratch.busy = true;
    const std::uintptr_t answer = Record(number, function, registers, scratch);
    scratch.busy = false;
    return answer;
  }

 private:
  struct Scratch {
    bool busy = false;
    recording::Question question;
    std::array<std::string, recording::kMaxArguments> answer;
    std::string bytes;
  };

  // The number of a thread, and the process in which it was given. It is needed up to the last
  // exit handler, so nothing destroys it.
  struct ThreadNumber {
    std::uint64_t process = 0;
    std::uint16_t thread = 0;
  };

  std::uintptr_t Record(std::uint16_t number, const Function& function, const Registers& registers,
                        Scratch& scratch) {
    {
      const std::lock_guard lock(*mutex_);
      recording::ReadQuestion(function, registers, handles_, scratch.question);
    }
    const TimePoint begin = clock_.Now();
    const std::uintptr_t answer = driver_.Call(number, registers);
    const Seconds duration = clock_.Now() - begin;
    const bool is_text = number == error_string_;
    const auto code = is_text ? 0 : static_cast<std::int32_t>(answer);
    const std::lock_guard lock(*mutex_);
    if (code == nvml::kSuccess && !is_text) MeetDevices(function, registers, scratch.question.room);
    recording::ReadAnswer(function, registers, scratch.question, code, handles_, scratch.answer);
    // NOLINTNEXTLINE(performance-no-int-to-ptr)
    if (is_text && answer != 0) scratch.answer[0] = reinterpret_cast<const char*>(answer);
    scratch.bytes.clear();
    recording::AppendCall({.size = 0,
                           .function = number,
                           .thread = Thread(),
                           .code = code,
                           .duration = Duration(duration),
                           .begin = Nanoseconds(begin)},
                          scratch.question.parts, scratch.answer, scratch.bytes);
    spool_->Write(scratch.bytes);
    return answer;
  }

  Recorder() : handles_(driver_) { spool_ = NewSpool(0); }

  static Scratch& OfThisThread() {
    struct Owner {
      Scratch*& scratch;
      ~Owner() { delete std::exchange(scratch, nullptr); }
    };
    thread_local Scratch* scratch = nullptr;
    if (scratch == nullptr) {
      // Exit handlers run when the owner is gone: what they need is not freed any more.
      scratch = new Scratch;
      thread_local const Owner owner{scratch};
    }
    return *scratch;
  }

  static std::unique_ptr<recording::SpoolWriter> NewSpool(std::uint64_t parent) {
    const char* const folder = std::getenv(recording::kSpoolVariable);
    return std::make_unique<recording::SpoolWriter>(folder == nullptr ? "/nonexistent" : folder,
                                                    SystemEntropy(), parent);
  }

  static std::uint32_t Duration(Seconds duration) {
    constexpr double kNanosecondsPerSecond = 1e9;
    constexpr double kLongest = std::numeric_limits<std::uint32_t>::max();
    return static_cast<std::uint32_t>(
        std::clamp(duration.count() * kNanosecondsPerSecond, 0.0, kLongest));
  }

  std::uint16_t Thread() {
    thread_local ThreadNumber number;
    if (number.process != spool_->process()) {
      number.process = spool_->process();
      number.thread = threads_;
      if (threads_ < std::numeric_limits<std::uint16_t>::max()) ++threads_;
    }
    return number.thread;
  }

  void MeetDevices(const Function& function, const Registers& registers, std::uint32_t room) {
    for (std::size_t i = 0; i < function.arguments.size(); ++i) {
      // NOLINTNEXTLINE(performance-no-int-to-ptr)
      const auto* const place = reinterpret_cast<const std::uintptr_t*>(registers[i]);
      if (place == nullptr) continue;
      const recording::Kind kind = function.arguments[i].kind;
      if (kind == recording::Kind::kOutDevice || kind == recording::Kind::kEvent)
        handles_.Meet(*place);
      if (kind == recording::Kind::kDevices)
        for (std::uint32_t k = 0; k < std::min(room, recording::kMaxAnswerHandles); ++k)
          if (k < Length(function, registers)) handles_.Meet(place[k]);
    }
  }

  static std::uint32_t Length(const Function& function, const Registers& registers) {
    for (std::size_t i = 0; i < function.arguments.size(); ++i)
      if (function.arguments[i].kind == recording::Kind::kCount && registers[i] != 0)
        // NOLINTNEXTLINE(performance-no-int-to-ptr)
        return *reinterpret_cast<const std::uint32_t*>(registers[i]);
    return 0;
  }

  // The lock may not be unlocked by another thread than the one that took it, and the segment of
  // the parent belongs to the parent.
  void BeginChild() {
    mutex_.release();  // NOLINT(bugprone-unused-return-value): see above.
    mutex_ = std::make_unique<std::mutex>();
    const std::uint64_t parent = spool_->process();
    spool_.release();  // NOLINT(bugprone-unused-return-value): its destructor would close it.
    spool_ = NewSpool(parent);
    threads_ = 0;
  }

  // Protects all below. Replaced in a forked child.
  std::unique_ptr<std::mutex> mutex_ = std::make_unique<std::mutex>();
  const SystemClock clock_;
  const Driver driver_;
  Handles handles_;
  std::unique_ptr<recording::SpoolWriter> spool_;
  std::uint16_t threads_ = 0;
  const std::uint16_t error_string_ =
      recording::FindFunction("nvmlErrorString").value_or(std::uint16_t{0xffff});
};

}  // namespace

std::uintptr_t Forward(std::uint16_t function, const Registers& registers) {
  return Recorder::Instance().Forward(function, registers);
}

}  // namespace zeus::nvml_recorder
