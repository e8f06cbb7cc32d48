"""The image built from `deploy/Dockerfile` and run in containers: buildah, podman and runc, without any registry of images."""
