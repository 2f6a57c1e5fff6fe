"""Ranks of a job as threads of the test, for what must agree between them."""

import threading


class Ranks:
    """Exchanges lists of numbers between so many threads."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._barrier = threading.Barrier(size, timeout=60)
        self._given: list = [None] * size

    def member(self, rank: int) -> "Member":
        return Member(self, rank)

    def exchange(self, rank: int, values: list) -> list:
        self._given[rank] = values
        self._barrier.wait()
        given = list(self._given)
        self._barrier.wait()
        return given

    def run(self, function) -> list:
        """function(member) in a thread for each rank; what they returned, or the first failure."""
        results: list = [None] * self.size

        def work(rank: int) -> None:
            try:
                results[rank] = function(self.member(rank))
            except BaseException as failure:  # Given back below.
                results[rank] = failure
                self._barrier.abort()

        threads = [threading.Thread(target=work, args=(rank,)) for rank in range(self.size)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return results


class Member:
    """A zeus.utils.distributed.Collective."""

    def __init__(self, ranks: Ranks, rank: int) -> None:
        self._ranks = ranks
        self.rank = rank
        self.size = ranks.size

    def sum(self, values: list) -> list:
        return [sum(column) for column in zip(*self._ranks.exchange(self.rank, values))]

    def max(self, values: list) -> list:
        return [max(column) for column in zip(*self._ranks.exchange(self.rank, values))]

    def broadcast(self, values: list, root: int) -> list:
        return self._ranks.exchange(self.rank, values)[root]
