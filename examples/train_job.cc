// Runs a command that trains, again and again, each time with a batch size and a power limit that
// cost less: what `zeus train` does, from C++. Needs a GPU, or eval "$(zeus sim env)" for a
// simulated one.
#include <fmt/format.h>

#include "zeus/session/train.h"

// The command is given on the command line, as in: train_job python3 train.py --batch-size
// {batch_size}
int main(int count, char** words) {
  zeus::TrainOptions options{.command = {words + 1, words + count}, .recurrences = 2};
  options.spec = {.id = "digits", .batch_sizes = {64, 128}, .default_batch_size = 128};
  options.spec.target_metric = 0.9;
  options.metric = zeus::MetricPattern::Compile("val_acc=([0-9.]+)").value();
  const auto outcome = zeus::Train(options, {.jobs = {.database = "sqlite:train_job.db"}});
  if (!outcome.ok()) return fmt::print(stderr, "{}\n", outcome.error().message), 1;
  fmt::print("{} on {}: {}\n", outcome.value().job, outcome.value().gpu_model,
             outcome.value().reached ? "reached its target" : "did not reach its target");
}
