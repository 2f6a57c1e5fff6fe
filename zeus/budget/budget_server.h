#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"
#include "zeus/budget/budget_repository.h"
#include "zeus/budget/configuration.h"
#include "zeus/budget/grant_book.h"
#include "zeus/optimizer/budget/solver.h"

namespace zeus::budget {

// Shares out a power budget: puts the book of grants, the solver, targets and the database
// together. Reports may come on any thread; Step() is called by one. The clock and the repository
// must outlive it. Thread-safe.
class BudgetServer {
 public:
  // Begins a start: earlier ones that use the same database grant nothing any more.
  static Result<std::unique_ptr<BudgetServer>> Open(BudgetConfiguration configuration,
                                                    BudgetRepository& repository,
                                                    const Clock& clock);

  // The next grant of the node. kUnavailable while there is none: before the first plan that knows
  // it, and while the database does not answer; its caps stay as they are, and end in time.
  Result<Grant> Report(const NodeReport& report);

  // Decides, stores and hands out. Returns when to come again.
  TimePoint Step();
  // Called, without a lock, when Step() should come at once.
  void OnUrgent(std::function<void()> urgent) { urgent_ = std::move(urgent); }

  // The budget of a domain from now on, over restarts; an empty name is the root.
  struct Wish {
    std::string domain{};
    Watts watts{};
    bool confirmed = false;
  };
  // kConflict, with the effect in words, for a budget that is not enough for the lowest limits or
  // rises by more than a quarter and is not confirmed.
  Status SetWatts(const Wish& wish);
  Result<Target> AddTarget(Target target, bool confirmed);
  Status RemoveTarget(const std::string& id);
  // A node that is switched off for good, or under another name: nothing is reserved for it.
  Status Forget(const std::string& node);

  // The root's budget follows these values from now on, where the configuration says so.
  void Follow(std::vector<FollowStep> steps, WallTime until);

  Json Show();
  Json ShowSchedule();
  Json ShowJobs();
  // The effect of a budget in words, without setting it.
  Result<std::vector<std::string>> Effect(const Wish& wish);

  struct Event {
    std::uint64_t number = 0;
    std::string kind{};  // "budget", "target", "infeasible", "feasible", "silent", "back"
    std::string at{};    // RFC 3339
    std::string text{};
  };
  std::vector<Event> EventsAfter(std::uint64_t number);

  struct DomainFigures {
    std::string name{};
    Watts budget{};
    Watts limit{};  // Part of it that may be granted now.
    Watts committed{};
    Watts drawn{};
    double price = 0;
  };
  struct Figures {
    std::vector<DomainFigures> domains{};
    std::size_t nodes = 0;
    std::size_t silent = 0;
    std::uint64_t grants = 0;
    std::uint64_t store_failures = 0;
    Watts missing{};                        // By which the lowest limits exceed the budget.
    std::optional<double> mean_slowdown{};  // Over the GPUs that work.
    std::optional<double> worst_slowdown{};
    Watts swing{};  // Sum of the changes of wanted caps at the latest decision.
  };
  Figures figures();

 private:
  BudgetServer(BudgetConfiguration configuration, BudgetRepository& repository, const Clock& clock);
  Status Begin();

  // The jobs of a problem, and the devices whose caps its answer sets.
  struct Question {
    water_filling::Problem problem{};
    std::vector<std::vector<std::pair<std::string, std::string>>> devices{};  // Node and device.
    std::vector<std::string> names{};
    std::map<std::string, std::size_t> index{};  // Positions of the names.
    std::vector<bool> idle{};                    // Devices that wait for a job.
  };
  // Over the GPUs that work.
  struct Slowdowns {
    double mean = 1;
    double worst = 1;
    int gpus = 0;
  };
  struct JobLine {
    std::string name{};
    water_filling::JobGrant grant{};
    int gpus = 0;
    double weight = 1;
    bool assumed = false;
    bool idle = false;
  };

