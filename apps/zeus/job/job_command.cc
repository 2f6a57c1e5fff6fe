#include <fmt/format.h>

#include <cstdio>
#include <limits>
#include <memory>
#include <optional>

#include "apps/zeus/carbon_options.h"
#include "apps/zeus/commands.h"
#include "apps/zeus/job/job_report.h"
#include "apps/zeus/job/job_source.h"
#include "apps/zeus/job/lessons.h"
#include "apps/zeus/numbers.h"
#include "apps/zeus/output.h"
#include "apps/zeus/output_file.h"
#include "apps/zeus/terminal.h"
#include "zeus/base/json.h"
#include "zeus/base/quantity_text.h"
#include "zeus/base/terminal_text.h"
#include "zeus/base/wall_time_text.h"
#include "zeus/job/event_replay.h"
#include "zeus/job/memory_repository.h"
#include "zeus/wire/answers.h"
#include "zeus/wire/overviews.h"

namespace zeus::cli {
namespace {

struct JobFlags {
  JobSourceFlags source{};
  std::string id{};
  std::string gpu_model{};
  std::string baseline{};
  CarbonOptions carbon{};
  std::string label{};
  std::string html{};
  std::string output{};
  bool json = false;
  bool force = false;
};

constexpr std::size_t kRowsOfPlot = 30;

Result<int> List(JobSource& source, const JobFlags& flags) {
  JobQuery query;
  if (!flags.label.empty()) {
    const std::size_t equals = flags.label.find('=');
    query.label = flags.label.substr(0, equals);
    if (equals != std::string::npos) query.label_value = flags.label.substr(equals + 1);
  }
  ZEUS_TRY(const std::vector<Job> jobs, AllJobs(source.service(), query));
  if (flags.json) {
    Json list = Json::array();
    for (const Job& job : jobs) list.push_back(wire::ToJson(job, std::nullopt));
    PrintJson(list);
    return 0;
  }
  std::vector<std::vector<std::string>> rows{
      {"job", "policy", "recurrences", "runs", "least cost", "with", "registered"}};
  for (const Job& job : jobs) {
    rows.push_back({job.spec.id, job.spec.policy, fmt::to_string(job.recurrences),
                    fmt::to_string(job.trials), job.least_cost ? EnergyText(*job.least_cost) : "-",
                    job.least_cost_batch_size ? fmt::to_string(*job.least_cost_batch_size) : "-",
                    ToText(job.created_at)});
  }
  if (jobs.empty()) {
    PrintText(fmt::format("no jobs in {}\n", source.where()));
    return 0;
  }
  PrintText(AlignedRows({Align::kLeft, Align::kLeft, Align::kRight, Align::kRight, Align::kRight,
                         Align::kRight, Align::kLeft},
                        rows));
  return 0;
}

Result<Lessons> LessonsWithCarbon(JobSource& source, const JobFlags& flags) {
  SystemClock clock;
  ZEUS_TRY(const CarbonAccounting carbon, CarbonAccounting::Open(clock, flags.carbon));
  ZEUS_TRY(Lessons lessons, CollectLessons(source.service(), {.job = flags.id,
                                                              .gpu_model = flags.gpu_model,
                                                              .baseline_job = flags.baseline}));
  AddSavedCarbon(carbon, lessons.trials, lessons.savings);
  return lessons;
}

Result<int> ShowJob(JobSource& source, const JobFlags& flags) {
  if (!flags.html.empty()) ZEUS_RETURN_IF_ERROR(CheckWritable(flags.html));
  ZEUS_TRY(const Lessons lessons, LessonsWithCarbon(source, flags));
  if (!flags.html.empty()) {
    ZEUS_TRY(const std::string page, ToHtml(lessons));
    ZEUS_RETURN_IF_ERROR(WriteWhole(flags.html, page));
  }
  if (flags.json) {
    PrintJson(ToJson(lessons));
    return 0;
  }
  Show(stdout,
       fmt::format("job {}: target {:g}, default batch size {}\n\n{}\n{}\n{}", lessons.job.spec.id,
                   lessons.job.spec.target_metric, lessons.job.spec.default_batch_size,
                   ToTextPlot(lessons, kRowsOfPlot), ArmsTable(lessons), SummaryText(lessons)));
  return 0;
}

Result<int> Trials(JobSource& source, const JobFlags& flags) {
  ZEUS_TRY(const Lessons lessons,
           CollectLessons(source.service(), {.job = flags.id, .gpu_model = flags.gpu_model}));
  if (flags.json) {
    Json list = Json::array();
    for (const Trial& trial : lessons.trials) list.push_back(wire::ToJson(trial));
    PrintJson(list);
  } else {
    PrintText(TrialsTable(lessons));
  }
  return 0;
}

Result<int> Arms(JobSource& source, const JobFlags& flags) {
  ZEUS_TRY(const Lessons lessons,
           CollectLessons(source.service(), {.job = flags.id, .gpu_model = flags.gpu_model}));
  if (flags.json) {
    PrintJson(wire::ToJson(lessons.arms));
  } else {
    Show(stdout, ArmsTable(lessons));
  }
  return 0;
}

// The answer of the server's route, here and there the same.
Result<int> Savings(JobSource& source, const JobFlags& flags) {
  ZEUS_TRY(const Lessons lessons, LessonsWithCarbon(source, flags));
  if (flags.json) {
    PrintJson(wire::ToJson(lessons.savings));
  } else {
    Show(stdout, SavingsText(lessons));
  }
  return 0;
}

// A line each: the job, then its trials, then its events.
Result<int> Export(JobSource& source, const JobFlags& flags) {
  ZEUS_TRY(const std::string text,
           wire::ExportText(source.service(), flags.id, std::numeric_limits<std::size_t>::max()));
  if (!flags.output.empty() && flags.output != "-") {
    ZEUS_RETURN_IF_ERROR(WriteWhole(flags.output, text));
  } else {
    PrintJsonText(text);
  }
  return 0;
}

// The reports of a run under way would be refused, or reach the next job of that name.
Status RefuseWhileRunning(JobService& service, const std::string& id) {
  for (const TrialStatus status : {TrialStatus::kDispatched, TrialStatus::kReporting}) {
    ZEUS_TRY(const std::vector<Trial> trials,
             service.ListTrials(id, {.limit = 1, .status = status}));
    if (!trials.empty())
      return Error{
          ErrorCode::kConflict,
          fmt::format("trial {} of job {} is under way: let it end, or delete with --force",
                      trials.front().number, id)};
  }
  return Ok();
}

Result<int> Delete(JobSource& source, const JobFlags& flags) {
  if (!flags.force) ZEUS_RETURN_IF_ERROR(RefuseWhileRunning(source.service(), flags.id));
  ZEUS_RETURN_IF_ERROR(source.service().Delete(flags.id));
  PrintText(fmt::format("job {} is deleted\n", flags.id));
  return 0;
}

Result<int> Check(JobSource& source, const JobFlags& flags) {
  if (source.repository() == nullptr)
    return Error{ErrorCode::kNotSupported,
                 "zeus job check needs --database: a server does not give its beliefs away as they "
                 "are stored"};
  // Events first would miss what a run adds meanwhile.
  ZEUS_TRY(const Job job, source.repository()->FindJob(flags.id));
  ZEUS_TRY(std::vector<JobEvent> events, AllEvents(source.service(), flags.id));
  std::erase_if(events, [&job](const JobEvent& event) { return event.sequence > job.events; });
  const auto replayed = ReplayPolicy(job, events);
  const bool same = replayed.ok() && replayed.value() == job.policy_state;
  PrintText(fmt::format("{} events of job {}: the belief that is stored {} what they make\n",
                        events.size(), flags.id, same ? "is" : "is not"));
  if (!replayed.ok()) PrintText(fmt::format("{}\n", replayed.error().message));
  return same ? 0 : 1;
}

using Function = Result<int> (*)(JobSource&, const JobFlags&);

class Verbs {
 public:
  Verbs(Verb parent, Action& action) : parent_(parent), action_(action) {}

