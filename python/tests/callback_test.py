"""zeus.callback."""

import unittest
import warnings

from zeus.callback import Callback, CallbackSet

EVENTS = {
    "on_train_begin": (), "on_train_end": (), "on_epoch_begin": (), "on_epoch_end": (),
    "on_step_begin": (), "on_step_end": (), "on_evaluate": (0.5,),
    "on_instruction_begin": ("forward",), "on_instruction_end": ("forward",),
}


class Recorder(Callback):
    def __init__(self, name, heard):
        for event in EVENTS:
            setattr(self, event, lambda *arguments, event=event: heard.append(
                (name, event, *arguments)))


class Failing(Callback):
    def __init__(self, error):
        self.error = error

    def on_step_begin(self):
        raise self.error


class CallbackTest(unittest.TestCase):
    def test_every_event_does_nothing_by_default(self):
        for event, arguments in EVENTS.items():
            self.assertIsNone(getattr(Callback(), event)(*arguments))

    def test_a_set_tells_all_in_order(self):
        heard = []
        callbacks = CallbackSet([Recorder("a", heard), Callback(), Recorder("b", heard)])
        for event, arguments in EVENTS.items():
            getattr(callbacks, event)(*arguments)
        self.assertEqual(heard, [(name, event, *arguments) for event, arguments in EVENTS.items()
                                 for name in ("a", "b")])

    def test_one_that_raises_does_not_keep_the_event_from_the_others(self):
        heard = []
        callbacks = CallbackSet([Failing(KeyError("x")), Recorder("b", heard)])
        with self.assertRaises(KeyError):
            callbacks.on_step_begin()
        self.assertEqual(heard, [("b", "on_step_begin")])

    def test_the_first_exception_is_raised_and_the_others_are_warnings(self):
        callbacks = CallbackSet([Failing(KeyError("x")), Failing(OSError("disk"))])
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with self.assertRaises(KeyError):
                callbacks.on_step_begin()
        self.assertIn("Failing.on_step_begin raised, too: OSError('disk')", str(caught[0].message))

    def test_an_interrupt_passes_at_once(self):
        heard = []
        callbacks = CallbackSet([Failing(KeyboardInterrupt()), Recorder("b", heard)])
        with self.assertRaises(KeyboardInterrupt):
            callbacks.on_step_begin()
        self.assertEqual(heard, [])

    def test_sets_can_be_members_of_sets(self):
        heard = []
        CallbackSet([CallbackSet([Recorder("a", heard)])]).on_evaluate(0.25)
        self.assertEqual(heard, [("a", "on_evaluate", 0.25)])

    def test_what_is_no_callback_is_refused(self):
        for wrong in (42, Callback):
            with self.assertRaisesRegex(TypeError, "which is no zeus.callback.Callback"):
                CallbackSet([wrong])


if __name__ == "__main__":
    unittest.main()
