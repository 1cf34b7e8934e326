"""The payloads of the studies; every payload holds its number as its first run of seven digits."""

from __future__ import annotations

import random
from itertools import cycle

HL7_SEGMENTS = {
    "ADT": "EVN|A01|{at}\rPID|1||{who}^^^WARD^MR||DOE^JANE^Q||19700101|F|||1 MAIN ST^^TOWN^^00000||555-0100|||S\r"
    "NK1|1|DOE^JOHN|SPO|1 MAIN ST^^TOWN|555-0101\rPV1|1|I|W^389^1^A||||0148^ADAMS^A|||SUR|||||||0148^ADAMS^A|S|1400|A",
    "ORM": "PID|1||{who}^^^WARD^MR||DOE^JANE^Q||19700101|F\rPV1|1|I|W^389^1^A||||0148^ADAMS^A\r"
    "ORC|NW|A{who}|||||^^^{at}^^R||{at}|0148^ADAMS^A\rOBR|1|A{who}||80048^BASIC PANEL^C4|||{at}|||||||||0148^ADAMS^A",
    "ORU": "PID|1||{who}^^^WARD^MR||DOE^JANE^Q||19700101|F\rOBR|1|A{who}||80048^BASIC PANEL^C4|||{at}\r"
    "OBX|1|NM|8867-4^HEART RATE^LN||{rate}|/min|60-100|N|||F\rOBX|2|NM|59408-5^SPO2^LN||{spo2}|%|95-100|N|||F\r"
    "OBX|3|NM|8310-5^TEMP^LN||37.0|Cel|36-38|N|||F",
    "DFT": "EVN|P03|{at}\rPID|1||{who}^^^WARD^MR||DOE^JANE^Q||19700101|F\rPV1|1|I|W^389^1^A||||0148^ADAMS^A\r"
    "FT1|1|||{at}|{at}|CG|80048^BASIC PANEL^C4|||1|||||||||0148^ADAMS^A||||A{who}\rDG1|1|I9|V70.0^EXAM^I9",
}
"""HL7 v2 segments after MSH, segment ends as `~` until the end; all persons are invented."""
HL7_SHARES = {"ADT": 2, "ORM": 3, "ORU": 4, "DFT": 1}
"""Messages of each kind among ten."""


def hi(count: int) -> list[str]:
    """Study A: ten bytes, `Hi!0000001` and on."""
    return [f"Hi!{number:07}" for number in range(1, count + 1)]


def sized(count: int, size: int) -> list[str]:
    """Messages of `size` bytes (at least 10) that begin as Study A's do; a smaller one is cut."""
    return [f"Hi!{number:07}".ljust(size, ".")[: max(size, 1)] for number in range(1, count + 1)]


def hl7(count: int) -> list[str]:
    """Study B: HL7 v2 messages of four kinds in fixed proportions; the number is MSH-10."""
    draw = random.Random(7)
    kinds = cycle([kind for kind, share in HL7_SHARES.items() for _ in range(share)])
    payloads = []
    for number in range(1, count + 1):
        kind = next(kinds)
        fields = {
            "at": "202401",
            "who": f"{number % 1000:03}",
            "rate": draw.randint(60, 100),
            "spo2": draw.randint(95, 99),
        }
        head = f"MSH|^~\\&|MONITOR|WARD|RECORDS|HOSPITAL|202401||{kind}|{number:07}|P|2.3|||AL|NE||||\r"
        head += f"NTE|1|L|ROUTINE MESSAGE OF THE WARD, WRITTEN BY THE RECORDER; NO PERSON IN IT EXISTS ({kind})"
        payloads.append(f"{head}\r{HL7_SEGMENTS[kind].format(**fields)}")
    return payloads
