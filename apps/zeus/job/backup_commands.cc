#include "apps/zeus/job/backup_commands.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "apps/zeus/job/job_source.h"
#include "apps/zeus/numbers.h"
#include "apps/zeus/output.h"
#include "apps/zeus/terminal.h"
#include "zeus/base/clock.h"
#include "zeus/base/file.h"
#include "zeus/base/terminal_text.h"
#include "zeus/base/text.h"
#include "zeus/job/grouped_savings.h"
#include "zeus/store/backup.h"
#include "zeus/store/open_repository.h"
#include "zeus/store/retention.h"

namespace zeus::cli {
namespace {

struct BackupFlags {
  std::string database{};
  std::filesystem::path file{};
};

Result<std::string> DatabaseOf(const BackupFlags& flags) {
  if (!flags.database.empty()) return flags.database;
  return DefaultDatabaseUrl(ProcessEnvironment());
}

std::string CountText(const BackupSummary& summary) {
  const auto count = [](std::int64_t number, const char* what) {
    return fmt::format("{} {}{}", number, what, number == 1 ? "" : "s");
  };
  return fmt::format("{}, {} and {}", count(summary.jobs, "job"), count(summary.trials, "trial"),
                     count(summary.events, "event"));
}

Result<int> MakeBackup(const BackupFlags& flags) {
  ZEUS_TRY(const std::string url, DatabaseOf(flags));
  const SystemClock clock;
  ZEUS_TRY(const BackupSummary made, BackUp(url, flags.file, clock.WallNow()));
  Show(stdout, fmt::format("{} are in {}\n", CountText(made), Printable(flags.file.string())));
  return 0;
}

Result<int> RestoreBackup(const BackupFlags& flags) {
  ZEUS_TRY(const std::string url, DatabaseOf(flags));
  ZEUS_TRY(const RestoreSummary done, Restore(flags.file, url));
  std::string text = fmt::format("{} are restored\n", CountText(done.restored));
  if (!done.kept.empty()) {
    std::vector<std::string> names;
    for (const std::string& name : done.kept) names.push_back(Printable(name));
    text += fmt::format(
        "left as they are, since the database has them already: {} (zeus job delete first, to have "
        "them as they were)\n",
        fmt::join(names, ", "));
  }
  Show(stdout, text);
  return 0;
}

struct PruneFlags {
  std::string database{};
  std::string before{};
  bool yes = false;
};

Result<int> Prune(const PruneFlags& flags) {
  ZEUS_TRY(const WallTime before, ParseDate(flags.before));
  ZEUS_TRY(const std::string url, DatabaseOf({.database = flags.database}));
  ZEUS_TRY(const std::vector<PrunedJob> jobs,
           PruneEpochs(url, before, flags.yes ? PruneMode::kRemove : PruneMode::kDryRun));
  std::int64_t trials = 0;
  std::int64_t events = 0;
  std::vector<std::vector<std::string>> rows{{"job", "runs", "events of epochs"}};
  for (const PrunedJob& job : jobs) {
    rows.push_back({Printable(job.job), fmt::to_string(job.trials), fmt::to_string(job.events)});
    trials += job.trials;
    events += job.events;
  }
  if (jobs.empty()) {
    PrintText(
        fmt::format("there is nothing to remove of runs that ended before {}\n", flags.before));
    return 0;
  }
  rows.push_back({"all", fmt::to_string(trials), fmt::to_string(events)});
  Show(stdout, AlignedRows({Align::kLeft, Align::kRight, Align::kRight}, rows));
  PrintText(
      flags.yes
          ? "removed; jobs, runs, what was learned and what was saved stay as they are\n"
          : "nothing is removed yet: --yes does it; jobs, runs, what was learned and what was "
            "saved stay as they are\n");
  return 0;
}

void AddPrune(Verb job, Action& action) {
  auto flags = std::make_shared<PruneFlags>();
  const Verb verb = job.AddVerb(
      "prune",
      "Remove the events of single epochs of runs that ended long ago; looks only, at first");
  verb.AddOption("--before", flags->before,
                 "Of runs that ended before this month or day (of UTC), as in 2026-11")
      .Check(NotEmpty())
      .Required();
  verb.AddFlag("--yes", flags->yes, "Remove them; without it, it is only said what would be");
  verb.AddOption("--database", flags->database,
                 "sqlite:///path/zeus.db or postgresql://…; by default the file of this user")
      .Check(NotEmpty());
  verb.OnChosen([&action, flags] { action = [flags] { return Prune(*flags); }; });
}

void Add(Verb verb, Action& action, const char* file, Result<int> (*run)(const BackupFlags&)) {
  auto flags = std::make_shared<BackupFlags>();
  verb.AddOption("file", flags->file, file).Check(NotEmpty()).Required();
  verb.AddOption("--database", flags->database,
                 "sqlite:///path/zeus.db or postgresql://…; by default the file of this user")
      .Check(NotEmpty());
  verb.OnChosen([&action, flags, run] { action = [flags, run] { return run(*flags); }; });
}

}  // namespace

void AddBackupCommands(Verb job, Action& action) {
  Add(job.AddVerb("backup", "Copy a database to a file, while others use it"), action,
      "File to write", MakeBackup);
  Add(job.AddVerb("restore",
                  "Add what a backup holds to a database that lacks it, while others use it"),
      action, "File that zeus job backup has written", RestoreBackup);
  AddPrune(job, action);
}

}  // namespace zeus::cli
