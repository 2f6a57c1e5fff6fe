#pragma once

#include <cstddef>

// The part of NVML's C ABI that Zeus speaks, declared by us: the adapter calls it, the simulated
// library implements it. Layouts are those of nvml.h 13.3 on 64-bit Linux and are checked below.
// Names follow NVML where a reader would look them up there.
namespace zeus::nvml {

using Device = struct OpaqueDevice*;  // nvmlDevice_t
using Return = int;                   // nvmlReturn_t

inline constexpr Return kSuccess = 0;
inline constexpr Return kUninitialized = 1;
inline constexpr Return kInvalidArgument = 2;
inline constexpr Return kNotSupported = 3;
inline constexpr Return kNoPermission = 4;
inline constexpr Return kAlreadyInitialized = 5;
inline constexpr Return kNotFound = 6;
inline constexpr Return kInsufficientSize = 7;
inline constexpr Return kInsufficientPower = 8;
inline constexpr Return kDriverNotLoaded = 9;
inline constexpr Return kTimeout = 10;
inline constexpr Return kIrqIssue = 11;
inline constexpr Return kLibraryNotFound = 12;
inline constexpr Return kFunctionNotFound = 13;
inline constexpr Return kCorruptedInforom = 14;
inline constexpr Return kGpuIsLost = 15;
inline constexpr Return kResetRequired = 16;
inline constexpr Return kOperatingSystem = 17;
inline constexpr Return kLibRmVersionMismatch = 18;
inline constexpr Return kInUse = 19;
inline constexpr Return kMemory = 20;
inline constexpr Return kNoData = 21;
inline constexpr Return kVgpuEccNotSupported = 22;
inline constexpr Return kInsufficientResources = 23;
inline constexpr Return kFreqNotSupported = 24;
inline constexpr Return kArgumentVersionMismatch = 25;
inline constexpr Return kDeprecated = 26;
inline constexpr Return kNotReady = 27;
inline constexpr Return kGpuNotFound = 28;
inline constexpr Return kInvalidState = 29;
inline constexpr Return kResetTypeNotSupported = 30;
inline constexpr Return kUnknown = 999;

inline constexpr std::size_t kNameBufferSize = 96;
inline constexpr std::size_t kUuidBufferSize = 96;
inline constexpr std::size_t kVersionBufferSize = 80;

// nvmlClockType_t
inline constexpr int kClockGraphics = 0;
inline constexpr int kClockSm = 1;
inline constexpr int kClockMemory = 2;
inline constexpr int kClockVideo = 3;

// nvmlDeviceArchitecture_t
inline constexpr unsigned kArchitecturePascal = 4;
inline constexpr unsigned kArchitectureVolta = 5;
inline constexpr unsigned kArchitectureTuring = 6;
inline constexpr unsigned kArchitectureAmpere = 7;
inline constexpr unsigned kArchitectureAda = 8;
inline constexpr unsigned kArchitectureHopper = 9;
inline constexpr unsigned kArchitectureUnknown = 0xffffffff;

// nvmlDeviceGetMigMode
inline constexpr unsigned kMigEnabled = 1;

// nvmlTemperatureSensors_t
inline constexpr int kSensorGpu = 0;

// nvmlDeviceGetFieldValues: field ids and scopes.
inline constexpr unsigned kFieldTotalEnergy = 83;
inline constexpr unsigned kFieldPowerAverage = 185;
inline constexpr unsigned kFieldPowerInstant = 186;
inline constexpr unsigned kFieldPowerMinLimit = 187;
inline constexpr unsigned kFieldPowerMaxLimit = 188;
inline constexpr unsigned kFieldPowerDefaultLimit = 189;
inline constexpr unsigned kFieldPowerCurrentLimit = 190;  // Enforced.
inline constexpr unsigned kFieldEnergy = 191;
inline constexpr unsigned kFieldPowerRequestedLimit = 192;

inline constexpr unsigned kScopeGpu = 0;
inline constexpr unsigned kScopeModule = 1;
inline constexpr unsigned kScopeMemory = 2;

// nvmlValueType_t
inline constexpr int kValueDouble = 0;
inline constexpr int kValueUnsigned = 1;
inline constexpr int kValueUnsignedLong = 2;
inline constexpr int kValueUnsignedLongLong = 3;
inline constexpr int kValueSignedLongLong = 4;
inline constexpr int kValueSignedInt = 5;
inline constexpr int kValueUnsignedShort = 6;

// nvmlClocksEventReasons
inline constexpr unsigned long long kReasonIdle = 0x1;
inline constexpr unsigned long long kReasonApplicationsClocks = 0x2;
inline constexpr unsigned long long kReasonSoftwarePowerCap = 0x4;
inline constexpr unsigned long long kReasonHardwareSlowdown = 0x8;
inline constexpr unsigned long long kReasonSyncBoost = 0x10;
inline constexpr unsigned long long kReasonSoftwareThermal = 0x20;
inline constexpr unsigned long long kReasonHardwareThermal = 0x40;
inline constexpr unsigned long long kReasonPowerBrake = 0x80;
inline constexpr unsigned long long kReasonDisplayClock = 0x100;

// NVML's rule for versioned structs.
template <class Struct>
constexpr unsigned StructVersion(unsigned version) {
  return static_cast<unsigned>(sizeof(Struct)) | (version << 24U);
}

struct PciInfo {  // nvmlPciInfo_t (v3)
  char bus_id_legacy[16];
  unsigned domain;
  unsigned bus;
  unsigned device;
  unsigned pci_device_id;
  unsigned pci_subsystem_id;
  char bus_id[32];
};
static_assert(sizeof(PciInfo) == 68 && offsetof(PciInfo, bus_id) == 36);

struct UtilizationRates {  // nvmlUtilization_t, per cent
  unsigned gpu;
  unsigned memory;
};
static_assert(sizeof(UtilizationRates) == 8);

struct MemoryInfo {  // nvmlMemory_t, bytes
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};
static_assert(sizeof(MemoryInfo) == 24);

struct MemoryInfoV2 {  // nvmlMemory_v2_t
  unsigned version;
  unsigned long long total;
  unsigned long long reserved;
  unsigned long long free;
  unsigned long long used;
};
static_assert(sizeof(MemoryInfoV2) == 40 && offsetof(MemoryInfoV2, used) == 32);

struct ProcessInfoV1 {  // nvmlProcessInfo_v1_t
  unsigned pid;
  unsigned long long used_gpu_memory;
};
static_assert(sizeof(ProcessInfoV1) == 16);

struct ProcessInfo {  // nvmlProcessInfo_v2_t, also used by the _v3 calls
  unsigned pid;
  unsigned long long used_gpu_memory;
  unsigned gpu_instance_id;
  unsigned compute_instance_id;
};
static_assert(sizeof(ProcessInfo) == 24 && offsetof(ProcessInfo, gpu_instance_id) == 16);

union Value {  // nvmlValue_t
  double as_double;
  int as_int;
  unsigned as_unsigned;
  unsigned long as_unsigned_long;
  unsigned long long as_unsigned_long_long;
  long long as_long_long;
  unsigned short as_unsigned_short;
};
static_assert(sizeof(Value) == 8);

struct FieldValue {  // nvmlFieldValue_t
  unsigned field_id;
  unsigned scope_id;
  long long timestamp;  // Microseconds since 1970.
  long long latency_usec;
  int value_type;
  Return nvml_return;
  Value value;
};
static_assert(sizeof(FieldValue) == 40 && offsetof(FieldValue, value) == 32);

struct TemperatureV1 {  // nvmlTemperature_v1_t
  unsigned version;
  int sensor_type;
  int temperature;
};
static_assert(sizeof(TemperatureV1) == 12);

struct PowerValueV2 {  // nvmlPowerValue_v2_t
  unsigned version;
  unsigned char power_scope;
  unsigned power_value_milliwatts;
};
static_assert(sizeof(PowerValueV2) == 12 && offsetof(PowerValueV2, power_value_milliwatts) == 8);

struct ProcessUtilizationSample {  // nvmlProcessUtilizationSample_t
  unsigned pid;
  unsigned long long timestamp;  // Microseconds since 1970.
  unsigned sm_utilization;
  unsigned memory_utilization;
  unsigned encoder_utilization;
  unsigned decoder_utilization;
};
static_assert(sizeof(ProcessUtilizationSample) == 32 &&
              offsetof(ProcessUtilizationSample, sm_utilization) == 16);

struct ViolationTime {                // nvmlViolationTime_t
  unsigned long long reference_time;  // Microseconds.
  unsigned long long violation_time;  // Nanoseconds.
};
static_assert(sizeof(ViolationTime) == 16);

struct Bar1Memory {  // nvmlBAR1Memory_t, bytes
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};
static_assert(sizeof(Bar1Memory) == 24);

struct EccErrorCounts {  // nvmlEccErrorCounts_t
  unsigned long long l1_cache;
  unsigned long long l2_cache;
  unsigned long long device_memory;
  unsigned long long register_file;
};
static_assert(sizeof(EccErrorCounts) == 32);

struct DeviceAttributes {  // nvmlDeviceAttributes_t
  unsigned multiprocessors;
  unsigned shared_copy_engines;
  unsigned shared_decoders;
  unsigned shared_encoders;
  unsigned shared_jpeg_engines;
  unsigned shared_optical_flow_engines;
  unsigned gpu_instance_slices;
  unsigned compute_instance_slices;
  unsigned long long memory_megabytes;
};
static_assert(sizeof(DeviceAttributes) == 40);

struct FabricInfo {  // nvmlGpuFabricInfo_t
  unsigned char cluster_uuid[16];
  Return status;
  unsigned clique_id;
  unsigned char state;
};
static_assert(sizeof(FabricInfo) == 28);

struct FabricInfoV2 {  // nvmlGpuFabricInfo_v2_t
  unsigned version;
  unsigned char cluster_uuid[16];
  Return status;
  unsigned clique_id;
  unsigned char state;
  unsigned health_mask;
};
static_assert(sizeof(FabricInfoV2) == 36 && offsetof(FabricInfoV2, health_mask) == 32);

struct FabricInfoV3 {  // nvmlGpuFabricInfo_v3_t
  FabricInfoV2 v2;
  unsigned char health_summary;
};
static_assert(sizeof(FabricInfoV3) == 40);

struct ProcessDetail {  // nvmlProcessDetail_v1_t
  unsigned pid;
  unsigned long long used_gpu_memory;
  unsigned gpu_instance_id;
  unsigned compute_instance_id;
  unsigned long long used_protected_memory;
};
static_assert(sizeof(ProcessDetail) == 32);

struct ProcessDetailList {  // nvmlProcessDetailList_v1_t
  unsigned version;
  unsigned mode;
  unsigned entry_count;
  ProcessDetail* entries;
};
static_assert(sizeof(ProcessDetailList) == 24 && offsetof(ProcessDetailList, entries) == 16);

// nvmlProcessMode_t
inline constexpr unsigned kProcessesCompute = 0;
inline constexpr unsigned kProcessesGraphics = 1;
inline constexpr unsigned kProcessesMps = 2;

using EventSet = struct OpaqueEventSet*;  // nvmlEventSet_t

struct EventData {  // nvmlEventData_t
  Device device;
  unsigned long long type;
  unsigned long long data;
  unsigned gpu_instance_id;
  unsigned compute_instance_id;
};
static_assert(sizeof(EventData) == 32);

// nvmlEventType
inline constexpr unsigned long long kEventSingleBitEcc = 0x1;
inline constexpr unsigned long long kEventDoubleBitEcc = 0x2;
inline constexpr unsigned long long kEventPerformanceState = 0x4;
inline constexpr unsigned long long kEventCriticalXid = 0x8;

// nvmlPerfPolicyType_t
inline constexpr int kPolicyPower = 0;
inline constexpr int kPolicyThermal = 1;
inline constexpr int kPolicyReliability = 5;
inline constexpr int kPolicyAllApplicationClocks = 10;
inline constexpr int kPolicyAllBaseClocks = 11;

// nvmlPstates_t
inline constexpr int kPerformanceStateMax = 0;
inline constexpr int kPerformanceStateIdle = 8;
inline constexpr int kPerformanceStateUnknown = 32;

struct DriverSample {  // nvmlSample_t
  unsigned long long timestamp;
  Value value;
};
static_assert(sizeof(DriverSample) == 16);

// Limits that SetGpuLockedClocks takes instead of a frequency.
inline constexpr unsigned kClockLimitTdp = 0xffffff01;
inline constexpr unsigned kClockLimitUnlimited = 0xffffff02;

// NVML writes this where a per-process value is not available.
inline constexpr unsigned long long kValueNotAvailable = ~0ULL;
inline constexpr unsigned kNoMigInstance = 0xffffffff;

}  // namespace zeus::nvml
