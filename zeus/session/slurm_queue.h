#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "zeus/base/result.h"

namespace zeus {

// Jobs for Slurm: the same command in every task of an array.
struct SlurmSubmission {
  std::string name{};
  std::vector<std::string> command{};  // The program by its whole path, and its arguments.
  unsigned tasks = 1;
  unsigned at_once = 0;  // So many tasks run together; 0: as many as there is room for.
  // A second array is begun when a task of the first one has failed, and so on. Its tasks go on
  // where those of the first array have ended (scheduled_task.h).
  unsigned retries = 0;
  std::vector<std::string> options{};  // For sbatch: "--partition=gpu".
};

// Words of a text as a shell splits it: blanks part them, quotes and backslashes keep them
// together. kInvalidArgument for a quote that is not closed.
Result<std::vector<std::string>> SplitShellWords(const std::string& text);

// The script of a task, for the standard input of sbatch.
std::string TaskScript(const SlurmSubmission& submission, const std::string& first_array,
                       unsigned retry);

struct ProgramOutput {
  int exit_code = 0;
  std::string output{};
  std::string errors{};
};

// Talks to Slurm by its programs (sbatch, squeue), as users do. One owner.
class SlurmQueue {
 public:
  using RunProgram = std::function<Result<ProgramOutput>(const std::vector<std::string>& command,
                                                         const std::string& input)>;
  // Runs programs of this machine. A program that Slurm's controller does not answer is waited for.
  SlurmQueue();
  explicit SlurmQueue(RunProgram run) : run_(std::move(run)) {}

  // Returns the numbers of the arrays, that of the first one first. kNotFound without sbatch,
  // kInvalidArgument with the words of sbatch when it refuses.
  Result<std::vector<std::string>> Submit(const SlurmSubmission& submission);

  // How the tasks of the arrays are: by name ("12_3") their state ("RUNNING"). Tasks that Slurm has
  // forgotten are not there. kUnavailable when Slurm does not answer.
  Result<std::map<std::string, std::string>> States(const std::vector<std::string>& arrays);

 private:
  Result<std::string> SubmitArray(const SlurmSubmission& submission, const std::string& first,
                                  const std::string& previous, unsigned retry);

  RunProgram run_;
};

// Whether a task in this state will still run or is running.
bool IsUnderWay(const std::string& state);

// Counts how the tasks of the arrays ended: each by its latest array.
struct SlurmOutcome {
  unsigned completed = 0;
  unsigned failed = 0;
};
SlurmOutcome OutcomeOf(const std::map<std::string, std::string>& states);

}  // namespace zeus
