/* Sets the power limit of its first GPU to 150 W through <zeus.h>, says so, and waits for its end;
 * with the argument "loop" it sets and puts back without end. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <zeus.h>

static int failed(const char* what) {
  fprintf(stderr, "%s: %s\n", what, zeus_last_error());
  return 1;
}

int main(int argc, char** argv) {
  zeus_monitor* monitor = NULL;
  zeus_power_limit* limit = NULL;
  const int loop = argc > 1 && strcmp(argv[1], "loop") == 0;
  if (zeus_monitor_open(NULL, &monitor) != ZEUS_OK) return failed("open");
  do {
    if (zeus_power_limit_set(monitor, 0, 150, &limit) != ZEUS_OK) return failed("set");
    printf("set\n");
    fflush(stdout);
    while (!loop) pause();
    if (zeus_power_limit_restore(limit) != ZEUS_OK) return failed("restore");
  } while (loop);
  return 0;
}
