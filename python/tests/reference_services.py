"""The second half of reference_script.py: callbacks, profiling, metrics, servers, the daemon."""

import os
import subprocess
import sys
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path

from zeus.callback import Callback, CallbackSet
from zeus.monitor import ZeusMonitor
from zeus.optimizer.batch_size import BatchSizeOptimizer, JobSpec
from zeus.optimizer.pipeline_frequency import PipelineFrequencyOptimizer


class Noted(Callback):
    def __init__(self) -> None:
        self.calls: "list[str]" = []

    def on_step_begin(self) -> None:
        self.calls.append("step")

    def on_evaluate(self, metric: float) -> None:
        self.calls.append(f"evaluate {metric}")

    def on_instruction_begin(self, name: str) -> None:
        self.calls.append(name)


def callbacks() -> None:
    first, second = Noted(), Noted()
    both = CallbackSet([first, second])
    both.on_train_begin()
    both.on_epoch_begin()
    both.on_step_begin()
    both.on_instruction_begin("forward")
    both.on_instruction_end("forward")
    both.on_step_end()
    both.on_epoch_end()
    both.on_evaluate(0.5)
    both.on_train_end()
    assert first.calls == second.calls == ["step", "forward", "evaluate 0.5"]


def frameworks() -> None:
    from zeus.utils.framework import all_reduce, get_rank, get_world_size, is_distributed
    from zeus.utils.metric import zeus_cost

    assert not is_distributed() and get_rank() == 0 and get_world_size() == 1
    assert list(all_reduce([1.0, 2.0], "sum")) == [1.0, 2.0]
    assert zeus_cost(100.0, 2.0, 0.5, 300) == 0.5 * 100 + 0.5 * 300 * 2
    from zeus.utils.env import get_env
    os.environ["SOME_NUMBER"] = "7"
    assert get_env("SOME_NUMBER", int, 3) == 7 and get_env("NO_SUCH_NUMBER", int, 3) == 3


def profile() -> None:
    from zeus.profile import SweepReport, SweepResult, TrialResult, measure
    from zeus.profile import profile_cooldown_duration, profile_measurement_duration
    from zeus.profile import profile_parameters

    monitor = ZeusMonitor(gpu_indices=[0], log_file="trials.csv")
    result = measure(lambda: time.sleep(0.002), monitor, measurement_duration=0.2,
                     cooldown_duration=0.05, num_warmup_iterations=2, num_calibration_iterations=5)
    assert isinstance(result, TrialResult)
    assert result.energy_per_iter > 0 and result.time_per_iter > 0.001 and result.iterations > 1
    rows = Path("trials.csv").read_text().splitlines()
    assert "__zeus_profile_run_trial" in rows[-1], rows
    assert all((SweepReport, SweepResult, profile_cooldown_duration, profile_measurement_duration,
                profile_parameters))


def carbon_and_price() -> None:
    from zeus.monitor.carbon import CarbonEmissionMonitor, CarbonIntensityProvider
    from zeus.monitor.carbon import ElectrictyMapsClient
    from zeus.monitor.price import EnergyCostMonitor, OpenEIClient

    class Steady(CarbonIntensityProvider):
        def get_current_carbon_intensity(self) -> float:
            return 400.0

        def get_recent_carbon_intensity(self) -> "dict[datetime, float]":
            hour = datetime.now(timezone.utc).replace(minute=0, second=0, microsecond=0)
            return {hour: 400.0}

        @property
        def update_period(self) -> timedelta:
            return timedelta(hours=1)

        @property
        def history_length(self) -> int:
            return 24

    monitor = CarbonEmissionMonitor(Steady(), gpu_indices=[0])
    monitor.begin_window("epoch")
    time.sleep(0.3)
    emitted = monitor.end_window("epoch")
    expected = emitted.gpu_energy[0] / 3.6e6 * 400
    assert abs(emitted.gpu_carbon_emission[0] - expected) < 1e-6 + 0.01 * expected
    assert ElectrictyMapsClient(location=(42.3, -83.7), estimate=True, emission_factor_type="direct")
    assert callable(EnergyCostMonitor)
    assert OpenEIClient(location=(42.3, -83.7), label="some-rate", sector="Residential")


