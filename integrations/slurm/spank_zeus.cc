// The SPANK plugin: options of srun, sbatch and salloc, and what zeusd is told of jobs and steps.
//
// job_prolog and job_epilog do their work in a child process: a plugin that crashes there would
// drain the node. In slurmstepd requests are limited to a quarter of a second. Nothing here makes a
// job fail, except an option with a value that cannot be meant, before the job exists.
#include <slurm/slurm.h>
#include <slurm/spank.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "integrations/slurm/job_hooks.h"
#include "integrations/slurm/zeusd_socket.h"

extern "C" {
#pragma GCC visibility push(default)
// Without these declarations constants of C++ are not exported, and every srun aborts.
extern const char plugin_name[];
extern const char plugin_type[];
extern const unsigned int plugin_version;
extern const unsigned int spank_plugin_version;
SPANK_PLUGIN(zeus, 1)
#pragma GCC visibility pop
}

namespace zeus::slurm {
namespace {

// The arguments of the plugin's line in plugstack.conf.
struct PluginSettings {
  std::string socket{kDefaultSocket};
  JobWishes wishes{};              // default=off|measure
  std::string admin_comment_by{};  // The zeus command, where jobs get their energy as a comment.
  std::string trouble{};
};

PluginSettings ReadSettings(int count, char** words) {
  PluginSettings settings;
  const char* node = std::getenv("SLURMD_NODENAME");
  for (int i = 0; i < count; ++i) {
    const std::string_view word = words[i];
    const auto value = [&](std::string_view name) { return word.substr(name.size()); };
    if (word.starts_with("socket="))
      settings.socket = SocketOfNode(value("socket="), node == nullptr ? "" : node);
    else if (word.starts_with("admin_comment="))
      settings.admin_comment_by = value("admin_comment=");
    else if (!word.starts_with("default=") || !ReadMode(value("default="), settings.wishes))
      settings.trouble = "plugstack.conf: zeus does not know " + std::string(word);
  }
  return settings;
}

// Options.

constexpr int kModeOption = 0;
constexpr int kLimitOption = 1;
constexpr int kSlowdownOption = 2;
constexpr int kDeadlineOption = 3;

bool ReadOption(int option, std::string_view text, JobWishes& wishes) {
  if (option == kModeOption) return ReadMode(text, wishes);
  if (option == kLimitOption) return ReadPowerLimit(text, wishes);
  if (option == kSlowdownOption) return ReadMaxSlowdown(text, wishes);
  return ReadDeadline(text, wishes);
}

int CheckOption(int option, const char* text, int /*remote*/) {
  JobWishes ignored;
  if (text != nullptr && ReadOption(option, text, ignored)) return 0;
  constexpr std::array kFixes = {"--zeus takes off, measure, limit or optimize",
                                 "--zeus-power-limit takes watts for each GPU, 1 to 100000",
                                 "--zeus-max-slowdown takes a factor from 1 to 10, such as 1.05",
                                 "--zeus-deadline takes a date and time, such as 2026-11-18T08:00 "
                                 "or 2026-11-18T08:00+01:00"};
  slurm_error("%s", kFixes.at(static_cast<std::size_t>(option)));
  return -1;
}

// Slurm's structure takes texts that may be written; it does not write them.
char* Text(const char* text) { return const_cast<char*>(text); }

std::array<struct spank_option, 4> MakeOptions() {
  return {
      {{Text("zeus"), Text("off|measure|limit|optimize"),
        Text("energy of the job: off, measured (the default), with --zeus-power-limit, or with "
             "a limit that the program finds itself"),
        1, kModeOption, CheckOption},
       {Text("zeus-power-limit"), Text("watts"),
        Text("the most that each GPU of the job may draw, until the job ends"), 1, kLimitOption,
        CheckOption},
       {Text("zeus-max-slowdown"), Text("factor"),
        Text("how much longer the job may take to save energy, such as 1.05"), 1, kSlowdownOption,
        CheckOption},
       {Text("zeus-deadline"), Text("time"),
        Text("when a job that waits for clean or cheap power (zeus train --shift) must be over, "
             "such as 2026-11-18T08:00"),
        1, kDeadlineOption, CheckOption}}};
}

// The wishes of the job that a callback is for; bad values are left out.
JobWishes WishesOf(spank_t spank, JobWishes wishes) {
  for (struct spank_option& option : MakeOptions()) {
    char* text = nullptr;
    if (spank_option_getopt(spank, &option, &text) == ESPANK_SUCCESS && text != nullptr)
      ReadOption(option.val, text, wishes);
  }
  return wishes;
}

// A job that is limited gets its limit, and one with a limit is limited.
JobWishes Settled(JobWishes wishes) {
  using Mode = JobWishes::Mode;
  if (wishes.power_limit && wishes.mode == Mode::kMeasure) wishes.mode = Mode::kLimit;
  if (wishes.mode == Mode::kOff) wishes.power_limit.reset();
  return wishes;
}

// Steps.

std::string NameOfStep(std::uint32_t step) {
  if (step == SLURM_BATCH_SCRIPT) return "batch";
  if (step == SLURM_EXTERN_CONT) return "extern";
  if (step == SLURM_INTERACTIVE_STEP) return "interactive";
  return std::to_string(step);
}

std::string JobVariable(spank_t spank, const char* name) {
  std::array<char, 256> text{};
  const auto got = spank_getenv(spank, name, text.data(), static_cast<int>(text.size()));
  return got == ESPANK_SUCCESS ? std::string(text.data()) : std::string();
}

std::string JobOfStep(spank_t spank) {
  std::uint32_t job = 0;
  if (spank_get_item(spank, S_JOB_ID, &job) != ESPANK_SUCCESS) return "";
  return JobKey(JobVariable(spank, "SLURM_CLUSTER_NAME"), std::to_string(job));
}

StepOfJob ReadStep(spank_t spank) {
  std::uint32_t step = 0;
  if (spank_get_item(spank, S_JOB_STEPID, &step) != ESPANK_SUCCESS) return {};
  return {.job = JobOfStep(spank),
          .step = NameOfStep(step),
          .job_name = JobVariable(spank, "SLURM_JOB_NAME"),
          .account = JobVariable(spank, "SLURM_JOB_ACCOUNT")};
}

void Report(const std::string& trouble) {
  if (!trouble.empty()) slurm_info("zeus: %s", trouble.c_str());
}

// The job's comment says what it used. The command replaces this child process.
void WriteComment(const PluginSettings& settings, const std::string& job) {
  if (settings.admin_comment_by.empty()) return;
  ::execl(settings.admin_comment_by.c_str(), "zeus", "slurm", "comment", job.c_str(), "--socket",
          settings.socket.c_str(), nullptr);
}

int OnJobProlog(spank_t spank, int count, char** words) {
  const PluginSettings settings = ReadSettings(count, words);
  Report(settings.trouble);
  const JobWishes wishes = Settled(WishesOf(spank, settings.wishes));
  if (wishes.mode == JobWishes::Mode::kLimit && !wishes.power_limit)
    Report("--zeus=limit without --zeus-power-limit: the job is measured only");
  if (wishes.mode == JobWishes::Mode::kOff) return ESPANK_SUCCESS;
  Report(RunApart(
      [&] {
        return BeginJob(
            settings.socket, [](const char* name) { return std::getenv(name); }, wishes);
      },
      kLongestHook));
  return ESPANK_SUCCESS;
}

int OnJobEpilog(spank_t /*spank*/, int count, char** words) {
  const PluginSettings settings = ReadSettings(count, words);
  Report(RunApart(
      [&] {
        const std::string job = JobOfHook([](const char* name) { return std::getenv(name); });
        const EndedJob ended = EndJob(settings.socket, job);
        if (!ended.record.empty()) WriteComment(settings, job);
        return ended.trouble;
      },
      kLongestHook));
  return ESPANK_SUCCESS;
}

int OnStepBegin(spank_t spank, int count, char** words) {
  const PluginSettings settings = ReadSettings(count, words);
  if (spank_context() != S_CTX_REMOTE) {
    if (!settings.trouble.empty()) slurm_error("%s", settings.trouble.c_str());
    return ESPANK_SUCCESS;
  }
  const StepOfJob step = ReadStep(spank);
  if (!step.job.empty()) Report(BeginStep(settings.socket, step));
  return ESPANK_SUCCESS;
}

int OnTask(spank_t spank, int count, char** words) {
  const PluginSettings settings = ReadSettings(count, words);
  const JobWishes wishes = Settled(WishesOf(spank, settings.wishes));
  if (wishes.mode == JobWishes::Mode::kOff) return ESPANK_SUCCESS;
  spank_setenv(spank, "ZEUSD_SOCK_PATH", settings.socket.c_str(), 0);
  spank_setenv(spank, "ZEUS_JOB", JobOfStep(spank).c_str(), 1);
  if (wishes.mode == JobWishes::Mode::kOptimize) spank_setenv(spank, "ZEUS_MODE", "optimize", 1);
  if (wishes.max_slowdown)
    spank_setenv(spank, "ZEUS_MAX_SLOWDOWN", std::to_string(*wishes.max_slowdown).c_str(), 1);
  if (!wishes.deadline.empty()) spank_setenv(spank, "ZEUS_DEADLINE", wishes.deadline.c_str(), 1);
  return ESPANK_SUCCESS;
}

int OnExit(spank_t spank, int count, char** words) {
  if (spank_context() != S_CTX_REMOTE) return ESPANK_SUCCESS;
  const PluginSettings settings = ReadSettings(count, words);
  const StepOfJob step = ReadStep(spank);
  if (!step.job.empty()) (void)EndStep(settings.socket, step);
  return ESPANK_SUCCESS;
}

// No exception leaves a callback.
template <class Work>
int Guarded(Work work) {
  try {
    return work();
  } catch (...) {
    return ESPANK_SUCCESS;
  }
}

}  // namespace

// Names of callbacks are C's, so the namespace does not change them.
extern "C" {
#pragma GCC visibility push(default)

int slurm_spank_init(spank_t spank, int /*count*/, char** /*words*/) {
  const spank_context_t context = spank_context();
  if (context != S_CTX_LOCAL && context != S_CTX_ALLOCATOR && context != S_CTX_REMOTE)
    return ESPANK_SUCCESS;
  // Slurm keeps copies.
  for (struct spank_option& option : MakeOptions())
    if (spank_option_register(spank, &option) != ESPANK_SUCCESS)
      slurm_error("zeus: the option --%s could not be registered", option.name);
  return ESPANK_SUCCESS;
}

int slurm_spank_init_post_opt(spank_t spank, int count, char** words) {
  return Guarded([&] { return OnStepBegin(spank, count, words); });
}

int slurm_spank_job_prolog(spank_t spank, int count, char** words) {
  return Guarded([&] { return OnJobProlog(spank, count, words); });
}

int slurm_spank_job_epilog(spank_t spank, int count, char** words) {
  return Guarded([&] { return OnJobEpilog(spank, count, words); });
}

int slurm_spank_task_init(spank_t spank, int count, char** words) {
  return Guarded([&] { return OnTask(spank, count, words); });
}

int slurm_spank_exit(spank_t spank, int count, char** words) {
  return Guarded([&] { return OnExit(spank, count, words); });
}

#pragma GCC visibility pop
}

}  // namespace zeus::slurm
