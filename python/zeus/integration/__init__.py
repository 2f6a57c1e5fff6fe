"""Callbacks for the training loops of other packages, none of which is required.

- `zeus.integration.huggingface`: for `Trainer` of transformers, and what derives from it (TRL).
- `zeus.integration.lightning`: for `Trainer` of Lightning.
"""
