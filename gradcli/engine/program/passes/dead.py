"""Dead calls: what nobody reads need not be computed."""

from __future__ import annotations

from gradcli.engine.program.record import Buffer, Call


def dead_calls(calls: list[Call]) -> list[Call]:
    """The calls whose results reach memory that is kept, and those that only check something."""
    live_buffers: set[Buffer] = set()
    living = []
    for call in reversed(calls):
        useful = not call.outputs or any(
            v.buffer.persistent or v.buffer in live_buffers for v in call.outputs
        )
        if useful:
            living.append(call)
            live_buffers.update(view.buffer for view in call.views)
    return living[::-1]
