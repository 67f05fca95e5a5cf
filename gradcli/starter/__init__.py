"""First configs, from templates or from a user's own data, and what the words in them mean."""
