"""What of this folder holds no tests: programs of the gallery, and pages made by ``make docs``."""

collect_ignore_glob = ["gallery/*", "generated/*"]
