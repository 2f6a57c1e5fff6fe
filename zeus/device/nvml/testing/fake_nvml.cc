#include "zeus/device/nvml/testing/fake_nvml.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace zeus::nvml::testing {
namespace {

FakeNvml* current = nullptr;

// A handle points to one of these.
struct Slot {
  FakeBoard* board;
  std::string partition;  // Set for a MIG instance.
  int process;
  int opening;  // FakeNvml::openings() at that time.
};

Device NewHandle(FakeBoard& board, std::string partition = "") {
  // Handles live as long as the driver, that is, for ever.
  static std::vector<std::unique_ptr<Slot>>& slots = *new std::vector<std::unique_ptr<Slot>>;
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  slots.push_back(
      std::make_unique<Slot>(Slot{&board, std::move(partition), ::getpid(), current->openings()}));
  return reinterpret_cast<Device>(slots.back().get());
}

Return CopyText(const std::string& text, char* into, unsigned size) {
  if (text.size() >= size) return kInsufficientSize;
  std::memcpy(into, text.c_str(), text.size() + 1);
  return kSuccess;
}

}  // namespace

struct FakeCalls {
  // Everything that precedes the work of a call on a device.
  template <class Work>
  static Return On(Device device, const char* function, Work work) {
    const Slot& slot = *reinterpret_cast<Slot*>(device);
    if (current->process_ != ::getpid() || slot.process != ::getpid() || current->users_ == 0)
      return kUninitialized;
    if (slot.opening != current->openings_) return kInvalidArgument;
    FakeBoard& board = *slot.board;
    const std::lock_guard lock(board.mutex);
    ++board.calls[function];
    if (board.failure != kSuccess) return board.failure;
    if (const auto refusal = board.refusals.find(function); refusal != board.refusals.end())
      return refusal->second;
    return work(board);
  }

  static Return Init() {
    if (current->init_result != kSuccess) return current->init_result;
    if (current->process_ != ::getpid()) current->users_ = 0;
    current->process_ = ::getpid();
    ++current->users_;
    return kSuccess;
  }

  static Return Shutdown() {
    if (current == nullptr || current->users_ == 0) return kUninitialized;
    if (--current->users_ > 0) return kSuccess;
    ++current->openings_;
    for (const auto& board : current->boards_) board->open = false;
    return kSuccess;
  }

  static Return Count(unsigned* count) {
    *count = static_cast<unsigned>(current->boards_.size());
    return kSuccess;
  }

  static Return HandleByIndex(unsigned index, Device* device) {
    if (index >= current->boards_.size()) return kInvalidArgument;
    if (const auto failure = current->handle_failures.find(index);
        failure != current->handle_failures.end())
      return failure->second;
    *device = NewHandle(*current->boards_[index]);
    current->boards_[index]->open = true;
    return kSuccess;
  }

  static Return HandleByUuid(const char* uuid, Device* device) {
    if (current->process_ != ::getpid()) return kUninitialized;
    const auto found = std::ranges::find(current->boards_, std::string(uuid),
                                         [](const auto& board) { return board->uuid; });
    if (found == current->boards_.end()) return kNotFound;
    for (auto board = current->boards_.begin(); board != std::next(found); ++board)
      (*board)->open = true;
    *device = NewHandle(**found);
    return kSuccess;
  }

  static Return HandleByPci(const char* address, Device* device) {
    if (current->process_ != ::getpid()) return kUninitialized;
    const auto found = std::ranges::find(
        current->boards_, std::string(address),
        [](const auto& board) { return fmt::format("0000:{:02x}:00.0", board->bus); });
    if (found == current->boards_.end()) return kNotFound;
    (*found)->open = true;
    *device = NewHandle(**found);
    return kSuccess;
  }

  static Return ReadField(FakeBoard& board, FieldValue& field) {
    if (board.unknown_fields.contains(field.field_id)) return kInvalidArgument;
    if (board.unsupported_fields.contains(field.field_id)) return kNotSupported;
    const bool memory = field.scope_id == kScopeMemory;
    if (field.scope_id != board.scope && !memory) return kNotSupported;
    unsigned long long value = 0;
    switch (field.field_id) {
      case kFieldEnergy:
      case kFieldTotalEnergy:
        value = board.energy += board.energy_per_read;
        break;
      case kFieldPowerInstant:
        if (memory) return kNotSupported;
        value = board.instant_power;
        break;
      case kFieldPowerAverage:
        value = memory ? board.memory_power : board.average_power;
        break;
      case kFieldPowerMinLimit:
        value = board.min_limit;
        break;
      case kFieldPowerMaxLimit:
      case kFieldPowerDefaultLimit:
        value = board.max_limit;
        break;
      case kFieldPowerCurrentLimit:
        value = board.enforced_limit();
        break;
      case kFieldPowerRequestedLimit:
        value = board.requested_limit;
        break;
      default:
        return kInvalidArgument;
    }
    field.timestamp = 1'700'000'000'000'000;
    field.value_type = board.value_type;
    if (board.value_type == kValueDouble) {
      field.value.as_double = static_cast<double>(value);
    } else {
      field.value.as_unsigned_long_long = value;
    }
    return kSuccess;
  }

