"""Certificates, passwords and shared secrets, all made for one run or made up; and the `.keys` file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lab import address, run

if TYPE_CHECKING:
    from pathlib import Path

IDENTITY = "pcapstat"
PSK = "secretPSK"
USER = "pcapstat"
PASSWORD = "made-up"
OSCORE_SECRET, OSCORE_SALT = "0102030405060708090a0b0c0d0e0f10", "9e7ca92223786340"
"""Master secret and salt (hex), those of RFC 8613 Appendix C.1.1."""
STORE_PASSWORD = "changeit"


def make_certificates(work: Path) -> None:
    """Make an authority, a server's and a client's certificate (P-256), as PEM and PKCS #12."""
    alternatives = ",".join(f"IP:{address(point)}" for point in ("receiver", "sender", "broker"))
    run("openssl", "req", "-x509", *_new_key(work / "ca.key"), "-days", "3650", "-subj", "/CN=pcapstat authority",
        "-out", str(work / "cafile.pem"))  # fmt: skip
    _sign(work, "keyfile", "certfile", "/CN=pcapstat server", f"subjectAltName=DNS:localhost,{alternatives}")
    _sign(work, "clientkey", "clientcert", "/CN=pcapstat client", "basicConstraints=CA:FALSE")
    run("openssl", "pkcs12", "-export", "-in", str(work / "certfile.pem"), "-inkey", str(work / "keyfile.pem"),
        "-passout", f"pass:{STORE_PASSWORD}", "-out", str(work / "keyStore.p12"))  # fmt: skip
    run("keytool", "-importcert", "-noprompt", "-alias", "ca", "-file", str(work / "cafile.pem"),
        "-storetype", "PKCS12", "-storepass", STORE_PASSWORD, "-keystore", str(work / "trustStore.p12"))  # fmt: skip
    run("mosquitto_passwd", "-b", "-c", str(work / "passwords"), USER, PASSWORD)


def key_log(work: Path) -> str:
    """Return the TLS and DTLS secrets of all programs, in the NSS key log format."""
    lines = {line for file in sorted(work.glob("*.secrets")) for line in file.read_text().splitlines() if " " in line}
    return "".join(f"{line}\n" for line in sorted(lines) if not line.startswith("#"))


def shared_secrets(security: str) -> str:
    """Return the line of a secret that both ends knew before; readers of key logs pass over it."""
    if security == "DTLS 1.2 PSK":
        return f"PSK {IDENTITY} {PSK.encode().hex()}\n"
    if security == "OSCORE":
        return f"OSCORE client-id=01 server-id=02 secret={OSCORE_SECRET} salt={OSCORE_SALT} AES-CCM-16-64-128 SHA-256\n"
    return ""


def _new_key(file: Path) -> list[str]:
    return ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", str(file)]


def _sign(work: Path, key: str, certificate: str, subject: str, extension: str) -> None:
    request = str(work / f"{key}.csr")
    run("openssl", "req", *_new_key(work / f"{key}.pem"), "-subj", subject, "-out", request)
    (work / f"{key}.ext").write_text(extension + "\n")
    run("openssl", "x509", "-req", "-in", request, "-CA", str(work / "cafile.pem"), "-CAkey", str(work / "ca.key"),
        "-CAcreateserial", "-days", "3650", "-extfile", str(work / f"{key}.ext"),
        "-out", str(work / f"{certificate}.pem"))  # fmt: skip
