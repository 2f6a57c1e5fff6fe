#include "zeus/daemon/watched_actuator.h"

#include <unistd.h>

#include <utility>

namespace zeus::daemon {

Seconds CallWatch::InCallFor() const {
  const double since = since_;
  return since == kNoCall ? Seconds(0) : clock_.Now().time_since_epoch() - Seconds(since);
}

CallWatch::Call::Call(CallWatch& watch) : watch_(watch) {
  watch_.since_ = watch_.clock_.Now().time_since_epoch().count();
}

CallWatch::Call::~Call() {
  const Seconds duration = watch_.InCallFor();
  watch_.since_ = kNoCall;
  while (watch_.abandoned_) ::pause();
  if (watch_.called_) watch_.called_(duration);
}

namespace {

class WatchedActuator final : public KnobActuator {
 public:
  WatchedActuator(std::unique_ptr<KnobActuator> actuator, CallWatch& watch)
      : actuator_(std::move(actuator)), watch_(watch) {}

  const KnobDevice& device() const override { return actuator_->device(); }
  KnobKind kind() const override { return actuator_->kind(); }
  Watts max_power() const override { return actuator_->max_power(); }

  Result<KnobChoices> Choices() override {
    const CallWatch::Call call(watch_);
    return actuator_->Choices();
  }
  Result<KnobState> Read() override {
    const CallWatch::Call call(watch_);
    return actuator_->Read();
  }
  Result<std::optional<Setting>> InForce() override {
    const CallWatch::Call call(watch_);
    return actuator_->InForce();
  }
  void Prepare() override {
    const CallWatch::Call call(watch_);
    actuator_->Prepare();
  }
  Status Apply(const Setting& setting) override {
    const CallWatch::Call call(watch_);
    return actuator_->Apply(setting);
  }
  Status ApplyRange(const ClockRange& range) override {
    const CallWatch::Call call(watch_);
    return actuator_->ApplyRange(range);
  }
  Status PutBack(const KnobState& state) override {
    const CallWatch::Call call(watch_);
    return actuator_->PutBack(state);
  }
  Result<std::string> PutToDefault() override {
    const CallWatch::Call call(watch_);
    return actuator_->PutToDefault();
  }
  std::optional<Joules> EpochMark() override {
    const CallWatch::Call call(watch_);
    return actuator_->EpochMark();
  }
  std::uint64_t ReloadsSeen() override {
    const CallWatch::Call call(watch_);
    return actuator_->ReloadsSeen();
  }

 private:
  const std::unique_ptr<KnobActuator> actuator_;
  CallWatch& watch_;
};

}  // namespace

std::unique_ptr<KnobActuator> Watched(std::unique_ptr<KnobActuator> actuator, CallWatch& watch) {
  return std::make_unique<WatchedActuator>(std::move(actuator), watch);
}

ReadAhead::ReadAhead(KnobActuator& actuator, const KnobState& state)
    : actuator_(actuator), state_(state), mark_(actuator.EpochMark()) {}

Result<KnobState> ReadAhead::Read() {
  if (!state_) {
    ZEUS_TRY(state_, actuator_.Read());
  }
  KnobState state = *state_;
  if (kind() != KnobKind::kPersistence) state.persistence.reset();
  return state;
}

Status ReadAhead::PutBack(const KnobState& state) {
  state_.reset();
  return actuator_.PutBack(state);
}

}  // namespace zeus::daemon
