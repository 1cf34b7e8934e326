"""What Arkime, nDPI, Suricata and Zeek expect of their own captures (../shared/captures/README.md), where these are beside the checkout."""
