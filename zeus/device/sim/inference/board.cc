#include "zeus/device/sim/inference/board.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace zeus::sim {
namespace {

constexpr Seconds kPresent{std::numeric_limits<double>::infinity()};

class GpusInProcess final : public CoreAccess {
 public:
  explicit GpusInProcess(std::vector<SimulatedGpu*> gpus) : gpus_(std::move(gpus)) {}

  unsigned count() const override { return static_cast<unsigned>(gpus_.size()); }
  Status Look(unsigned gpu, const std::function<Status(GpuCore&)>& look) override {
    return gpus_[gpu]->ChangeAt(Seconds(0), look);
  }
  Status Change(unsigned gpu, Seconds time,
                const std::function<Status(GpuCore&)>& change) override {
    return gpus_[gpu]->ChangeAt(time, change);
  }

 private:
  std::vector<SimulatedGpu*> gpus_;
};

class GpusOfNode final : public CoreAccess {
 public:
  GpusOfNode(SharedNode& node, std::vector<unsigned> gpus) : node_(node), gpus_(std::move(gpus)) {}

  unsigned count() const override { return static_cast<unsigned>(gpus_.size()); }
  Status Look(unsigned gpu, const std::function<Status(GpuCore&)>& look) override {
    ZEUS_TRY(SharedNode::View view, node_.Read(gpus_[gpu], Seconds(0)));
    return look(view.core);
  }
  Status Change(unsigned gpu, Seconds time,
                const std::function<Status(GpuCore&)>& change) override {
    return node_.UpdateAt(gpus_[gpu], time, change);
  }

 private:
  SharedNode& node_;
  std::vector<unsigned> gpus_;
};

}  // namespace

std::unique_ptr<CoreAccess> AccessTo(std::vector<SimulatedGpu*> gpus) {
  return std::make_unique<GpusInProcess>(std::move(gpus));
}

std::unique_ptr<CoreAccess> AccessTo(SharedNode& node, std::vector<unsigned> gpus) {
  return std::make_unique<GpusOfNode>(node, std::move(gpus));
}

Result<std::unique_ptr<EngineBoard>> EngineBoard::Attach(std::unique_ptr<CoreAccess> gpus,
                                                         const LoadSpec& load) {
  if (gpus->count() == 0)
    return Error{ErrorCode::kInvalidArgument, "an engine needs a GPU: name one at least"};
  const unsigned count = gpus->count();
  // If one GPU fails, the destructor detaches the engine from those before it.
  std::unique_ptr<EngineBoard> board(new EngineBoard(std::move(gpus), load));
  for (unsigned gpu = 0; gpu < count; ++gpu) ZEUS_RETURN_IF_ERROR(board->AttachTo(gpu));
  return board;
}

EngineBoard::~EngineBoard() {
  // Where this fails the load ends when its heartbeats stop.
  for (unsigned gpu = 0; gpu < gpus(); ++gpu)
    (void)access_->Change(gpu, kPresent, [&](GpuCore& core) {
      core.DetachLoad(attachments_[gpu].load);
      return Ok();
    });
}

Status EngineBoard::AttachTo(unsigned gpu) {
  Attachment attachment;
  ZEUS_RETURN_IF_ERROR(access_->Change(gpu, kPresent, [&](GpuCore& core) -> Status {
    if (model_ != nullptr && model_->id != core.model().id)
      return Error{ErrorCode::kInvalidArgument, "the GPUs of one engine must be of one kind, not " +
                                                    std::string(model_->id) + " and " +
                                                    std::string(core.model().id)};
    model_ = &core.model();
    ZEUS_TRY(attachment.load, core.AttachLoad(load_));
    return Ok();
  }));
  attachments_.push_back(attachment);
  return Ok();
}

// This process was stopped for so long that its load ended: a new one takes its place.
Status EngineBoard::Revive(GpuCore& core, Attachment& attachment) {
  if (core.Engine(attachment.load).ok()) return Ok();
  ZEUS_TRY(attachment.load, core.AttachLoad(load_));
  attachment.earlier += std::exchange(attachment.seen, Joules(0));
  return Ok();
}

Result<Seconds> EngineBoard::Start(Seconds time, const IterationWork& work) {
  Seconds begin = time;
  Seconds first{std::numeric_limits<double>::infinity()};
  Seconds last{0};
  for (unsigned gpu = 0; gpu < gpus(); ++gpu) {
    Attachment& attachment = attachments_[gpu];
    const auto start = [&](GpuCore& core) -> Status {
      ZEUS_RETURN_IF_ERROR(Revive(core, attachment));
      ZEUS_RETURN_IF_ERROR(core.BeginIteration(attachment.load, work));
      ZEUS_TRY(const EngineState engine, core.Engine(attachment.load));
      begin = std::max(begin, core.now());
      first = std::min(first, engine.end);
      last = std::max(last, engine.end);
      return Ok();
    };
    ZEUS_RETURN_IF_ERROR(access_->Change(gpu, time, start));
  }
  if (first == last) return begin;
  for (unsigned gpu = 0; gpu < gpus(); ++gpu)
    ZEUS_RETURN_IF_ERROR(access_->Change(
        gpu, begin, [&](GpuCore& core) { return core.SpinUntil(attachments_[gpu].load, last); }));
  return begin;
}

template <class Advance>
Result<EngineBoard::State> EngineBoard::ReadAfter(Advance advance) {
  State state{.clock = model_->graphics_clock.max};
  for (unsigned gpu = 0; gpu < gpus(); ++gpu) {
    Attachment& attachment = attachments_[gpu];
    ZEUS_RETURN_IF_ERROR(access_->Look(gpu, [&](GpuCore& core) -> Status {
      advance(core, attachment.load);
      state.exact += core.exact_energy();
      state.clock = std::min(state.clock, core.clock(ClockDomain::kGraphics));
      if (const auto engine = core.Engine(attachment.load); engine.ok()) {
        attachment.seen = engine.value().energy;
        state.resting = state.resting && engine.value().resting;
        state.end = std::max(state.end, engine.value().end);
      }
      return Ok();
    }));
    state.engine += attachment.earlier + attachment.seen;
  }
  return state;
}

Result<EngineBoard::State> EngineBoard::ReadWhileIterating(Seconds time) {
  return ReadAfter(
      [time](GpuCore& core, std::uint32_t load) { core.AdvanceWhileIterating(load, time); });
}

Result<EngineBoard::State> EngineBoard::Read(Seconds time) {
  return ReadAfter([time](GpuCore& core, std::uint32_t) { core.AdvanceTo(time); });
}

Status EngineBoard::Heartbeat(Seconds time) {
  for (unsigned gpu = 0; gpu < gpus(); ++gpu) {
    Attachment& attachment = attachments_[gpu];
    const auto beat = [&](GpuCore& core) -> Status {
      ZEUS_RETURN_IF_ERROR(Revive(core, attachment));
      ZEUS_TRY(attachment.load, core.Heartbeat(attachment.load, load_));
      return Ok();
    };
    ZEUS_RETURN_IF_ERROR(access_->Change(gpu, time, beat));
  }
  return Ok();
}

}  // namespace zeus::sim
