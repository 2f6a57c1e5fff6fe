#include "zeus/session/slurm_queue.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <sstream>
#include <string_view>
#include <utility>

#include "zeus/base/file.h"
#include "zeus/base/file_descriptor.h"
#include "zeus/base/spawn.h"
#include "zeus/base/text.h"

namespace zeus {
namespace {

// A word as a shell reads it back unchanged.
std::string ShellQuoted(const std::string& word) {
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string Contents(int descriptor) {
  ::lseek(descriptor, 0, SEEK_SET);
  std::string text;
  std::array<char, 65536> piece{};
  for (ssize_t got = 0; (got = ::read(descriptor, piece.data(), piece.size())) > 0;)
    text.append(piece.data(), static_cast<std::size_t>(got));
  return text;
}

Result<ProgramOutput> RunHere(const std::vector<std::string>& command, const std::string& input) {
  // Files in memory: no pipe can fill up.
  const FileDescriptor in(::memfd_create("zeus-in", MFD_CLOEXEC));
  const FileDescriptor out(::memfd_create("zeus-out", MFD_CLOEXEC));
  const FileDescriptor err(::memfd_create("zeus-err", MFD_CLOEXEC));
  if (!in.valid() || !out.valid() || !err.valid()) return FileError("memfd_create", errno);
  ZEUS_RETURN_IF_ERROR(WriteAll(in.get(), input, "memory"));
  ::lseek(in.get(), 0, SEEK_SET);
  ZEUS_TRY(const pid_t pid,
           Spawn({.command = command, .input = in.get(), .output = out.get(), .error = err.get()}));
  const int status = WaitForEnd(pid);
  constexpr int kKilled = 128;
  return ProgramOutput{
      .exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : kKilled + WTERMSIG(status),
      .output = Contents(out.get()),
      .errors = Contents(err.get())};
}

}  // namespace

Result<std::vector<std::string>> SplitShellWords(const std::string& text) {
  std::vector<std::string> words;
  bool in_word = false;
  char quote = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote == 0 && std::isspace(static_cast<unsigned char>(c)) != 0) {
      in_word = false;
      continue;
    }
    if (!std::exchange(in_word, true)) words.emplace_back();
    if (quote == 0 && (c == '\'' || c == '"')) {
      quote = c;
    } else if (quote != 0 && c == quote) {
      quote = 0;
    } else if (c == '\\' && quote != '\'' && i + 1 < text.size()) {
      words.back() += text[++i];
    } else {
      words.back() += c;
    }
  }
  if (quote != 0)
    return InvalidArgument(fmt::format("{} has a quote that is not closed", Quote(text)));
  return words;
}

std::string TaskScript(const SlurmSubmission& submission, const std::string& first_array,
                       unsigned retry) {
  std::vector<std::string> words;
  for (const std::string& word : submission.command) words.push_back(ShellQuoted(word));
  std::string script = "#!/bin/sh\n";
  if (retry > 0)
    script += fmt::format("export ZEUS_SLURM_FIRST={} ZEUS_SLURM_RETRY={}\n", first_array, retry);
  // Slurm's signals to the script reach the command.
  return script + fmt::format("exec {}\n", fmt::join(words, " "));
}

SlurmQueue::SlurmQueue() : run_(RunHere) {}

Result<std::string> SlurmQueue::SubmitArray(const SlurmSubmission& submission,
                                            const std::string& first, const std::string& previous,
                                            unsigned retry) {
  std::string array = fmt::format("--array=1-{}", submission.tasks);
  if (submission.at_once > 0) array += fmt::format("%{}", submission.at_once);
  std::vector<std::string> command = {"sbatch",
                                      "--parsable",
                                      "--requeue",
                                      "--open-mode=append",
                                      "--job-name=" + submission.name,
                                      std::move(array)};
  if (!previous.empty()) {
    command.push_back("--dependency=afternotok:" + previous);
    command.emplace_back("--kill-on-invalid-dep=yes");
  }
  command.insert(command.end(), submission.options.begin(), submission.options.end());
  ZEUS_TRY(const ProgramOutput done, run_(command, TaskScript(submission, first, retry)));
  if (done.exit_code != 0)
    return InvalidArgument(fmt::format("sbatch refuses the job: {}", Trim(done.errors)));
  // "123" or "123;cluster".
  const std::string_view number = Trim(done.output);
  return std::string(number.substr(0, number.find(';')));
}

Result<std::vector<std::string>> SlurmQueue::Submit(const SlurmSubmission& submission) {
  std::vector<std::string> arrays;
  for (unsigned retry = 0; retry <= submission.retries; ++retry) {
    const std::string first = arrays.empty() ? "" : arrays.front();
    const std::string previous = arrays.empty() ? "" : arrays.back();
    ZEUS_TRY(std::string array, SubmitArray(submission, first, previous, retry));
    arrays.push_back(std::move(array));
  }
  return arrays;
}

Result<std::map<std::string, std::string>> SlurmQueue::States(
    const std::vector<std::string>& arrays) {
  std::map<std::string, std::string> states;
  for (const std::string& array : arrays) {
    ZEUS_TRY(const ProgramOutput done, run_({"squeue", "--noheader", "--array", "--states=all",
                                             "--jobs=" + array, "--format=%i %T"},
                                            ""));
    if (done.exit_code != 0) {
      // Slurm forgets jobs some minutes after their end.
      if (done.errors.find("Invalid job id") != std::string::npos) continue;
      return Error{ErrorCode::kUnavailable, std::string(Trim(done.errors))};
    }
    std::istringstream lines(done.output);
    for (std::string task, state; lines >> task >> state;) states[task] = state;
  }
  return states;
}

bool IsUnderWay(const std::string& state) {
  constexpr std::array<std::string_view, 9> kUnderWay = {"PENDING",      "RUNNING",    "SUSPENDED",
                                                         "CONFIGURING",  "COMPLETING", "REQUEUED",
                                                         "REQUEUE_HOLD", "RESIZING",   "STOPPED"};
  return std::ranges::find(kUnderWay, state) != kUnderWay.end();
}

SlurmOutcome OutcomeOf(const std::map<std::string, std::string>& states) {
  // By the number of the task: the state in the latest array that ran it.
  std::map<std::string, std::pair<std::uint64_t, std::string>> latest;
  for (const auto& [name, state] : states) {
    const std::size_t mark = name.find('_');
    const auto array = ParseUnsigned(name.substr(0, mark));
    if (!array.ok() || mark == std::string::npos) continue;
    auto& entry = latest[name.substr(mark + 1)];
    const bool skipped = state == "CANCELLED" && !entry.second.empty();
    if (array.value() >= entry.first && !skipped) entry = {array.value(), state};
  }
  SlurmOutcome outcome;
  for (const auto& [task, entry] : latest)
    ++(entry.second == "COMPLETED" ? outcome.completed : outcome.failed);
  return outcome;
}

}  // namespace zeus
