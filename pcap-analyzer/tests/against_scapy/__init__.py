"""The theory compared with scapy's encoders."""
