// The clients of bench/daemon.py: they speak HTTP over a Unix socket with as little work as
// possible.
//
// usage: daemon_load SOCKET get TARGET CLIENTS SECONDS     keep-alive requests, one after the other
//        daemon_load SOCKET set UUID LOW HIGH COUNT        replaces the request of one lease
//        daemon_load SOCKET die UUID WATTS LEASES ROUNDS   one holder among LEASES dies
//        daemon_load SOCKET streams TARGET COUNT SECONDS   follows COUNT streams
//        daemon_load - send SOCKETS BYTES ROUNDS           the bound of streams: bare send(2)
//        daemon_load - pingpong SECONDS                    the bound of requests: two processes
// Prints a line of JSON.
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace {

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

[[noreturn]] void Die(const char* what) {
  std::perror(what);
  std::exit(1);
}

int Connect(const char* path) {
  const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path, sizeof address.sun_path - 1);
  if (socket < 0 || ::connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
    Die("connect");
  return socket;
}

std::string RequestText(const std::string& method, const std::string& target,
                        const std::string& body) {
  std::string text = method + " " + target + " HTTP/1.1\r\nHost: zeusd\r\n";
  if (!body.empty())
    text +=
        "Content-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) + "\r\n";
  return text + "\r\n" + body;
}

// Sends one request and returns the answer's status and body.
struct Reply {
  int status = 0;
  std::string body{};
};
Reply Ask(int socket, const std::string& request) {
  if (::write(socket, request.data(), request.size()) != static_cast<ssize_t>(request.size()))
    Die("write");
  std::string text;
  std::size_t end = std::string::npos;
  std::size_t length = 0;
  char buffer[65536];
  while (end == std::string::npos || text.size() < end + length) {
    const ssize_t count = ::read(socket, buffer, sizeof buffer);
    if (count <= 0) Die("read");
    text.append(buffer, static_cast<std::size_t>(count));
    if (end == std::string::npos && (end = text.find("\r\n\r\n")) != std::string::npos) {
      end += 4;
      const std::size_t field = text.find("Content-Length: ");
      if (field < end) length = std::strtoul(text.c_str() + field + 16, nullptr, 10);
    }
  }
  return {.status = std::atoi(text.c_str() + 9), .body = text.substr(end, length)};
}

double Quantile(std::vector<double>& values, double share) {
  if (values.empty()) return 0;
  const auto at = static_cast<std::size_t>(share * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(at), values.end());
  return values[at];
}

void Print(std::vector<double>& latencies, double seconds) {
  const double p50 = Quantile(latencies, 0.5);
  const double p99 = Quantile(latencies, 0.99);
  std::printf(
      "{\"count\": %zu, \"per_second\": %.1f, \"p50_seconds\": %.9f, \"p99_seconds\": %.9f}\n",
      latencies.size(), static_cast<double>(latencies.size()) / seconds, p50, p99);
}

int Get(const char* path, const std::string& target, int clients, double seconds) {
  std::vector<std::vector<double>> latencies(static_cast<std::size_t>(clients));
  const std::string request = RequestText("GET", target, "");
  const double end = Now() + seconds;
  std::vector<std::thread> threads;
  for (auto& mine : latencies)
    threads.emplace_back([&mine, path, &request, end] {
      const int socket = Connect(path);
      double last = Now();
      while (last < end) {
        if (Ask(socket, request).status != 200) Die("the answer is no 200");
        const double now = Now();
        mine.push_back(now - last);
        last = now;
      }
      ::close(socket);
    });
  for (auto& thread : threads) thread.join();
  std::vector<double> all;
  for (const auto& mine : latencies) all.insert(all.end(), mine.begin(), mine.end());
  Print(all, seconds);
  return 0;
}

std::string LeaseRequests(const std::string& uuid, const char* demand, double watts) {
  return R"("requests": [{"device": ")" + uuid + R"(", "knob": "gpu_power_limit", ")" + demand +
         R"(": {"watts": )" + std::to_string(watts) + "}}]";
}

