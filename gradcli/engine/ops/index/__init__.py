"""Elements picked and replaced by index or by mask."""
