/* A time of day that a test sets for one program: LD_PRELOAD=libwall_clock.so,
   WALL_CLOCK_FILE=FILE. The file holds a double: the seconds by which CLOCK_REALTIME is off. It may
   change while the program runs. Other clocks are as they are. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static double Offset(void) {
  static const volatile double* shared = NULL;
  if (shared == NULL) {
    const char* const path = getenv("WALL_CLOCK_FILE");
    const int file = path == NULL ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    void* const memory = mmap(NULL, sizeof(double), PROT_READ, MAP_SHARED, file, 0);
    if (file < 0 || memory == MAP_FAILED) _exit(99);
    close(file);
    shared = memory;
  }
  return *shared;
}

int clock_gettime(clockid_t clock, struct timespec* time) {
  const long result = syscall(SYS_clock_gettime, clock, time);
  if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
    time->tv_sec += (time_t)floor(Offset());
  return (int)result;
}

int gettimeofday(struct timeval* restrict time, void* restrict zone) {
  struct timespec now;
  (void)zone;
  if (clock_gettime(CLOCK_REALTIME, &now) != 0) return -1;
  time->tv_sec = now.tv_sec;
  time->tv_usec = now.tv_nsec / 1000;
  return 0;
}

time_t time(time_t* result) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (result != NULL) *result = now.tv_sec;
  return now.tv_sec;
}
