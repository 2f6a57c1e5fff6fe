#include <fmt/format.h>
#include <poll.h>
#include <termios.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/zeus/commands.h"
#include "apps/zeus/monitor/power_table.h"
#include "apps/zeus/node/connect.h"
#include "apps/zeus/node/top_table.h"
#include "apps/zeus/numbers.h"
#include "apps/zeus/output.h"
#include "zeus/base/clock.h"
#include "zeus/process/signal_watch.h"

namespace zeus::cli {
namespace {

struct TopOptions {
  DaemonOptions daemon{};
  double interval = 1;
  std::string filter{};
  std::int64_t count = 0;  // 0: until it is ended.
};

// Makes standard input give every key at once, and unseen, while an object lives.
class KeyInput {
 public:
  KeyInput() {
    if (::isatty(STDIN_FILENO) == 0 || ::isatty(STDOUT_FILENO) == 0) return;
    termios mode{};
    if (::tcgetattr(STDIN_FILENO, &mode) != 0) return;
    before_ = mode;
    mode.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    (void)::tcsetattr(STDIN_FILENO, TCSANOW, &mode);
  }
  ~KeyInput() {
    if (before_) (void)::tcsetattr(STDIN_FILENO, TCSANOW, &*before_);
  }
  KeyInput(const KeyInput&) = delete;
  KeyInput& operator=(const KeyInput&) = delete;

  bool works() const { return before_.has_value(); }
  // The next key that was pressed; nullopt when there is none.
  std::optional<char> Next() const {
    pollfd input{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
    char key = 0;
    if (!works() || ::poll(&input, 1, 0) <= 0 || ::read(STDIN_FILENO, &key, 1) != 1)
      return std::nullopt;
    return key;
  }

 private:
  std::optional<termios> before_{};
};

// The state now, or the one before with the reason why there is no other.
TopState Look(client::NodeDaemonClient& daemon, TopState before) {
  auto readings = daemon.Readings();
  auto leases = daemon.Leases();
  before.trouble = !readings.ok() ? readings.error().message
                   : leases.ok()  ? ""
                                  : leases.error().message;
  if (readings.ok()) before.readings = std::move(readings).value();
  if (leases.ok()) before.leases = std::move(leases).value();
  return before;
}

enum class Wake { kTime, kChange, kQuit };

// Waits for a key, a change of the terminal's size or the time of the next look.
Wake WaitForNews(SignalWatch& signals, const KeyInput& input, TopKeys& keys, TimePoint next,
                 const Clock& clock) {
  while (clock.Now() < next) {
    const Seconds left = next - clock.Now();
    const auto signal =
        input.works() ? signals.NextUnless(STDIN_FILENO, left) : signals.NextWithin(left);
    if (signal) return signal->ssi_signo == SIGWINCH ? Wake::kChange : Wake::kQuit;
    bool pressed = false;
    while (const auto key = input.Next()) {
      if (!keys.Press(*key)) return Wake::kQuit;
      pressed = true;
    }
    if (pressed) return Wake::kChange;
  }
  return Wake::kTime;
}

Result<int> RunTop(const TopOptions& options) {
  SystemClock clock;
  ZEUS_TRY(const auto signals, SignalWatch::Start(SignalWatch::Program::kInteractive));
  ZEUS_TRY(const auto daemon, Connect(options.daemon, clock));
  const KeyInput input;
  Screen screen;
  TopView view{.filter = options.filter};
  TopKeys keys(view);
  TopState state;
  TimePoint next = clock.Now();
  for (std::int64_t shown = 0;;) {
    if (clock.Now() >= next) {
      state = Look(*daemon, std::move(state));
      next = clock.Now() + Seconds(options.interval);
      ++shown;
    }
    const auto footer = input.works() ? TopFooter::kKeys : TopFooter::kNone;
    std::vector<std::string> rows = TopRows(state, view, footer);
    if (const auto width = screen.width())
      for (std::string& row : rows) row = CutToWidth(row, *width);
    if (const Status drawn = screen.Show(rows); !drawn.ok()) return drawn.error();
    if (options.count > 0 && shown >= options.count) return 0;
    if (WaitForNews(*signals, input, keys, next, clock) == Wake::kQuit) return 0;
  }
}

}  // namespace

void AddTopCommand(Verb app, Action& action) {
  auto options = std::make_shared<TopOptions>();
  const Verb verb =
      app.AddVerb("top", "Watch power and leases of this machine, through the daemon");
  AddSocketOption(verb, options->daemon);
  verb.AddOption("--interval", options->interval, "Seconds between two looks")
      .Check(NumberBetween(0.1, 3600))
      .ShowDefault();
  verb.AddOption("--filter", options->filter, "Only devices and leases that contain this text");
  verb.AddOption("--count", options->count, "End after so many looks");
  verb.OnChosen([&action, options] { action = [options] { return RunTop(*options); }; });
}

}  // namespace zeus::cli
