#include <fmt/format.h>

#include <cstdio>
#include <limits>
#include <memory>
#include <optional>

#include "apps/zeus/carbon_options.h"
#include "apps/zeus/commands.h"
#include "apps/zeus/job/backup_commands.h"
#include "apps/zeus/job/job_report.h"
#include "apps/zeus/job/job_source.h"
#include "apps/zeus/job/lessons.h"
#include "apps/zeus/job/savings_table.h"
#include "apps/zeus/numbers.h"
#include "apps/zeus/output.h"
#include "apps/zeus/output_file.h"
#include "apps/zeus/terminal.h"
#include "zeus/base/json.h"
#include "zeus/base/quantity_text.h"
#include "zeus/base/terminal_text.h"
#include "zeus/base/wall_time_text.h"
#include "zeus/job/event_replay.h"
#include "zeus/job/grouped_savings.h"
#include "zeus/job/job_overview.h"
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
  std::string by{};  // How savings of several jobs are summed up.
  std::string from{};
  std::string until{};
  bool csv = false;
  bool json = false;
  bool force = false;
};

constexpr std::size_t kRowsOfPlot = 30;

// Returns the jobs with the label that was asked for, as in team or team=vision.
Result<std::vector<Job>> JobsWithLabel(JobService& service, const std::string& label) {
  JobQuery query;
  if (!label.empty()) {
    const std::size_t equals = label.find('=');
    query.label = label.substr(0, equals);
    if (equals != std::string::npos) query.label_value = label.substr(equals + 1);
  }
  return AllJobs(service, query);
}

Result<int> List(JobSource& source, const JobFlags& flags) {
  ZEUS_TRY(const std::vector<Job> jobs, JobsWithLabel(source.service(), flags.label));
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
       fmt::format("job {}: {}, default batch size {}\n\n{}\n{}\n{}", lessons.job.spec.id,
                   GoalText(lessons.job.spec), lessons.job.spec.default_batch_size,
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

Result<SavingsPeriod> ReadPeriod(const JobFlags& flags) {
  SavingsPeriod period;
  if (!flags.from.empty()) {
    ZEUS_TRY(period.from, ParseDate(flags.from));
  }
  if (!flags.until.empty()) {
    ZEUS_TRY(period.until, ParseDate(flags.until));
  }
  if (period.from && period.until && *period.from >= *period.until)
    return InvalidArgument(
        fmt::format("--until {} is not after --from {}", flags.until, flags.from));
  return period;
}

Status CheckGroupFlags(const JobFlags& flags) {
  if (flags.json && flags.csv)
    return InvalidArgument("--json and --csv are two formats: give one of them");
  if (!flags.gpu_model.empty() || !flags.baseline.empty() || !flags.carbon.carbon.empty() ||
      !flags.carbon.price.empty())
    return InvalidArgument(
        "--gpu-model, --baseline, --carbon and --price are about the savings of one job: name it, "
        "without --by, --from, --until and --csv");
  if (!flags.id.empty() && !flags.label.empty())
    return InvalidArgument("--label chooses among all jobs: give it without the name of one");
  return Ok();
}

// The savings of all jobs that were asked for, or of one over time, summed up by groups.
Result<int> SavingsInGroups(JobSource& source, const JobFlags& flags) {
  ZEUS_RETURN_IF_ERROR(CheckGroupFlags(flags));
  ZEUS_TRY(const SavingsGrouping grouping,
           ParseSavingsGrouping(flags.by.empty() ? (flags.id.empty() ? "job" : "month")
                                                 : std::string_view(flags.by)));
  ZEUS_TRY(const SavingsPeriod period, ReadPeriod(flags));
  std::vector<Job> jobs;
  if (flags.id.empty()) {
    ZEUS_TRY(jobs, JobsWithLabel(source.service(), flags.label));
  } else {
    ZEUS_TRY(Job job, source.service().GetJob(flags.id));
    jobs.push_back(std::move(job));
  }
  std::vector<JobOverviews::Overview> overviews;
  for (const Job& job : jobs) {
    ZEUS_TRY(const std::vector<Trial> trials, AllTrials(source.service(), job.spec.id));
    ZEUS_TRY(JobOverview overview, MakeOverview(job, trials));
    overviews.push_back(std::make_shared<const JobOverview>(std::move(overview)));
  }
  const GroupedSavings savings = GroupSavings(overviews, grouping, period);
  if (flags.json) {
    PrintJson(SavingsJson(savings, grouping));
  } else if (flags.csv) {
    PrintText(SavingsCsv(savings, grouping));
  } else {
    Show(stdout, SavingsTable(savings, grouping));
  }
  return 0;
}

// The answer of the server's route, here and there the same.
Result<int> Savings(JobSource& source, const JobFlags& flags) {
  if (flags.id.empty() || !flags.by.empty() || !flags.from.empty() || !flags.until.empty() ||
      flags.csv)
    return SavingsInGroups(source, flags);
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

void AddSavings(Verbs& verbs) {
  auto [verb, flags] = verbs.Add(
      "savings",
      "What a job, or all jobs by team and month, saved against undisturbed runs of the default",
      Savings);
  verb.AddOption("job", flags->id, "Name of the job; without it, savings of all jobs")
      .Check(NotEmpty());
  verb.AddOption("--by", flags->by,
                 "Sum up by job, month (of UTC) or the value of a label, or several, as in "
                 "team,month; by job where no job is named")
      .Check(NotEmpty());
  verb.AddOption("--label", flags->label, "Only jobs with this label, as in team or team=vision")
      .Check(NotEmpty());
  verb.AddOption("--from", flags->from,
                 "Only recurrences that ended from this month or day on, as in 2026-11")
      .Check(NotEmpty());
  verb.AddOption("--until", flags->until, "And before this month or day").Check(NotEmpty());
  Verbs::AddModel(verb, *flags);
  verb.AddFlag("--csv", flags->csv, "Groups as comma-separated values");
  verb.AddOption("--baseline", flags->baseline, "As of show").Check(NotEmpty());
  AddCarbonOptions(verb, flags->carbon);
}

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
  AddSavings(verbs);
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
  AddBackupCommands(job, action);
  verbs.AddOfJob("check",
                 "Whether the stored belief is what the events make; exit code 1 if it is not",
                 Check);
}

}  // namespace zeus::cli
