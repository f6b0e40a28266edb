"""jedax."""
