"""The captured program: a step recorded once, made smaller, planned, and replayed without Python.

record.py writes down the calls, passes/ rewrite their list, schedule.py cuts it into waves, plan.py
gives every intermediate an offset in one arena, replay.py hands the whole to C. entry.py leads one
signature that way, and capture.py is the door to it all: `engine.capture(step)`.
"""

from gradcli.engine.program.capture import Captured, capture

__all__ = ["Captured", "capture"]
