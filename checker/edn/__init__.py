"""EDN, the notation of Clojure's data, read and written exactly and within bounds.

`values` has the Python types, `reader` and `writer` convert between text and these. Nothing is ever evaluated.
"""
