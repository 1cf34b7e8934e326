"""A link that loses, delays and reorders frames by a seeded plan.

Use: `relay.py POINT… loss=0.1 delay_ms=5 reorder=0.1 hold_ms=30 seed=1`.

Stands in for netem: every device named by a point is read raw, each IPv4 frame drawn for, and sent out of the device
behind which its destination lives. ARP always passes. Ends on SIGTERM and then prints what it did.
"""

from __future__ import annotations

import heapq
import random
import selectors
import signal
import socket
import sys
import time

IPV4 = b"\x08\x00"
OUTGOING = 4  # PACKET_OUTGOING of packet(7)


def main(arguments: list[str]) -> None:
    """Forward until SIGTERM."""
    points = [argument for argument in arguments if "=" not in argument]
    plan = {key: float(value) for key, value in (a.split("=") for a in arguments if "=" in a)}
    draw = random.Random(plan.get("seed", 1))
    devices = {number: _device(point) for number, point in enumerate(points, start=1)}
    counts = {"forwarded": 0, "dropped": 0, "held": 0}
    late: list[tuple[float, int, int, bytes]] = []
    running = [True]
    signal.signal(signal.SIGTERM, lambda *_: running.clear())
    selector = selectors.DefaultSelector()
    for number, device in devices.items():
        selector.register(device, selectors.EVENT_READ, number)
    serial = 0
    while running:
        pause = max(0.0, late[0][0] - time.monotonic()) if late else 0.2
        for key, _ in selector.select(pause):
            frame, origin = devices[key.data].recvfrom(65536)
            if origin[2] == OUTGOING:
                continue
            serial += 1
            when = _when(frame, plan, draw, counts)
            if when is not None:
                heapq.heappush(late, (when, serial, key.data, frame))
        while late and late[0][0] <= time.monotonic():
            _, _, origin_number, frame = heapq.heappop(late)
            _forward(frame, origin_number, devices)
    print(" ".join(f"{name}={count}" for name, count in counts.items()), flush=True)


def _device(point: str) -> socket.socket:
    device = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    device.bind((point, 0))
    return device


def _when(frame: bytes, plan: dict[str, float], draw: random.Random, counts: dict[str, int]) -> float | None:
    """Return when to send `frame` (monotonic seconds), or None when it is to be lost."""
    now = time.monotonic()
    if frame[12:14] != IPV4:
        return now
    if draw.random() < plan.get("loss", 0):
        counts["dropped"] += 1
        return None
    delay = plan.get("delay_ms", 0)
    if draw.random() < plan.get("reorder", 0):
        counts["held"] += 1
        delay += plan.get("hold_ms", 0)
    counts["forwarded"] += 1
    return now + delay / 1000


def _forward(frame: bytes, origin: int, devices: dict[int, socket.socket]) -> None:
    """Send to the point whose number ends the hardware address, or to all for a group address."""
    target = frame[5]
    for number, device in devices.items():
        if number != origin and (frame[0] & 1 or number == target):
            device.send(frame)


if __name__ == "__main__":
    main(sys.argv[1:])
