"""From YAML to typed values and a job: reader, schema, shapes; nothing here trains."""

from __future__ import annotations

from gradcli.config.build import build, check_model
from gradcli.config.load import Config, load
from gradcli.config.planned import PlannedLayer

__all__ = ["Config", "PlannedLayer", "build", "check_model", "load"]
