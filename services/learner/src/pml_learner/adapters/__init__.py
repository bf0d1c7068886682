"""Where traces and learning are kept."""
