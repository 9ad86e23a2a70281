"""A node that answers each ball with a ball, and costs nearly nothing. `run.py` starts it.

Its argument is the number of balls that it throws at the start. It has no library, and writes all answers to a read
at once.
"""

import json
import os
import sys

BALL = b'"type":"ball"'
WANTED = 1 << 16


def main() -> None:
    """Throws balls until stdin ends."""
    rest, ball = b"", b""
    while data := os.read(0, WANTED):
        *lines, rest = (rest + data).split(b"\n")
        balls = sum(BALL in line for line in lines)
        for line in lines:
            if BALL not in line:
                message = json.loads(line)
                body = message["body"]
                if "msg_id" not in body:
                    continue  # the peer of `run.py` passes on answers too
                answer = {"type": body["type"] + "_ok", "in_reply_to": body["msg_id"]}
                if body["type"] == "init":
                    (other,) = (name for name in body["node_ids"] if name != body["node_id"])
                    ball = f'{{"src":"{body["node_id"]}","dest":"{other}","body":{{{BALL.decode()}}}}}\n'.encode()
                    balls += int(sys.argv[1])
                elif "echo" in body:
                    answer["echo"] = body["echo"]
                os.write(
                    1, json.dumps({"src": message["dest"], "dest": message["src"], "body": answer}).encode() + b"\n"
                )
        if balls:
            os.write(1, ball * balls)


if __name__ == "__main__":
    main()
