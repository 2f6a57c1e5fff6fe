/* Zeus for programs in C and for languages that call C.
 *
 * Functions return a zeus_status; zeus_last_error() says in words what went wrong. Handles are
 * opaque. Structures begin with their size, which the caller sets (sizeof), so that they can grow.
 * Strings belong to the library and live as long as the handle they came from.
 *
 * Thread-safe: every function may be called from any thread, but a handle must not be used while or
 * after it is closed or freed. After fork() the child opens a monitor of its own: functions refuse
 * the parent's monitor there, and closing it does nothing.
 */
#ifndef ZEUS_H
#define ZEUS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Grows when something is added. Existing functions, fields and constants keep their meaning. */
#define ZEUS_API_VERSION 1

/* The version of the library that was loaded. */
uint32_t zeus_api_version(void);

typedef int32_t zeus_status;
enum {
  ZEUS_OK = 0,
  ZEUS_INVALID_ARGUMENT = 1,  /* The arguments are not valid: do not repeat the call. */
  ZEUS_NOT_FOUND = 2,         /* No such device or window. */
  ZEUS_NOT_SUPPORTED = 3,     /* This device can never do it. */
  ZEUS_PERMISSION_DENIED = 4, /* The process needs more rights. */
  ZEUS_UNAVAILABLE = 5,       /* The call failed now and may work later. */
  ZEUS_INTERNAL = 6           /* A bug in Zeus. */
};

/* Returns "ok", "invalid argument", ...; never NULL. */
const char* zeus_status_name(zeus_status status);

/* Returns the message of the last call that failed in this thread; "" before the first failure. It
 * is valid until the next failure. */
const char* zeus_last_error(void);

/* --- monitor --- */

typedef struct zeus_monitor zeus_monitor;
typedef struct zeus_measurement zeus_measurement;

typedef struct zeus_monitor_options {
  size_t struct_size;
  const uint32_t* gpus; /* Positions of the GPUs to measure; NULL: all that the process may see. */
  size_t gpu_count;
  int32_t cpus;            /* Measure CPU packages, their memory, and power rails. Default 1. */
  int32_t recorder_thread; /* Record on a thread. Default 1; if 0, call zeus_monitor_step(). */
  int32_t share;           /* Split energy with other processes of this user. Default 1. */

  /* Called before the edges of windows; it must wait until the GPUs have finished their work. */
  void (*synchronize)(void* user_data);
  void* synchronize_data;

  /* Called with every refined result, on the recorder thread or within zeus_monitor_step(). The
   * measurement is valid only during the call. It must not close the monitor. */
  void (*refined)(const zeus_measurement* measurement, void* user_data);
  void* refined_data;
} zeus_monitor_options;

/* Sets the defaults and struct_size. Call it with sizeof(zeus_monitor_options). */
zeus_status zeus_monitor_options_init(zeus_monitor_options* options, size_t struct_size);

/* Finds the devices and begins to record. `options` may be NULL. Returns ZEUS_NOT_FOUND on a
 * machine without any device that can be measured. */
zeus_status zeus_monitor_open(const zeus_monitor_options* options, zeus_monitor** monitor);

/* Ends the recording, cancels open windows and restores power limits that are still set. Does
 * nothing for NULL. */
zeus_status zeus_monitor_close(zeus_monitor* monitor);

/* Reads the devices that are due. `seconds_until_next`, which may be NULL, gets the time after
 * which the next call is due. */
zeus_status zeus_monitor_step(zeus_monitor* monitor, double* seconds_until_next);

/* --- devices --- */

typedef int32_t zeus_device_kind;
enum {
  ZEUS_DEVICE_OTHER = 0, /* For example a power rail of the board. */
  ZEUS_DEVICE_GPU = 1,
  ZEUS_DEVICE_CPU = 2,
  ZEUS_DEVICE_DRAM = 3
};

typedef struct zeus_device_info {
  size_t struct_size;
  const char* name;        /* "gpu:0" */
  const char* model;       /* "" if unknown */
  const char* uuid;        /* "" if the device has none */
  const char* pci_address; /* "" if the device has none */
  zeus_device_kind kind;
} zeus_device_info;

zeus_status zeus_device_count(zeus_monitor* monitor, size_t* count);
zeus_status zeus_device_info_get(zeus_monitor* monitor, size_t device, zeus_device_info* info);

/* Bits of zeus_device_reading.known. A value whose bit is not set is NaN. */
enum {
  ZEUS_READING_ENERGY = 1 << 0,
  ZEUS_READING_POWER = 1 << 1,
  ZEUS_READING_TEMPERATURE = 1 << 2,
  ZEUS_READING_UTILIZATION = 1 << 3,
  ZEUS_READING_GRAPHICS_CLOCK = 1 << 4,
  ZEUS_READING_POWER_LIMIT = 1 << 5
};

typedef struct zeus_device_reading {
  size_t struct_size;
  uint32_t known;
  double energy_joules; /* Energy since the monitor was opened; never decreases. */
  double energy_sigma_joules;
  double power_watts; /* Power over the last update interval of the sensor. */
  double power_sigma_watts;
  double temperature_celsius;
  double utilization; /* Share of time with a kernel running, 0 to 1. */
  double graphics_clock_hertz;
  double requested_limit_watts; /* The power limit that was set last. */
  double enforced_limit_watts;  /* The power limit that the device enforces. */
} zeus_device_reading;

/* Returns the present state from the recording, without calling a driver. */
zeus_status zeus_device_read(zeus_monitor* monitor, size_t device, zeus_device_reading* reading);