  static Return Fields(Device device, int count, FieldValue* fields) {
    return On(device, "get_field_values", [&](FakeBoard& board) {
      for (int i = 0; i < count; ++i) fields[i].nvml_return = ReadField(board, fields[i]);
      return kSuccess;
    });
  }

  static Return ListClocks(std::vector<unsigned> clocks, unsigned* count, unsigned* into) {
    const bool fits = *count >= clocks.size();
    *count = static_cast<unsigned>(clocks.size());
    if (!fits) return kInsufficientSize;
    std::ranges::copy(clocks, into);
    return kSuccess;
  }

  static void FillIdentity(NvmlApi& api);
  static void FillSensors(NvmlApi& api);
  static void FillLimits(NvmlApi& api);
  static void FillClocks(NvmlApi& api);
};

void FakeCalls::FillIdentity(NvmlApi& api) {
  api.init = Init;
  api.shutdown = Shutdown;
  api.get_count = Count;
  api.get_handle_by_index = HandleByIndex;
  api.get_handle_by_uuid = HandleByUuid;
  api.get_handle_by_pci = HandleByPci;
  api.get_driver_version = [](char* text, unsigned size) {
    return CopyText("550.54.15", text, size);
  };
  api.get_uuid = [](Device device, char* text, unsigned size) {
    return On(device, "get_uuid", [&](FakeBoard& board) {
      const std::string& partition = reinterpret_cast<Slot*>(device)->partition;
      return CopyText(partition.empty() ? board.uuid : partition, text, size);
    });
  };
  api.get_name = [](Device device, char* text, unsigned size) {
    return On(device, "get_name",
              [&](FakeBoard& board) { return CopyText(board.model, text, size); });
  };
  api.get_pci_info = [](Device device, PciInfo* pci) {
    return On(device, "get_pci_info", [&](FakeBoard& board) {
      *pci = PciInfo{};
      pci->bus = board.bus;
      pci->pci_device_id = board.pci_device_id;
      return kSuccess;
    });
  };
  api.get_architecture = [](Device device, unsigned* architecture) {
    return On(device, "get_architecture", [&](FakeBoard& board) {
      *architecture = board.architecture;
      return kSuccess;
    });
  };
  api.error_string = [](Return) { return current->init_text.c_str(); };
  api.get_mig_mode = [](Device device, unsigned* now, unsigned* pending) {
    return On(device, "get_mig_mode", [&](FakeBoard& board) {
      *now = *pending = board.mig_mode ? kMigEnabled : 0;
      return kSuccess;
    });
  };
  api.get_max_mig_count = [](Device device, unsigned* count) {
    return On(device, "get_max_mig_count", [&](FakeBoard& board) {
      *count = board.partitions.empty() ? 0 : 7;
      return kSuccess;
    });
  };
  api.get_mig_handle = [](Device device, unsigned index, Device* instance) {
    return On(device, "get_mig_handle", [&](FakeBoard& board) {
      if (index >= board.partitions.size()) return kNotFound;
      *instance = NewHandle(board, board.partitions[index]);
      return kSuccess;
    });
  };
}

void FakeCalls::FillSensors(NvmlApi& api) {
  api.get_field_values = Fields;
  api.get_total_energy = [](Device device, unsigned long long* energy) {
    return On(device, "get_total_energy", [&](FakeBoard& board) {
      *energy = board.energy += board.energy_per_read;
      return kSuccess;
    });
  };
  api.get_power_usage = [](Device device, unsigned* power) {
    return On(device, "get_power_usage", [&](FakeBoard& board) {
      *power = board.instant_power;
      return kSuccess;
    });
  };
  api.get_temperature_v = [](Device device, TemperatureV1* temperature) {
    return On(device, "get_temperature_v", [&](FakeBoard&) {
      if (temperature->version != 0x0100000c) return kArgumentVersionMismatch;
      temperature->temperature = 61;
      return kSuccess;
    });
  };
  api.get_temperature = [](Device device, int, unsigned* temperature) {
    return On(device, "get_temperature", [&](FakeBoard&) {
      *temperature = 60;
      return kSuccess;
    });
  };
  api.get_utilization = [](Device device, UtilizationRates* rates) {
    return On(device, "get_utilization", [&](FakeBoard&) {
      *rates = {.gpu = 97, .memory = 40};
      return kSuccess;
    });
  };
  api.get_memory_info_v2 = [](Device device, MemoryInfoV2* info) {
    return On(device, "get_memory_info_v2", [&](FakeBoard&) {
      if (info->version != 0x02000028) return kArgumentVersionMismatch;
      info->total = 16ULL << 30U;
      info->used = 4ULL << 30U;
      return kSuccess;
    });
  };
  api.get_memory_info = [](Device device, MemoryInfo* info) {
    return On(device, "get_memory_info", [&](FakeBoard&) {
      *info = {.total = 16ULL << 30U, .free = 11ULL << 30U, .used = 5ULL << 30U};
      return kSuccess;
    });
  };
  api.get_clocks_event_reasons = [](Device device, unsigned long long* reasons) {
    return On(device, "get_clocks_event_reasons", [&](FakeBoard& board) {
      *reasons = board.reasons;
      return kSuccess;
    });
  };
}

