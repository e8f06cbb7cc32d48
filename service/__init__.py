"""mistakebound: predict at once, learn late and only from mistakes, prove every number.

Where things are: `core` decides (no I/O), `log` remembers (sqlite, Kafka), `worker` runs, `commands`
asks, `settings` holds every default.
"""
