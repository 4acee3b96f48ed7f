"""HTTP: OpenAI's audio API and what operators ask. Validates, hands to the host side, encodes; computes nothing."""
