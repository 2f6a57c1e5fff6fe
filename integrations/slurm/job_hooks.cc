#include "integrations/slurm/job_hooks.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>

#include "integrations/slurm/json_text.h"
#include "integrations/slurm/zeusd_socket.h"

namespace zeus::slurm {
namespace {

using namespace std::chrono_literals;

constexpr auto kBeforeTheEnd = 100ms;  // Left of a hook's time for what follows a request.
constexpr std::string_view kNoJob =
    "SLURM_JOB_ID is no number: this is a hook, for Prolog= and Epilog= in slurm.conf, and slurmd "
    "sets it (docs/slurm.md)";
constexpr double kLowestLimit = 1;
constexpr double kHighestLimit = 1e5;
constexpr double kHighestSlowdown = 10;

std::optional<double> ReadNumber(std::string_view text, double lowest, double highest) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (!(number >= lowest && number <= highest)) return std::nullopt;
  return number;
}

std::string_view Value(const Variables& variables, const char* name) {
  const char* text = variables(name);
  return text == nullptr ? std::string_view() : std::string_view(text);
}

bool IsDigits(std::string_view text) {
  return !text.empty() && text.size() <= 10 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// "0,2-3" as the JSON array [0,2,3]; nullopt for anything else.
std::optional<std::string> PositionsOf(std::string_view list) {
  constexpr unsigned kMost = 1024;
  std::string array = "[";
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    const std::string_view part = list.substr(0, comma);
    list.remove_prefix(std::min(comma + 1, list.size()));
    const std::size_t dash = std::min(part.find('-'), part.size());
    const std::string_view first = part.substr(0, dash);
    const std::string_view last = dash < part.size() ? part.substr(dash + 1) : first;
    unsigned from = 0;
    unsigned to = 0;
    if (!IsDigits(first) || !IsDigits(last)) return std::nullopt;
    std::from_chars(first.data(), first.data() + first.size(), from);
    std::from_chars(last.data(), last.data() + last.size(), to);
    if (to < from || to >= kMost) return std::nullopt;
    for (; from <= to; ++from)
      array.append(array.size() > 1 ? "," : "").append(std::to_string(from));
  }
  return array + "]";
}

std::string Decimal(double number) {
  char text[40];
  const auto [end, error] =
      std::to_chars(std::begin(text), std::end(text), number, std::chars_format::fixed);
  return error == std::errc() ? std::string(std::begin(text), end) : "0";
}

void AddLabel(std::string& labels, std::string_view name, std::string_view value) {
  if (value.empty()) return;
  labels.append(labels.empty() ? "" : ",").append(ToJsonText(name)).append(":");
  labels.append(ToJsonText(value));
}

// The body of POST /v1/jobs; "" with a reason in `why` when it cannot be written.
std::string BodyOfJob(const Variables& variables, const JobWishes& wishes, std::string& why) {
  const std::string_view uid = Value(variables, "SLURM_JOB_UID");
  const auto positions = PositionsOf(Value(variables, "SLURM_JOB_GPUS"));
  if (!IsDigits(uid))
    why = "SLURM_JOB_UID is no number: slurmd sets it for Prolog= (docs/slurm.md)";
  if (!positions) why = "SLURM_JOB_GPUS is no list of positions";
  if (!IsDigits(uid) || !positions) return "";
  std::string labels;
  AddLabel(labels, "partition", Value(variables, "SLURM_JOB_PARTITION"));
  AddLabel(labels, "user", Value(variables, "SLURM_JOB_USER"));
  AddLabel(labels, "node", Value(variables, "SLURMD_NODENAME"));
  AddLabel(labels, "restarts", Value(variables, "SLURM_JOB_RESTART_COUNT"));
  if (wishes.max_slowdown) AddLabel(labels, "max_slowdown", Decimal(*wishes.max_slowdown));
  AddLabel(labels, "deadline", wishes.deadline);
  std::string body = "{\"id\":" + ToJsonText(JobOfHook(variables));
  body.append(",\"uid\":").append(uid).append(",\"gpu_positions\":").append(*positions);
  if (wishes.power_limit)
    body.append(",\"power_limit_watts\":").append(Decimal(*wishes.power_limit));
  return body.append(",\"labels\":{").append(labels).append("}}");
}

std::string MessageOf(const DaemonReply& reply) {
  if (const auto text = FindJson(reply.body, {"error", "message"}))
    return std::string(text->substr(0, 300));
  return "status " + std::to_string(reply.status);
}

// Messages for a daemon that does not answer lie beside its socket, where only root can write them.
std::string FolderOfMessages(const std::string& socket) {
  return socket.substr(0, socket.rfind('/') + 1) + "pending-jobs";
}

bool LeaveMessage(const std::string& socket, const std::string& job, const std::string& text) {
  const std::string folder = FolderOfMessages(socket);
  if (::mkdir(folder.c_str(), 0755) != 0 && errno != EEXIST) return false;
  const std::string path = folder + "/" + job + ".json";
  const std::string fresh = folder + "/." + job + "." + std::to_string(::getpid());
  const int file =
      ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
  if (file < 0) return false;
  const bool written = ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  ::close(file);
  if (written && ::rename(fresh.c_str(), path.c_str()) == 0) return true;
  ::unlink(fresh.c_str());
  return false;
}

std::string NoDaemon(const std::string& socket, const std::string& why, bool left) {
  return "no zeusd at " + socket + " (" + why + ")" +
         (left ? ": it is told when it comes back" : "");
}

std::string TargetOf(const StepOfJob& step) { return "/v1/jobs/" + step.job + "/steps"; }

std::string SentenceOf(int status) {
  if (WIFSIGNALED(status))
    return "the hook crashed with signal " + std::to_string(WTERMSIG(status)) + "; the job goes on";
  return "";
}

// The work of a child, which must not return from its fork.
[[noreturn]] void RunChild(const std::function<std::string()>& work, int output) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const struct rlimit none {};
  ::setrlimit(RLIMIT_CORE, &none);
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTERM, SIGPIPE})
    ::signal(signal, SIG_DFL);
  std::string text;
  try {
    text = work();
  } catch (...) {
    text = "the hook failed";
  }
  // As much as a pipe takes without waiting.
  if (::write(output, text.data(), std::min<std::size_t>(text.size(), 4096)) < 0) ::_exit(1);
  ::_exit(0);
}

