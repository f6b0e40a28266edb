"""Search methods: one file each, with settings, presets, state, and `init`, `ask`, `tell`."""
