// Measures what it costs to inform other processes: every window calls Announce() at both edges.

#include <benchmark/benchmark.h>

#include "zeus/base/clock.h"
#include "zeus/base/testing/temporary_directory.h"
#include "zeus/monitor/sharing/shared_activity_board.h"

namespace zeus {
namespace {

class Boards {
 public:
  auto Open() {
    return SharedActivityBoard::Open(directory_.path() / "activity",
                                     {"GPU-0", "GPU-1", "GPU-2", "GPU-3"}, clock_)
        .value();
  }
  TimePoint Now() const { return clock_.Now(); }

 private:
  testing::TemporaryDirectory directory_;
  SystemClock clock_;
};

void Announce(benchmark::State& state) {
  Boards boards;
  const auto board = boards.Open();
  const TimePoint now = boards.Now();
  unsigned device = 0;
  for (auto _ : state) {
    board->Announce(now, device, 1);
    device = (device + 1) % 4;
  }
}
BENCHMARK(Announce);

// Seven other ranks have announced the edges of one window on four GPUs since the last call.
void PollOfSevenOthers(benchmark::State& state) {
  Boards boards;
  const auto board = boards.Open();
  std::vector<std::unique_ptr<SharedActivityBoard>> others;
  for (int i = 0; i < 7; ++i) others.push_back(boards.Open());
  for (auto _ : state) {
    state.PauseTiming();
    const TimePoint now = boards.Now();
    for (const auto& other : others) {
      for (unsigned device = 0; device < 4; ++device) other->Announce(now, device, 1);
      for (unsigned device = 0; device < 4; ++device) other->Announce(now, device, 0);
    }
    state.ResumeTiming();
    benchmark::DoNotOptimize(board->Poll(now));
  }
}
BENCHMARK(PollOfSevenOthers);

}  // namespace
}  // namespace zeus
