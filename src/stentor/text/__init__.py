"""Text on its way to a voice and back: clean-up (normalise), cutting (split), subtitles (captions), language names.

Imports nothing on its own, so that a command which needs one part does not pay for the others.
"""