void FakeCalls::FillLimits(NvmlApi& api) {
  api.get_power_limit = [](Device device, unsigned* limit) {
    return On(device, "get_power_limit", [&](FakeBoard& board) {
      *limit = board.requested_limit;
      return kSuccess;
    });
  };
  api.get_enforced_power_limit = [](Device device, unsigned* limit) {
    return On(device, "get_enforced_power_limit", [&](FakeBoard& board) {
      *limit = board.enforced_limit();
      return kSuccess;
    });
  };
  api.get_default_power_limit = [](Device device, unsigned* limit) {
    return On(device, "get_default_power_limit", [&](FakeBoard& board) {
      *limit = board.max_limit;
      return kSuccess;
    });
  };
  api.get_power_limit_constraints = [](Device device, unsigned* min, unsigned* max) {
    return On(device, "get_power_limit_constraints", [&](FakeBoard& board) {
      *min = board.min_limit;
      *max = board.max_limit;
      return kSuccess;
    });
  };
  api.set_power_limit = [](Device device, unsigned limit) {
    return On(device, "set_power_limit", [&](FakeBoard& board) {
      if (!board.ignores_setters) board.requested_limit = limit;
      return kSuccess;
    });
  };
  api.get_persistence = [](Device device, int* mode) {
    return On(device, "get_persistence", [&](FakeBoard& board) {
      *mode = board.persistence;
      return kSuccess;
    });
  };
  api.set_persistence = [](Device device, int mode) {
    return On(device, "set_persistence", [&](FakeBoard& board) {
      if (!board.ignores_setters) board.persistence = mode;
      return kSuccess;
    });
  };
}

void FakeCalls::FillClocks(NvmlApi& api) {
  api.get_clock_info = [](Device device, int type, unsigned* clock) {
    return On(device, "get_clock_info", [&](FakeBoard& board) {
      *clock = type == kClockMemory ? 877 : board.graphics_clock;
      return kSuccess;
    });
  };
  api.get_memory_clocks = [](Device device, unsigned* count, unsigned* clocks) {
    return On(device, "get_memory_clocks", [&](FakeBoard&) {
      return ListClocks({877, 405}, count, clocks);
    });
  };
  api.get_graphics_clocks = [](Device device, unsigned memory, unsigned* count, unsigned* clocks) {
    return On(device, "get_graphics_clocks", [&](FakeBoard&) {
      if (memory != 877) return kNotFound;
      std::vector<unsigned> all;  // More than fit into the first buffer of a thrifty caller.
      for (unsigned clock = 1380; clock >= 135; clock -= 3) all.push_back(clock);
      return ListClocks(std::move(all), count, clocks);
    });
  };
  api.set_graphics_clock_lock = [](Device device, unsigned, unsigned max) {
    return On(device, "set_graphics_clock_lock", [&](FakeBoard& board) {
      board.graphics_clock = max;
      return kSuccess;
    });
  };
  api.reset_graphics_clock_lock = [](Device device) {
    return On(device, "reset_graphics_clock_lock", [&](FakeBoard& board) {
      board.graphics_clock = 1380;
      return kSuccess;
    });
  };
  api.set_memory_clock_lock = [](Device device, unsigned, unsigned) {
    return On(device, "set_memory_clock_lock", [](FakeBoard&) { return kNotSupported; });
  };
  api.reset_memory_clock_lock = [](Device device) {
    return On(device, "reset_memory_clock_lock", [](FakeBoard&) { return kNotSupported; });
  };
}

FakeNvml::FakeNvml(std::size_t boards) {
  for (std::size_t i = 0; i < boards; ++i) {
    boards_.push_back(std::make_unique<FakeBoard>());
    boards_.back()->uuid = fmt::format("GPU-{:08x}-0000-0000-0000-000000000000", i);
    boards_.back()->bus += static_cast<unsigned>(i);
  }
  current = this;
}

FakeNvml::~FakeNvml() { current = nullptr; }

NvmlApi FakeNvml::api() const {
  NvmlApi api;
  FakeCalls::FillIdentity(api);
  FakeCalls::FillSensors(api);
  FakeCalls::FillLimits(api);
  FakeCalls::FillClocks(api);
  return api;
}

Device FakeNvml::handle(std::size_t index) { return NewHandle(board(index)); }

int FakeNvml::calls(const std::string& function, std::size_t index) {
  const std::lock_guard lock(board(index).mutex);
  return board(index).calls[function];
}

}  // namespace zeus::nvml::testing
