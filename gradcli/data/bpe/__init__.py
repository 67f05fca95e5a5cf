"""Texts as tokens of a tokenizer: any tokenizer.json, or one that is trained on the text.

Nothing is imported here: the library `tokenizers` is an extra.
"""
