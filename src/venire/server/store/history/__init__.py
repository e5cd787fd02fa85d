"""Old parts of a stream's log in files: segments of Parquet, chained by their digests.

files     a segment's folder: written as a whole, checked, read
planning  how far the next segment goes
moving    rows out of the store, and back into it
finding   an archived item
"""