  // Each has the options that say where jobs are.
  std::pair<Verb, std::shared_ptr<JobFlags>> Add(const char* name, const char* description,
                                                 Function function) {
    auto flags = std::make_shared<JobFlags>();
    const Verb verb = parent_.AddVerb(name, description);
    AddJobSourceFlags(verb, flags->source);
    verb.OnChosen([&action = action_, flags, function] {
      action = [flags, function]() -> Result<int> {
        SystemClock clock;
        const auto access = function == Delete ? RepositoryAccess::kWrite : RepositoryAccess::kRead;
        ZEUS_TRY(const std::unique_ptr<JobSource> source,
                 JobSource::Open(flags->source, clock, access));
        return function(*source, *flags);
      };
    });
    return {verb, flags};
  }

  std::pair<Verb, std::shared_ptr<JobFlags>> AddOfJob(const char* name, const char* description,
                                                      Function function) {
    auto [verb, flags] = Add(name, description, function);
    verb.AddOption("job", flags->id, "Name of the job").Check(NotEmpty()).Required();
    return {verb, flags};
  }

  static void AddModel(Verb verb, JobFlags& flags) {
    verb.AddOption("--gpu-model", flags.gpu_model, "On this model; by default that of the job")
        .Check(NotEmpty());
    verb.AddFlag("--json", flags.json, "Machine-readable output");
  }

