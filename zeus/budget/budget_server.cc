#include "zeus/budget/budget_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "zeus/base/field_reader.h"
#include "zeus/base/json.h"
#include "zeus/base/log.h"
#include "zeus/base/quantity_text.h"
#include "zeus/base/text.h"
#include "zeus/base/wall_time_text.h"

namespace zeus::budget {
namespace {

using namespace std::chrono_literals;

constexpr Seconds kStepPeriod = 1s;
// A start that has been shut out learns it after so long at the latest.
constexpr Seconds kFence = 5s;
constexpr std::size_t kMostEvents = 1024;
constexpr std::size_t kMostTargets = 1000;
constexpr Watts kLargestBudget{1e10};  // As in a file of a budget.
constexpr Watts kSmallChange{2};
constexpr double kSmallShare = 0.01;
constexpr double kLargeRise = 1.25;
constexpr double kIdleUtilization = 0.01;  // A device that is used less is idle.
constexpr double kIdleWeight = 1e-6;

GrantBook::Options BookOptions(const BudgetConfiguration& configuration,
                               std::uint64_t incarnation) {
  GrantBook::Options options{.valid = configuration.valid,
                             .next_report = configuration.next_report,
                             .silent_after = 2.5 * configuration.next_report,
                             .incarnation = incarnation};
  if (configuration.fallback)
    options.fallback = [watts = *configuration.fallback](const std::string&, const DeviceReport&) {
      return watts;
    };
  return options;
}

std::vector<GrantDomain> DomainsOf(const BudgetConfiguration& configuration) {
  std::vector<GrantDomain> domains = {{.name = kRootDomain}};
  for (const DomainSpec& spec : configuration.domains) {
    std::size_t parent = 0;
    for (std::size_t i = 0; i < domains.size(); ++i)
      if (domains[i].name == spec.parent) parent = i;
    domains.push_back({.name = spec.name, .parent = parent});
  }
  return domains;
}

}  // namespace

BudgetServer::BudgetServer(BudgetConfiguration configuration, BudgetRepository& repository,
                           const Clock& clock)
    : configuration_(std::move(configuration)), repository_(repository), clock_(clock) {}

Result<std::unique_ptr<BudgetServer>> BudgetServer::Open(BudgetConfiguration configuration,
                                                         BudgetRepository& repository,
                                                         const Clock& clock) {
  std::unique_ptr<BudgetServer> server(
      new BudgetServer(std::move(configuration), repository, clock));
  ZEUS_RETURN_IF_ERROR(server->Begin());
  return server;
}

Status BudgetServer::Begin() {
  ZEUS_TRY(const BudgetRepository::Start start, repository_.Begin());
  incarnation_ = start.incarnation;
  const TimePoint now = clock_.Now();
  verified_at_ = now;
  book_ = std::make_unique<GrantBook>(DomainsOf(configuration_),
                                      BookOptions(configuration_, incarnation_));
  for (std::size_t i = 0; i < configuration_.domains.size(); ++i)
    for (const std::string& pattern : configuration_.domains[i].nodes) {
      ZEUS_TRY(const auto names, ExpandNodes(pattern));
      for (const std::string& name : names) {
        if (!domain_of_.emplace(name, i + 1).second)
          return InvalidArgument(fmt::format("node {} is in two domains", Quote(name)));
        if (configuration_.domains[i].node_watts > Watts(0))
          book_->Expect(name, i + 1, configuration_.domains[i].node_watts);
      }
    }
  ZEUS_RETURN_IF_ERROR(ReadSettings(start.settings));
  // An earlier start that lives on may grant for a moment more.
  for (const StoredNode& node : start.nodes)
    book_->Restore(node, DomainOf(node.name), now + kFence);
  SetLimits();
  return Ok();
}

// --- domains and budgets ---

std::size_t BudgetServer::DomainOf(const std::string& node) const {
  const auto found = domain_of_.find(node);
  return found == domain_of_.end() ? 0 : found->second;
}

Result<std::size_t> BudgetServer::FindDomain(const std::string& name) const {
  if (name.empty()) return std::size_t{0};
  std::vector<std::string> names;
  for (std::size_t i = 0; i < book_->domains().size(); ++i) {
    if (book_->domains()[i].name == name) return i;
    names.push_back(book_->domains()[i].name);
  }
  const auto meant = ClosestWord(name, names);
  return Error{ErrorCode::kNotFound,
               fmt::format("domain: there is no domain {}{}", Quote(name),
                           meant ? fmt::format("; did you mean {}?", *meant) : "")};
}

Watts BudgetServer::BaseOf(std::size_t domain) const {
  const auto found = overrides_.find(domain);
  if (found != overrides_.end()) return found->second;
  return domain == 0 ? configuration_.watts : configuration_.domains[domain - 1].watts;
}

void BudgetServer::Follow(std::vector<FollowStep> steps, WallTime until) {
  const std::lock_guard lock(mutex_);
  followed_ = std::move(steps);
  followed_until_ = until;
}

std::vector<Target> BudgetServer::FollowTargets() const {
  if (!configuration_.follow) return {};
  return TargetsFollowing(*configuration_.follow, BaseOf(0), followed_, followed_until_);
}

std::vector<Target> BudgetServer::TargetsOf(std::size_t domain) const {
  // Whatever people ask for has a higher rank.
  std::vector<Target> targets = domain == 0 ? FollowTargets() : std::vector<Target>();
  for (const auto* list : {&configuration_.schedule, &targets_})
    for (Target target : *list) {
      const bool root = target.domain.empty() || target.domain == book_->domains()[0].name;
      if (root ? domain != 0 : target.domain != book_->domains()[domain].name) continue;
      target.domain.clear();
      targets.push_back(std::move(target));
    }
  return targets;
}

std::vector<Watts> BudgetServer::BudgetsNow() const {
  std::vector<Watts> budgets;
  for (std::size_t i = 0; i < book_->domains().size(); ++i)
    budgets.push_back(WattsAt(clock_.WallNow(), BaseOf(i), "", TargetsOf(i)));
  return budgets;
}

// A budget that will fall is approached before that, so that no grant outlasts it. One that rises
// does so by its ramp.
void BudgetServer::SetLimits() {
  const TimePoint now = clock_.Now();
  const GrantBook::Options& book = book_->options();
  const Outlook outlook{.lead = book.valid + book.margin, .ramp = configuration_.ramp};
  std::vector<Watts> limits;
  for (std::size_t i = 0; i < book_->domains().size(); ++i) {
    Watts limit = LowestAhead(clock_.WallNow(), BaseOf(i), "", TargetsOf(i), outlook) *
                  (1 - configuration_.reserve);
    if (configuration_.ramp && i < limits_.size())
      limit = std::min(
          limit, limits_[i] + Watts(configuration_.ramp->value() * (now - limits_at_).count()));
    limits.push_back(limit);
  }
  limits_ = limits;
  limits_at_ = now;
  book_->SetLimits(std::move(limits));
}

// --- decisions ---

const JobClass* BudgetServer::ClassOf(const JobReport& job) const {
  for (const JobClass& one : configuration_.classes)
    if ((one.partition.empty() || one.partition == job.partition) && job.name.starts_with(one.job))
      return &one;
  return nullptr;
}

// The power curve of a job on this device: its profile, or what is assumed of a job like it.
water_filling::SharedCurve BudgetServer::CurveOf(const JobReport* report,
                                                 const GrantBook::DeviceView& device,
                                                 bool idle) const {
  if (report != nullptr && !report->curve.empty()) {
    std::vector<water_filling::CurveSample> samples;
    for (const CurveReport& point : report->curve) {
      water_filling::CurveSample sample{.limit = point.limit, .time = Seconds(point.slowdown)};
      if (point.draw > Watts(0)) sample.draw = point.draw;
      if (point.sigma > 0) sample.time_sigma = Seconds(point.sigma);
      samples.push_back(sample);
    }
    if (auto curve = water_filling::PowerCurve::FromSamples(samples); curve.ok())
      return std::make_shared<const water_filling::PowerCurve>(std::move(curve).value());
  }
  water_filling::PowerCurve::Unknown unknown{.lowest = device.lowest, .highest = device.highest};
  // The draw under a cap that binds would tell of the cap alone, and follow it up and down.
  const auto appetite = appetites_.find(device.id);
  if (device.power && !idle && appetite != appetites_.end() && !appetite->second.bound) {
    unknown.limit = appetite->second.cap;
    unknown.draw = device.power;
  }
  auto curve = water_filling::PowerCurve::Assumed(unknown);
  if (!curve.ok()) return nullptr;
  return std::make_shared<const water_filling::PowerCurve>(std::move(curve).value());
}

water_filling::Job BudgetServer::MakeJob(const std::string& name, const JobReport* report,
                                         const GrantBook::DeviceView& device, bool idle) const {
  water_filling::Job job{.name = name,
                         .curve = CurveOf(report, device, idle),
                         .lowest = device.lowest,
                         .highest = device.highest};
  if (idle) {
    // Enough for what it draws and for the beginning of a job; more would buy nothing.
    job.weight = kIdleWeight;
    job.highest = std::clamp(device.power.value_or(device.lowest) + configuration_.start,
                             device.lowest, device.highest);
  }
  if (report == nullptr) return job;
  job.max_slowdown = report->max_slowdown;
  const JobClass* job_class = ClassOf(*report);
  if (job_class == nullptr) return job;
  job.weight = job_class->weight;
  if (job_class->max_slowdown)
    job.max_slowdown = job.max_slowdown ? std::min(*job.max_slowdown, *job_class->max_slowdown)
                                        : *job_class->max_slowdown;
  return job;
}

// Devices without a job: idle ones keep room for a start, others are jobs of their own.
void BudgetServer::AskForDevices(const GrantBook::NodeView& node, Question& question) const {
  std::map<std::string, const JobReport*> job_of;
  for (const JobReport& job : *node.jobs)
    for (const std::string& device : job.devices) job_of.emplace(device, &job);
  for (const GrantBook::DeviceView& device : node.devices) {
    const auto found = job_of.find(device.id);
    const JobReport* report = found == job_of.end() ? nullptr : found->second;
    const bool idle = report == nullptr && device.utilization.value_or(1) < kIdleUtilization;
    const std::string name =
        report != nullptr ? report->id : fmt::format("{}/{}", node.name, device.id);
    // A job of several nodes is one.
    const auto [place, added] = question.index.emplace(name, question.names.size());
    if (added) {
      question.names.push_back(name);
      question.idle.push_back(idle);
      question.devices.emplace_back();
      question.problem.jobs.push_back(MakeJob(name, report, device, idle));
    }
    water_filling::Job& job = question.problem.jobs[place->second];
    job.lowest = std::max(*job.lowest, device.lowest);
    job.highest = std::max(*job.lowest, std::min(*job.highest, device.highest));
    const auto placement =
        std::ranges::find(job.placements, node.domain, &water_filling::Placement::domain);
    if (placement == job.placements.end())
      job.placements.push_back({.domain = node.domain, .gpus = 1});
    else
      ++placement->gpus;
    question.devices[place->second].emplace_back(node.name, device.id);
  }
}

BudgetServer::Question BudgetServer::Ask(const std::vector<GrantBook::NodeView>& nodes,
                                         const std::vector<Watts>& limits) const {
  Question question;
  question.problem.objective = configuration_.objective;
  question.problem.resource = configuration_.mode;
  question.problem.eta = configuration_.eta;
  for (std::size_t i = 0; i < limits.size(); ++i)
    question.problem.domains.push_back({.name = book_->domains()[i].name,
                                        .parent = book_->domains()[i].parent,
                                        .watts = limits[i]});
  for (const GrantBook::NodeView& node : nodes) {
    if (!node.silent) {
      AskForDevices(node, question);
      continue;
    }
    for (std::size_t i = 0; i < limits.size(); ++i)
      if (book_->IsIn(node.domain, i)) question.problem.domains[i].reserved += node.committed;
  }
  return question;
}

void BudgetServer::Apply(const Question& question, const water_filling::Allocation& allocation) {
  std::map<std::pair<std::string, std::string>, Watts> wanted;
  for (const GrantBook::NodeView& node : book_->View(clock_.Now()))
    for (const GrantBook::DeviceView& device : node.devices)
      wanted[{node.name, device.id}] = device.wanted;
  figures_.swing = Watts(0);
  jobs_.clear();
  for (std::size_t i = 0; i < question.names.size(); ++i) {
    const water_filling::JobGrant& grant = allocation.jobs[i];
    const water_filling::Job& job = question.problem.jobs[i];
    jobs_.push_back({.name = question.names[i],
                     .grant = grant,
                     .gpus = job.gpus(),
                     .weight = job.weight,
                     .assumed = job.curve->assumed(),
                     .idle = question.idle[i]});
    for (const auto& key : question.devices[i]) {
      const Watts limit = std::max(grant.limit, HeadroomOf(key.second));
      const Watts rise = limit - wanted[key];
      // A small rise is not worth a message.
      if (rise > Watts(0) && rise < std::max(kSmallChange, kSmallShare * limit)) continue;
      figures_.swing += rise < Watts(0) ? -1 * rise : rise;
      book_->Want(key.first, key.second, limit);
    }
  }
}

BudgetServer::Slowdowns BudgetServer::SlowdownsOf(const Question& question,
                                                  const water_filling::Allocation& allocation) {
  Slowdowns slowdowns;
  double sum = 0;
  for (std::size_t i = 0; i < allocation.jobs.size(); ++i) {
    if (question.idle[i]) continue;
    const int gpus = question.problem.jobs[i].gpus();
    slowdowns.gpus += gpus;
    sum += gpus * allocation.jobs[i].slowdown;
    slowdowns.worst = std::max(slowdowns.worst, allocation.jobs[i].slowdown);
  }
  if (slowdowns.gpus > 0) slowdowns.mean = sum / slowdowns.gpus;
  return slowdowns;
}

// Doubts speak of the budgets that people set, of which a part may not be granted now.
std::vector<std::string> BudgetServer::DoubtsAbout(const Question& question,
                                                   const std::vector<Watts>& budgets) const {
  water_filling::Problem problem = question.problem;
  for (std::size_t i = 0; i < budgets.size(); ++i) {
    water_filling::Domain& domain = problem.domains[i];
    domain.reserved += std::max(Watts(0), budgets[i] - domain.watts);
    domain.watts = budgets[i];
  }
  return Doubts(problem);
}

// By how much each domain's budget is exceeded whatever is decided.
void BudgetServer::NoteMissing(const std::vector<Watts>& missing) {
  figures_.missing = Watts(0);
  for (const Watts watts : missing) figures_.missing = std::max(figures_.missing, watts);
}

void BudgetServer::Decide(TimePoint now) {
  const Question question = Ask(book_->View(now), limits_);
  next_decision_ = now + configuration_.period;
  std::vector<Watts> missing;
  if (question.problem.jobs.empty()) {
    allocation_.reset();
    jobs_.clear();
    doubts_.clear();
    slowdowns_ = {};
    for (const water_filling::Domain& domain : question.problem.domains)
      missing.push_back(domain.reserved - domain.watts);
    return NoteMissing(missing);
  }
  auto allocation = water_filling::Solve(question.problem);
  if (!allocation.ok()) {
    log::Warning("no decision about the power budget: {}", allocation.error().message);
    return;
  }
  Apply(question, allocation.value());
  const bool was_short = allocation_ && allocation_->shortfall.has_value();
  const bool is_short = allocation.value().shortfall.has_value();
  if (is_short && !was_short)
    for (const std::string& trouble : allocation.value().troubles) Note("infeasible", trouble);
  if (was_short && !is_short) Note("feasible", "the lowest limits fit into the budget again");
  for (const water_filling::DomainUse& use : allocation.value().domains)
    missing.push_back(use.missing);
  NoteMissing(missing);
  slowdowns_ = SlowdownsOf(question, allocation.value());
  doubts_ = DoubtsAbout(question, BudgetsNow());
  allocation_ = std::move(allocation).value();
}

// --- steps ---

Status BudgetServer::Save(BudgetRepository::Change change) {
  Status saved = repository_.Save(incarnation_, change);
  if (saved.ok()) {
    verified_at_ = clock_.Now();
    stores_ = true;
    return saved;
  }
  ++figures_.store_failures;
  if (saved.error().code == ErrorCode::kConflict) shut_out_ = true;
  if (stores_) log::Warning("no watts are raised: {}", saved.error().message);
  stores_ = false;
  return saved;
}

bool BudgetServer::StorePlan(TimePoint now) {
  const GrantBook::Plan plan = book_->MakePlan(now);
  if (!plan.to_store.empty() && !Save({.nodes = plan.to_store}).ok()) {
    book_->NoteFailedStore(plan);
    GrantBook::Plan lowering = book_->MakePlan(now, GrantBook::Raises::kNone);
    lowering.to_store.clear();
    book_->Adopt(lowering, now);
    return false;
  }
  book_->Adopt(plan, now);
  return true;
}

void BudgetServer::NoteSilence(TimePoint now) {
  for (const GrantBook::NodeView& node : book_->View(now)) {
    if (!node.heard && !silent_.contains(node.name)) continue;
    bool& was = silent_[node.name];
    if (was == node.silent) continue;
    was = node.silent;
    if (node.silent)
      Note("silent", fmt::format("{} does not report; {} stay committed for it{}", node.name,
                                 PowerText(node.committed),
                                 node.guarded ? " until its grant has expired" : ""));
    else
      Note("back", fmt::format("{} reports again", node.name));
  }
}

TimePoint BudgetServer::Step() {
  const std::lock_guard lock(mutex_);
  return StepNow(clock_.Now());
}

TimePoint BudgetServer::StepNow(TimePoint now) {
  if (shut_out_) return now + kStepPeriod;
  const Status current = repository_.CheckCurrent(incarnation_);
  if (current.ok())
    verified_at_ = now;
  else if (current.error().code == ErrorCode::kConflict) {
    shut_out_ = true;
    log::Warning("{}", current.error().message);
    Note("shut out", current.error().message);
    return now + kStepPeriod;
  }
  const std::vector<Watts> before = limits_;
  SetLimits();
  bool falls = false;
  for (std::size_t i = 0; i < before.size(); ++i) falls = falls || limits_[i] < before[i];
  NoteSilence(now);
  ExpectDraws(now);
  if (falls || now >= next_decision_) Decide(now);
  (void)StorePlan(now);
  return now + kStepPeriod;
}

Result<Grant> BudgetServer::Report(const NodeReport& report) {
  const std::lock_guard lock(mutex_);
  const TimePoint now = clock_.Now();
  if (shut_out_) return Error{ErrorCode::kUnavailable, NoLongerCurrent().message};
  if (!verified_at_ || now - *verified_at_ > kFence)
    return Error{ErrorCode::kUnavailable,
                 "the database does not answer: without it no watts are granted"};
  const bool known = book_->CommittedOf(report.node, now) > Watts(0);
  book_->Hear(report, DomainOf(report.node), now);
  if (!known) next_decision_ = now;
  NoteAppetite(report, now);
  auto grant = book_->Answer(report.node, now);
  if (!grant)
    return Error{ErrorCode::kUnavailable, "the node is taken into the budget: report again"};
  ++figures_.grants;
  return *std::move(grant);
}

// --- wishes of people ---

// Decides anew at once, so that the next look shows what the wish has changed.
void BudgetServer::Obey() {
  next_decision_ = TimePoint();
  (void)StepNow(clock_.Now());
}

void BudgetServer::Urgent() {
  if (urgent_) urgent_();
}

Watts BudgetServer::LeastOf(std::size_t domain, TimePoint now) {
  Watts least{};
  for (const GrantBook::NodeView& node : book_->View(now)) {
    if (!book_->IsIn(node.domain, domain)) continue;
    if (node.silent)
      least += node.committed;
    else
      for (const GrantBook::DeviceView& device : node.devices)
        least += std::max(device.lowest, device.fallback);
  }
  return least;
}

// The doubts about a budget, as one error that asks for a confirmation.
Status BudgetServer::CheckWish(std::size_t domain, Watts before, Watts wanted) {
  const std::string& name = book_->domains()[domain].name;
  const Watts least = LeastOf(domain, clock_.Now());
  if (wanted * (1 - configuration_.reserve) < least)
    return Error{ErrorCode::kConflict,
                 fmt::format("{} for {} are not enough: its devices take {} at their lowest "
                             "limits; confirm to set it all the same",
                             PowerText(wanted), name, PowerText(least))};
  if (wanted > kLargeRise * before)
    return Error{
        ErrorCode::kConflict,
        fmt::format("{} for {} are {:.0f} % more than the {} of now; confirm that "
                    "this is meant",
                    PowerText(wanted), name, 100 * (wanted / before - 1), PowerText(before))};
  return Ok();
}

Status BudgetServer::SetWatts(const Wish& wish) {
  {
    const std::lock_guard lock(mutex_);
    ZEUS_TRY(const std::size_t domain, FindDomain(wish.domain));
    if (!(wish.watts > Watts(0) && wish.watts <= kLargestBudget))
      return FieldError("watts", "must be more than 0 and at most 10 GW");
    if (!wish.confirmed) ZEUS_RETURN_IF_ERROR(CheckWish(domain, BaseOf(domain), wish.watts));
    const auto before = overrides_;
    overrides_[domain] = wish.watts;
    if (Status saved = Save({.settings = SettingsText()}); !saved.ok()) {
      overrides_ = before;
      return saved;
    }
    Note("budget", fmt::format("the budget of {} is {}", book_->domains()[domain].name,
                               PowerText(wish.watts)));
    Obey();
  }
  Urgent();
  return Ok();
}

Result<Target> BudgetServer::AddTarget(Target target, bool confirmed) {
  {
    const std::lock_guard lock(mutex_);
    ZEUS_TRY(const std::size_t domain, FindDomain(target.domain));
    if (targets_.size() >= kMostTargets)
      return Error{ErrorCode::kConflict, "there are 1000 targets: remove some"};
    if (target.watts && !confirmed)
      ZEUS_RETURN_IF_ERROR(CheckWish(domain, BaseOf(domain), *target.watts));
    target.id = fmt::format("target-{}", next_target_++);
    targets_.push_back(target);
    std::erase_if(targets_, [now = clock_.WallNow()](const Target& one) { return one.end <= now; });
    if (Status saved = Save({.settings = SettingsText()}); !saved.ok()) {
      std::erase_if(targets_, [&](const Target& one) { return one.id == target.id; });
      return std::move(saved).error();
    }
    Note("target",
         fmt::format("{} from {} to {}: {}", book_->domains()[domain].name, ToText(target.start),
                     ToText(target.end),
                     target.watts ? PowerText(*target.watts) : "the budget without targets"));
    Obey();
  }
  Urgent();
  return target;
}

Status BudgetServer::RemoveTarget(const std::string& id) {
  {
    const std::lock_guard lock(mutex_);
    const auto before = targets_;
    if (std::erase_if(targets_, [&](const Target& one) { return one.id == id; }) == 0)
      return Error{ErrorCode::kNotFound,
                   fmt::format("id: there is no target {} that was added; those of the file are "
                               "removed there",
                               Quote(id))};
    if (Status saved = Save({.settings = SettingsText()}); !saved.ok()) {
      targets_ = before;
      return saved;
    }
    Obey();
  }
  Urgent();
  return Ok();
}

Status BudgetServer::Forget(const std::string& node) {
  {
    const std::lock_guard lock(mutex_);
    const TimePoint now = clock_.Now();
    bool known = false;
    for (const GrantBook::NodeView& view : book_->View(now)) {
      if (view.name != node) continue;
      known = true;
      if (!view.silent)
        return Error{ErrorCode::kConflict,
                     fmt::format("{} reports: switch it off, or end its zeusd, first", node)};
    }
    if (!known) return Error{ErrorCode::kNotFound, "there is no node " + Quote(node)};
    ZEUS_RETURN_IF_ERROR(Save({.removed = {node}}));
    book_->Forget(node);
    silent_.erase(node);
    Obey();
  }
  Urgent();
  return Ok();
}

std::string BudgetServer::SettingsText() const {
  Json watts = Json::object();
  for (const auto& [domain, power] : overrides_)
    watts[book_->domains()[domain].name] = power.value();
  Json targets = Json::array();
  for (const Target& target : targets_) targets.push_back(ToJson(target));
  return JsonText({{"watts", std::move(watts)},
                   {"targets", std::move(targets)},
                   {"next_target", next_target_}});
}

Status BudgetServer::ReadSettings(const std::string& text) {
  if (text.empty()) return Ok();
  ZEUS_TRY(const Json json, ParseJson(text));
  ZEUS_TRY(const auto watts, (GetField<std::map<std::string, double>>(json, "watts")));
  for (const auto& [name, power] : watts) {
    const auto domain = FindDomain(name);
    if (domain.ok())
      overrides_[domain.value()] = Watts(power);
    else
      log::Warning("a budget of {} was set for {}, which the configuration has no more",
                   PowerText(Watts(power)), Printable(name));
  }
  ZEUS_TRY(next_target_, GetField<std::uint64_t>(json, "next_target"));
  ZEUS_TRY(const Json targets, GetField<Json>(json, "targets"));
  for (const Json& one : targets) {
    ZEUS_TRY(targets_.emplace_back(), ParseTarget(one));
  }
  return Ok();
}

void BudgetServer::Note(std::string kind, std::string text) {
  events_.push_back({.number = next_event_++,
                     .kind = std::move(kind),
                     .at = ToText(clock_.WallNow()),
                     .text = std::move(text)});
  if (events_.size() > kMostEvents) events_.pop_front();
}

}  // namespace zeus::budget
