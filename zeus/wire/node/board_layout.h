#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "zeus/base/clock.h"
#include "zeus/device/reading_feed.h"

// The board, by which the daemon shows what its recorder reads to every process that may see it: a
// memory file that only the daemon can write (docs/daemon-clients.md). For every device it has the
// newest reading and a ring of the last 4096. All of it is words of 64 bits that are read and
// written one by one. A record begins with its sequence number, which is 0 while the rest is being
// written: a reader that finds the same number before and after it has read a whole record. So
// readers write nothing, and the writer waits for nobody.
//
// Values are as the sensors showed them: seconds of CLOCK_MONOTONIC, joules, watts, hertz and
// degrees Celsius, as IEEE doubles. A program that feeds them to an EnergyMonitor gets what a
// recorder of its own would have got, to the bit.
namespace zeus::wire::board {

inline constexpr std::uint64_t kMagic = 0x0064'7261'6f62'737a;  // "zsboard" in memory.
inline constexpr std::uint64_t kVersion = 1;
inline constexpr std::size_t kUpdates = 4096;   // Length of a device's ring.
inline constexpr std::size_t kTelemetry = 512;  // Length of a GPU's ring of telemetry.
inline constexpr std::size_t kMostDevices = 64;

using Word = std::atomic<std::uint64_t>;
static_assert(Word::is_always_lock_free && sizeof(Word) == 8);

// Words that belong together, the first of which is their sequence number. One writer.
template <std::size_t kWords>
struct Record {
  using Words = std::array<std::uint64_t, kWords>;

  // words[0] is the number, which grows with every call and is never 0.
  void Write(const Words& words) {
    cells[0].store(0, std::memory_order_relaxed);
    // Each store is a release: who sees one of them sees the 0, too.
    for (std::size_t i = 1; i < kWords; ++i) cells[i].store(words[i], std::memory_order_release);
    cells[0].store(words[0], std::memory_order_release);
  }

  // nullopt while it is being written, and before the first time.
  std::optional<Words> Read() const {
    Words words;
    for (std::size_t i = 0; i < kWords; ++i) words[i] = cells[i].load(std::memory_order_acquire);
    if (words[0] == 0 || cells[0].load(std::memory_order_relaxed) != words[0]) return std::nullopt;
    return words;
  }

  std::array<Word, kWords> cells;
};

using Update = Record<8>;      // One visit of the recorder.
using Telemetry = Record<24>;  // The rest of a visit to a GPU that asked for everything.

struct Device {
  Update newest;               // The same as the last one of the ring.
  Telemetry newest_telemetry;  // The same as the last one of its ring.
  alignas(64) Word updates;    // Number of updates so far.
  alignas(64) std::array<Update, kUpdates> ring;
  std::array<Telemetry, kTelemetry> telemetry;
};

struct Header {
  std::uint64_t magic;
  std::uint64_t version;
  std::uint64_t size;  // Bytes of the whole file.
  std::uint64_t device_count;
  std::uint64_t device_size;  // sizeof(Device)
  std::uint64_t updates;      // kUpdates
  std::uint64_t telemetry;    // kTelemetry
  std::uint64_t generation;   // Differs for every start of the daemon.
};
static_assert(sizeof(Update) == 64 && sizeof(Telemetry) == 192 && sizeof(Header) == 64);

// The size of a board; `devices` is not more than kMostDevices.
constexpr std::size_t SizeOf(std::size_t devices) {
  return sizeof(Header) + devices * sizeof(Device);
}

// The words of a reading. `number` counts the updates of the device from 1, `telemetry` its
// telemetry; 0 without one.
Update::Words Encode(std::uint64_t number, TimePoint time, const DeviceReading& reading,
                     std::uint64_t telemetry);
Telemetry::Words Encode(std::uint64_t number, TimePoint time, const GpuReading& reading);

// The reverse, without telemetry. Any words mean something: what makes no sense is an error in the
// reading. Errors have the code that the recorder saw and a sentence of our own.
struct DecodedUpdate {
  TimePoint time;
  DeviceReading reading;
  std::uint64_t telemetry;  // Number of the telemetry that belongs to it; 0 without one.
};
DecodedUpdate Decode(const Update::Words& words);
struct DecodedTelemetry {
  TimePoint time;
  GpuReading reading;
};
DecodedTelemetry Decode(const Telemetry::Words& words);

}  // namespace zeus::wire::board