 private:
  Verb parent_;
  Action& action_;
};

}  // namespace

void AddJobCommand(Verb app, Action& action) {
  const Verb job = app.AddVerb("job", "What has been learned about recurring jobs");
  job.RequireVerb();
  Verbs verbs(job, action);
  {
    auto [verb, flags] = verbs.Add("list", "All jobs", List);
    verb.AddOption("--label", flags->label, "Only with this label, as in team or team=vision")
        .Check(NotEmpty());
    verb.AddFlag("--json", flags->json, "Machine-readable output");
  }
  {
    auto [verb, flags] = verbs.AddOfJob(
        "show", "What was learned: cost by recurrence, beliefs, what is chosen and saved", ShowJob);
    Verbs::AddModel(verb, *flags);
    verb.AddOption("--baseline", flags->baseline,
                   "Compare with the undisturbed runs of this job's default; by default with the "
                   "job's own (zeus train --baseline)")
        .Check(NotEmpty());
    AddCarbonOptions(verb, flags->carbon);
    verb.AddOption("--html", flags->html, "Write a report to this file").Check(NotEmpty());
  }
  {
    auto [verb, flags] = verbs.AddOfJob(
        "savings", "What the job has saved against undisturbed runs of its default", Savings);
    Verbs::AddModel(verb, *flags);
    verb.AddOption("--baseline", flags->baseline, "As of show").Check(NotEmpty());
    AddCarbonOptions(verb, flags->carbon);
  }
  {
    auto [verb, flags] = verbs.AddOfJob("arms", "What is believed about each batch size", Arms);
    Verbs::AddModel(verb, *flags);
  }
  {
    auto [verb, flags] = verbs.AddOfJob("trials", "Every run", Trials);
    Verbs::AddModel(verb, *flags);
  }
  {
    auto [verb, flags] = verbs.AddOfJob(
        "export", "Job, trials and events as JSON lines, see docs/formats.md", Export);
    verb.AddOption("--output", flags->output, "File to write; by default standard output")
        .Check(NotEmpty());
  }
  {
    auto [verb, flags] =
        verbs.AddOfJob("delete", "Forget a job and everything that was learned", Delete);
    verb.AddFlag("--force", flags->force, "Also while a run is under way");
  }
  verbs.AddOfJob("check",
                 "Whether the stored belief is what the events make; exit code 1 if it is not",
                 Check);
}

}  // namespace zeus::cli
