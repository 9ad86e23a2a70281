"""EDN, the notation of Clojure's data, read and written exactly and within bounds.

`values` are what it says, `reader` and `writer` turn text into them and back. Nothing is ever evaluated.
"""
