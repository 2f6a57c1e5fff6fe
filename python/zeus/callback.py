"""Events of training, for whoever wants to know of them."""

from __future__ import annotations

import warnings
from typing import Any, Callable, Iterable

__all__ = ["Callback", "CallbackSet"]


class Callback:
    """Base of what wants to know how training goes. Every event does nothing until overridden.

        class Progress(Callback):
            def on_epoch_end(self) -> None:
                print("one more epoch")
    """

    def on_train_begin(self) -> None:
        """Before the first epoch."""

    def on_train_end(self) -> None:
        """After the last epoch."""

    def on_epoch_begin(self) -> None:
        """Before an epoch's first step."""

    def on_epoch_end(self) -> None:
        """After an epoch's last step."""

    def on_step_begin(self) -> None:
        """Before a step: forward, backward and update."""

    def on_step_end(self) -> None:
        """After a step."""

    def on_evaluate(self, metric: float) -> None:
        """After the model was evaluated, with what came out."""

    def on_instruction_begin(self, name: str) -> None:
        """Before an instruction of a pipeline, such as "forward"."""

    def on_instruction_end(self, name: str) -> None:
        """After an instruction of a pipeline."""


class CallbackSet(Callback):
    """Tells several callbacks, in the order given.

    One that raises does not keep the event from those after it: all are told, then the first
    exception is raised. Further exceptions of the same event become warnings. What is no
    Exception, such as KeyboardInterrupt, passes at once.
    """

    def __init__(self, callbacks: Iterable[Callback]) -> None:
        self.callbacks = list(callbacks)
        for callback in self.callbacks:
            if isinstance(callback, type) or not callable(getattr(callback, "on_step_begin", None)):
                raise TypeError(f"callbacks has {callback!r}, which is no zeus.callback.Callback")
        # Steps are many, and most callbacks do not care for most events.
        self._listeners = {
            event: [
                getattr(callback, event)
                for callback in self.callbacks
                if _overrides(callback, event)
            ]
            for event in _EVENTS
        }

    def on_train_begin(self) -> None:
        """Tells all of them."""
        self._tell("on_train_begin")

    def on_train_end(self) -> None:
        """Tells all of them."""
        self._tell("on_train_end")

    def on_epoch_begin(self) -> None:
        """Tells all of them."""
        self._tell("on_epoch_begin")

    def on_epoch_end(self) -> None:
        """Tells all of them."""
        self._tell("on_epoch_end")

    def on_step_begin(self) -> None:
        """Tells all of them."""
        self._tell("on_step_begin")

    def on_step_end(self) -> None:
        """Tells all of them."""
        self._tell("on_step_end")

    def on_evaluate(self, metric: float) -> None:
        """Tells all of them."""
        self._tell("on_evaluate", metric)

    def on_instruction_begin(self, name: str) -> None:
        """Tells all of them."""
        self._tell("on_instruction_begin", name)

    def on_instruction_end(self, name: str) -> None:
        """Tells all of them."""
        self._tell("on_instruction_end", name)

    def _tell(self, event: str, *arguments: Any) -> None:
        first: Exception | None = None
        for listener in self._listeners[event]:
            try:
                listener(*arguments)
            except Exception as exception:
                if first is None:
                    first = exception
                else:
                    also = f"{_name(listener)} raised, too: {exception!r}"
                    warnings.warn(also, RuntimeWarning, stacklevel=3)
        if first is not None:
            raise first


_EVENTS = [name for name in vars(Callback) if name.startswith("on_")]


def _overrides(callback: object, event: str) -> bool:
    """Whether it has an event of its own: in its class, or set on the object."""
    method = getattr(callback, event, None)
    return method is not None and getattr(method, "__func__", method) is not vars(Callback)[event]


def _name(listener: Callable[..., Any]) -> str:
    return getattr(listener, "__qualname__", repr(listener))
