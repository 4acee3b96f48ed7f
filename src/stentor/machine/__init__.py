"""What this machine is and what is known of its kind: chips, knobs and signatures as tables, profiles, probes."""
