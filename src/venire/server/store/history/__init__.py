"""Old parts of a stream's log in files: segments of Parquet, chained by their digests.

files     a segment's folder: written as a whole, checked, read; an archived item
segments  how far the next one goes; rows out of the store into it, and back
"""
