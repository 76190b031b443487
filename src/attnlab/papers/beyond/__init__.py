"""Claims beyond both papers."""
