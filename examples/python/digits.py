"""The network of the examples: it reads noisy digits of a seven-segment display."""

from __future__ import annotations

try:
    import torch
    from torch import Tensor, nn
except ModuleNotFoundError as missing:
    raise SystemExit(
        f"this example trains with torch, which is not installed ({missing}): apt install "
        "python3-torch, or pip install torch; examples/train.py needs no package"
    ) from None

_SEGMENTS = [
    "abcdef", "bc", "abdeg", "abcdg", "bcfg", "acdfg", "acdefg", "abc", "abcdefg", "abcdfg",
]
_STROKES = {  # Rows and columns of an 8x8 image.
    "a": (slice(0, 1), slice(2, 6)),
    "b": (slice(1, 4), slice(6, 7)),
    "c": (slice(4, 7), slice(6, 7)),
    "d": (slice(7, 8), slice(2, 6)),
    "e": (slice(4, 7), slice(1, 2)),
    "f": (slice(1, 4), slice(1, 2)),
    "g": (slice(3, 5), slice(2, 6)),
}


def digits(count: int, seed: int, noise: float = 0.3) -> tuple[Tensor, Tensor]:
    """Returns images of 1x8x8 and the digits that they show."""
    clean = torch.zeros(10, 1, 8, 8)
    for digit, segments in enumerate(_SEGMENTS):
        for segment in segments:
            clean[(digit, 0, *_STROKES[segment])] = 1.0
    random = torch.Generator().manual_seed(seed)
    labels = torch.randint(10, (count,), generator=random)
    return clean[labels] + noise * torch.randn(count, 1, 8, 8, generator=random), labels


class Learner:
    """A network with its data and its optimiser: batches(), step(batch) and accuracy()."""

    def __init__(self, batch_size: int, seed: int = 0, samples: int = 1024) -> None:
        torch.manual_seed(seed)
        torch.set_num_threads(1)
        self.batch_size = batch_size
        self.images, self.labels = digits(samples, seed=1)
        self.validation = digits(512, seed=2)
        self.model: nn.Module = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
            nn.Linear(128, 10))
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=0.003)

    def batches(self, rank: int = 0, ranks: int = 1) -> list[Tensor]:
        """Returns the batches of an epoch as indices of samples; each rank gets its part."""
        order = torch.randperm(len(self.images))
        return [batch[rank::ranks] for batch in order.split(self.batch_size)]

    def step(self, batch: Tensor) -> float:
        """Learns from a batch and returns the loss."""
        self.optimizer.zero_grad()
        loss = nn.functional.cross_entropy(self.model(self.images[batch]), self.labels[batch])
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def accuracy(self) -> float:
        """Returns the accuracy on unseen samples, 0 to 1."""
        images, labels = self.validation
        with torch.no_grad():
            return (self.model(images).argmax(1) == labels).float().mean().item()