// Reads until the writer has ended; false when the time is over.
bool ReadAll(int input, const Deadline& deadline, std::string& text) {
  for (;;) {
    struct pollfd entry {
      .fd = input, .events = POLLIN, .revents = 0
    };
    const int ready = ::poll(&entry, 1, deadline.Left());
    if (ready == 0 || (ready < 0 && errno != EINTR)) return false;
    if (ready < 0) continue;
    char buffer[4096];
    const ssize_t count = ::read(input, static_cast<void*>(buffer), sizeof(buffer));
    if (count == 0) return true;
    if (count > 0) text.append(static_cast<const char*>(buffer), static_cast<std::size_t>(count));
    if (count < 0 && errno != EINTR && errno != EAGAIN) return false;
  }
}

}  // namespace

bool ReadMode(std::string_view text, JobWishes& wishes) {
  using Mode = JobWishes::Mode;
  if (text == "off") {
    wishes.mode = Mode::kOff;
  } else if (text == "measure") {
    wishes.mode = Mode::kMeasure;
  } else if (text == "limit") {
    wishes.mode = Mode::kLimit;
  } else if (text == "optimize") {
    wishes.mode = Mode::kOptimize;
  } else {
    return false;
  }
  return true;
}

bool ReadPowerLimit(std::string_view text, JobWishes& wishes) {
  const auto watts = ReadNumber(text, kLowestLimit, kHighestLimit);
  if (watts) wishes.power_limit = watts;
  return watts.has_value();
}

bool ReadMaxSlowdown(std::string_view text, JobWishes& wishes) {
  const auto slowdown = ReadNumber(text, 1, kHighestSlowdown);
  if (slowdown) wishes.max_slowdown = slowdown;
  return slowdown.has_value();
}

bool ReadDeadline(std::string_view text, JobWishes& wishes) {
  // A time of day alone would be another day for a job that waits past it.
  constexpr std::string_view kPattern = "dddd-dd-ddTdd:dd";
  constexpr std::size_t kLongest = 25;  // With seconds and an offset.
  if (text.size() < kPattern.size() || text.size() > kLongest) return false;
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool fits =
        i < kPattern.size()
            ? (kPattern[i] == 'd' ? is_digit(text[i]) : text[i] == kPattern[i])
            : is_digit(text[i]) || std::string_view(":+-Z").find(text[i]) != std::string_view::npos;
    if (!fits) return false;
  }
  wishes.deadline = text;
  return true;
}

