"""Folders in which language models are published: GPT-2's kind and Llama's, as the hub has them."""
