"""Tables of any size: readers that give typed columns block by block, and what is made of them.

reader.py says what a reader gives, csv_reader.py is the one without libraries; cells.py turns cells
into numbers and words; collected.py makes whole columns of the blocks.
"""
