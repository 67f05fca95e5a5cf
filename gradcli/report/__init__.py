"""What a run looks like afterwards: its files, read leniently, and one page of HTML from them."""
