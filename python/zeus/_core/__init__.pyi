"""The extension module: a thin layer over the C++ library."""

from zeus._core import batch_size as batch_size
from zeus._core import carbon as carbon
from zeus._core import device as device
from zeus._core import metrics as metrics
from zeus._core import monitor as monitor
from zeus._core import pipeline as pipeline
from zeus._core import power_limit as power_limit
from zeus._core import recording as recording
from zeus._core import sim as sim
from zeus._core import train as train
from zeus._core import training as training

version: str

def with_sigma(value: float, sigma: float, unit: str) -> str:
    """``"708 ± 22 J"``: two digits of one standard deviation, and the value to the same place."""

def percent_with_sigma(percent: float, sigma: float) -> str:
    """``"17.2 ± 0.9 %"``."""