std::string Field(const std::string& json, const std::string& name) {
  const std::size_t at = json.find('"' + name + "\":");
  if (at == std::string::npos) return "";
  const std::size_t begin = json.find('"', at + name.size() + 3) + 1;
  return json.substr(begin, json.find('"', begin) - begin);
}

// `holder` "" leaves the choice to the daemon.
std::string MakeLease(int socket, const std::string& uuid, const char* demand, double watts,
                      const std::string& holder) {
  const std::string body = R"({"name": "bench", )" +
                           (holder.empty() ? "" : R"("holder": ")" + holder + R"(", )") +
                           LeaseRequests(uuid, demand, watts) + "}";
  const Reply reply = Ask(socket, RequestText("POST", "/v1/leases", body));
  if (reply.status != 201) {
    std::fprintf(stderr, "POST /v1/leases: %d %s\n", reply.status, reply.body.c_str());
    std::exit(1);
  }
  return Field(reply.body, "id");
}

int Set(const char* path, const std::string& uuid, double low, double high, int count) {
  const int socket = Connect(path);
  const std::string id = MakeLease(socket, uuid, "exactly", low, "");
  std::vector<double> latencies;
  const double begin = Now();
  for (int i = 0; i < count; ++i) {
    const std::string body = "{" + LeaseRequests(uuid, "exactly", i % 2 == 0 ? high : low) + "}";
    const double start = Now();
    const Reply reply = Ask(socket, RequestText("PUT", "/v1/leases/" + id + "/requests", body));
    latencies.push_back(Now() - start);
    if (reply.status != 200) {
      std::fprintf(stderr, "PUT: %d %s\n", reply.status, reply.body.c_str());
      return 1;
    }
  }
  Print(latencies, Now() - begin);
  return 0;
}

