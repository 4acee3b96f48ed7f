"""The sync-free decoding core (DESIGN.md 6): knows engines as data and steps, and neither the sidecar nor the host."""
