"""Elements in order: sorted, ranked, searched, unique."""
