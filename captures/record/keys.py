"""Certificates, passwords and shared secrets, all made for one run or made up; and the collected `.keys` file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lab import address, run

if TYPE_CHECKING:
    from pathlib import Path

IDENTITY = "pcapstat"
PSK = "secretPSK"
USER = "pcapstat"
PASSWORD = "made-up"
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
    run("keytool", "-importcert", "-noprompt", "-alias", "ca", "-file", str(work / "cafile.pem"), "-storetype", "PKCS12",
        "-storepass", STORE_PASSWORD, "-keystore", str(work / "trustStore.p12"))  # fmt: skip
    run("mosquitto_passwd", "-b", "-c", str(work / "passwords"), USER, PASSWORD)


def collect(work: Path, security: str) -> str:
    """Return the key file: TLS secrets in the NSS format, then lines of shared secrets that TLS readers pass over."""
    lines = {line for file in sorted(work.glob("*.secrets")) for line in file.read_text().splitlines() if " " in line}
    ordered = sorted(line for line in lines if not line.startswith("#"))
    if security == "DTLS 1.2 PSK":
        ordered.append(f"PSK {IDENTITY} {PSK.encode().hex()}")
    return "".join(f"{line}\n" for line in ordered)


def _new_key(file: Path) -> list[str]:
    return ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", str(file)]


def _sign(work: Path, key: str, certificate: str, subject: str, extension: str) -> None:
    request = str(work / f"{key}.csr")
    run("openssl", "req", *_new_key(work / f"{key}.pem"), "-subj", subject, "-out", request)
    (work / f"{key}.ext").write_text(extension + "\n")
    run("openssl", "x509", "-req", "-in", request, "-CA", str(work / "cafile.pem"), "-CAkey", str(work / "ca.key"),
        "-CAcreateserial", "-days", "3650", "-extfile", str(work / f"{key}.ext"),
        "-out", str(work / f"{certificate}.pem"))  # fmt: skip
