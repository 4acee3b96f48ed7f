"""The bodies of probes: what a child process computes to show that a device works."""
