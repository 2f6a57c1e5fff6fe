#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/result.h"
#include "zeus/optimizer/power_limit/profile.h"
#include "zeus/session/epoch_sweep.h"
#include "zeus/session/profiled_devices.h"
#include "zeus/session/progress.h"
#include "zeus/session/sweep.h"

namespace zeus {

enum class LimitMode {
  kJit,      // Tried while the command runs; the best one is kept.
  kObserve,  // Tried, and put back.
  kMax,      // The ceiling: what was found, or the highest that the devices allow.
  kFound,    // Left as it is.
  kFixed,
};

// What `zeus train` is to do about the power limit.
struct LimitPlan {
  LimitMode mode = LimitMode::kJit;
  Watts fixed{0};
  std::vector<Setting> settings{};  // Given ones, fastest first; empty: by stride.
  Setting stride = Watts(0);        // 0: what suits the knob.
  Ceiling ceiling = Ceiling::kAsFound;
  SweepPlan slices{};                // With --progress; without, an epoch is a slice.
  std::filesystem::path profiles{};  // Where they are kept; empty: nowhere.
};

// The power limit of one run of a command. What was measured in earlier runs with the same batch
// size is not measured again; what this one could not finish, the next one does. Nothing that goes
// wrong stops the run: the limit is put back, and trouble() tells why. One owner.
class LimitSearch {
 public:
  struct Parts {
    Clock& clock;
    ProfiledDevices& devices;
    ProgressSeries* progress;  // Null when the command tells of epochs only.
  };
  struct Run {
    std::string job{};
    int batch_size = 0;
    double eta = 0.5;
  };

  // The parts and the plan must outlive it.
  LimitSearch(const Parts& parts, const LimitPlan& plan, const Run& run);
  ~LimitSearch() { End(); }
  LimitSearch(const LimitSearch&) = delete;
  LimitSearch& operator=(const LimitSearch&) = delete;

  // To be called before the command is started.
  void Begin();
  // Does what is due; returns when to come again.
  TimePoint Step();
  void EpochEnded();
  // Of which it is not known when they ended.
  void EpochsLumped();
  // Marks the measurements of this run as useless: none is kept.
  void Forget() { worthless_ = true; }
  // The command has ended: puts the limit back and keeps what was learned.
  void End();

  // The limit changes no more in this run.
  bool settled() const { return settled_; }
  std::optional<Watts> in_force();
  // Time and energy of an epoch at the limit that was chosen, or at the best one so far, where
  // epochs are what is measured.
  std::optional<ProfilePoint> EpochAtBest() const;
  const std::optional<Error>& trouble() const { return trouble_; }
  // Whether the limit could not be put back: trouble() says so.
  bool left_changed() const { return left_changed_; }
  // Whether the limit was turned at all in this run.
  bool turned() const { return turned_; }
  // Whether anything was tried in this run.
  bool searched() const { return searched_; }
  const Profile& profile() const { return profile_; }
  std::optional<Setting> chosen() const { return chosen_; }

 private:
  Status Prepare();
  Status StartSearch();
  Status Decide();
  Status Merge();
  Status Keep() const;
  void Settle(const Status& status);
  void PutBack();
  void SayLeftOut();
  // The points of the profile that may be set.
  Profile Allowed() const;
  ProfileContext Context() const;

  Parts parts_;
  const LimitPlan& plan_;
  Run run_;
  std::vector<Setting> wanted_;   // All that are to be known.
  std::vector<Setting> missing_;  // Of them, not known before this run.
  Profile known_;                 // Before this run.
  Profile profile_;               // With what this run added.
  std::unique_ptr<Sweep> sweep_;
  std::unique_ptr<EpochSweep> epochs_;
  std::optional<Setting> chosen_;
  std::optional<Setting> ceiling_;
  bool left_changed_ = false;
  bool searched_ = false;
  bool turned_ = false;
  bool worthless_ = false;
  bool settled_ = false;
  bool ended_ = false;
  std::optional<Error> trouble_;
};

}  // namespace zeus