def metrics() -> None:
    from zeus.metric import EnergyCumulativeCounter, EnergyHistogram, PowerGauge

    url = os.environ["PUSHGATEWAY_URL"]
    histogram = EnergyHistogram(cpu_indices=[], gpu_indices=[0], pushgateway_url=url, job="training")
    histogram.begin_window("epoch", sync_execution=False)
    time.sleep(0.1)
    histogram.end_window("epoch", sync_execution=False)
    counter = EnergyCumulativeCounter(cpu_indices=[], gpu_indices=[0], update_period=1,
                                      pushgateway_url=url, job="training")
    gauge = PowerGauge(gpu_indices=[0], update_period=1, pushgateway_url=url, job="training")
    for metric in (counter, gauge):
        metric.begin_window("epoch", sync_execution=False)
    time.sleep(0.3)
    for metric in (counter, gauge):
        metric.end_window("epoch", sync_execution=False)


def batch_size() -> None:
    monitor = ZeusMonitor(gpu_indices=[0])
    spec = JobSpec(job_id=None, job_id_prefix="mnist", default_batch_size=256,
                   batch_sizes=[128, 256, 512], max_epochs=5, target_metric=0.5,
                   higher_is_better_metric=True, eta_knob=0.5, beta_knob=2.0, num_pruning_rounds=2,
                   mab_num_explorations=2, mab_seed=1, window_size=0)
    optimizer = BatchSizeOptimizer(monitor, os.environ["ZEUS_SERVER_URL"], spec)
    size = optimizer.get_batch_size()
    assert size == 256
    optimizer.on_train_begin()
    try:
        monitor.begin_window("BatciSizeOptimizerClient")
        raise AssertionError("the name is reserved while the job trains")
    except ValueError:
        pass
    time.sleep(0.05)
    optimizer.on_evaluate(0.9)
    assert optimizer.training_finished


def pipeline() -> None:
    optimizer = PipelineFrequencyOptimizer(
        rank=0, dp_rank=0, pp_rank=0, tp_rank=0, device_id=0, dp_degree=1, pp_degree=1, tp_degree=1,
        world_size=1, server_url=os.environ["ZEUS_SERVER_URL"], job_metadata="one-stage")
    for _ in range(2):
        optimizer.on_step_begin()
        for name in ("forward", "backward"):
            optimizer.on_instruction_begin(name)
            optimizer.on_instruction_end(name)
        optimizer.on_step_end()


def command_line() -> None:
    shown = subprocess.run([sys.executable, "-m", "zeus.show_env"], capture_output=True, text=True)
    assert shown.returncode == 0 and "A100" in shown.stdout, shown
    for verb in ("energy", "power"):
        assert subprocess.run([sys.executable, "-m", "zeus.monitor", verb, "--help"],
                              stdout=subprocess.DEVNULL).returncode == 0


def daemon() -> None:
    from zeus.monitor.power_streaming import PowerStreamingClient
    from zeus.utils.zeusd import ZeusdCapabilityError, ZeusdClient, ZeusdConfig
    from zeus.utils.zeusd import require_capabilities

    config = ZeusdConfig.uds(os.environ["DAEMON_SOCKET"])
    client = ZeusdClient(config)
    assert client.gpu_ids == [0, 1] and client.can_read_gpu and not client.auth_required
    assert client.get_gpu_power([0]).power_mw[0] > 0
    assert client.get_gpu_energy([0])[0] > 0
    client.set_power_limit([0], 200_000)
    assert client.get_time() > 0
    require_capabilities(client, read_gpu=True, gpu_ids=[0])
    try:
        require_capabilities(client, read_gpu=True, gpu_ids=[7])
        raise AssertionError("there is no such GPU")
    except ZeusdCapabilityError:
        pass
    streaming = PowerStreamingClient([config], reconnect_delay_s=1.0)
    readings = next(iter(streaming))
    assert readings[config.endpoint].gpu_power_w
    streaming.stop()


PARTS = (callbacks, frameworks, profile, carbon_and_price, metrics, batch_size, pipeline,
         command_line, daemon)
