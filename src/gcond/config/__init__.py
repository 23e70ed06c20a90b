"""Settings, and finding things by name."""
