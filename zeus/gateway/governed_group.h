#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/gateway/engine_knowledge_store.h"
#include "zeus/gateway/request_observer.h"
#include "zeus/optimizer/clock/clock_knob.h"
#include "zeus/optimizer/clock/governor.h"

namespace zeus::gateway {

// How far a governor goes.
enum class GovernorSwitch {
  kOff,      // It watches, so that it knows the engine when it is switched on.
  kObserve,  // It decides and estimates what it would have saved; the clock is left alone.
  kOn,
};
// "off", "observe", "on"
const char* GovernorSwitchName(GovernorSwitch mode);

// The GPUs of one upstream.
struct GovernedGpus {
  std::size_t upstream = 0;
  std::string upstream_name{};
  std::string gpus{};       // "gpu:0,gpu:1"
  std::string gpu_model{};  // "2 x NVIDIA H100 80GB HBM3": what was learned is kept under it.
  std::unique_ptr<ClockKnob> knob{};
  // Their energy counters, summed; nullopt while no sensor answers. No driver call.
  std::function<std::optional<Joules>()> energy{};
};

// The state of a group for people and metrics.
struct GroupStatus {
  std::string upstream{};
  std::string gpus{};
  GovernorSwitch mode = GovernorSwitch::kOff;
  // "waiting" before the GPUs have been seen at work, "off", or the name of a ClockReason.
  std::string state = "waiting";
  std::string text{};  // One sentence.
  bool stands_still = false;
  std::optional<Hertz> clock{};   // The one at which the slowest GPU runs.
  std::optional<Hertz> wanted{};  // The one that is right now; an observer does not lock it.
  std::optional<Hertz> locked{};
  std::optional<Hertz> lowest{};
  std::optional<Hertz> highest{};
  std::size_t in_flight = 0;
  std::uint64_t changes = 0;  // How often the clock was locked.
  bool learned = false;
  // Sums since the start, without the time for which it was off.
  GovernorStatus sums{};
};

// The governor of one upstream's GPUs with its knob. It locks the clock only after the GPUs were
// seen at work without a lock of another program: an idle GPU does not say whether one is in force,
// and a lock of the administrator must not be raised. One owner; every call but OnRequest() may
// wait for the driver.
class GovernedGroup {
 public:
  // The store may be null; otherwise it must outlive the group.
  GovernedGroup(GovernedGpus gpus, const ServiceTargets& targets,
                const EngineKnowledgeStore* store);

  std::size_t upstream() const { return gpus_.upstream; }

  void OnRequest(const RequestEvent& event);
  // Events were lost: forgets all requests, and the governor that counted on them.
  void ForgetRequests();
  // Whether a decision should not wait for the next period.
  bool WantsDecision() const;
  // Reads the GPUs, decides, and locks the clock.
  void Decide(TimePoint now, GovernorSwitch mode);
  // Keeps what was learned and puts the clock back. Nothing is decided after it.
  Status End();

  GroupStatus status() const;

 private:
  // A request in flight, to be told to a governor that is made meanwhile.
  struct InFlight {
    TimePoint arrival{};
    double prompt_tokens = 0;
    TimePoint first{};
    TimePoint last{};
    double tokens = 0;
  };

  void ChangeMode(GovernorSwitch mode);
  void DropGovernor();
  // Returns false, with the reason in the status, when there can be none now.
  bool MakeGovernor();
  void RetellRequests();
  // Why the clock is not ours to set; nullopt when it is. Sets confirmed_.
  std::optional<std::string> FindObstacle();
  void Wait();
  void StandStill(const std::string& sentence);
  void Apply(const ClockDecision& decision);
  void KeepKnowledge();
  EngineName Engine() const;

  GovernedGpus gpus_;
  const ServiceTargets targets_;
  const EngineKnowledgeStore* const store_;
  GovernorSwitch mode_ = GovernorSwitch::kOff;
  std::optional<ClockGovernor> governor_{};
  std::optional<EngineKnowledge> knowledge_{};  // From the store or from an earlier governor.
  bool store_asked_ = false;
  bool confirmed_ = false;  // The GPUs have shown that no other program has locked their clock.
  std::optional<std::string> refused_{};  // Why the last Lock() failed.
  std::unordered_map<InferenceRequestId, InFlight> in_flight_{};
  std::map<std::string, std::uint64_t> models_{};  // Requests by model.
  TimePoint next_save_{};
  GovernorStatus sums_{};  // Adds up the governors before the present one.
  GroupStatus status_{};
};

}  // namespace zeus::gateway
