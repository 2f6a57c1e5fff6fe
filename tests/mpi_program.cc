// mpi_program TASK: one rank of mpi_test.py. Prints one line of results, or the error.
#include <fmt/format.h>

#include <array>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>

#include "tests/mpi_power_limit.h"
#include "zeus/base/text.h"
#include "zeus/mpi/mpi_collective.h"

namespace zeus {
namespace {

Status Combine(Collective& ranks) {
  const double rank = ranks.rank();
  std::array sum = {rank, 1.0, 0.1 * rank};
  ZEUS_RETURN_IF_ERROR(ranks.Sum(sum));
  std::array max = {rank, -rank};
  ZEUS_RETURN_IF_ERROR(ranks.Max(max));
  std::array told = {rank == 1 ? 42.0 : 0.0};
  ZEUS_RETURN_IF_ERROR(ranks.Broadcast(told, ranks.size() > 1 ? 1 : 0));
  fmt::print("rank {} of {}: sum {} {} {:a} max {} {} told {}\n", ranks.rank(), ranks.size(),
             sum[0], sum[1], sum[2], max[0], max[1], told[0]);
  return Ok();
}

Status WrongRoot(Collective& ranks) {
  std::array told = {1.0};
  return ranks.Broadcast(told, ranks.size());
}

// The last rank ends by `death`; the others continue to exchange.
Status LoseOne(Collective& ranks, const std::function<void()>& death) {
  std::array<double, 1> sum = {1.0};
  ZEUS_RETURN_IF_ERROR(ranks.Sum(sum));
  fmt::print("met\n");
  (void)std::fflush(stdout);
  ZEUS_RETURN_IF_ERROR(ranks.Sum(sum));
  if (ranks.rank() == ranks.size() - 1) death();
  for (;;) ZEUS_RETURN_IF_ERROR(ranks.Sum(sum));
}

Status Run(const std::string& task) {
  if (task.starts_with("power-limit-of-")) {
    ZEUS_TRY(const std::int64_t ranks, ParseInteger(task.substr(task.rfind('-') + 1)));
    return OptimizeSummedProfiles(static_cast<int>(ranks));
  }
  ZEUS_TRY(const auto ranks, MpiCollective::World());
  if (task == "combine") return Combine(*ranks);
  if (task == "power-limit") return OptimizePowerLimit(*ranks);
  if (task == "train-until-killed") return TrainUntilOneIsKilled(*ranks);
  if (task == "wrong-root") return WrongRoot(*ranks);
  if (task == "killed") return LoseOne(*ranks, [] { (void)std::raise(SIGKILL); });
  if (task == "exits") return LoseOne(*ranks, [] { std::_Exit(0); });
  return Error{ErrorCode::kInvalidArgument, "no such task: " + task};
}

}  // namespace
}  // namespace zeus

int main(int argc, char** argv) {
  const zeus::Status status = zeus::Run(argc > 1 ? argv[1] : "");
  if (status.ok()) return 0;
  fmt::print(stderr, "mpi_program: {}\n", status.error().message);
  return 1;
}
