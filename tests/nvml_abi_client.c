/* A stranger's NVML client: knows nothing but NVML's C ABI and the library's name. Reads commands
 * from standard input, one per line, and answers each with one line:
 *   count | name I | uuid I | power I | energy I | limits I | fields I | fork I
 *   set I MILLIWATTS | lock I MEGAHERTZ | lock-memory I MEGAHERTZ
 * An NVML failure is answered with "error CODE".
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef void* device_t;

typedef struct {
  unsigned field_id;
  unsigned scope_id;
  long long timestamp;
  long long latency;
  int value_type;
  int result;
  union {
    double d;
    unsigned ui;
    unsigned long long ull;
  } value;
} field_value_t;

static int (*nvml_init)(void);
static int (*nvml_shutdown)(void);
static int (*nvml_count)(unsigned*);
static int (*nvml_handle)(unsigned, device_t*);
static int (*nvml_name)(device_t, char*, unsigned);
static int (*nvml_uuid)(device_t, char*, unsigned);
static int (*nvml_power)(device_t, unsigned*);
static int (*nvml_energy)(device_t, unsigned long long*);
static int (*nvml_limit)(device_t, unsigned*);
static int (*nvml_enforced)(device_t, unsigned*);
static int (*nvml_constraints)(device_t, unsigned*, unsigned*);
static int (*nvml_set_limit)(device_t, unsigned);
static int (*nvml_lock)(device_t, unsigned, unsigned);
static int (*nvml_lock_memory)(device_t, unsigned, unsigned);
static int (*nvml_fields)(device_t, int, field_value_t*);

static void load(void* library, const char* symbol, void* function) {
  void* address = dlsym(library, symbol);
  if (address == NULL) {
    fprintf(stderr, "missing: %s\n", symbol);
    exit(2);
  }
  memcpy(function, &address, sizeof(address));
}

static void load_all(void) {
  void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    exit(2);
  }
  load(library, "nvmlInit_v2", &nvml_init);
  load(library, "nvmlShutdown", &nvml_shutdown);
  load(library, "nvmlDeviceGetCount_v2", &nvml_count);
  load(library, "nvmlDeviceGetHandleByIndex_v2", &nvml_handle);
  load(library, "nvmlDeviceGetName", &nvml_name);
  load(library, "nvmlDeviceGetUUID", &nvml_uuid);
  load(library, "nvmlDeviceGetPowerUsage", &nvml_power);
  load(library, "nvmlDeviceGetTotalEnergyConsumption", &nvml_energy);
  load(library, "nvmlDeviceGetPowerManagementLimit", &nvml_limit);
  load(library, "nvmlDeviceGetEnforcedPowerLimit", &nvml_enforced);
  load(library, "nvmlDeviceGetPowerManagementLimitConstraints", &nvml_constraints);
  load(library, "nvmlDeviceSetPowerManagementLimit", &nvml_set_limit);
  load(library, "nvmlDeviceSetGpuLockedClocks", &nvml_lock);
  load(library, "nvmlDeviceSetMemoryLockedClocks", &nvml_lock_memory);
  load(library, "nvmlDeviceGetFieldValues", &nvml_fields);
}

static int answer_text(int (*get)(device_t, char*, unsigned), device_t device) {
  char text[96];
  const int result = get(device, text, sizeof(text));
  if (result == 0) printf("%s\n", text);
  return result;
}

static int answer_limits(device_t device) {
  unsigned requested = 0;
  unsigned enforced = 0;
  unsigned min = 0;
  unsigned max = 0;
  int result = nvml_limit(device, &requested);
  if (result == 0) result = nvml_enforced(device, &enforced);
  if (result == 0) result = nvml_constraints(device, &min, &max);
  if (result == 0) printf("%u %u %u %u\n", requested, enforced, min, max);
  return result;
}

/* Energy, instant power and the limits in one call, as monitoring tools read them. */
static int answer_fields(device_t device) {
  field_value_t fields[4];
  memset(fields, 0, sizeof(fields));
  fields[0].field_id = 83;
  fields[1].field_id = 186;
  fields[2].field_id = 192;
  fields[3].field_id = 9999;
  const int result = nvml_fields(device, 4, fields);
  if (result == 0) {
    printf("%d %llu %d %u %d %u %d\n", fields[0].result, fields[0].value.ull, fields[1].result,
           fields[1].value.ui, fields[2].result, fields[2].value.ui, fields[3].result);
  }
  return result;
}

/* What a forked child gets before and after it initialises the library itself. */
static int answer_fork(device_t device) {
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    unsigned power = 0;
    const int before = nvml_power(device, &power);
    const int init = nvml_init();
    device_t own = NULL;
    int after = init == 0 ? nvml_handle(0, &own) : init;
    if (after == 0) after = nvml_power(own, &power);
    printf("%d %d\n", before, after);
    fflush(stdout);
    _exit(0);
  }
  int status = 0;
  return waitpid(child, &status, 0) == child && status == 0 ? 0 : 999;
}

static int answer_ok(int result) {
  if (result == 0) printf("ok\n");
  return result;
}

static int answer(const char* command, device_t device, unsigned argument) {
  unsigned power = 0;
  unsigned long long energy = 0;
  int result = 2;
  if (strcmp(command, "name") == 0) return answer_text(nvml_name, device);
  if (strcmp(command, "uuid") == 0) return answer_text(nvml_uuid, device);
  if (strcmp(command, "limits") == 0) return answer_limits(device);
  if (strcmp(command, "fields") == 0) return answer_fields(device);
  if (strcmp(command, "fork") == 0) return answer_fork(device);
  if (strcmp(command, "power") == 0) {
    result = nvml_power(device, &power);
    if (result == 0) printf("%u\n", power);
  } else if (strcmp(command, "energy") == 0) {
    result = nvml_energy(device, &energy);
    if (result == 0) printf("%llu\n", energy);
  } else if (strcmp(command, "set") == 0) {
    result = answer_ok(nvml_set_limit(device, argument));
  } else if (strcmp(command, "lock") == 0) {
    result = answer_ok(nvml_lock(device, argument, argument));
  } else if (strcmp(command, "lock-memory") == 0) {
    result = answer_ok(nvml_lock_memory(device, argument, argument));
  }
  return result;
}

int main(void) {
  char line[128];
  load_all();
  int result = nvml_init();
  if (result != 0) {
    printf("error %d\n", result);
    return 1;
  }
  while (fgets(line, sizeof(line), stdin) != NULL) {
    char command[32] = "";
    unsigned index = 0;
    unsigned argument = 0;
    device_t device = NULL;
    sscanf(line, "%31s %u %u", command, &index, &argument);
    if (strcmp(command, "count") == 0) {
      unsigned count = 0;
      result = nvml_count(&count);
      if (result == 0) printf("%u\n", count);
    } else {
      result = nvml_handle(index, &device);
      if (result == 0) result = answer(command, device, argument);
    }
    if (result != 0) printf("error %d\n", result);
    fflush(stdout);
  }
  return nvml_shutdown();
}
