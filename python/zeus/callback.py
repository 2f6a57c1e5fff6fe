"""The events of a training, for objects that react to them."""

from __future__ import annotations

import warnings
from typing import Any, Callable, Iterable

__all__ = ["Callback", "CallbackSet"]


class Callback:
    """The base class of callbacks. Events that are not overridden do nothing.

        class Progress(Callback):
            def on_epoch_end(self) -> None:
                print("one more epoch")
    """

    def on_train_begin(self) -> None:
        """Called before the first epoch."""

    def on_train_end(self) -> None:
        """Called after the last epoch."""

    def on_epoch_begin(self) -> None:
        """Called before the first step of an epoch."""

    def on_epoch_end(self) -> None:
        """Called after the last step of an epoch."""

    def on_step_begin(self) -> None:
        """Called before a step: forward, backward and update."""

    def on_step_end(self) -> None:
        """Called after a step."""

    def on_evaluate(self, metric: float) -> None:
        """Called after an evaluation of the model, with its metric."""

    def on_instruction_begin(self, name: str) -> None:
        """Called before an instruction of a pipeline, such as "forward"."""

    def on_instruction_end(self, name: str) -> None:
        """Called after an instruction of a pipeline."""


class CallbackSet(Callback):
    """Calls several callbacks in order.

    An exception of one callback does not stop the others: all are called, then the first exception
    is raised. Further exceptions of the same event become warnings. KeyboardInterrupt, and
    everything else that is not an Exception, passes at once.
    """

    def __init__(self, callbacks: Iterable[Callback]) -> None:
        self.callbacks = list(callbacks)
        for callback in self.callbacks:
            if isinstance(callback, type) or not callable(getattr(callback, "on_step_begin", None)):
                raise TypeError(f"callbacks has {callback!r}, which is no zeus.callback.Callback")
        # There are many steps, and most callbacks ignore most events.
        self._listeners = {
            event: [
                getattr(callback, event)
                for callback in self.callbacks
                if _overrides(callback, event)
            ]
            for event in _EVENTS
        }

    def on_train_begin(self) -> None:
        """Calls all of them."""
        self._tell("on_train_begin")

    def on_train_end(self) -> None:
        """Calls all of them."""
        self._tell("on_train_end")

    def on_epoch_begin(self) -> None:
        """Calls all of them."""
        self._tell("on_epoch_begin")

    def on_epoch_end(self) -> None:
        """Calls all of them."""
        self._tell("on_epoch_end")

    def on_step_begin(self) -> None:
        """Calls all of them."""
        self._tell("on_step_begin")

    def on_step_end(self) -> None:
        """Calls all of them."""
        self._tell("on_step_end")

    def on_evaluate(self, metric: float) -> None:
        """Calls all of them."""
        self._tell("on_evaluate", metric)

    def on_instruction_begin(self, name: str) -> None:
        """Calls all of them."""
        self._tell("on_instruction_begin", name)

    def on_instruction_end(self, name: str) -> None:
        """Calls all of them."""
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
    """Returns whether the event is overridden, in the class or on the object."""
    method = getattr(callback, event, None)
    return method is not None and getattr(method, "__func__", method) is not vars(Callback)[event]


def _name(listener: Callable[..., Any]) -> str:
    return getattr(listener, "__qualname__", repr(listener))
