"""Power limits just in time, selectors, profiles."""