std::string JobKey(std::string_view cluster, std::string_view job) {
  if (!IsDigits(job)) return "";
  std::string key = "slurm:";
  // A cluster's name ends up in addresses of requests and in names of files.
  for (const char c : cluster.substr(0, 64)) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '_';
    key += plain ? c : '_';
  }
  if (!cluster.empty()) key += '.';
  return key.append(job);
}

std::string JobOfHook(const Variables& variables) {
  return JobKey(Value(variables, "SLURM_CLUSTER_NAME"), Value(variables, "SLURM_JOB_ID"));
}

std::string BeginJob(const std::string& socket, const Variables& variables,
                     const JobWishes& wishes) {
  if (wishes.mode == JobWishes::Mode::kOff) return "";
  const std::string job = JobOfHook(variables);
  if (job.empty()) return std::string(kNoJob);
  std::string why;
  const std::string body = BodyOfJob(variables, wishes, why);
  if (body.empty()) return why;
  const auto reply =
      AskDaemon(socket, "POST", "/v1/jobs", body, Deadline(kLongestHook - kBeforeTheEnd), why);
  if (!reply) return NoDaemon(socket, why, LeaveMessage(socket, job, body));
  if (reply->status != 201) return "zeusd refused " + job + ": " + MessageOf(*reply);
  if (const auto refused = FindJson(reply->body, {"limit_refused"}); refused && *refused != "null")
    return "the power limit of " + job + " is not set: " + std::string(refused->substr(0, 300));
  return "";
}

EndedJob EndJob(const std::string& socket, const std::string& job) {
  if (job.empty()) return {.trouble = std::string(kNoJob)};
  std::string why;
  auto reply = AskDaemon(socket, "DELETE", "/v1/jobs/" + job, "",
                         Deadline(kLongestHook - kBeforeTheEnd), why);
  if (!reply) {
    const std::string text = "{\"ended\":" + ToJsonText(job) + "}";
    return {.trouble = NoDaemon(socket, why, LeaveMessage(socket, job, text))};
  }
  if (reply->status == 200) return {.record = std::move(reply->body)};
  // Epilogs are repeated, and jobs of --zeus=off are unknown.
  if (reply->status == 404) return {};
  return {.trouble = "zeusd refused the end of " + job + ": " + MessageOf(*reply)};
}

std::string BeginStep(const std::string& socket, const StepOfJob& step) {
  std::string labels;
  AddLabel(labels, "job_name", step.job_name);
  AddLabel(labels, "account", step.account);
  std::string body = "{\"step\":" + ToJsonText(step.step);
  body.append(",\"pid\":").append(std::to_string(::getpid()));
  body.append(",\"labels\":{").append(labels).append("}}");
  std::string why;
  const auto reply =
      AskDaemon(socket, "POST", TargetOf(step), body, Deadline(kLongestStepHook), why);
  if (!reply) return NoDaemon(socket, why, false);
  if (reply->status == 200 || reply->status == 201 || reply->status == 404) return "";
  return "zeusd refused step " + step.step + ": " + MessageOf(*reply);
}

std::string EndStep(const std::string& socket, const StepOfJob& step) {
  std::string why;
  const auto reply = AskDaemon(socket, "DELETE", TargetOf(step) + "/" + step.step, "",
                               Deadline(kLongestStepHook), why);
  return reply ? "" : NoDaemon(socket, why, false);
}

std::string RunApart(const std::function<std::string()>& work, std::chrono::milliseconds limit) {
  int ends[2] = {-1, -1};
  if (::pipe2(static_cast<int*>(ends), O_CLOEXEC) != 0) return "no pipe for the hook";
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    RunChild(work, ends[1]);
  }
  ::close(ends[1]);
  std::string text;
  bool ended = false;
  if (child > 0) {
    ended = ReadAll(ends[0], Deadline(limit), text);
    // Also when it has ended: it may have left something behind.
    ::kill(-child, SIGKILL);
    if (!ended) ::kill(child, SIGKILL);
  }
  ::close(ends[0]);
  if (child < 0) return "no process for the hook";
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!ended)
    return "the hook was ended after " + std::to_string(limit.count()) + " ms; the job goes on";
  const std::string crash = SentenceOf(status);
  return crash.empty() ? text : crash;
}

}  // namespace zeus::slurm
