// The cost of what Slurm's hooks do, against a daemon that runs: slurm_hooks SOCKET JOBS GPUS.
//
// Each job is a prolog, a step that begins and ends, and an epilog, as the SPANK plugin runs them:
// prolog and epilog in a child process. It prints milliseconds as JSON.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "integrations/slurm/job_hooks.h"

namespace {

using Clock = std::chrono::steady_clock;
using zeus::slurm::RunApart;

class Times {
 public:
  template <class Work>
  void Measure(Work work) {
    const auto begin = Clock::now();
    const std::string trouble = work();
    times_.push_back(std::chrono::duration<double, std::milli>(Clock::now() - begin).count());
    if (!trouble.empty()) {
      std::fprintf(stderr, "slurm_hooks: %s\n", trouble.c_str());
      std::exit(1);
    }
  }
  void Print(const char* name, const char* end) {
    std::sort(times_.begin(), times_.end());
    const auto at = [this](double share) {
      return times_[static_cast<std::size_t>(share * static_cast<double>(times_.size() - 1))];
    };
    std::printf("\"%s\": {\"p50\": %.3f, \"p99\": %.3f}%s", name, at(0.5), at(0.99), end);
  }

 private:
  std::vector<double> times_{};
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: slurm_hooks SOCKET JOBS GPUS\n");
    return 2;
  }
  const std::string socket = argv[1];
  const int jobs = std::atoi(argv[2]);
  std::map<std::string, std::string> variables{{"SLURM_CLUSTER_NAME", "bench"},
                                               {"SLURM_JOB_UID", "0"},
                                               {"SLURM_JOB_GPUS", argv[3]},
                                               {"SLURM_JOB_PARTITION", "bench"}};
  const auto get = [&variables](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
  zeus::slurm::JobWishes wishes;
  wishes.power_limit = 150;
  Times nothing;
  Times prolog;
  Times step;
  Times epilog;
  for (int i = 1; i <= jobs; ++i) {
    variables["SLURM_JOB_ID"] = std::to_string(i);
    const std::string job = zeus::slurm::JobOfHook(get);
    const zeus::slurm::StepOfJob first{.job = job, .step = "0"};
    nothing.Measure(
        [] { return RunApart([] { return std::string(); }, zeus::slurm::kLongestHook); });
    prolog.Measure([&] {
      return RunApart([&] { return zeus::slurm::BeginJob(socket, get, wishes); },
                      zeus::slurm::kLongestHook);
    });
    step.Measure([&] {
      const std::string trouble = BeginStep(socket, first);
      return trouble.empty() ? EndStep(socket, first) : trouble;
    });
    epilog.Measure([&] {
      return RunApart([&] { return zeus::slurm::EndJob(socket, job).trouble; },
                      zeus::slurm::kLongestHook);
    });
  }
  std::printf("{");
  nothing.Print("nothing", ", ");
  prolog.Print("prolog", ", ");
  step.Print("step", ", ");
  epilog.Print("epilog", "}\n");
  return 0;
}
