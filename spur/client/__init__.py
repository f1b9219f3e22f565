"""The one door to a cluster: typed calls, leader discovery, retries."""
