"""Audio in, audio out: samples (pcm), encoders (write), and the decoder of uploads (read).

Imports nothing on its own: `read` belongs in sidecars only, because it decodes what strangers send.
"""
