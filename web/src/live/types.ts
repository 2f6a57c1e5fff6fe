// The messages of a node (docs/formats.md): those of zeusd and of `zeus monitor --serve`.

export interface Value {
  watts?: number;
  hertz?: number;
  lowest_hertz?: number;
  highest_hertz?: number;
  on?: boolean;
}

export interface Range {
  lowest: Value;
  highest: Value;
}

interface DeviceFacts {
  device: string;
  name?: string;
  index: number;
  model: string;
  ranges?: Record<string, Range>;
  stuck?: boolean;
  lost?: boolean;
  maintenance_left_seconds?: number | null;
  foreign_changes?: number;
  restore_pending?: number;
}

export interface GpuFacts extends DeviceFacts {
  uuid: string;
  pci_address: string;
  vendor: string;
  driver: string;
  power_limit?: { requested_watts?: number | null; enforced_watts?: number | null; default_watts?: number | null };
}

export interface CpuFacts extends DeviceFacts {
  source: string;
  dram: boolean;
}

export interface Absence {
  what: string;
  reason: string;
  fix: string;
}

export interface NodeFacts {
  version: string;
  host: string;
  gpus: GpuFacts[];
  cpus: CpuFacts[];
  absent: Absence[];
}

export interface Reading {
  device: string;
  name?: string;
  reason?: string;
  energy_joules?: number | null;
  energy_sigma_joules?: number | null;
  power_watts?: number | null;
  power_sigma_watts?: number | null;
  age_seconds?: number | null;
  temperature_celsius?: number | null;
  graphics_clock_hertz?: number | null;
  requested_limit_watts?: number | null;
  enforced_limit_watts?: number | null;
  compute_utilization?: number | null;
  memory_utilization?: number | null;
  dram_power_watts?: number | null;
  throttle?: string[];
}

// The event "reading": all devices at one moment.
export interface Readings {
  at_seconds: number; // By the server's monotonic clock.
  time: string;
  devices: Reading[];
}

export interface History {
  at_seconds: number;
  time: string;
  recorded_since_seconds: number;
  step_seconds: number;
  since_seconds: number;
  devices: {
    device: string;
    mean_watts?: (number | null)[];
    idle_watts?: (number | null)[];
    lowest_watts?: (number | null)[];
    highest_watts?: (number | null)[];
  }[];
}

export interface Knob {
  device: string;
  knob: string;
  words: string;
  effective: Value | null;
  enforced: Value | null;
  baseline: Value | null;
  foreign: boolean;
  suspended: boolean;
  leases: number;
  trouble?: string;
  bound_by?: {
    class: string;
    since: string;
    lease?: string;
    name?: string;
    subject?: string;
    holder?: string;
    pid?: number;
    job?: string;
    expires_in_seconds?: number;
  } | null;
}

export interface Energy {
  since_seconds: number;
  until_seconds: number;
  devices: { device: string; energy_joules?: number | null; sigma_joules?: number | null; reason?: string }[];
}

export interface Job {
  id: string;
  state?: string;
  since?: string;
  seconds?: number;
  energy_joules?: number;
  sigma_joules?: number;
  devices?: { device: string; energy_joules?: number; sigma_joules?: number }[];
}