typedef struct zeus_power_limits {
  size_t struct_size;
  double min_watts;
  double max_watts;
  double default_watts;
  double requested_watts;
  double enforced_watts;
} zeus_power_limits;

/* Reads the limits from the driver. */
zeus_status zeus_power_limits_read(zeus_monitor* monitor, size_t device, zeus_power_limits* limits);

typedef struct zeus_power_limit zeus_power_limit;

/* Sets the limit of a GPU until zeus_power_limit_restore(). It is also restored when the program
 * ends by exit(), SIGINT, SIGTERM or SIGHUP; after SIGKILL the next start of any program that uses
 * Zeus restores it, or `zeus knobs restore`. Returns ZEUS_UNAVAILABLE while this or another program
 * holds the limit, and ZEUS_INVALID_ARGUMENT above the limit that was found, which may be a cap. */
zeus_status zeus_power_limit_set(zeus_monitor* monitor, size_t device, double watts,
                                 zeus_power_limit** limit);

/* As zeus_power_limit_set(), but the limit may be above the one that was found, up to the maximum
 * of the device. */
zeus_status zeus_power_limit_raise(zeus_monitor* monitor, size_t device, double watts,
                                   zeus_power_limit** limit);

/* Restores the previous limit. Frees the handle, even on failure. Does nothing for NULL. */
zeus_status zeus_power_limit_restore(zeus_power_limit* limit);

/* --- windows --- */

typedef struct zeus_window_options {
  size_t struct_size;
  int32_t restart;           /* Cancel an open window of this name. Default 0: refuse the call. */
  int32_t synchronous_edges; /* Read the driver at both edges. Default 0: rely on the recorder. */
  int32_t synchronize;       /* Call zeus_monitor_options.synchronize. Default 1. */
  int32_t has_lane;          /* Use `lane`. Default 0: one lane per thread. */
  uint64_t lane; /* Windows of one lane nest: the innermost gets the energy. Lanes share it. */
  double weight; /* Weight of this window when lanes share energy. Default 1. */
} zeus_window_options;

zeus_status zeus_window_options_init(zeus_window_options* options, size_t struct_size);

/* `options` and `id` may be NULL. */
zeus_status zeus_window_begin(zeus_monitor* monitor, const char* name,
                              const zeus_window_options* options, uint64_t* id);

/* Ends a window; the energies are as precise as possible at this moment, see zeus_window_refine().
 * The caller frees the measurement. */
zeus_status zeus_window_end(zeus_monitor* monitor, const char* name,
                            zeus_measurement** measurement);

zeus_status zeus_window_cancel(zeus_monitor* monitor, const char* name);
zeus_status zeus_window_cancel_all(zeus_monitor* monitor);

/* Returns the final result of a window that was ended, which is known one to two sensor updates
 * later. Waits for at most `timeout_seconds`, then returns ZEUS_UNAVAILABLE. Each result is
 * returned once. */
zeus_status zeus_window_refine(zeus_monitor* monitor, uint64_t id, double timeout_seconds,
                               zeus_measurement** measurement);

/* --- measurements --- */

typedef struct zeus_measurement_total {
  size_t struct_size;
  uint64_t id;
  const char* window;
  double started_unix_seconds; /* Wall time, as a label only: time_seconds is measured. */
  double time_seconds;
  int32_t refined; /* 1: the final result, 0: the immediate one. */
  size_t device_count;

  /* Sums over the devices that are in the total and whose energy is known. */
  double energy_joules;
  double sigma_joules;
  double attributed_joules;
  size_t contained; /* Number of those devices. */
  size_t missing;   /* Number of devices that should be in the total and whose energy is unknown. */
} zeus_measurement_total;

enum {
  ZEUS_FLAG_COUNTER_RESET = 1 << 0,
  ZEUS_FLAG_STALE_COUNTER = 1 << 1,
  ZEUS_FLAG_SHORT_WINDOW = 1 << 2,
  ZEUS_FLAG_LIMIT_CHANGED = 1 << 3,
  ZEUS_FLAG_THROTTLED = 1 << 4,
  ZEUS_FLAG_SENSOR_ALIASING_POSSIBLE = 1 << 5,
  ZEUS_FLAG_ESTIMATED = 1 << 6,
  ZEUS_FLAG_PARTIAL = 1 << 7,
  ZEUS_FLAG_SHARED = 1 << 8
};

typedef int32_t zeus_energy_source;
enum { ZEUS_SOURCE_COUNTER = 0, ZEUS_SOURCE_INTEGRATED = 1, ZEUS_SOURCE_MODEL = 2 };

typedef struct zeus_device_measurement {
  size_t struct_size;
  const char* device; /* "gpu:0" */
  zeus_status status; /* ZEUS_OK, or the reason why the energies are unknown (NaN). */
  const char* reason; /* The same reason as a message; "" for ZEUS_OK. */
  double energy_joules;
  double sigma_joules;      /* One standard deviation of energy_joules. */
  double attributed_joules; /* This window's share, where windows or processes overlapped. */
  double coverage;          /* Share of the window that the sensor observed, 0 to 1. */
  double update_period_seconds;
  int32_t updates; /* New values that the sensor showed inside the window. */
  uint32_t flags;
  zeus_energy_source source;
  int32_t in_total;
} zeus_device_measurement;

zeus_status zeus_measurement_total_get(const zeus_measurement* measurement,
                                       zeus_measurement_total* total);
zeus_status zeus_measurement_device_get(const zeus_measurement* measurement, size_t device,
                                        zeus_device_measurement* result);
void zeus_measurement_free(zeus_measurement* measurement);

#ifdef __cplusplus
}
#endif

#endif
