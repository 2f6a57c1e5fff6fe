#pragma once

#include <functional>
#include <string>
#include <vector>

#include "apps/zeus/train/train_options.h"
#include "zeus/base/result.h"

namespace zeus::cli {

// The words of `zeus train …` as a task of Slurm runs it: without the options that are about Slurm,
// about how often, and about the outputs at the end, and with `added` before the command. `words`
// are those of this process, `command` how many of them at the end are the command to train with.
std::vector<std::string> TaskWords(std::vector<std::string> words, std::size_t command,
                                   const std::vector<std::string>& added);

// `zeus train --slurm`: submits the recurrences, waits for their end and shows what was learned
// with `show`. Needs no GPU here. The exit code is 0 when every task has ended well, 1 when one has
// not, and 128 + n when signal n ended the waiting; the jobs go on then.
Result<int> LaunchOnSlurm(const TrainInvocation& invocation, const std::function<Status()>& show);

}  // namespace zeus::cli