  // How much a device wants, as far as its draw tells.
  struct Appetite {
    Watts cap{};
    TimePoint since{};  // The cap has been this one since then.
    bool bound = true;  // It draws what it may, and perhaps would draw more.
    // Draws under caps that do not bind, since the job began; for mode "drawn".
    double draws = 0;
    double mean = 0;      // Watts.
    double variance = 0;  // Watts squared, times draws.
    Watts highest{};
    std::string job{};
  };

  // All below need mutex_.
  void NoteAppetite(const NodeReport& report, TimePoint now);
  static void NoteDraw(Watts power, Appetite& appetite);
  static std::optional<Watts> MostOf(const Appetite& appetite);
  Watts HeadroomOf(const std::string& device) const;
  std::vector<Watts> DrawnByDomain(const std::vector<GrantBook::NodeView>& nodes) const;
  void NoteOverdraw(const std::vector<Watts>& drawn, TimePoint now);
  void ExpectDraws(TimePoint now);
  std::size_t DomainOf(const std::string& node) const;
  Result<std::size_t> FindDomain(const std::string& name) const;
  Watts BaseOf(std::size_t domain) const;
  std::vector<Target> FollowTargets() const;
  std::vector<Target> TargetsOf(std::size_t domain) const;
  std::vector<Watts> BudgetsNow() const;
  void SetLimits();
  Question Ask(const std::vector<GrantBook::NodeView>& nodes,
               const std::vector<Watts>& limits) const;
  static Slowdowns SlowdownsOf(const Question& question,
                               const water_filling::Allocation& allocation);
  std::vector<std::string> DoubtsAbout(const Question& question,
                                       const std::vector<Watts>& budgets) const;
  void Decide(TimePoint now);
  void NoteMissing(const std::vector<Watts>& missing);
  TimePoint StepNow(TimePoint now);
  water_filling::SharedCurve CurveOf(const JobReport* report, const GrantBook::DeviceView& device,
                                     bool idle) const;
  water_filling::Job MakeJob(const std::string& name, const JobReport* report,
                             const GrantBook::DeviceView& device, bool idle) const;
  void AskForDevices(const GrantBook::NodeView& node, Question& question) const;
  const JobClass* ClassOf(const JobReport& job) const;
  void Apply(const Question& question, const water_filling::Allocation& allocation);
  bool StorePlan(TimePoint now);
  Status Save(BudgetRepository::Change change);
  std::string SettingsText() const;
  Status ReadSettings(const std::string& text);
  void Note(std::string kind, std::string text);
  void NoteSilence(TimePoint now);
  Watts LeastOf(std::size_t domain, TimePoint now);
  Status CheckWish(std::size_t domain, Watts before, Watts wanted);
  void Obey();
  void Urgent();

  const BudgetConfiguration configuration_;
  BudgetRepository& repository_;
  const Clock& clock_;
  std::function<void()> urgent_{};
  std::mutex mutex_;
  std::uint64_t incarnation_ = 0;
  std::unique_ptr<GrantBook> book_;
  std::map<std::string, std::size_t> domain_of_{};  // By node.
  std::map<std::size_t, Watts> overrides_{};        // Budgets that were set, by domain.
  std::vector<Target> targets_{};                   // Added after the file's.
  std::vector<FollowStep> followed_{};
  WallTime followed_until_{};
  std::uint64_t next_target_ = 1;
  std::optional<TimePoint> verified_at_{};  // When the database said last that this start is it.
  bool shut_out_ = false;
  bool stores_ = true;
  TimePoint next_decision_{};
  TimePoint limits_at_{};
  std::vector<Watts> limits_{};
  std::optional<water_filling::Allocation> allocation_{};
  std::vector<JobLine> jobs_{};
  Slowdowns slowdowns_{};
  std::vector<std::string> doubts_{};
  std::map<std::string, bool> silent_{};
  std::map<std::string, Appetite> appetites_{};  // By device.
  std::optional<TimePoint> overdrawn_at_{};      // More was drawn than may be, lately.
  std::deque<Event> events_{};
  std::uint64_t next_event_ = 1;
  Figures figures_{};
};

}  // namespace zeus::budget
