#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/recording/answers.h"
#include "zeus/recording/recording_file.h"

namespace zeus::recording {

// How often a function was answered, and how.
struct AnswerCount {
  std::uint16_t function;
  std::uint64_t in_order;
  std::uint64_t nearest;
  std::uint64_t unknown;
};

// A recording that is being replayed: a file in the folder of simulated nodes, whose first part all
// processes share. No process has to run. Thread-safe, and safe against processes that die at any
// instruction.
class ReplayNode {
 public:
  // The recording is checked before the node appears. kUnavailable when the name is taken.
  static Result<std::unique_ptr<ReplayNode>> Create(const std::filesystem::path& folder,
                                                    const std::string& name,
                                                    const std::filesystem::path& recording);
  // kNotFound when there is no replay of that name.
  static Result<std::unique_ptr<ReplayNode>> Open(const std::filesystem::path& folder,
                                                  const std::string& name);
  static Status Remove(const std::filesystem::path& folder, const std::string& name);
  static std::vector<std::string> List(const std::filesystem::path& folder);
  static bool Exists(const std::filesystem::path& folder, const std::string& name);

  ~ReplayNode();
  ReplayNode(const ReplayNode&) = delete;
  ReplayNode& operator=(const ReplayNode&) = delete;

  const Recording& recording() const { return recording_; }

  // The recorded process that this one plays: the first with a program of the same name that nobody
  // has played yet, else the first whose player has ended.
  std::optional<std::uint32_t> TakeTrack(std::uint16_t name_hash, std::uint32_t pid);

  // Time since the first program asked, in nanoseconds; `now` is the monotonic clock.
  std::uint64_t Time(std::uint64_t now);

  void Count(std::uint16_t function, Match match);
  std::vector<AnswerCount> Counts() const;  // One for each function that was called.

 private:
  struct State;
  struct Mapping {
    void* address;
    std::size_t size;
  };
  ReplayNode(Mapping mapping, Recording recording)
      : mapping_(mapping), recording_(std::move(recording)) {}
  State& state() const { return *static_cast<State*>(mapping_.address); }

  const Mapping mapping_;
  const Recording recording_;
};

}  // namespace zeus::recording