// Each round: a process takes a lease that caps the GPU lower than all others do, and is killed;
// the time from its end to a change of the knob is that of an event on the stream of this program.
int HolderDies(const char* path, const std::string& uuid, double watts, int leases, int rounds) {
  const int socket = Connect(path);
  for (int i = 0; i < leases; ++i)
    MakeLease(socket, uuid, "at_most", watts + 20 + i % 7, "process");
  std::vector<double> latencies;
  const double begin = Now();
  for (int round = 0; round < rounds; ++round) {
    int ready[2];
    if (::pipe(ready) != 0) Die("pipe");
    const pid_t child = ::fork();
    if (child == 0) {
      const int mine = Connect(path);
      MakeLease(mine, uuid, "at_most", watts, "process");
      if (::write(ready[1], "x", 1) != 1) Die("write");
      ::pause();
      std::_Exit(0);
    }
    char byte = 0;
    if (::read(ready[0], &byte, 1) != 1) Die("read");
    ::close(ready[0]);
    ::close(ready[1]);
    const int events = Connect(path);
    const std::string request = RequestText("GET", "/v1/stream?events=knob&devices=" + uuid, "");
    if (::write(events, request.data(), request.size()) < 0) Die("write");
    std::string text;
    char buffer[65536];
    while (text.find("\r\n\r\n") == std::string::npos) {
      const ssize_t count = ::read(events, buffer, sizeof buffer);
      if (count <= 0) Die("stream");
      text.append(buffer, static_cast<std::size_t>(count));
    }
    // Events from before the kill are not its consequence.
    pollfd waiting{.fd = events, .events = POLLIN, .revents = 0};
    while (::poll(&waiting, 1, 20) > 0)
      if (::read(events, buffer, sizeof buffer) <= 0) Die("stream");
    const double killed = Now();
    ::kill(child, SIGKILL);
    if (::poll(&waiting, 1, 10'000) <= 0) Die("no event after the end of the holder");
    latencies.push_back(Now() - killed);
    ::waitpid(child, nullptr, 0);
    ::close(events);
  }
  Print(latencies, Now() - begin);
  return 0;
}

int Streams(const char* path, const std::string& target, int count, double seconds) {
  const int epoll = ::epoll_create1(0);
  const std::string request = RequestText("GET", target, "");
  for (int i = 0; i < count; ++i) {
    const int socket = Connect(path);
    if (::write(socket, request.data(), request.size()) < 0) Die("write");
    epoll_event event{.events = EPOLLIN, .data = {.fd = socket}};
    ::epoll_ctl(epoll, EPOLL_CTL_ADD, socket, &event);
  }
  std::printf("open\n");
  std::fflush(stdout);
  unsigned long long bytes = 0;
  const double end = Now() + seconds;
  char buffer[65536];
  epoll_event events[64];
  while (Now() < end) {
    const int found = ::epoll_wait(epoll, events, 64, 100);
    for (int i = 0; i < found; ++i) {
      const ssize_t got = ::read(events[i].data.fd, buffer, sizeof buffer);
      if (got <= 0) Die("a stream ended");
      bytes += static_cast<unsigned long long>(got);
    }
  }
  std::printf("{\"streams\": %d, \"bytes\": %llu}\n", count, bytes);
  return 0;
}

// The CPU time of a bare send(2) to each of many sockets whose reader waits for them all.
int Send(int count, std::size_t size, int rounds) {
  std::vector<int> mine;
  std::vector<int> others;
  for (int i = 0; i < count; ++i) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) Die("socketpair");
    mine.push_back(ends[0]);
    others.push_back(ends[1]);
  }
  const pid_t child = ::fork();
  if (child == 0) {
    const int epoll = ::epoll_create1(0);
    for (const int socket : others) {
      epoll_event event{.events = EPOLLIN, .data = {.fd = socket}};
      ::epoll_ctl(epoll, EPOLL_CTL_ADD, socket, &event);
    }
    static char buffer[65536];
    epoll_event events[64];
    for (;;) {
      const int found = ::epoll_wait(epoll, events, 64, -1);
      for (int i = 0; i < found; ++i)
        if (::read(events[i].data.fd, buffer, sizeof buffer) <= 0) std::_Exit(0);
    }
  }
  const std::string text(size, 'x');
  rusage before{};
  ::getrusage(RUSAGE_SELF, &before);
  for (int round = 0; round < rounds; ++round) {
    for (const int socket : mine)
      (void)::send(socket, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  rusage after{};
  ::getrusage(RUSAGE_SELF, &after);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  const auto seconds = [](const rusage& use) {
    return static_cast<double>(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
           1e-6 * static_cast<double>(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
  };
  std::printf("{\"seconds\": %.9f}\n", (seconds(after) - seconds(before)) / count / rounds);
  return 0;
}

int PingPong(double seconds) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) Die("socketpair");
  char byte = 'x';
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    while (::read(ends[1], &byte, 1) == 1 && ::write(ends[1], &byte, 1) == 1) {
    }
    std::_Exit(0);
  }
  ::close(ends[1]);
  std::vector<double> latencies;
  const double end = Now() + seconds;
  for (double last = Now(); last < end;) {
    if (::write(ends[0], &byte, 1) != 1 || ::read(ends[0], &byte, 1) != 1) Die("ping");
    const double now = Now();
    latencies.push_back(now - last);
    last = now;
  }
  ::close(ends[0]);
  ::waitpid(child, nullptr, 0);
  Print(latencies, seconds);
  return 0;
}

}  // namespace

int main(int count, char** words) {
  const std::string what = count > 2 ? words[2] : "";
  if (what == "get" && count == 6)
    return Get(words[1], words[3], std::atoi(words[4]), std::atof(words[5]));
  if (what == "set" && count == 7)
    return Set(words[1], words[3], std::atof(words[4]), std::atof(words[5]), std::atoi(words[6]));
  if (what == "die" && count == 7)
    return HolderDies(words[1], words[3], std::atof(words[4]), std::atoi(words[5]),
                      std::atoi(words[6]));
  if (what == "streams" && count == 6)
    return Streams(words[1], words[3], std::atoi(words[4]), std::atof(words[5]));
  if (what == "send" && count == 6)
    return Send(std::atoi(words[3]), std::strtoul(words[4], nullptr, 10), std::atoi(words[5]));
  if (what == "pingpong" && count == 4) return PingPong(std::atof(words[3]));
  std::fprintf(stderr, "usage: see the head of bench/daemon_load.cc\n");
  return 2;
}
