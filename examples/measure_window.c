/* Measures a window of work on every device of this machine, from C. */
#define _POSIX_C_SOURCE 199309L
#include <stdio.h>
#include <time.h>
#include <zeus.h>

static int failed(const char* what) {
  fprintf(stderr, "measure_window: %s: %s\n", what, zeus_last_error());
  return 1;
}

static void show(const zeus_measurement* measurement) {
  zeus_measurement_total total = {.struct_size = sizeof(total)};
  if (zeus_measurement_total_get(measurement, &total) != ZEUS_OK) return;
  printf("%s: %.2f s, %.1f J +- %.1f J (%s)\n", total.window, total.time_seconds,
         total.energy_joules, total.sigma_joules, total.refined ? "refined" : "immediate");
  for (size_t i = 0; i < total.device_count; ++i) {
    zeus_device_measurement device = {.struct_size = sizeof(device)};
    if (zeus_measurement_device_get(measurement, i, &device) != ZEUS_OK) continue;
    if (device.status == ZEUS_OK)
      printf("  %s: %.1f J +- %.1f J\n", device.device, device.energy_joules, device.sigma_joules);
    else
      printf("  %s: %s\n", device.device, device.reason);
  }
}

int main(void) {
  const struct timespec second = {.tv_sec = 1};
  zeus_monitor* monitor = NULL;
  zeus_measurement* measurement = NULL;
  uint64_t id = 0;

  if (zeus_monitor_open(NULL, &monitor) != ZEUS_OK) return failed("open");
  if (zeus_window_begin(monitor, "work", NULL, &id) != ZEUS_OK) return failed("begin");
  nanosleep(&second, NULL); /* Here the program works. */
  if (zeus_window_end(monitor, "work", &measurement) != ZEUS_OK) return failed("end");
  show(measurement);
  zeus_measurement_free(measurement);

  /* Sensors report with a delay: a moment later the end is known more precisely. */
  if (zeus_window_refine(monitor, id, 2.0, &measurement) != ZEUS_OK) return failed("refine");
  show(measurement);
  zeus_measurement_free(measurement);
  return zeus_monitor_close(monitor) == ZEUS_OK ? 0 : failed("close");
}
