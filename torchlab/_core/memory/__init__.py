"""Device memory: storages, and the caching allocator that cuts segments into blocks."""
