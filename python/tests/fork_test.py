"""Processes that are forked or spawned while windows are open."""

import unittest

from node_testing import NodeTestCase
from process_testing import run_python, run_script, without_sanitizer


# The sanitizer's allocator may hold a lock while another thread forks, which hangs the child.
@without_sanitizer
class ForkTest(NodeTestCase):
    TIME_SCALE = 10

    def test_a_forked_child_is_told_to_make_a_monitor_of_its_own(self):
        out = run_python("""
            import os, sys, time
            from zeus.monitor import ZeusMonitor
            monitor = ZeusMonitor()
            monitor.begin_window("epoch")
            child = os.fork()
            if child == 0:
                for call in (lambda: monitor.begin_window("mine"),
                             lambda: monitor.end_window("epoch"),
                             lambda: monitor.peek_window("epoch"),
                             monitor.reset_windows):
                    try:
                        call()
                    except RuntimeError as error:
                        print(error, flush=True)
                sys.exit(7)  # With all that is done at the end of an interpreter.
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
            print(list(monitor.end_window("epoch").refined().gpu_energy))
        """)
        refusal = ("this monitor belongs to the process that was forked: make one of your own here"
                   "\n")
        self.assertEqual(out, 4 * refusal + "7\n[0, 1, 2, 3]\n")

    def test_the_end_of_a_child_changes_nothing_for_its_parent(self):
        out = run_python("""
            import gc, os, sys, time
            import zeus.sim
            from zeus.monitor import ZeusMonitor
            node = zeus.sim.attach()
            monitor = ZeusMonitor()
            window = monitor.window("epoch")
            def joules():
                return sum(gpu.energy for gpu in node.truth())
            before = joules()
            with window:
                begin = joules()
                for how in range(3):
                    child = os.fork()
                    if child == 0:
                        if how == 0:
                            sys.exit(0)
                        if how == 1:
                            monitor.close()
                            del monitor, window, node
                            gc.collect()
                        os._exit(0)
                    assert os.waitpid(child, 0)[1] == 0
                while joules() < begin + 400:
                    time.sleep(0.01)
                end = joules()
            after = joules()
            measured = window.measurement.refined()
            room = 4 * measured.total_sigma
            print(0.9 * (end - begin) - room < measured.total_energy
                  < 1.1 * (after - before) + room)
        """)
        self.assertEqual(out, "True\n")

    def test_a_with_block_of_the_parent_may_end_in_the_child(self):
        # As when a worker function raises, or calls sys.exit(), below the parent's block.
        out = run_python("""
            import os, sys
            from zeus.monitor import ZeusMonitor
            monitor = ZeusMonitor()
            with monitor.window("epoch") as epoch:
                child = os.fork()
                if child == 0:
                    sys.exit(5)
                print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
            print(epoch.measurement.time > 0)
        """)
        self.assertEqual(out, "5\nTrue\n")

    def test_a_forked_child_measures_with_its_own_monitor(self):
        out = run_python("""
            import os, sys, time
            from zeus.monitor import ZeusMonitor
            monitor = ZeusMonitor()
            with monitor.window("epoch"):
                child = os.fork()
                if child == 0:
                    own = ZeusMonitor(gpu_indices=[1])
                    own.begin_window("mine")
                    time.sleep(0.2)
                    print(own.end_window("mine").refined().gpu_energy[1] > 10, flush=True)
                    sys.exit(0)
                print(os.waitpid(child, 0)[1])
        """)
        self.assertEqual(out, "True\n0\n")

    def test_a_grandchild(self):
        out = run_python("""
            import os, sys
            from zeus.monitor import ZeusMonitor
            monitor = ZeusMonitor()
            child = os.fork()
            if child == 0:
                own = ZeusMonitor(gpu_indices=[0])
                grandchild = os.fork()
                if grandchild == 0:
                    for each in (monitor, own):
                        try:
                            each.begin_window("x")
                        except RuntimeError:
                            print("refused", flush=True)
                    sys.exit(0)
                sys.exit(os.waitstatus_to_exitcode(os.waitpid(grandchild, 0)[1]))
            print(os.waitpid(child, 0)[1])
        """)
        self.assertEqual(out, "refused\nrefused\n0\n")

    def test_the_node_survives_its_forked_children(self):
        out = run_python("""
            import os, sys
            del os.environ["ZEUS_SIM_NODE"]
            import zeus.sim
            node = zeus.sim.Node("2xA100", time_scale=20)
            work = node.run(operations=1e13, bytes=1e10)
            draw = node.draw(100, gpus=[0])
            child = os.fork()
            if child == 0:
                try:
                    work.step()
                except RuntimeError as error:
                    print(error, flush=True)
                zeus.sim.attach().run(operations=1e13, bytes=1e10).step()
                node.stop()
                sys.exit(0)
            assert os.waitpid(child, 0)[1] == 0
            work.step()
            print(node.truth()[0].power > 90)
        """)
        self.assertEqual(out, "this work belongs to the process that was forked: make one of your "
                              "own here\nTrue\n")


@without_sanitizer
class MultiprocessingTest(NodeTestCase):
    TIME_SCALE = 10

    def check(self, method: str) -> None:
        out = run_script(f"""
            import multiprocessing
            import time

            from zeus.monitor import ZeusMonitor


            def measure(gpu):
                monitor = ZeusMonitor(gpu_indices=[gpu])
                monitor.begin_window("child")
                time.sleep(0.1)
                return list(monitor.end_window("child").refined().gpu_energy)


            if __name__ == "__main__":
                monitor = ZeusMonitor()
                monitor.begin_window("epoch")
                with multiprocessing.get_context("{method}").Pool(2) as pool:
                    print(pool.map(measure, [0, 1, 2, 3]))
                print(len(monitor.end_window("epoch").gpu_energy))
        """)
        self.assertEqual(out, "[[0], [1], [2], [3]]\n4\n")

    def test_fork(self):
        self.check("fork")

    def test_spawn(self):
        self.check("spawn")

    def test_forkserver(self):
        self.check("forkserver")

    @without_sanitizer
    def test_workers_of_a_data_loader_in_the_middle_of_a_window(self):
        out = run_script("""
            import torch
            from torch.utils.data import DataLoader, Dataset

            import zeus.sim
            from zeus.monitor import ZeusMonitor


            class Numbers(Dataset):
                def __len__(self):
                    return 64

                def __getitem__(self, index):
                    return torch.tensor(float(index))


            if __name__ == "__main__":
                torch.set_num_threads(1)
                node = zeus.sim.attach()
                work = node.run(operations=2e13, bytes=1e10)
                monitor = ZeusMonitor()
                loader = DataLoader(Numbers(), batch_size=8, num_workers=2,
                                    multiprocessing_context="fork")

                def joules():
                    return sum(gpu.energy for gpu in node.truth())

                for epoch in range(2):
                    total, before = 0.0, joules()
                    with monitor.window("epoch") as window:
                        begin = joules()
                        for batch in loader:
                            with monitor.window("step") as step:
                                total += work.step(lambda: batch.sum().item())
                            assert step.measurement.time > 0
                        end = joules()
                    after = joules()
                    measured = window.measurement.refined()
                    room = 4 * measured.total_sigma
                    print(total, 0.9 * (end - begin) - room < measured.total_energy
                          < 1.1 * (after - before) + room)
        """)
        self.assertEqual(out, "2016.0 True\n2016.0 True\n")


if __name__ == "__main__":
    unittest.main()
