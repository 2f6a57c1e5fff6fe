#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

// Slurm's hooks tell zeusd that a job begins and ends on this node, and that a step does. The same
// functions serve the SPANK plugin, the energy plugin and `zeus slurm prolog|epilog`.
//
// A hook must not harm a job. None of these throws, each is bounded in time, and a failure is a
// sentence for a log.
namespace zeus::slurm {

inline constexpr std::string_view kDefaultSocket = "/run/zeusd/zeusd.sock";
inline constexpr std::chrono::milliseconds kLongestHook{2000};
inline constexpr std::chrono::milliseconds kLongestStepHook{250};  // Inside slurmstepd itself.

// A variable of the environment that a hook runs in; nullptr where it is not set.
using Variables = std::function<const char*(const char* name)>;

// How a job wants to be treated, from the options of srun, sbatch and salloc.
struct JobWishes {
  enum class Mode { kOff, kMeasure, kLimit, kOptimize };
  Mode mode = Mode::kMeasure;
  std::optional<double> power_limit{};   // Watts, at most, on each GPU of the job.
  std::optional<double> max_slowdown{};  // 1.05: the job may take 5 % longer.
  std::string deadline{};                // "2026-11-18T08:00"; local time, or with an offset.
};
// Each returns false, and leaves the wish as it was, for a text that stands for none.
bool ReadMode(std::string_view text, JobWishes& wishes);
bool ReadPowerLimit(std::string_view text, JobWishes& wishes);
bool ReadMaxSlowdown(std::string_view text, JobWishes& wishes);
bool ReadDeadline(std::string_view text, JobWishes& wishes);

// "slurm:CLUSTER.JOB", which names a job in every part of Zeus; "slurm:JOB" without a cluster.
std::string JobKey(std::string_view cluster, std::string_view job);

// The job of a prolog or epilog, from SLURM_JOB_ID and its relatives; "" where there is none.
std::string JobOfHook(const Variables& variables);

// Tells that a job begins on this node: its owner, its GPUs by their positions in Slurm's list, its
// limit. Where no daemon answers, the message is left for the next one. Returns a sentence when
// something is not as it should be, else "".
std::string BeginJob(const std::string& socket, const Variables& variables,
                     const JobWishes& wishes);

struct EndedJob {
  std::string trouble{};
  std::string record{};  // The daemon's answer: the job with its energy; "" where there is none.
};
// Tells that a job has ended. A job that the daemon does not know is no trouble.
EndedJob EndJob(const std::string& socket, const std::string& job);

struct StepOfJob {
  std::string job{};   // As JobKey() has it; "slurm:JOB" finds the job of any cluster.
  std::string step{};  // "0", "batch", "extern", "interactive".
  std::string job_name{};
  std::string account{};
};
// Tells that this process runs a step from now on. Returns a sentence of trouble, or "".
std::string BeginStep(const std::string& socket, const StepOfJob& step);
std::string EndStep(const std::string& socket, const StepOfJob& step);

// Runs `work` in a child process and waits for it, at most `limit`; then the child and all that it
// started are killed. What `work` returns is returned; a crash or a hang becomes a sentence.
std::string RunApart(const std::function<std::string()>& work, std::chrono::milliseconds limit);

}  // namespace zeus::slurm
