/* A program in C99 that uses every function of <zeus.h>. c_api_test.py runs it on a simulated node:
 * gpu:0 has a constant load, whose watts are the first argument; gpu:1 is idle. Prints the first
 * check that fails. */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <zeus.h>

#define CHECK(condition)                                                                          \
  do {                                                                                            \
    if (!(condition)) {                                                                           \
      fprintf(stderr, "line %d: %s (last error: %s)\n", __LINE__, #condition, zeus_last_error()); \
      exit(1);                                                                                    \
    }                                                                                             \
  } while (0)
#define CHECK_OK(call) CHECK((call) == ZEUS_OK)
#define CHECK_FAILS(call, status, words) \
  CHECK((call) == (status) && strstr(zeus_last_error(), words))

static void rest(double seconds) {
  struct timespec time;
  time.tv_sec = (time_t)seconds;
  time.tv_nsec = (long)((seconds - (double)time.tv_sec) * 1e9);
  nanosleep(&time, NULL);
}

static int synchronized_edges = 0;
static void synchronize(void* user_data) { ++*(int*)user_data; }

/* Written on the recorder's thread. */
static pthread_mutex_t refined_lock = PTHREAD_MUTEX_INITIALIZER;
static int refined_windows = 0;
static void on_refined(const zeus_measurement* measurement, void* user_data) {
  zeus_measurement_total total = {.struct_size = sizeof(total)};
  CHECK_OK(zeus_measurement_total_get(measurement, &total));
  CHECK(total.refined == 1);
  pthread_mutex_lock(&refined_lock);
  ++*(int*)user_data;
  pthread_mutex_unlock(&refined_lock);
}

static zeus_monitor* open_gpus(void) {
  zeus_monitor* monitor = NULL;
  zeus_monitor_options options;
  CHECK_OK(zeus_monitor_options_init(&options, sizeof(options)));
  options.cpus = 0;
  options.synchronize = synchronize;
  options.synchronize_data = &synchronized_edges;
  options.refined = on_refined;
  options.refined_data = &refined_windows;
  CHECK_OK(zeus_monitor_open(&options, &monitor));
  return monitor;
}

static void test_devices(zeus_monitor* monitor) {
  size_t count = 0;
  zeus_device_info info = {.struct_size = sizeof(info)};
  CHECK_OK(zeus_device_count(monitor, &count));
  CHECK(count == 2);
  CHECK_OK(zeus_device_info_get(monitor, 1, &info));
  CHECK(strcmp(info.name, "gpu:1") == 0 && strstr(info.model, "A100"));
  CHECK(strncmp(info.uuid, "GPU-", 4) == 0 && strlen(info.pci_address) > 0);
  CHECK(info.kind == ZEUS_DEVICE_GPU);
  CHECK_FAILS(zeus_device_info_get(monitor, 2, &info), ZEUS_NOT_FOUND, "no device 2");
}

static void test_window(zeus_monitor* monitor, double watts) {
  uint64_t id = 0;
  zeus_measurement* measurement = NULL;
  zeus_measurement_total total = {.struct_size = sizeof(total)};
  zeus_device_measurement device = {.struct_size = sizeof(device)};

  CHECK_OK(zeus_window_begin(monitor, "work", NULL, &id));
  CHECK(id != 0);
  CHECK_FAILS(zeus_window_begin(monitor, "work", NULL, NULL), ZEUS_INVALID_ARGUMENT, "open");
  rest(1.0);
  CHECK_OK(zeus_window_end(monitor, "work", &measurement));
  CHECK(synchronized_edges >= 2);
  CHECK_OK(zeus_measurement_total_get(measurement, &total));
  CHECK(total.id == id && strcmp(total.window, "work") == 0 && total.refined == 0);
  CHECK(total.time_seconds >= 1.0 && total.started_unix_seconds > 1e9);
  zeus_measurement_free(measurement);
  CHECK_FAILS(zeus_window_end(monitor, "work", &measurement), ZEUS_NOT_FOUND, "work");
  CHECK(measurement == NULL);

  CHECK_OK(zeus_window_refine(monitor, id, 10.0, &measurement));
  CHECK_OK(zeus_measurement_total_get(measurement, &total));
  CHECK(total.refined == 1 && total.device_count == 2 && total.contained == 2);
  CHECK(total.missing == 0 && total.sigma_joules > 0);
  CHECK_OK(zeus_measurement_device_get(measurement, 0, &device));
  CHECK(strcmp(device.device, "gpu:0") == 0 && device.status == ZEUS_OK && *device.reason == 0);
  /* A board's gain is a few per cent off. */
  CHECK(fabs(device.energy_joules / total.time_seconds - watts) < 0.15 * watts);
  CHECK(fabs(device.attributed_joules - device.energy_joules) < 1e-6 * device.energy_joules);
  CHECK(device.updates > 3 && device.coverage > 0.5 && device.update_period_seconds > 0);
  CHECK(device.source == ZEUS_SOURCE_COUNTER && device.in_total == 1);
  CHECK((device.flags & (ZEUS_FLAG_SHORT_WINDOW | ZEUS_FLAG_COUNTER_RESET)) == 0);
  CHECK_FAILS(zeus_measurement_device_get(measurement, 2, &device), ZEUS_NOT_FOUND, "no device 2");
  zeus_measurement_free(measurement);
  zeus_measurement_free(NULL);

  pthread_mutex_lock(&refined_lock);
  CHECK(refined_windows >= 1);
  pthread_mutex_unlock(&refined_lock);
  CHECK(zeus_window_refine(monitor, 999, 0.0, &measurement) == ZEUS_NOT_FOUND);
  CHECK_FAILS(zeus_window_refine(monitor, id, NAN, &measurement), ZEUS_INVALID_ARGUMENT,
              "timeout_seconds");
}

static void test_window_options(zeus_monitor* monitor) {
  zeus_window_options options;
  zeus_measurement* measurement = NULL;
  const int before = synchronized_edges;
  CHECK_OK(zeus_window_options_init(&options, sizeof(options)));
  CHECK(options.synchronize == 1 && options.weight == 1.0);
  options.synchronize = 0;
  options.synchronous_edges = 1;
  options.has_lane = 1;
  options.lane = 7;
  CHECK_OK(zeus_window_begin(monitor, "again", &options, NULL));
  options.restart = 1;
  CHECK_OK(zeus_window_begin(monitor, "again", &options, NULL));
  CHECK_OK(zeus_window_end(monitor, "again", &measurement));
  zeus_measurement_free(measurement);
  CHECK(synchronized_edges == before);
  options.weight = -1;
  CHECK_FAILS(zeus_window_begin(monitor, "again", &options, NULL), ZEUS_INVALID_ARGUMENT, "weight");

  CHECK_OK(zeus_window_begin(monitor, "one", NULL, NULL));
  CHECK_OK(zeus_window_begin(monitor, "two", NULL, NULL));
  CHECK_OK(zeus_window_cancel(monitor, "one"));
  CHECK_FAILS(zeus_window_cancel(monitor, "one"), ZEUS_NOT_FOUND, "one");
  CHECK_OK(zeus_window_cancel_all(monitor));
  CHECK(zeus_window_end(monitor, "two", &measurement) == ZEUS_NOT_FOUND);
}

static void test_reading(zeus_monitor* monitor, double watts) {
  double next = -1;
  zeus_device_reading reading = {.struct_size = sizeof(reading)};
  CHECK_OK(zeus_monitor_step(monitor, &next));
  CHECK(next >= 0 && next < 10);
  CHECK_OK(zeus_device_read(monitor, 0, &reading));
  CHECK(reading.known & ZEUS_READING_ENERGY && reading.energy_joules > 0);
  CHECK(reading.known & ZEUS_READING_POWER && fabs(reading.power_watts - watts) < 0.15 * watts);
  CHECK(reading.known & ZEUS_READING_TEMPERATURE && reading.temperature_celsius > 0);
  CHECK(reading.known & ZEUS_READING_POWER_LIMIT && reading.enforced_limit_watts == 400);
}

static void test_power_limit(zeus_monitor* monitor) {
  zeus_power_limit* limit = NULL;
  zeus_power_limits limits = {.struct_size = sizeof(limits)};
  CHECK_OK(zeus_power_limits_read(monitor, 1, &limits));
  CHECK(limits.min_watts == 100 && limits.max_watts == 400 && limits.requested_watts == 400);
  if (geteuid() != 0) { /* As with a real driver. */
    CHECK(zeus_power_limit_set(monitor, 1, 250, &limit) == ZEUS_PERMISSION_DENIED);
    return;
  }
  CHECK_OK(zeus_power_limit_set(monitor, 1, 250, &limit));
  CHECK_OK(zeus_power_limits_read(monitor, 1, &limits));
  CHECK(limits.requested_watts == 250);
  CHECK_OK(zeus_power_limit_restore(limit));
  CHECK_OK(zeus_power_limits_read(monitor, 1, &limits));
  CHECK(limits.requested_watts == 400);
  CHECK_OK(zeus_power_limit_raise(monitor, 1, 300, &limit));
  CHECK_OK(zeus_power_limit_restore(limit));
  CHECK_OK(zeus_power_limit_restore(NULL));
  CHECK(zeus_power_limit_set(monitor, 1, 9999, &limit) == ZEUS_INVALID_ARGUMENT && limit == NULL);
  CHECK(zeus_power_limit_set(monitor, 1, NAN, &limit) == ZEUS_INVALID_ARGUMENT);
}

/* A limit that nobody restored is restored by closing the monitor; its handle stays valid. */
static void test_close_restores_limits(void) {
  zeus_monitor* monitor = open_gpus();
  zeus_power_limit* limit = NULL;
  zeus_power_limits limits = {.struct_size = sizeof(limits)};
  if (geteuid() == 0) CHECK_OK(zeus_power_limit_set(monitor, 1, 250, &limit));
  CHECK_OK(zeus_monitor_close(monitor));
  monitor = open_gpus();
  CHECK_OK(zeus_power_limits_read(monitor, 1, &limits));
  CHECK(limits.requested_watts == 400);
  CHECK_OK(zeus_power_limit_restore(limit));
  CHECK_OK(zeus_monitor_close(monitor));
}

static void test_misuse(zeus_monitor* monitor) {
  size_t count = 0;
  zeus_monitor* other = NULL;
  zeus_measurement* measurement = NULL;
  zeus_monitor_options options;
  zeus_device_info info = {.struct_size = 3};
  const uint32_t no_gpu[] = {7};
  CHECK_FAILS(zeus_device_count(NULL, &count), ZEUS_INVALID_ARGUMENT, "monitor is NULL");
  CHECK_FAILS(zeus_device_count(monitor, NULL), ZEUS_INVALID_ARGUMENT, "count is NULL");
  CHECK_FAILS(zeus_monitor_open(NULL, NULL), ZEUS_INVALID_ARGUMENT, "NULL");
  CHECK_FAILS(zeus_window_begin(monitor, NULL, NULL, NULL), ZEUS_INVALID_ARGUMENT, "name");
  CHECK_FAILS(zeus_window_end(monitor, "none", NULL), ZEUS_INVALID_ARGUMENT, "measurement");
  CHECK_FAILS(zeus_window_end(monitor, "none", &measurement), ZEUS_NOT_FOUND, "none");
  CHECK_FAILS(zeus_window_cancel(monitor, NULL), ZEUS_INVALID_ARGUMENT, "name");
  CHECK_FAILS(zeus_device_info_get(monitor, 0, NULL), ZEUS_INVALID_ARGUMENT, "NULL");
  CHECK_FAILS(zeus_device_info_get(monitor, 0, &info), ZEUS_INVALID_ARGUMENT, "struct_size");
  info.struct_size = (size_t)-1;
  CHECK_FAILS(zeus_device_info_get(monitor, 0, &info), ZEUS_INVALID_ARGUMENT, "struct_size");
  CHECK_FAILS(zeus_monitor_options_init(&options, 1), ZEUS_INVALID_ARGUMENT, "struct_size");
  CHECK_OK(zeus_monitor_options_init(&options, sizeof(options)));
  options.gpus = no_gpu;
  options.gpu_count = 1;
  CHECK_FAILS(zeus_monitor_open(&options, &other), ZEUS_NOT_FOUND, "GPU 7");
  CHECK(other == NULL);
  CHECK_OK(zeus_monitor_close(NULL));
  CHECK(strcmp(zeus_status_name(ZEUS_NOT_FOUND), "not found") == 0);
  CHECK(strcmp(zeus_status_name(4711), "unknown status") == 0);
}

/* A caller that was compiled with a later header. */
static void test_longer_structures(zeus_monitor* monitor) {
  struct {
    zeus_device_info info;
    char more[16];
  } info;
  struct {
    zeus_window_options options;
    char more[16];
  } window;
  memset(&info, 1, sizeof(info));
  info.info.struct_size = sizeof(info);
  CHECK_OK(zeus_device_info_get(monitor, 0, &info.info));
  CHECK(info.more[0] == 0 && info.more[15] == 0 && info.info.struct_size == sizeof(info));
  CHECK_OK(zeus_window_options_init(&window.options, sizeof(window)));
  CHECK_OK(zeus_window_begin(monitor, "new", &window.options, NULL));
  CHECK_OK(zeus_window_cancel(monitor, "new"));
  window.more[7] = 1;
  CHECK_FAILS(zeus_window_begin(monitor, "new", &window.options, NULL), ZEUS_NOT_SUPPORTED,
              "does not know");
}

static void test_fork(zeus_monitor* monitor) {
  int status = -1;
  const pid_t child = fork();
  if (child == 0) {
    zeus_monitor* own = NULL;
    CHECK_FAILS(zeus_window_begin(monitor, "child", NULL, NULL), ZEUS_UNAVAILABLE, "fork");
    CHECK_OK(zeus_monitor_close(monitor));
    CHECK_OK(zeus_monitor_open(NULL, &own));
    CHECK_OK(zeus_window_begin(own, "child", NULL, NULL));
    CHECK_OK(zeus_monitor_close(own));
    _exit(0);
  }
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  CHECK_OK(zeus_window_begin(monitor, "parent", NULL, NULL));
  CHECK_OK(zeus_window_cancel(monitor, "parent"));
}

static void* fail_elsewhere(void* monitor) {
  CHECK(*zeus_last_error() == 0);
  CHECK_FAILS(zeus_window_cancel(monitor, "elsewhere"), ZEUS_NOT_FOUND, "elsewhere");
  return NULL;
}

static void test_errors_belong_to_threads(zeus_monitor* monitor) {
  pthread_t thread;
  CHECK_FAILS(zeus_window_cancel(monitor, "here"), ZEUS_NOT_FOUND, "here");
  CHECK(pthread_create(&thread, NULL, fail_elsewhere, monitor) == 0);
  CHECK(pthread_join(thread, NULL) == 0);
  CHECK(strstr(zeus_last_error(), "\"here\""));
}

int main(int argc, char** argv) {
  zeus_monitor* monitor = NULL;
  CHECK(argc == 2 && *zeus_last_error() == 0 && zeus_api_version() == ZEUS_API_VERSION);
  monitor = open_gpus();
  test_devices(monitor);
  test_window(monitor, atof(argv[1]));
  test_window_options(monitor);
  test_reading(monitor, atof(argv[1]));
  test_power_limit(monitor);
  test_misuse(monitor);
  test_longer_structures(monitor);
  test_errors_belong_to_threads(monitor);
  test_fork(monitor);
  CHECK_OK(zeus_monitor_close(monitor));
  test_close_restores_limits();
  puts("ok");
  return 0;
}
