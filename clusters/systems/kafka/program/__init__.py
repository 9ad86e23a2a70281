"""The part of the client that calls librdkafka: it blocks, and knows nothing of Labrys.

On real nodes, it is a part of this process. In virtual time, `main.py` serves it as a program of the simulation, because the
library has threads and sockets of its own. So it uses nothing but Python and the library.
"""
