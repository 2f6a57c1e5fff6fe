#include "zeus/device/nvml/nvml_discovery.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "zeus/base/detached_call.h"
#include "zeus/base/text.h"
#include "zeus/device/nvml/nvml_gpu.h"
#include "zeus/device/nvml/nvml_readers.h"
#include "zeus/device/nvml/nvml_session.h"
#include "zeus/device/nvml/partitions.h"
#include "zeus/device/visible_devices.h"

namespace zeus {
namespace nvml {
namespace {

constexpr const char* kGpus = "NVIDIA GPUs";
constexpr const char* kVisibleVariable = "CUDA_VISIBLE_DEVICES";
constexpr const char* kOrderVariable = "CUDA_DEVICE_ORDER";

// A GPU of the machine, whether or not this process may use it.
struct Board {
  unsigned index = 0;  // As NVML and nvidia-smi count.
  Device device = nullptr;
  Result<GpuIdentity> identity;  // The reason if it cannot be used.
  std::vector<std::string> partitions{};
};

// A board that this process may use, opened.
struct OpenedGpu {
  std::unique_ptr<NvmlGpu> gpu;
  bool mig_mode = false;
};

// The time that the driver has to answer, counted from when the look at it begins.
class AnswerTime {
 public:
  explicit AnswerTime(const Surroundings& surroundings)
      : clock_(surroundings.clock),
        limit_(surroundings.answer_within),
        begin_(surroundings.clock.Now()) {}

  // Asks all questions. With a limit they are asked at the same time, each on a thread of its own,
  // and one that is not answered within `share` of the time that is left has no value: its thread
  // goes on, so questions own what they use.
  template <typename T>
  std::vector<std::optional<T>> Ask(const std::vector<std::function<T()>>& questions,
                                    double share = 1) const {
    std::vector<std::optional<T>> answers;
    if (!limit_) {
      for (const auto& question : questions) answers.push_back(question());
      return answers;
    }
    const TimePoint now = clock_.Now();
    const TimePoint deadline = now + share * (*limit_ - (now - begin_));
    std::vector<std::unique_ptr<DetachedCall<T>>> calls;
    for (const auto& question : questions)
      calls.push_back(std::make_unique<DetachedCall<T>>(question));
    for (const auto& call : calls) answers.push_back(call->TakeWithin(deadline - clock_.Now()));
    return answers;
  }

  Error NoAnswer() const {
    return {ErrorCode::kUnavailable,
            fmt::format("the driver did not answer within {:.3g} s", limit_->count())};
  }
  bool IsNoAnswer(const Error& error) const {
    return limit_ && error.message == NoAnswer().message;
  }

