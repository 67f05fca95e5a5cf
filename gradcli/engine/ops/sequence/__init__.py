"""Layers over the steps of a sequence: attention, rotary positions, recurrence."""
