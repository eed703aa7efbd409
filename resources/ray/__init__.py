"""Ray: a private instance on this machine, Ray jobs, Ray Data and KubeRay manifests."""