 private:
  Clock& clock_;
  std::optional<Seconds> limit_;
  TimePoint begin_;
};

std::optional<std::string> Variable(const Surroundings& surroundings, const char* name) {
  return surroundings.environment ? surroundings.environment(name) : std::nullopt;
}

Absence ToAbsence(std::string what, const Error& error) {
  ProblemAndRemedy split = SplitRemedy(error);
  // Root is needed for knobs, not for looking: what stands in the way here is a device file.
  if (error.code == ErrorCode::kPermissionDenied)
    split.remedy = "give the process access to /dev/nvidiactl and /dev/nvidia*";
  return {
      .what = std::move(what), .reason = std::move(split.problem), .fix = std::move(split.remedy)};
}

Findings Nothing(Absence absence) {
  Findings findings;
  findings.absent.push_back(std::move(absence));
  return findings;
}

Board FindBoard(const NvmlApi& api, unsigned index) {
  Device device = nullptr;
  const Return code = Call(api.get_handle_by_index, index, &device);
  if (code != kSuccess) return {index, nullptr, NvmlError(code, fmt::format("NVML GPU {}", index))};
  auto identity = ReadIdentity({.api = api, .device = device});
  if (!identity.ok())
    identity = std::move(identity).error().While(fmt::format("NVML GPU {}", index));
  Board board{index, device, std::move(identity)};
  if (board.identity.ok()) board.partitions = ReadPartitions({.api = api, .device = device});
  return board;
}

// NVML initialised, and the number of its boards.
struct Driver {
  std::shared_ptr<NvmlSession> session;
  unsigned boards = 0;
};

Result<Driver> OpenDriver(const NvmlApi& api, const AnswerTime& time) {
  const auto open = [api]() -> Result<Driver> {
    Driver driver;
    ZEUS_TRY(driver.session, NvmlSession::Open(api));
    ZEUS_RETURN_IF_ERROR(ToStatus(Call(api.get_count, &driver.boards), "count GPUs"));
    return driver;
  };
  auto driver = std::move(time.Ask<Result<Driver>>({open}).front());
  return driver ? *std::move(driver) : Result<Driver>(time.NoAnswer());
}

// In PCI order. NVML promises no order of its own; a lost board has no address to sort by, and
// then NVML's order is the best guess.
std::vector<Board> FindBoards(const Driver& driver, const AnswerTime& time) {
  std::vector<std::function<Board()>> questions;
  for (unsigned i = 0; i < driver.boards; ++i)
    questions.emplace_back([session = driver.session, i] {
      const auto use = session->Begin();
      return FindBoard(session->api(), i);
    });
  std::vector<Board> boards;
  // Half of the time is for opening those that answered.
  for (auto& answer : time.Ask(questions, 0.5)) {
    const auto index = static_cast<unsigned>(boards.size());
    boards.push_back(answer ? *std::move(answer) : Board{index, nullptr, time.NoAnswer()});
  }
  const auto known = [](const Board& board) { return board.identity.ok(); };
  if (std::ranges::all_of(boards, known)) {
    std::ranges::stable_sort(boards, {},
                             [](const Board& board) { return board.identity.value().pci_address; });
  }
  return boards;
}

std::vector<SelectableBoard> Selectable(const std::vector<Board>& boards) {
  std::vector<SelectableBoard> selectable;
  for (const Board& board : boards) {
    if (!board.identity.ok()) {
      selectable.push_back({.uuid = "", .partitions = {}, .identified = false});
      continue;
    }
    selectable.push_back({.uuid = board.identity.value().uuid, .partitions = board.partitions});
  }
  return selectable;
}

bool IsMixed(const std::vector<Board>& boards) {
  std::vector<std::string> models;
  for (const Board& board : boards) {
    if (board.identity.ok()) models.push_back(board.identity.value().model);
  }
  return std::ranges::adjacent_find(models, std::not_equal_to()) != models.end();
}

Absence UncertainNumbering() {
  return {.what = "CUDA's numbering of the GPUs",
          .reason =
              "this node has GPUs of several models and CUDA numbers the fastest first, by a "
              "rule that only CUDA knows; Zeus counts in PCI order",
          .fix = fmt::format("export {}=PCI_BUS_ID, or name GPUs by UUID in {}", kOrderVariable,
                             kVisibleVariable)};
}

Absence BoardLevelOnly(const std::string& name, const GpuIdentity& identity) {
  return {.what = fmt::format("{}: energy of the MIG instance", name),
          .reason = fmt::format("the driver tells energy, power and limits of the whole board {} "
                                "only, what other instances on it use included",
                                identity.uuid),
          .fix = ""};
}

Absence InstancesUnseen(const std::string& name, unsigned index) {
  return {.what = fmt::format("{}: energy of each MIG instance", name),
          .reason =
              "the GPU is in MIG mode, and its driver tells energy, power and limits of the whole "
              "board only, and no utilisation",
          .fix = fmt::format("sudo nvidia-smi -i {} -mig 0", index)};
}

// A board that could not be opened keeps its number.
Absence Lost(const std::string& name, const VisibleBoard& visible, const Error& error) {
  Absence absence = ToAbsence(name, error);
  if (!visible.guessed_from.empty()) {
    absence.reason = fmt::format("{} may be the GPU that cannot be identified ({})",
                                 Printable(visible.guessed_from), absence.reason);
  }
  return absence;
}

Absence NothingVisible(const std::string& value) {
  return {.what = kGpus,
          .reason = fmt::format("{}={} hides all of them", kVisibleVariable, Quote(value)),
          .fix = fmt::format("unset {}", kVisibleVariable)};
}

using Opening = Result<std::shared_ptr<OpenedGpu>>;

Opening OpenBoard(const std::shared_ptr<NvmlSession>& session, const Board& board,
                  const std::string& name) {
  if (!board.identity.ok()) return board.identity.error();
  const auto use = session->Begin();
  auto opened = std::make_shared<OpenedGpu>();
  ZEUS_TRY(opened->gpu, NvmlGpu::Open(session, board.device, name));
  opened->mig_mode = InMigMode({.api = session->api(), .device = board.device});
  return opened;
}

struct VisibleBoards {
  const std::vector<Board>& boards;
  const std::vector<VisibleBoard>& visible;
  unsigned first_index;
};

void OpenVisible(const std::shared_ptr<NvmlSession>& session, const VisibleBoards& wanted,
                 const AnswerTime& time, Findings& findings) {
  const auto name_of = [&](std::size_t i) { return fmt::format("gpu:{}", wanted.first_index + i); };
  std::vector<std::function<Opening()>> questions;
  for (std::size_t i = 0; i < wanted.visible.size(); ++i)
    questions.emplace_back([session, board = wanted.boards[wanted.visible[i].board],
                            name = name_of(i)] { return OpenBoard(session, board, name); });
  auto answers = time.Ask(questions);
  for (std::size_t i = 0; i < wanted.visible.size(); ++i) {
    const VisibleBoard& visible = wanted.visible[i];
    const Opening opened = answers[i] ? *std::move(answers[i]) : Opening(time.NoAnswer());
    if (!opened.ok()) {
      findings.absent.push_back(Lost(name_of(i), visible, opened.error()));
      findings.absent.back().timed_out = time.IsNoAnswer(opened.error());
      ++findings.lost_gpus;
      continue;
    }
    OpenedGpu& found = *opened.value();
    if (visible.share == BoardShare::kPartition) {
      findings.absent.push_back(BoardLevelOnly(name_of(i), found.gpu->identity()));
    } else if (found.mig_mode) {
      findings.absent.push_back(InstancesUnseen(name_of(i), wanted.boards[visible.board].index));
    }
    findings.gpus.push_back(std::move(found.gpu));
  }
}

}  // namespace

Result<Findings> DiscoverWith(const NvmlApi& api, const Surroundings& surroundings) {
  const AnswerTime time(surroundings);
  const auto driver = OpenDriver(api, time);
  if (!driver.ok()) {
    Absence absence = ToAbsence(kGpus, driver.error());
    absence.timed_out = time.IsNoAnswer(driver.error());
    return Nothing(std::move(absence));
  }
  const std::vector<Board> boards = FindBoards(driver.value(), time);
  if (boards.empty())
    return Nothing({.what = kGpus, .reason = "the driver is loaded but finds no GPU", .fix = ""});

  const auto value = Variable(surroundings, kVisibleVariable);
  ZEUS_TRY(const DeviceOrder order, ParseDeviceOrder(Variable(surroundings, kOrderVariable)));
  ZEUS_TRY(const std::vector<VisibleBoard> visible,
           SelectVisibleBoards(kVisibleVariable, value, Selectable(boards)));

  Findings findings;
  if (visible.empty()) findings.absent.push_back(NothingVisible(*value));
  const bool numbered = !value || SelectsByIndex(value);
  if (order == DeviceOrder::kFastestFirst && numbered && !visible.empty() && IsMixed(boards))
    findings.absent.push_back(UncertainNumbering());
  OpenVisible(driver.value().session, {boards, visible, surroundings.first_gpu_index}, time,
              findings);
  return findings;
}

}  // namespace nvml

Result<Findings> DiscoverNvidia(const Surroundings& surroundings) {
  const auto chosen = nvml::Variable(surroundings, "ZEUS_NVML_LIBRARY");
  const bool overridden = chosen && !chosen->empty();
  const auto api = nvml::LoadNvml(overridden ? chosen : std::nullopt);
  if (api.ok()) return nvml::DiscoverWith(api.value(), surroundings);
  return nvml::Nothing({.what = nvml::kGpus,
                        .reason = api.error().message,
                        .fix = overridden ? "unset ZEUS_NVML_LIBRARY, or set it to the path of NVML"
                                          : "install the NVIDIA driver, or set ZEUS_NVML_LIBRARY"});
}

}  // namespace zeus
